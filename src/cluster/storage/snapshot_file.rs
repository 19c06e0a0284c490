//! Snapshots: the state of a coordinator after an entry of its ledger, in one SQLite file.
//!
//! A snapshot only saves time: without one, everything is read from the ledger. It has the pages of
//! [`PagedMap`](super::PagedMap)s, of which each snapshot writes those that have changed, and named
//! states, which each snapshot replaces (CBOR, RFC 8949). All of a snapshot is written in one
//! transaction, so that a crash leaves the one before. Pages and states have checksums.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::atomic_file::beside;

/// Identifies snapshots among SQLite files: "nqSN".
const APPLICATION: i64 = 0x6e71_534e;
/// Must be increased when the tables change.
const VERSION: i64 = 1;

const CREATE: &str = "\
CREATE TABLE state (name TEXT NOT NULL, part INTEGER NOT NULL, content BLOB NOT NULL, sum BLOB NOT NULL, PRIMARY KEY (name, part)) STRICT;
CREATE TABLE page (id INTEGER PRIMARY KEY, map TEXT NOT NULL, number INTEGER NOT NULL, content BLOB NOT NULL, UNIQUE (map, number)) STRICT;";
const CLEAR_STATE: &str = "DELETE FROM state";
const INSERT_PART: &str = "INSERT INTO state VALUES (?1, ?2, ?3, ?4)";
const SELECT_PART: &str = "SELECT content, sum FROM state WHERE name = ?1 AND part = ?2";
const PUT_PAGE: &str = "INSERT INTO page (map, number, content) VALUES (?1, ?2, ?3) \
    ON CONFLICT (map, number) DO UPDATE SET content = excluded.content";
const SELECT_PAGE: &str = "SELECT content FROM page WHERE map = ?1 AND number = ?2";

/// The size of a part of a state in bytes, so that no state is in memory as a whole.
const PART: usize = 256 << 10;

/// The bytes of a checksum.
pub(super) const SUM: usize = 8;

/// The reason that a snapshot cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file cannot be used.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// A temporary file cannot be read, or a file cannot be removed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not a snapshot of this version.
    #[error("it is not a snapshot of this version")]
    NotASnapshot,
    /// A part is missing or damaged.
    #[error("{0} is missing or damaged")]
    Damaged(String),
    /// A state has another form.
    #[error("its state {0} cannot be read: {1}")]
    Form(String, String),
}

/// A file with a snapshot.
#[derive(Debug)]
pub struct SnapshotFile {
    path: PathBuf,
    connection: Mutex<Connection>,
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the first bytes of the SHA-256 of a text and a content.
pub(super) fn checksum(of: &str, content: &[u8]) -> [u8; SUM] {
    let digest = Sha256::new().chain_update((of.len() as u64).to_be_bytes());
    let digest = digest.chain_update(of).chain_update(content).finalize();
    let mut sum = [0; SUM];
    sum.copy_from_slice(&digest[..SUM]);
    sum
}

impl SnapshotFile {
    /// Creates an empty file. Removes the file that has this path; whoever has opened that can
    /// still read it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub fn create(path: &Path) -> Result<Self, SnapshotError> {
        Self::remove(path)?;
        let connection = Connection::open(path)?;
        // A page of `page` fills a page of this size.
        connection.pragma_update(None, "page_size", 16384)?;
        connection.pragma_update(None, "application_id", APPLICATION)?;
        connection.pragma_update(None, "user_version", VERSION)?;
        connection.execute_batch(CREATE)?;
        Self::with_connection(path, connection)
    }

    /// Opens the file at a path. Returns `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the file is not a snapshot of this version, or cannot be opened.
    pub fn open(path: &Path) -> Result<Option<Self>, SnapshotError> {
        if !path.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        if (number("application_id")?, number("user_version")?) != (APPLICATION, VERSION) {
            return Err(SnapshotError::NotASnapshot);
        }
        Self::with_connection(path, connection).map(Some)
    }

    fn with_connection(path: &Path, connection: Connection) -> Result<Self, SnapshotError> {
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "synchronous", "full")?;
        // On macOS a plain sync stops at the drive's cache.
        connection.pragma_update(None, "fullfsync", true)?;
        // KiB.
        connection.pragma_update(None, "cache_size", -4096)?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection) })
    }

    /// Removes the file at a path, if there is one.
    ///
    /// # Errors
    /// Returns an error if it cannot be removed.
    pub fn remove(path: &Path) -> Result<(), SnapshotError> {
        remove(path)?;
        // SQLite's rollback journal.
        Ok(remove(&beside(path, "-journal"))?)
    }

    /// Removes this file, so that it is not read again. It can still be read from here.
    pub(super) fn discard(&self) -> Result<(), SnapshotError> {
        Self::remove(&self.path)
    }

    /// Replaces the snapshot by what `write` writes, or leaves it as it was.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn replace(
        &self,
        write: impl FnOnce(&mut SnapshotWriter<'_>) -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction()?;
        transaction.execute(CLEAR_STATE, [])?;
        write(&mut SnapshotWriter { transaction: &transaction })?;
        Ok(transaction.commit()?)
    }

    /// Reads a state.
    ///
    /// # Errors
    /// Returns an error if the state is not there, is damaged or has another form.
    pub fn state<T: DeserializeOwned>(&self, name: &str) -> Result<T, SnapshotError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = Parts { connection: &connection, name, next: 0, rest: io::Cursor::default() };
        ciborium::from_reader(io::BufReader::new(parts))
            .map_err(|error| SnapshotError::Form(name.to_owned(), error.to_string()))
    }

    /// Reads a page of a map.
    pub(super) fn page(&self, map: &str, number: u64) -> Result<Vec<u8>, SnapshotError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = connection.prepare_cached(SELECT_PAGE)?;
        let page =
            statement.query_row(params![map, number.cast_signed()], |row| row.get(0)).optional()?;
        page.ok_or_else(|| SnapshotError::Damaged(format!("page {number} of {map}")))
    }
}

/// The writer of a snapshot.
pub struct SnapshotWriter<'a> {
    transaction: &'a Transaction<'a>,
}

impl SnapshotWriter<'_> {
    /// Writes a state, whose name is not in use yet.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn state(&mut self, name: &str, state: &impl Serialize) -> Result<(), SnapshotError> {
        let parts = PartWriter { transaction: self.transaction, name, part: 0 };
        let mut parts = io::BufWriter::with_capacity(PART, parts);
        ciborium::into_writer(state, &mut parts)
            .map_err(|error| SnapshotError::Form(name.to_owned(), error.to_string()))?;
        Ok(parts.flush()?)
    }

    /// Writes a page of a map.
    pub(super) fn page(
        &mut self,
        map: &str,
        number: u64,
        content: &[u8],
    ) -> Result<(), SnapshotError> {
        let mut statement = self.transaction.prepare_cached(PUT_PAGE)?;
        statement.execute(params![map, number.cast_signed(), content])?;
        Ok(())
    }
}

/// Writes each block of bytes as a part of a state.
struct PartWriter<'a> {
    transaction: &'a Transaction<'a>,
    name: &'a str,
    part: u64,
}

fn sum_of_part(name: &str, part: u64, content: &[u8]) -> [u8; SUM] {
    checksum(&format!("{name} {part}"), content)
}

impl Write for PartWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PART)];
        let sum = sum_of_part(self.name, self.part, bytes);
        self.transaction
            .prepare_cached(INSERT_PART)
            .and_then(|mut insert| {
                insert.execute(params![self.name, self.part.cast_signed(), bytes, sum])
            })
            .map_err(io::Error::other)?;
        self.part += 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a state part by part.
struct Parts<'a> {
    connection: &'a Connection,
    name: &'a str,
    next: u64,
    rest: io::Cursor<Vec<u8>>,
}

impl Parts<'_> {
    /// Returns the next part, or nothing after the last one.
    fn next(&mut self) -> io::Result<Vec<u8>> {
        let part = self.next;
        self.next += 1;
        let found: Option<(Vec<u8>, Vec<u8>)> = self
            .connection
            .prepare_cached(SELECT_PART)
            .and_then(|mut select| {
                let row = params![self.name, part.cast_signed()];
                select.query_row(row, |row| Ok((row.get(0)?, row.get(1)?))).optional()
            })
            .map_err(io::Error::other)?;
        match found {
            Some((content, sum)) if sum == sum_of_part(self.name, part, &content) => Ok(content),
            Some(_) => Err(io::Error::other(format!("part {part} is damaged"))),
            None => Ok(Vec::new()),
        }
    }
}

impl Read for Parts<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.rest.position() == self.rest.get_ref().len() as u64 {
            self.rest = io::Cursor::new(self.next()?);
        }
        self.rest.read(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_any_size_are_read_as_they_were_written_until_they_are_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("snapshot");
        assert!(SnapshotFile::open(&path).expect("nothing is wrong").is_none());
        let file = SnapshotFile::create(&path).expect("it can be created");
        for length in [0, 1, PART - 9, PART, PART + 1, 3 * PART] {
            let text: String = ('a'..='z').cycle().take(length).collect();
            let write = |writer: &mut SnapshotWriter<'_>| {
                writer.state("text", &text)?;
                writer.state("length", &length)
            };
            file.replace(write).expect("there is room");
            // A later one that fails changes nothing.
            let fail = |writer: &mut SnapshotWriter<'_>| {
                writer.state("text", &"other")?;
                writer.state("text", &"twice")
            };
            file.replace(fail).expect_err("the name is in use");
            let again = SnapshotFile::open(&path).expect("a snapshot").expect("it is there");
            assert_eq!(again.state::<String>("text").expect("it is there"), text);
            assert_eq!(again.state::<usize>("length").expect("it is there"), length);
            again.state::<u64>("text").expect_err("it is not a number");
            again.state::<u64>("nothing").expect_err("there is no such state");
        }
    }

    #[test]
    fn other_files_are_refused_and_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("snapshot");
        for content in [&b""[..], b"text", b"SQLite format 3\0"] {
            std::fs::write(&path, content).expect("there is room");
            SnapshotFile::open(&path).expect_err("not a snapshot");
            let file = SnapshotFile::create(&path).expect("it can be replaced");
            file.replace(|writer| writer.state("number", &7)).expect("there is room");
            assert_eq!(file.state::<u8>("number").expect("it is there"), 7);
        }
    }
}
