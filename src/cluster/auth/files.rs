//! Small files that no other user may read and that are only replaced as a whole.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::atomic_file::AtomicFile;

/// A file operation that failed.
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be {action}: {source}", path = path.display())]
pub struct FileError {
    /// The file or directory.
    pub path: PathBuf,
    /// The operation that failed, as a past participle.
    pub action: &'static str,
    /// The system's error.
    pub source: io::Error,
}

impl FileError {
    pub(super) fn at(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { path: path.to_owned(), action, source }
    }
}

/// Distinguishes the versions of a file that is only ever replaced as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileVersion {
    bytes: u64,
    modified: Option<std::time::SystemTime>,
    /// Device and inode. An inode is not reused while the file is open.
    #[cfg(unix)]
    inode: (u64, u64),
}

impl FileVersion {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: {
                use std::os::unix::fs::MetadataExt;
                (metadata.dev(), metadata.ino())
            },
        }
    }
}

/// Creates a new file with mode 0600.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

/// Creates a directory with mode 0700, and its missing parents.
pub(super) fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Atomically replaces the file at `path` by `bytes`, which survive a power loss once this returns.
/// After a crash, the file has either its old content or all of `bytes`. Returns the open file.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<File, FileError> {
    let replaced = AtomicFile::begin_private(path).and_then(|file| file.finish_durably(bytes));
    replaced.map_err(FileError::at(path, "written"))
}

/// Creates the file at `path`, with `bytes` that survive a power loss once this returns. Returns
/// false if there is one, which is not changed.
pub(super) fn create(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    let created = AtomicFile::begin_private(path).and_then(|file| file.finish_new(bytes));
    created.map_err(FileError::at(path, "written"))
}

/// Returns the directory of the entry that a path names.
pub(super) fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Reads a file of at most `most` bytes, and returns it open.
pub(crate) fn read_at_most(path: &Path, most: u64) -> Result<(File, Vec<u8>), FileError> {
    let read = || {
        let regular = |metadata: fs::Metadata| {
            let irregular = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            if metadata.is_file() { Ok(()) } else { Err(irregular()) }
        };
        // Opening a pipe would block until a writer appears.
        regular(fs::metadata(path)?)?;
        let file = File::open(path)?;
        regular(file.metadata()?)?;
        let mut bytes = Vec::new();
        (&file).take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is too large"));
        }
        Ok((file, bytes))
    };
    read().map_err(FileError::at(path, "read"))
}

/// Reads a file of at most `most` bytes that not every user of this machine may access, and returns
/// it open. Otherwise fails with the error that `exposed` returns for the path and the mode.
pub(super) fn read_private<E: From<FileError>>(
    path: &Path,
    most: u64,
    exposed: impl FnOnce(PathBuf, u32) -> E,
) -> Result<(File, Vec<u8>), E> {
    let (file, bytes) = read_at_most(path, most)?;
    match open_to_others(&file).map_err(FileError::at(path, "read"))? {
        Some(mode) => Err(exposed(path.to_owned(), mode)),
        None => Ok((file, bytes)),
    }
}

/// Waits for the lock on the file at `path`, which is created if needed. The lock ends with the
/// handle or the process, however that ends.
pub(super) fn lock(path: &Path) -> Result<File, FileError> {
    let open = || {
        let file = match create_private(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                OpenOptions::new().read(true).write(true).open(path)?
            }
            created => created?,
        };
        file.lock()?;
        Ok(file)
    };
    open().map_err(FileError::at(path, "locked"))
}

/// Returns the file's mode if every user of this machine may access it, and `None` otherwise. The
/// group is ignored: container platforms give volumes a group of their own.
#[cfg(unix)]
fn open_to_others(file: &File) -> io::Result<Option<u32>> {
    use std::os::unix::fs::PermissionsExt;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    Ok((mode & 0o007 != 0).then_some(mode))
}

/// Returns `None`: this system has no file modes.
#[cfg(not(unix))]
fn open_to_others(_file: &File) -> io::Result<Option<u32>> {
    Ok(None)
}
