//! Errors of the ledger of a campaign.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::invalid_entry::InvalidEntry;
use crate::cluster::storage::SnapshotError;
use crate::decomposition::JobHash;

/// The reason that a ledger cannot be used. Each message says how to proceed.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The operating system reported an error.
    #[error("ledger {path}: cannot be {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// SQLite reported an error, usually one of the operating system: no space, no permission to
    /// write.
    #[error("ledger {path}: cannot be {action}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
    /// Another process writes the ledger.
    #[error("ledger {0} is in use by another process; stop that process, or name another file")]
    InUse(PathBuf),
    /// The file is not a ledger.
    #[error("{0} is not the ledger of a campaign; it was left unchanged: name another file")]
    NotALedger(PathBuf),
    /// The file was written by a later version of the program.
    #[error(
        "ledger {path} has version {found}, but this program supports only {known}: \
         use a newer program"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version of this program.
        known: i64,
    },
    /// The file is damaged.
    #[error("ledger {path}: {damage}; it was left unchanged: restore a copy, or name another file")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        damage: LedgerCorruption,
    },
    /// An entry is not valid after its predecessors.
    #[error(
        "ledger {path}, entry {place} of the batch: {reason}; nothing of the batch was written"
    )]
    InvalidEntry {
        /// The file.
        path: PathBuf,
        /// The position of the entry in the batch, from 1.
        place: usize,
        /// The reason.
        reason: Box<InvalidEntry>,
    },
    /// The campaign that follows from the entries has another total than the ledger.
    #[error(
        "ledger {path}: the results of job {job} have another sum in the campaign than in the \
         ledger, so one of them adds up wrongly; please report this"
    )]
    UnequalTotals {
        /// The file.
        path: PathBuf,
        /// The job.
        job: JobHash,
    },
    /// Another program wrote the ledger, in spite of the lock.
    #[error(
        "ledger {0} was changed by another program while it was open; open it again to continue"
    )]
    ConcurrentWrite(PathBuf),
    /// An earlier sync failed, so it is unknown whether its batch is durable.
    #[error(
        "ledger {0}: an earlier write did not reach the disk, so nothing more is written; \
         open it again to continue"
    )]
    EarlierSyncFailed(PathBuf),
    /// The ledger is open for reading only.
    #[error("ledger {0} is open for reading only")]
    ReadOnly(PathBuf),
    /// The snapshot of the ledger cannot be read.
    #[error("ledger {path}: its snapshot cannot be read: {source}")]
    Snapshot {
        /// The ledger.
        path: PathBuf,
        /// The reason.
        source: SnapshotError,
    },
    /// The output cannot be written.
    #[error("ledger {path}: the output cannot be written: {source}")]
    Output {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl LedgerError {
    /// Returns a function that converts an error of the operating system during `action` into an
    /// error of the ledger at `path`.
    pub(super) fn io(path: &Path, action: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), action, source }
    }

    /// Returns whether the error comes from the operating system (no space, no permission to write,
    /// a failing disk), so that the ledger may still be readable.
    pub fn is_io(&self) -> bool {
        match self {
            Self::Io { .. } => true,
            Self::Sqlite { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(
                    ErrorCode::CannotOpen
                        | ErrorCode::ReadOnly
                        | ErrorCode::DiskFull
                        | ErrorCode::SystemIoFailure
                        | ErrorCode::PermissionDenied
                )
            ),
            _ => false,
        }
    }
}

/// The damage of a ledger.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerCorruption {
    /// The file is empty.
    #[error("it is empty; if it was never used, remove it to start a new ledger")]
    Empty,
    /// SQLite finds the structure of the file damaged.
    #[error("the structure of the file is damaged ({0})")]
    Structure(String),
    /// The tables are not those of a ledger.
    #[error("its tables are not those of a ledger")]
    Schema,
    /// A row does not match its checksum.
    #[error("the checksum of {table} {row} does not match, so the row is damaged")]
    Checksum {
        /// The table.
        table: &'static str,
        /// The key of the row.
        row: u64,
    },
    /// A row is missing.
    #[error("{table} {row} is missing")]
    Missing {
        /// The table.
        table: &'static str,
        /// The key of the row.
        row: u64,
    },
    /// There is a row that should not exist.
    #[error("{table} {row} should not exist")]
    Extra {
        /// The table.
        table: &'static str,
        /// The key of the row.
        row: u64,
    },
    /// Each row matches its checksum, but the chain of the rows does not match the head.
    #[error("the entries do not match the chain, although each matches its checksum")]
    Chain,
    /// A valid row that this version does not understand.
    #[error("entry {number} has unknown content ({reason}), written by another version")]
    Unknown {
        /// The entry.
        number: u64,
        /// The part that is not understood.
        reason: String,
    },
    /// A valid row that is not allowed after its predecessors.
    #[error("entry {number}: {reason}")]
    Entry {
        /// The entry.
        number: u64,
        /// The reason.
        reason: Box<InvalidEntry>,
    },
    /// The running totals are not the sum of the entries.
    #[error("the running totals of job {0} are not the sum of its entries")]
    Totals(String),
    /// The ledger has fewer entries than were acknowledged.
    #[error(
        "it has {found} entries, but {acknowledged} were acknowledged: it was truncated, or \
         replaced by an old copy; if that was intended, remove the .lock file beside it"
    )]
    Lost {
        /// Number of acknowledged entries.
        acknowledged: u64,
        /// Number of entries in the file.
        found: u64,
    },
    /// An entry differs from the acknowledged one.
    #[error(
        "entry {0} is not the one that was acknowledged: this is another ledger; if that is \
         intended, remove the .lock file beside it"
    )]
    Diverged(u64),
}

impl LedgerCorruption {
    /// Returns whether the rows are as they were written and only their sums or order disagree.
    pub fn is_inconsistency(&self) -> bool {
        matches!(self, Self::Totals(_) | Self::Entry { .. })
    }
}

/// The reason that rows cannot be read; [`ReadError::at`] adds the file.
#[derive(Debug)]
pub(super) enum ReadError {
    Sqlite(rusqlite::Error),
    Corrupt(LedgerCorruption),
}

impl ReadError {
    /// Returns a function that converts an error of the ledger at `path` during `action` into an
    /// error.
    pub(super) fn at(path: &Path, action: &'static str) -> impl Fn(Self) -> LedgerError {
        let path = path.to_owned();
        move |error| match error {
            Self::Corrupt(damage) => LedgerError::Damaged { path: path.clone(), damage },
            Self::Sqlite(source) => match source.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt) => LedgerError::Damaged {
                    path: path.clone(),
                    damage: LedgerCorruption::Structure(source.to_string()),
                },
                Some(ErrorCode::NotADatabase) => LedgerError::NotALedger(path.clone()),
                _ => LedgerError::Sqlite { path: path.clone(), action, source },
            },
        }
    }
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<LedgerCorruption> for ReadError {
    fn from(damage: LedgerCorruption) -> Self {
        Self::Corrupt(damage)
    }
}
