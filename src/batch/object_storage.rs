//! Files in object storage: S3 and storage that is compatible with it, Google Cloud Storage, Azure
//! Blob Storage, or a directory under a `file:` URL.

use std::env;
use std::error::Error as StdError;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectStore, ObjectStoreExt, ObjectStoreScheme, parse_url_opts};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use url::Url;

use super::result_files::ResultFilesError;

/// The beginnings of the names of the environment variables with addresses and credentials.
const VARIABLES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// The maximum number of files that are copied at the same time.
const AT_ONCE: usize = 16;

/// The time limit for writing a file, in seconds, in addition to its size divided by this rate.
const PUT_S: u64 = 20;
const LEAST_BYTES_PER_S: u64 = 1_000_000;

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
    let is_permanent = matches!(
        error,
        Error::NotFound { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::InvalidPath { .. }
            | Error::NotSupported { .. }
            | Error::NotImplemented { .. }
            | Error::UnknownConfigurationKey { .. }
    );
    ResultFilesError::Storage { url: url.to_owned(), action, is_permanent, why: reason(error) }
}

/// Returns the reason of an error in one line of limited length: the message of the server, or else
/// the text of the error and that of its innermost cause.
fn reason(error: &Error) -> String {
    const MOST_CHARS: usize = 400;
    let text = one_line(&error.to_string());
    let mut innermost: &dyn StdError = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    let innermost = one_line(&innermost.to_string());
    let reason = match server_message(&text) {
        Some(message) => message,
        None if text.contains(&innermost) => text,
        None => format!("{text}: {innermost}"),
    };
    match reason.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason,
    }
}

/// Returns the message in an XML answer of a server.
fn server_message(text: &str) -> Option<String> {
    let (_, message) = text.split_once("<Message>")?;
    let (message, _) = message.split_once("</Message>")?;
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    let decode = |text: String, (entity, character): &(&str, &str)| text.replace(entity, character);
    Some(entities.iter().fold(message.trim().to_owned(), decode))
}

/// Returns a text without line feeds and other control characters.
fn one_line(text: &str) -> String {
    let visible: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl ObjectStorage {
    /// Creates access to the files under `url`, without connecting. The credentials are those of
    /// the environment.
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
        // Credentials are missing, or this machine has no certificates of authorities.
        let unusable = |why: String| ResultFilesError::Storage {
            url: url.to_owned(),
            action: "used",
            is_permanent: true,
            why,
        };
        let (store, prefix) =
            parse_url_opts(&parsed, variables).map_err(|error| unusable(reason(&error)))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| unusable(error.to_string()))?;
        Ok(Self { url: url.to_owned(), store: store.into(), prefix, runtime })
    }

    /// Returns the URL of a file.
    pub(super) fn url_of(&self, name: &str) -> String {
        format!("{}/{name}", self.url.trim_end_matches('/'))
    }

    fn object(&self, name: &str) -> ObjectPath {
        self.prefix.clone().join(name)
    }

    /// Copies a file to `folder`. Returns false if there is none of this name.
    pub(super) fn get(&self, name: &str, folder: &Path) -> Result<bool, ResultFilesError> {
        let copy = copy(Arc::clone(&self.store), self.object(name), folder.join(name));
        match self.runtime.block_on(copy) {
            Ok(()) => Ok(true),
            Err(CopyError::Object(Error::NotFound { .. })) => Ok(false),
            Err(error) => Err(error.at(&self.url_of(name))),
        }
    }

    /// Copies all files with one of these extensions to `folder`. Calls `step` with the numbers of
    /// files so far and in all.
    pub(super) fn get_all(
        &self,
        extensions: &[&str],
        folder: &Path,
        mut step: impl FnMut(usize, usize),
    ) -> Result<(), ResultFilesError> {
        self.runtime.block_on(async {
            let listed = self.store.list_with_delimiter(Some(&self.prefix)).await;
            let listed = listed.map_err(|error| failed(&self.url, "listed", &error))?;
            let mut files = Vec::new();
            for object in listed.objects {
                let name = object.location.filename().unwrap_or_default().to_owned();
                let extension = Path::new(&name).extension().and_then(OsStr::to_str);
                if extension.is_some_and(|extension| extensions.contains(&extension)) {
                    if !is_file_name(&name) {
                        return Err(CopyError::Name.at(&self.url_of(&name)));
                    }
                    files.push((object.location, name));
                }
            }
            let all = files.len();
            let mut files = files.into_iter();
            let mut tasks = JoinSet::new();
            let mut copied = 0;
            loop {
                while tasks.len() < AT_ONCE
                    && let Some((object, name)) = files.next()
                {
                    let (url, path) = (self.url_of(&name), folder.join(name));
                    let copy = copy(Arc::clone(&self.store), object, path);
                    tasks.spawn(async move { copy.await.map_err(|error| error.at(&url)) });
                }
                let Some(result) = tasks.join_next().await else { return Ok(()) };
                result.map_err(|error| failed(&self.url, "read", &error.into()))??;
                copied += 1;
                step(copied, all);
            }
        })
    }

    /// Replaces a file by the one at `path`.
    pub(super) fn put(&self, name: &str, path: &Path) -> Result<(), ResultFilesError> {
        let bytes = fs::read(path).map_err(|error| CopyError::file(path)(error).at(""))?;
        let object = self.object(name);
        // A task that is stopped has little time left.
        let limit = Duration::from_secs(PUT_S + bytes.len() as u64 / LEAST_BYTES_PER_S);
        let put = self.store.put(&object, bytes.into());
        let put = async { tokio::time::timeout(limit, put).await };
        let timed_out = |_| Error::Generic {
            store: "the storage",
            source: format!("no success within {} s", limit.as_secs()).into(),
        };
        let written = self.runtime.block_on(put).map_err(timed_out).flatten();
        written.map(drop).map_err(|error| failed(&self.url_of(name), "written", &error))
    }

    /// Removes a file, if there is one.
    pub(super) fn remove(&self, name: &str) -> Result<(), ResultFilesError> {
        match self.runtime.block_on(self.store.delete(&self.object(name))) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(&self.url_of(name), "removed", &error)),
        }
    }
}

/// Returns whether a name from object storage names a file in a directory, on every system.
fn is_file_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(_)), None))
        && !name.contains(['/', '\\', ':'])
}

/// The reason that an object cannot be copied to a file.
enum CopyError {
    Object(Error),
    File(PathBuf, io::Error),
    Name,
}

impl CopyError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::File(path.to_owned(), error)
    }

    /// Returns the error for the object at `url`.
    fn at(self, url: &str) -> ResultFilesError {
        match self {
            Self::Object(error) => failed(url, "read", &error),
            Self::File(path, source) => ResultFilesError::Folder { path, source },
            Self::Name => ResultFilesError::Storage {
                url: one_line(url),
                action: "read",
                is_permanent: true,
                why: "its name cannot be that of a file".to_owned(),
            },
        }
    }
}

/// Copies an object to the file at `path`.
async fn copy(
    store: Arc<dyn ObjectStore>,
    object: ObjectPath,
    path: PathBuf,
) -> Result<(), CopyError> {
    let read = async { store.get(&object).await?.bytes().await };
    let bytes = read.await.map_err(CopyError::Object)?;
    fs::write(&path, bytes).map_err(CopyError::file(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> Error {
        Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn errors_of_servers_are_shown_in_one_line() {
        for (text, shown) in [
            ("404: <Error><Message>No such bucket</Message></Error>", "No such bucket"),
            ("<Message>Failed.\nRequestId:1\r\nTime:2</Message>", "Failed. RequestId:1 Time:2"),
            ("<Message>&apos;a&amp;lt;&apos; &lt; b</Message>", "'a&lt;' < b"),
            ("<Message>\u{1b}[2J</Message>", "[2J"),
            ("<Message>unclosed\nnext", "Generic S3 error: <Message>unclosed next"),
        ] {
            assert_eq!(reason(&server(text)), shown);
        }
        assert_eq!(reason(&server(&"long ".repeat(1000))).chars().count(), 401);
    }

    #[test]
    fn the_innermost_cause_is_shown() {
        let refused = io::Error::other(io::Error::other("connection refused"));
        let error = Error::Generic { store: "S3", source: Box::new(refused) };
        assert!(reason(&error).ends_with("connection refused"), "{}", reason(&error));
    }

    #[test]
    fn only_names_of_files_are_accepted() {
        assert!(is_file_name("part-0-of-2.run"));
        for name in ["", ".", "..", "a/b.run", r"..\b.run", "C:b.run", "/b.run"] {
            assert!(!is_file_name(name), "{name}");
        }
    }
}
