//! The files of all parts of a plan: in a directory that all tasks share, or in object storage.

use std::env;
use std::io;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use tempfile::TempDir;

use super::merge::{DONE, result_file, unfinished_file};
use super::object_storage::ObjectStorage;
use super::plan_file::PlanFile;
use super::signatures::{SIGNED, signatures_file};

/// The files of all parts. Those in object storage are copied to and from a temporary directory.
#[derive(Debug)]
pub struct ResultFiles {
    folder: PathBuf,
    remote: Option<ObjectStorage>,
    /// The temporary directory, which is removed when this is dropped.
    _temporary: Option<TempDir>,
}

/// The reason that the files of parts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResultFilesError {
    /// A URL does not name object storage.
    #[error(
        "{url} cannot be used: {why}; use a directory, or a URL such as s3://BUCKET/PREFIX, \
         gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
    )]
    Url {
        /// The URL.
        url: String,
        /// The reason.
        why: String,
    },
    /// The program was built without the feature `object-store`.
    #[error("{0} is in object storage, which this build does not support; use a directory")]
    NotBuilt(String),
    /// An operation of object storage failed.
    #[error("{url} cannot be {action}: {why}")]
    Storage {
        /// The URL.
        url: String,
        /// The attempted operation.
        action: &'static str,
        /// True if repeating it is of no use.
        is_permanent: bool,
        /// The reason, in one line.
        why: String,
    },
    /// A local file or directory cannot be used.
    #[error("{path} cannot be used: {source}", path = .path.display())]
    Folder {
        /// The file or directory.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
}

impl ResultFilesError {
    /// Returns whether repeating the operation is of no use.
    pub const fn is_permanent(&self) -> bool {
        match self {
            Self::Url { .. } | Self::NotBuilt(_) => true,
            Self::Storage { is_permanent, .. } => *is_permanent,
            Self::Folder { .. } => false,
        }
    }
}

/// Returns the name of the file at `path`.
fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

impl ResultFiles {
    /// Returns the files at `place`, a directory or a URL of object storage.
    ///
    /// # Errors
    /// The URL cannot be used, or there is no temporary directory.
    pub fn open(place: &Path) -> Result<Self, ResultFilesError> {
        let Some(url) = place.to_str().filter(|text| text.contains("://")) else {
            return Ok(Self { folder: place.to_owned(), remote: None, _temporary: None });
        };
        let storage = ObjectStorage::open(url)?;
        let folder = tempfile::Builder::new().prefix("nqueens-").tempdir();
        let folder =
            folder.map_err(|source| ResultFilesError::Folder { path: env::temp_dir(), source })?;
        let path = folder.path().to_owned();
        Ok(Self { folder: path, remote: Some(storage), _temporary: Some(folder) })
    }

    /// Returns the directory with the files on this machine.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path or the URL of a file, as shown to users.
    pub fn shown(&self, path: &Path) -> String {
        match &self.remote {
            Some(storage) => storage.url_of(name(path)),
            None => path.display().to_string(),
        }
    }

    /// Replaces the paths of files in the temporary directory by their URLs.
    pub fn with_urls(&self, message: &str) -> String {
        match &self.remote {
            Some(storage) => {
                let folder = format!("{}{MAIN_SEPARATOR}", self.folder.display());
                message.replace(&folder, &storage.url_of(""))
            }
            None => message.to_owned(),
        }
    }

    /// Gets the files of a part from object storage, if there are any: its result with the
    /// signatures, or the units that are counted.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn get_part(&self, plan: &PlanFile, index: u64) -> Result<(), ResultFilesError> {
        let Some(storage) = &self.remote else { return Ok(()) };
        let result = result_file(&self.folder, plan, index);
        let get = |path: &Path| storage.get(name(path), &self.folder);
        // The result is stored last, so it is there with its signatures.
        if get(&result)? {
            get(&signatures_file(&result))?;
        } else {
            get(&unfinished_file(&self.folder, plan, index))?;
        }
        Ok(())
    }

    /// Saves the units of a part that are counted in object storage, so that any machine can resume
    /// it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put_unfinished(&self, plan: &PlanFile, index: u64) -> Result<(), ResultFilesError> {
        let Some(storage) = &self.remote else { return Ok(()) };
        let path = unfinished_file(&self.folder, plan, index);
        storage.put(name(&path), &path)
    }

    /// Saves the result of a part in object storage, with its signatures if it is signed.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn put_result(&self, plan: &PlanFile, index: u64) -> Result<(), ResultFilesError> {
        let Some(storage) = &self.remote else { return Ok(()) };
        let result = result_file(&self.folder, plan, index);
        let signatures = signatures_file(&result);
        if signatures.exists() {
            storage.put(name(&signatures), &signatures)?;
        }
        storage.put(name(&result), &result)
    }

    /// Removes the saved units of a part from object storage, once its result is there.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove_unfinished(&self, plan: &PlanFile, index: u64) -> Result<(), ResultFilesError> {
        let Some(storage) = &self.remote else { return Ok(()) };
        storage.remove(name(&unfinished_file(&self.folder, plan, index)))
    }

    /// Gets the results of all parts from object storage, with their signatures if `signed`. Calls
    /// `step` with the numbers of files so far and in all.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn get_results(
        &self,
        signed: bool,
        step: impl FnMut(usize, usize),
    ) -> Result<(), ResultFilesError> {
        let Some(storage) = &self.remote else { return Ok(()) };
        let extensions = if signed { &[DONE, SIGNED][..] } else { &[DONE] };
        storage.get_all(extensions, &self.folder, step)
    }
}
