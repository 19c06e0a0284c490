//! The file beside a ledger that locks it and records how many entries were acknowledged.
//!
//! The lock is held by the operating system and ends with the process, however that ends. The mark
//! is one line of text. It is overwritten in place after each commit, without a sync: a kill leaves
//! it correct, a power loss may leave an older one. A ledger with fewer entries than its mark has
//! therefore lost acknowledged entries, because its journal was truncated or damaged or because an
//! old copy was restored. SQLite alone would take this for the end of an interrupted write.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::atomic_file;
use crate::atomic_file::sync_directory_of;

const MAGIC: &str = "nqueens-ledger-mark/1";

/// The number of acknowledged entries, and the first bytes of the chain after the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitMark {
    pub(super) entries: u64,
    pub(super) chain: [u8; 8],
}

impl CommitMark {
    fn line(self) -> String {
        let text = format!("{MAGIC} {:020} {:016x}", self.entries, u64::from_be_bytes(self.chain));
        let digest = Sha256::digest(text.as_bytes());
        let sum: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{text} {sum}\n")
    }

    /// Parses a mark; accepts exactly what [`Self::line`] writes.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix(MAGIC)?.split_whitespace();
        let entries = words.next()?.parse().ok()?;
        let chain = u64::from_str_radix(words.next()?, 16).ok()?.to_be_bytes();
        let mark = Self { entries, chain };
        (mark.line() == line).then_some(mark)
    }
}

/// Returns the path of the mark of the ledger at `path`.
pub(super) fn mark_path(path: &Path) -> PathBuf {
    atomic_file::beside(path, ".lock")
}

/// Reads the mark of the ledger at `path`. Returns `None` if there is no readable one.
pub(super) fn read_mark(path: &Path) -> Option<CommitMark> {
    CommitMark::parse(&atomic_file::read_text(&mark_path(path), 1024).ok()?)
}

/// The lock of a ledger, held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Locks the ledger at `path`. Returns `Ok(None)` if another process holds the lock.
    ///
    /// # Errors
    /// Returns an error if the file beside the ledger cannot be created or locked.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        let beside = mark_path(path);
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&beside)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Reads the mark. Returns `None` if there is no valid one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub(super) fn mark(&mut self) -> io::Result<Option<CommitMark>> {
        let mut bytes = Vec::new();
        self.0.seek(SeekFrom::Start(0))?;
        (&mut self.0).take(1024).read_to_end(&mut bytes)?;
        Ok(std::str::from_utf8(&bytes).ok().and_then(CommitMark::parse))
    }

    /// Overwrites the mark, without a sync.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(super) fn set(&mut self, mark: CommitMark) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(0))?;
        self.0.write_all(mark.line().as_bytes())
    }

    /// Makes the mark and its directory entry durable.
    ///
    /// # Errors
    /// Returns an error if a sync fails.
    pub(super) fn sync(&mut self, path: &Path) -> io::Result<()> {
        self.0.sync_all()?;
        sync_directory_of(path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that another thread is just starting
        // would keep the lock until it executes its program.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_intact_mark_is_read_back() {
        let mark = CommitMark { entries: 1 << 40, chain: [0, 1, 2, 3, 4, 5, 254, 255] };
        let line = mark.line();
        assert_eq!(CommitMark::parse(&line), Some(mark));
        assert_eq!(
            line.len(),
            CommitMark { entries: 0, chain: [0; 8] }.line().len(),
            "written over in place"
        );
        for position in 0..line.len() {
            let mut other = line.clone().into_bytes();
            other[position] ^= 1;
            assert_eq!(
                String::from_utf8(other).ok().and_then(|l| CommitMark::parse(&l)),
                None,
                "{position}"
            );
            assert_eq!(CommitMark::parse(&line[..position]), None, "{position}");
        }
    }
}
