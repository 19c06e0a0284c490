//! The file of an outbox: results by number, in SQLite.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, params};
use sha2::{Digest, Sha256};

/// The reason why results cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The file's content is damaged.
    #[error("{path} is damaged; remove it, and the units whose results it held are counted again", path = .0.display())]
    Damaged(PathBuf),
    /// The file cannot be used.
    #[error("{path} cannot be used: {1}", path = .0.display())]
    File(PathBuf, rusqlite::Error),
    /// The system cannot create a thread.
    #[error("cannot create a thread: {0}")]
    Thread(std::io::Error),
}

/// Encoded results, each with its number.
pub(super) type Numbered = Vec<(u64, Vec<u8>)>;

/// A storage for results; tests use one that fails.
pub(super) trait OutboxStorage: Send {
    /// Adds and removes results in one atomic transaction. After an error, it may or may not have
    /// been committed.
    fn change(&mut self, added: &[(u64, Vec<u8>)], removed: &[u64]) -> Result<(), OutboxError>;
}

/// A storage on disk. Each change is one transaction that survives a power loss.
#[derive(Debug)]
pub(super) struct OutboxFile {
    path: PathBuf,
    connection: Connection,
}

/// The application ID of the file format, known to SQLite and to `file`.
const APPLICATION: i32 = 0x6e71_6f62;

/// Returns the first 16 bytes of the SHA-256 of a number and its result: with a flipped bit, the
/// worker would submit a wrong result.
fn checksum(number: i64, bytes: &[u8]) -> [u8; 16] {
    let digest = Sha256::new().chain_update(number.to_be_bytes()).chain_update(bytes).finalize();
    let mut first = [0; 16];
    first.copy_from_slice(&digest[..16]);
    first
}

impl OutboxFile {
    /// Opens or creates the file at `path`, and returns its results in the order of their numbers.
    ///
    /// # Errors
    /// The file is damaged, or cannot be read and written.
    pub(super) fn open(path: &Path) -> Result<(Self, Numbered), OutboxError> {
        let fail = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                OutboxError::Damaged(path.to_owned())
            }
            _ => OutboxError::File(path.to_owned(), error),
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
        let results = prepare(&connection).and_then(|()| read(&connection)).map_err(fail)?;
        let results = results.ok_or_else(|| OutboxError::Damaged(path.to_owned()))?;
        Ok((Self { path: path.to_owned(), connection }, results))
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    let created: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if created == 0 {
        connection.execute_batch(&format!(
            "begin;
             create table if not exists result (
               number integer primary key, bytes blob not null, checksum blob not null
             ) strict;
             pragma application_id = {APPLICATION};
             commit;"
        ))?;
    }
    Ok(())
}

/// Reads and checks all results. Returns `None` if the content is damaged.
fn read(connection: &Connection) -> rusqlite::Result<Option<Numbered>> {
    let application: i32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let sound: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
    if application != APPLICATION || sound != "ok" {
        return Ok(None);
    }
    let mut statement =
        connection.prepare("select number, bytes, checksum from result order by number")?;
    let mut rows = statement.query([])?;
    let mut results = Vec::new();
    while let Some(row) = rows.next()? {
        let (number, bytes, check): (i64, Vec<u8>, Vec<u8>) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let (Ok(unsigned), true) = (u64::try_from(number), check == checksum(number, &bytes))
        else {
            return Ok(None);
        };
        results.push((unsigned, bytes));
    }
    Ok(Some(results))
}

impl OutboxStorage for OutboxFile {
    fn change(&mut self, added: &[(u64, Vec<u8>)], removed: &[u64]) -> Result<(), OutboxError> {
        let mut change = || -> rusqlite::Result<()> {
            let transaction = self.connection.transaction()?;
            {
                let mut put = transaction.prepare_cached(
                    "insert or replace into result (number, bytes, checksum) values (?1, ?2, ?3)",
                )?;
                for (number, bytes) in added {
                    let number = number.cast_signed();
                    put.execute(params![number, bytes, checksum(number, bytes)])?;
                }
                let mut take =
                    transaction.prepare_cached("delete from result where number = ?1")?;
                for number in removed {
                    take.execute(params![number.cast_signed()])?;
                }
            }
            transaction.commit()
        };
        change().map_err(|error| OutboxError::File(self.path.clone(), error))
    }
}
