//! The file under an outbox: results by number, in SQLite.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, params};
use sha2::{Digest, Sha256};

/// Why results cannot be kept, or those kept not be read.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// It is not as it was written.
    #[error("{path} is damaged; remove it, and the units of the results in it are counted again", path = .0.display())]
    Damaged(PathBuf),
    /// The system refused.
    #[error("{path} cannot be used: {1}", path = .0.display())]
    File(PathBuf, rusqlite::Error),
    /// The system gives no thread.
    #[error("the system gives no thread: {0}")]
    Thread(std::io::Error),
}

/// Results, encoded, each with its number.
pub(super) type Numbered = Vec<(u64, Vec<u8>)>;

/// Where results are kept; tests have one that fails.
pub(super) trait Shelf: Send {
    /// Puts results by number on the shelf, and takes others away: all of that, or nothing. An error leaves either.
    fn change(&mut self, added: &[(u64, Vec<u8>)], removed: &[u64]) -> Result<(), OutboxError>;
}

/// A shelf on disk. Each change is one transaction that would survive a power loss.
#[derive(Debug)]
pub(super) struct OutboxFile {
    path: PathBuf,
    connection: Connection,
}

/// Names the file's format, to SQLite and to `file`.
const APPLICATION: i32 = 0x6e71_6f62;

/// The first bytes of the SHA-256 of a number and its result: a flipped bit would make a liar of the worker.
fn checksum(number: i64, bytes: &[u8]) -> [u8; 16] {
    let digest = Sha256::new().chain_update(number.to_be_bytes()).chain_update(bytes).finalize();
    let mut first = [0; 16];
    first.copy_from_slice(&digest[..16]);
    first
}

impl OutboxFile {
    /// Opens or creates the file at `path`, and reads what is in it, in the order of the numbers.
    ///
    /// # Errors
    /// It is damaged, or cannot be read and written.
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

/// `None` if something is not as it was written.
fn read(connection: &Connection) -> rusqlite::Result<Option<Numbered>> {
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let sound: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
    if application != APPLICATION || sound != "ok" {
        return Ok(None);
    }
    let mut statement = connection.prepare("select number, bytes, checksum from result order by number")?;
    let mut rows = statement.query([])?;
    let mut results = Vec::new();
    while let Some(row) = rows.next()? {
        let (number, bytes, check): (i64, Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (Ok(unsigned), true) = (u64::try_from(number), check == checksum(number, &bytes)) else {
            return Ok(None);
        };
        results.push((unsigned, bytes));
    }
    Ok(Some(results))
}

impl Shelf for OutboxFile {
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
                let mut take = transaction.prepare_cached("delete from result where number = ?1")?;
                for number in removed {
                    take.execute(params![number.cast_signed()])?;
                }
            }
            transaction.commit()
        };
        change().map_err(|error| OutboxError::File(self.path.clone(), error))
    }
}
