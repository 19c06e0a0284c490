//! Files in object storage: S3 and what speaks its protocol, Google Cloud Storage, Azure Blob
//! Storage, or a directory under a `file:` URL.

use std::env;
use std::error::Error as StdError;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectStore, ObjectStoreExt, ObjectStoreScheme, parse_url_opts};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use url::Url;

use super::result_files::ResultFilesError;
use crate::atomic_file::AtomicFile;

/// The beginnings of the names of the environment variables with addresses and credentials.
const VARIABLES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// The maximum number of files that are copied at the same time.
const AT_ONCE: usize = 16;

/// The files under one URL.
#[derive(Debug)]
pub(super) struct ObjectStorage {
    url: String,
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    runtime: Runtime,
}

/// An attempted operation, for messages.
type Action = &'static str;

fn failed(url: &str, action: Action, error: &Error) -> ResultFilesError {
    let is_permanent = !matches!(error, Error::Generic { .. } | Error::JoinError { .. });
    ResultFilesError::Storage { url: url.to_owned(), action, is_permanent, why: reason(error) }
}

/// Returns the reason of an error in one line: the server's own message, or else the text of the
/// error and that of its innermost cause.
fn reason(error: &Error) -> String {
    let text = error.to_string();
    if let Some((_, message)) = text.split_once("<Message>")
        && let Some((message, _)) = message.split_once("</Message>")
    {
        return message.to_owned();
    }
    let mut innermost: &dyn StdError = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    let innermost = innermost.to_string();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.contains(&innermost) { text } else { format!("{text}: {innermost}") }
}

impl ObjectStorage {
    /// Creates access to the files under `url`, without connecting. The credentials are those of the
    /// environment.
    pub(super) fn open(url: &str) -> Result<Self, ResultFilesError> {
        let invalid = |why: String| ResultFilesError::Url { url: url.to_owned(), why };
        let parsed = Url::parse(url).map_err(|error| invalid(error.to_string()))?;
        let (scheme, _) =
            ObjectStoreScheme::parse(&parsed).map_err(|error| invalid(error.to_string()))?;
        if matches!(scheme, ObjectStoreScheme::Http | ObjectStoreScheme::Memory) {
            return Err(invalid("it is not one of object storage".to_owned()));
        }
        // Fails if the process has a provider already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let variables = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| VARIABLES.iter().any(|beginning| name.starts_with(beginning)));
        let (store, prefix) =
            parse_url_opts(&parsed, variables).map_err(|error| invalid(reason(&error)))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            failed(url, "used", &Error::Generic { store: "tokio", source: error.into() })
        })?;
        Ok(Self { url: url.to_owned(), store: store.into(), prefix, runtime })
    }

    /// Returns the name and the URL of a file.
    fn object(&self, name: &str) -> (ObjectPath, String) {
        (self.prefix.clone().join(name), format!("{}/{name}", self.url.trim_end_matches('/')))
    }

    /// Returns the URL of a file.
    pub(super) fn url_of(&self, name: &str) -> String {
        self.object(name).1
    }

    /// Copies a file to `folder`. Returns false if there is none of this name.
    pub(super) fn get(&self, name: &str, folder: &Path) -> Result<bool, ResultFilesError> {
        let (object, url) = self.object(name);
        self.runtime.block_on(copy(Arc::clone(&self.store), object, url, folder.join(name)))
    }

    /// Copies files to `folder`, and calls `done` with the number of those copied so far. A file
    /// that is removed in the meantime is left out.
    pub(super) fn get_all(
        &self,
        names: &[String],
        folder: &Path,
        mut done: impl FnMut(usize),
    ) -> Result<(), ResultFilesError> {
        self.runtime.block_on(async {
            let mut tasks = JoinSet::new();
            let mut copied = 0;
            let mut names = names.iter();
            loop {
                while tasks.len() < AT_ONCE
                    && let Some(name) = names.next()
                {
                    let (object, url) = self.object(name);
                    tasks.spawn(copy(Arc::clone(&self.store), object, url, folder.join(name)));
                }
                let Some(result) = tasks.join_next().await else { return Ok(()) };
                result.map_err(|error| failed(&self.url, "read", &error.into()))??;
                copied += 1;
                done(copied);
            }
        })
    }

    /// Replaces a file by the one at `path`.
    pub(super) fn put(&self, name: &str, path: &Path) -> Result<(), ResultFilesError> {
        let (object, url) = self.object(name);
        let unusable = |source| ResultFilesError::Folder { path: path.to_owned(), source };
        let bytes = fs::read(path).map_err(unusable)?;
        let written = self.runtime.block_on(self.store.put(&object, bytes.into()));
        written.map(drop).map_err(|error| failed(&url, "written", &error))
    }

    /// Removes a file, if there is one.
    pub(super) fn remove(&self, name: &str) -> Result<(), ResultFilesError> {
        let (object, url) = self.object(name);
        match self.runtime.block_on(self.store.delete(&object)) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(&url, "removed", &error)),
        }
    }

    /// Returns the names of all files, sorted.
    pub(super) fn names(&self) -> Result<Vec<String>, ResultFilesError> {
        let listed = self.store.list_with_delimiter(Some(&self.prefix));
        let listed = self.runtime.block_on(listed);
        let listed = listed.map_err(|error| failed(&self.url, "listed", &error))?;
        let names = listed.objects.iter().filter_map(|object| object.location.filename());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        Ok(names)
    }
}

/// Copies the object at `url` to the file at `path`. Returns false if there is no such object.
async fn copy(
    store: Arc<dyn ObjectStore>,
    object: ObjectPath,
    url: String,
    path: PathBuf,
) -> Result<bool, ResultFilesError> {
    let read = async { store.get(&object).await?.bytes().await };
    let bytes = match read.await {
        Ok(bytes) => bytes,
        Err(Error::NotFound { .. }) => return Ok(false),
        Err(error) => return Err(failed(&url, "read", &error)),
    };
    let written = AtomicFile::begin(&path).and_then(|file| file.finish_durably(&bytes));
    written.map_err(|source| ResultFilesError::Folder { path, source })?;
    Ok(true)
}
