//! Small files that nobody else may read, replaced whole.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The system refused something about a file.
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be {action}: {source}", path = path.display())]
pub struct FileError {
    /// The file or folder.
    pub path: PathBuf,
    /// What was tried.
    pub action: &'static str,
    /// The system's reason.
    pub source: io::Error,
}

impl FileError {
    pub(super) fn at(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { path: path.to_owned(), action, source }
    }
}

/// Tells apart versions of a file that is only ever replaced whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    modified: Option<std::time::SystemTime>,
    /// Device and inode. An inode is not given to another file as long as this one is open.
    #[cfg(unix)]
    inode: (u64, u64),
}

impl Stamp {
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

/// Creates a new file of mode 0600.
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

/// Creates a folder of mode 0700, and those above it.
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

/// Puts `bytes` at `path`, in place of what was there; before this returns, they would survive a power loss.
/// A crash leaves what was there, or all of `bytes`. The file, which is still open, is returned.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<File, FileError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut beside = OsString::from(".");
    beside.push(path.file_name().unwrap_or_default());
    beside.push(format!(".{}-{count}.part", std::process::id()));
    let beside = path.with_file_name(beside);
    // Left behind by a process of this number that was killed.
    let _ = fs::remove_file(&beside);
    let written = create_private(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        Ok(file)
    });
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    let file = written.map_err(FileError::at(path, "written"))?;
    sync_folder_of(path).map_err(FileError::at(path, "made durable"))?;
    Ok(file)
}

/// Makes a file's entry in its folder durable.
#[cfg(unix)]
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// Elsewhere folders cannot be opened; the system writes entries in its own time.
#[cfg(not(unix))]
pub(super) fn sync_folder_of(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// The folder that a path names an entry of.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Reads a file of at most `most` bytes, and keeps it open.
pub(crate) fn read_at_most(path: &Path, most: u64) -> Result<(File, Vec<u8>), FileError> {
    let read = || {
        let regular = |metadata: fs::Metadata| {
            let refuse = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
            if metadata.is_file() { Ok(()) } else { Err(refuse()) }
        };
        // To open a pipe would wait for whoever writes into it.
        regular(fs::metadata(path)?)?;
        let file = File::open(path)?;
        regular(file.metadata()?)?;
        let mut bytes = Vec::new();
        (&file).take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "it is larger than any that is written here",
            ));
        }
        Ok((file, bytes))
    };
    read().map_err(FileError::at(path, "read"))
}

/// Waits for the lock on the file at `path`, which is created if need be. The lock ends with the handle, or with
/// the process, however that ends.
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

/// The mode of a file that everybody on this machine may use; `None` if it is closed to others, or if this
/// system has no modes. The group is left alone: container platforms open volumes to a group of their own.
#[cfg(unix)]
pub(super) fn open_to_others(file: &File) -> io::Result<Option<u32>> {
    use std::os::unix::fs::PermissionsExt;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    Ok((mode & 0o007 != 0).then_some(mode))
}

/// The mode of a file that everybody on this machine may use; this system has no modes.
#[cfg(not(unix))]
pub(super) fn open_to_others(_file: &File) -> io::Result<Option<u32>> {
    Ok(None)
}
