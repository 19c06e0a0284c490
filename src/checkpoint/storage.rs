//! The bytes under a run file: a file on disk, or whatever a test wants to crash.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use crate::atomic_file;

/// Larger run files are not read: those of a job of a million units are smaller.
pub(super) const LARGEST_FILE: u64 = 1 << 30;

/// A growing sequence of bytes that can be made durable.
pub trait Storage {
    /// All bytes.
    ///
    /// # Errors
    /// They cannot be read.
    fn read(&mut self) -> io::Result<Vec<u8>>;

    /// Drops what lies past `len`, and writes `bytes` there.
    ///
    /// # Errors
    /// They cannot be written; any part of them may have been.
    fn write_at_end(&mut self, len: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns once all that was written would survive a power loss.
    ///
    /// # Errors
    /// It would not.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file on disk, locked against other processes as long as it is open.
#[derive(Debug)]
pub struct DiskFile(File);

impl DiskFile {
    /// Opens or creates the file at `path` and locks it. `Ok(None)` if another process has it. The lock is on
    /// the file itself and ends with the process, however that ends.
    ///
    /// # Errors
    /// It cannot be opened for reading and writing, or it is no regular file.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // A file that holds something has had a header, so its entry is durable.
        if metadata.len() == 0 {
            atomic_file::sync_directory_of(path)?;
        }
        Ok(Some(Self(file)))
    }
}

impl Storage for DiskFile {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.0.seek(SeekFrom::Start(0))?;
        atomic_file::read_open(&self.0, LARGEST_FILE)
    }

    fn write_at_end(&mut self, len: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.set_len(len)?;
        self.0.seek(SeekFrom::Start(len))?;
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}
