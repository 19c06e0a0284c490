//! The storage of a checkpoint: a file on disk, or a simulated one that a test can crash.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::atomic_file::{self, AtomicFile};

/// The maximum size of a checkpoint in bytes. A job of a million units needs less.
pub(super) const LARGEST_FILE: u64 = 1 << 30;

/// A growing sequence of bytes that can be made durable.
pub trait Storage {
    /// Reads all bytes.
    ///
    /// # Errors
    /// Returns an error if they cannot be read.
    fn read(&mut self) -> io::Result<Vec<u8>>;

    /// Truncates the content to `len` bytes and appends `bytes`.
    ///
    /// # Errors
    /// Returns an error if they cannot be written; any part of them may have been.
    fn write_at_end(&mut self, len: u64, bytes: &[u8]) -> io::Result<()>;

    /// Waits until everything written would survive a power loss.
    ///
    /// # Errors
    /// Returns an error if it would not.
    fn sync(&mut self) -> io::Result<()>;

    /// Replaces the whole content atomically and durably. Returns false if that is impossible here;
    /// the content is then unchanged.
    ///
    /// # Errors
    /// Returns an error if it is unknown which content would survive a power loss.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<bool>;
}

/// A file on disk, locked against other processes while it is open.
#[derive(Debug)]
pub struct DiskFile {
    path: PathBuf,
    file: File,
    /// The file that this one has replaced, still locked: another process may have opened it just
    /// before, and must not be able to lock it.
    _replaced: Option<File>,
}

impl DiskFile {
    /// Opens or creates the file at `path` and locks it. Returns `Ok(None)` if another process has
    /// locked it. The lock is on the file itself, and the system releases it when the process ends.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened for reading and writing, or is not a regular
    /// file.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // A file with content was opened while it was empty, so its directory entry is durable.
        if metadata.len() == 0 {
            atomic_file::sync_directory_of(path)?;
        }
        // A link is kept if the file is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        Ok(Some(Self { path, file, _replaced: None }))
    }

    /// Writes a locked file with this content, and moves it to the path of this one.
    fn replacement(&self, bytes: &[u8]) -> io::Result<File> {
        let new = AtomicFile::begin_open(&self.path)?;
        let file = new.file().try_clone()?;
        file.set_permissions(self.file.metadata()?.permissions())?;
        file.try_lock()?;
        new.finish_with(|out| out.write_all(bytes))?;
        Ok(file)
    }
}

impl Storage for DiskFile {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(0))?;
        atomic_file::read_open(&self.file, LARGEST_FILE)
    }

    fn write_at_end(&mut self, len: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.set_len(len)?;
        self.file.seek(SeekFrom::Start(len))?;
        self.file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let Ok(file) = self.replacement(bytes) else { return Ok(false) };
        self._replaced = Some(std::mem::replace(&mut self.file, file));
        atomic_file::sync_directory_of(&self.path)?;
        Ok(true)
    }
}
