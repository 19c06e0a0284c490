//! Finding, identifying and configuring the file of a ledger.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

use super::commit_mark::CommitMark;
use super::ledger_error::{LedgerCorruption, LedgerError, ReadError};
use super::schema;
use crate::atomic_file::beside;

/// Time to wait for a reader that is about to finish.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Resolves symbolic links, so that all names of a ledger share one lock.
pub(super) fn canonical_path(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().ok_or(error)?;
            let parent =
                path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Ok(fs::canonicalize(parent)?.join(name))
        }
        other => other,
    }
}

/// Returns the path of SQLite's write-ahead log.
pub(super) fn wal_path(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// Returns whether the ledger at `path` has yet to be created. An empty file is rejected unless its
/// mark says that its creation had begun.
pub(super) fn is_new(
    path: &Path,
    mark: Option<CommitMark>,
) -> io::Result<Result<bool, LedgerCorruption>> {
    let length = match fs::metadata(path) {
        Ok(found) => Some(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if length.is_some_and(|length| length > 0) {
        return Ok(Ok(false));
    }
    let journal = fs::metadata(wal_path(path)).is_ok_and(|journal| journal.len() > 0);
    Ok(match mark {
        Some(CommitMark { entries: 0, .. }) => Ok(true),
        Some(CommitMark { entries, .. }) => {
            Err(LedgerCorruption::Lost { acknowledged: entries, found: 0 })
        }
        None if length.is_none() && !journal => Ok(true),
        None => Err(LedgerCorruption::Empty),
    })
}

/// The reason that a file cannot be opened.
pub(super) enum OpenError {
    Read(ReadError),
    NotALedger,
    Newer(i64),
}

impl OpenError {
    pub(super) fn at(self, path: &Path) -> LedgerError {
        match self {
            Self::Read(error) => ReadError::at(path, "opened")(error),
            Self::NotALedger => LedgerError::NotALedger(path.to_owned()),
            Self::Newer(found) => {
                LedgerError::Newer { path: path.to_owned(), found, known: schema::VERSION }
            }
        }
    }
}

impl<E: Into<ReadError>> From<E> for OpenError {
    fn from(error: E) -> Self {
        Self::Read(error.into())
    }
}

/// Configures a connection for reading or writing.
pub(super) fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // A rejected file must stay unchanged.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // KiB.
    connection.pragma_update(None, "cache_size", -8192)
}

/// Checks that the file is a ledger of this version. Returns true if it is an empty SQLite database
/// instead.
pub(super) fn identify(connection: &Connection) -> Result<bool, OpenError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (number("application_id")?, number("user_version")?) {
        (0, 0) if tables == 0 => Ok(true),
        (schema::APPLICATION, version) if schema::is_known(version) => Ok(false),
        (schema::APPLICATION, version) if version > schema::VERSION => {
            Err(OpenError::Newer(version))
        }
        _ => Err(OpenError::NotALedger),
    }
}

/// Checks a file that is to be written. Creates the tables in an empty database if its creation had
/// `begun`, and returns whether it did so. Otherwise changes nothing. Reads all of it if `whole`.
pub(super) fn prepare(
    mut connection: Connection,
    begun: bool,
    whole: bool,
) -> Result<(Connection, bool), OpenError> {
    configure(&connection)?;
    let blank = identify(&connection)?;
    if blank && !begun {
        return Err(OpenError::NotALedger);
    }
    if whole {
        schema::verify_structure(&connection)?;
    }
    connection.pragma_update(None, "synchronous", "full")?;
    // On macOS a plain sync stops at the drive's cache.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    if blank {
        enable_wal(&connection)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        schema::create(&transaction)?;
        transaction.commit()?;
    }
    schema::verify_tables(&connection)?;
    Ok((connection, blank))
}

/// Lets SQLite write into a file that was checked.
pub(super) fn enable_writes(connection: &Connection) -> Result<(), ReadError> {
    enable_wal(connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Switches to a write-ahead log, so that readers keep the state with which they began.
fn enable_wal(connection: &Connection) -> Result<(), ReadError> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode == "wal" {
        Ok(())
    } else {
        Err(LedgerCorruption::Structure(format!(
            "its journal mode is {mode}, which cannot be changed to wal"
        ))
        .into())
    }
}
