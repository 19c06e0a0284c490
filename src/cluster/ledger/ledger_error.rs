//! Why the ledger of a campaign cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::ledger_state::InvalidEntry;

/// Why a ledger cannot be used. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The system refused.
    #[error("ledger {path}: cannot be {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// SQLite refused, mostly for a reason of the system's: no room, no right to write.
    #[error("ledger {path}: cannot be {action}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// SQLite's reason.
        source: rusqlite::Error,
    },
    /// Another process writes it.
    #[error("ledger {0} is in use by another process; stop that one, or name another file")]
    InUse(PathBuf),
    /// It is something else.
    #[error("{0} is no ledger of a campaign; nothing in it was changed: name another file")]
    NotALedger(PathBuf),
    /// A later version of the program wrote it.
    #[error("ledger {path} has version {found}, this program knows {known}: use a newer program")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version of this program.
        known: i64,
    },
    /// It is not as it was written.
    #[error("ledger {path}: {damage}; nothing in it was changed: restore a copy, or name another file")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        damage: LedgerCorruption,
    },
    /// An entry that may not follow those before it.
    #[error("ledger {path}, entry {place} of the batch: {refusal}; nothing of the batch was written")]
    Refused {
        /// The file.
        path: PathBuf,
        /// Its place in the batch, from 1.
        place: usize,
        /// Why.
        refusal: Box<InvalidEntry>,
    },
    /// Somebody else wrote it, in spite of the lock.
    #[error("ledger {0} was changed by another program while this one had it; open it again to go on")]
    ChangedUnderneath(PathBuf),
    /// The disk would not say whether it has a batch.
    #[error(
        "ledger {0}: the disk failed to keep what was written, and nothing more is; open it again to go on"
    )]
    FailedBefore(PathBuf),
    /// It was opened for reading.
    #[error("ledger {0} is open for reading only")]
    ReadOnly(PathBuf),
    /// What is read of it has nowhere to go.
    #[error("ledger {path}: what it holds cannot be handed on: {source}")]
    Output {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl LedgerError {
    /// Returns whether the system is the reason: no room, no right to write, a disk that fails. What is there may be read.
    pub fn is_of_the_system(&self) -> bool {
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

/// What is wrong with a ledger.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerCorruption {
    /// There is nothing in it.
    #[error("it is empty, which no ledger is; if it was never used, remove it to begin a new one")]
    Empty,
    /// SQLite cannot find its way.
    #[error("the file is not as it was written ({0})")]
    Structure(String),
    /// Other tables than those of a ledger.
    #[error("its tables are not those of a ledger")]
    Schema,
    /// A row that is not as it was written.
    #[error("the checksum of {table} {row} does not fit, so the row is not as it was written")]
    Checksum {
        /// The table.
        table: &'static str,
        /// The key of the row.
        row: u64,
    },
    /// A row is not there.
    #[error("{table} {row} is missing")]
    Missing {
        /// The table.
        table: &'static str,
        /// The key of the row.
        row: u64,
    },
    /// Rows that nobody counted.
    #[error("{table} {row} should not be there")]
    Extra {
        /// The table.
        table: &'static str,
        /// The key of the row.
        row: u64,
    },
    /// Rows that fit each by itself but not together.
    #[error("the entries are not those that were written, though each fits its checksum")]
    Chain,
    /// A right row that this version does not understand.
    #[error("entry {number} has unknown content ({reason}), written by another version")]
    Unknown {
        /// The entry.
        number: u64,
        /// What is not understood.
        reason: String,
    },
    /// A right row that may not follow those before it.
    #[error("entry {number}: {refusal}")]
    Entry {
        /// The entry.
        number: u64,
        /// Why.
        refusal: Box<InvalidEntry>,
    },
    /// The running totals are not the sum of the entries.
    #[error("the running totals of job {0} are not the sum of its entries")]
    Totals(String),
    /// Less is there than was acknowledged.
    #[error(
        "it holds {found} entries, and {acknowledged} were acknowledged: it was cut off, or an old copy was put back; if that was meant, remove the .lock file beside it"
    )]
    Lost {
        /// Entries that were acknowledged.
        acknowledged: u64,
        /// Entries that are there.
        found: u64,
    },
    /// What was acknowledged is not what is there.
    #[error(
        "entry {0} is not the one that was acknowledged: this is another ledger; if it was put here on purpose, remove the .lock file beside it"
    )]
    AnotherHistory(u64),
}

impl LedgerCorruption {
    /// Whether the rows are as they were written and it is the sums that disagree.
    pub fn is_disagreement(&self) -> bool {
        matches!(self, Self::Totals(_) | Self::Entry { .. })
    }
}

/// Why rows cannot be read; [`Fault::at`] adds the file.
#[derive(Debug)]
pub(super) enum Fault {
    Sqlite(rusqlite::Error),
    LedgerCorruption(LedgerCorruption),
}

impl Fault {
    /// The fault of the ledger at `path` while it was to be `action`.
    pub(super) fn at(path: &Path, action: &'static str) -> impl Fn(Self) -> LedgerError {
        let path = path.to_owned();
        move |fault| match fault {
            Self::LedgerCorruption(damage) => LedgerError::Damaged { path: path.clone(), damage },
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

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<LedgerCorruption> for Fault {
    fn from(damage: LedgerCorruption) -> Self {
        Self::LedgerCorruption(damage)
    }
}
