//! The ledger of a campaign: one SQLite file with all events in order and the running totals.
//!
//! # Guarantees
//! - A batch of entries is written in full or not at all. Once [`CampaignFile::append`] has
//!   returned, it survives a kill and a power loss.
//! - Running totals change in the same transaction as the entries, by checked additions. They are
//!   never recomputed, except that opening a ledger sums the entries to compare.
//! - Nothing is written that would be rejected on reading.
//! - A damaged file is rejected and left unchanged: every row has a checksum, the rows are chained,
//!   the totals must be the sum of the entries, and no acknowledged entry may be missing (the mark
//!   in the `.lock` file beside it records their number).
//! - A file has a single writer. Others may read it at the same time ([`super::check`],
//!   [`super::show`], [`super::export`]).
//!
//! The file must be on a local disk: the journal (SQLite's write-ahead log) needs shared memory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, ffi};

use super::check::open_for_reading;
use super::commit_mark::{CommitMark, Lock, read_mark};
use super::entry::Entry;
use super::ledger_error::{LedgerCorruption, LedgerError, ReadError};
use super::ledger_state::{JobRow, JobSubmission, JobTotals, LedgerState, Undo};
use super::schema::{self, Head};
use crate::atomic_file::sync_directory_of;
use crate::cluster::campaign::JobState;
use crate::cluster::storage::{SnapshotError, SnapshotFile, SnapshotWriter};
use crate::decomposition::JobHash;

/// Time to wait for a reader that is about to finish.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The name of the state of a ledger in a snapshot.
const SNAPSHOT: &str = "ledger";

/// The ledger of a campaign, open for writing or, where it cannot be written, for reading.
#[derive(Debug)]
pub struct CampaignFile {
    path: PathBuf,
    // Declared before the lock, so that it is closed first.
    connection: Connection,
    /// `None` if the ledger is open for reading only.
    lock: Option<Lock>,
    state: LedgerState,
    /// The entry of the snapshot with which it was opened.
    start: Head,
    head: Head,
    /// Set once a sync has failed: the content of the disk after `head` is unknown.
    failed: bool,
}

/// The current record of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// The submission.
    pub submission: JobSubmission,
    /// Its state.
    pub state: JobState,
    /// Time of the last change of state, in milliseconds since the Unix epoch.
    pub state_ms: u64,
    /// Its running totals.
    pub totals: JobTotals,
}

impl JobRecord {
    pub(super) fn new(submission: JobSubmission, row: &JobRow) -> Self {
        Self { submission, state: row.state, state_ms: row.state_ms, totals: row.totals }
    }
}

impl CampaignFile {
    /// Opens the ledger at `path`, or creates one, and checks all of it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, is in use by another process, is not a
    /// ledger, was written by a later version, or is damaged. An existing file is then unchanged.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        Self::open_after(path, None)
    }

    /// Opens the ledger at `path` with the state of a snapshot, and checks only the entries after it.
    ///
    /// # Errors
    /// As [`Self::open`], also if the snapshot is that of another ledger or if it cannot be read.
    pub fn open_with(path: &Path, snapshot: &Arc<SnapshotFile>) -> Result<Self, LedgerError> {
        Self::open_after(path, Some(snapshot))
    }

    fn open_after(path: &Path, snapshot: Option<&Arc<SnapshotFile>>) -> Result<Self, LedgerError> {
        let io = |source| LedgerError::Io {
            path: path.to_owned(),
            action: "opened for writing",
            source,
        };
        let at = ReadError::at(path, "opened for writing");
        let place = canonical_path(path).map_err(io)?;
        if fs::metadata(&place).is_ok_and(|found| !found.is_file()) {
            return Err(io(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a regular file",
            )));
        }
        let mut lock =
            Lock::take(&place).map_err(io)?.ok_or_else(|| LedgerError::InUse(path.to_owned()))?;
        let mark = lock.mark().map_err(io)?;
        let is_new = is_new(&place, mark).map_err(io)?.map_err(|d| at(d.into()))?;
        if is_new {
            // Written before the ledger exists, to tell a truncated ledger from one that was never
            // filled.
            lock.set(Head::default().mark()).and_then(|()| lock.sync(&place)).map_err(io)?;
        }
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, is_new);
        let connection = Connection::open_with_flags(&place, flags).map_err(|e| at(e.into()))?;
        let begun = is_new || mark == Some(Head::default().mark());
        let (connection, created) =
            prepare(connection, begun, snapshot.is_none()).map_err(|error| error.at(path))?;
        if created {
            sync_directory_of(&place).map_err(io)?;
        }
        let (state, start) = match snapshot {
            None => (LedgerState::new(schema::folder(&connection)), Head::default()),
            Some(snapshot) => restore(snapshot, &connection)
                .map_err(|source| LedgerError::Snapshot { path: path.to_owned(), source })?,
        };
        let (state, head) =
            schema::replay_after(&connection, (state, start), mark, &mut |damage| {
                Err(damage.into())
            })
            .map_err(&at)?;
        // From here on the file may be changed.
        enable_writes(&connection).map_err(&at)?;
        let mut file = Self {
            path: path.to_owned(),
            connection,
            lock: Some(lock),
            state,
            start,
            head,
            failed: false,
        };
        file.set_mark();
        Ok(file)
    }

    /// Opens the ledger at `path` for reading and checks all of it, for a coordinator that could
    /// not open it for writing. It reads a snapshot and rejects entries. It holds no lock, so
    /// another process may write the ledger as soon as that is possible.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is in use by another process, is not a ledger,
    /// was written by a later version, or is damaged.
    pub fn open_read_only(path: &Path) -> Result<Self, LedgerError> {
        let io = |source| LedgerError::Io {
            path: path.to_owned(),
            action: "opened for reading",
            source,
        };
        let place = canonical_path(path).map_err(io)?;
        // Where no lock can be created, there is no writer either.
        if let Ok(None) = Lock::take(&place) {
            return Err(LedgerError::InUse(path.to_owned()));
        }
        let mark = read_mark(&place);
        let connection = open_for_reading(path)?;
        let read = || {
            schema::verify_structure(&connection)?;
            schema::verify_tables(&connection)?;
            schema::replay(&connection, mark, &mut |damage| Err(damage.into()))
        };
        let (state, head) = read().map_err(ReadError::at(path, "opened for reading"))?;
        let start = Head::default();
        let path = path.to_owned();
        Ok(Self { path, connection, lock: None, state, start, head, failed: false })
    }

    /// Returns whether the ledger is open for reading only.
    pub const fn is_read_only(&self) -> bool {
        self.lock.is_none()
    }

    /// Appends entries, all of them or none. Once this has returned, they survive a power loss.
    ///
    /// # Errors
    /// Returns an error if an entry is not valid after its predecessors, or if the batch cannot be
    /// written. Nothing is then written, and the ledger stays usable. If a sync failed, however, it
    /// is unknown whether the batch is durable, and the ledger rejects further entries until it is
    /// opened again.
    pub fn append(&mut self, entries: &[Entry]) -> Result<(), LedgerError> {
        if self.is_read_only() {
            return Err(LedgerError::ReadOnly(self.path.clone()));
        }
        if self.failed {
            return Err(LedgerError::EarlierSyncFailed(self.path.clone()));
        }
        if entries.is_empty() {
            return Ok(());
        }
        let mut undo = Vec::new();
        match self.try_append(entries, &mut undo) {
            Ok(head) => {
                self.head = head;
                self.set_mark();
                Ok(())
            }
            Err(error) => {
                self.state.revert(undo);
                self.failed = is_failed_sync(&error);
                Err(error)
            }
        }
    }

    fn try_append(&mut self, entries: &[Entry], undo: &mut Vec<Undo>) -> Result<Head, LedgerError> {
        let at = ReadError::at(&self.path, "written");
        let sqlite = |error: rusqlite::Error| at(error.into());
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(sqlite)?;
        if schema::read_head(&transaction).map_err(&at)? != self.head {
            return Err(LedgerError::ConcurrentWrite(self.path.clone()));
        }
        let mut head = self.head;
        let mut touched = BTreeMap::new();
        for (place, entry) in (1..).zip(entries) {
            let number = head.entries + 1;
            let result = schema::result_for(&transaction, &self.state, entry).map_err(&at)?;
            let invalid = |reason| LedgerError::InvalidEntry {
                path: self.path.clone(),
                place,
                reason: Box::new(reason),
            };
            self.state.apply(number, entry, result.as_ref(), undo).map_err(invalid)?;
            let body = entry.to_json().map_err(|error| LedgerError::Io {
                path: self.path.clone(),
                action: "written",
                source: error.into(),
            })?;
            head = head.after(&schema::write_entry(&transaction, number, &body).map_err(sqlite)?);
            if let Some(job) = entry.event.job().and_then(|job| self.state.job(&job)) {
                touched.insert(job.row.submitted_by, job.submission.job);
            }
        }
        for job in touched.into_values() {
            if let Some(entries) = self.state.job(&job) {
                schema::write_totals(&transaction, &entries.row).map_err(sqlite)?;
            }
        }
        schema::write_head(&transaction, &head).map_err(sqlite)?;
        transaction.commit().map_err(sqlite)?;
        Ok(head)
    }

    /// Writes the mark. If this fails, an older mark remains, which is also valid.
    fn set_mark(&mut self) {
        if let Some(lock) = &mut self.lock {
            let _ = lock.set(self.head.mark());
        }
    }

    /// Writes the state of the ledger to a snapshot. Once this is durable, [`Self::continue_with`]
    /// must be called.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn write(&self, snapshot: &mut SnapshotWriter<'_>) -> Result<(), SnapshotError> {
        self.state.write_changed(snapshot)?;
        snapshot.state(SNAPSHOT, &(self.head, &self.state))
    }

    /// Continues with a snapshot to which the state was written and not changed since.
    pub fn continue_with(&mut self, snapshot: &Arc<SnapshotFile>) {
        self.state.continue_with(snapshot);
    }

    /// Calls `visit` with every entry after the snapshot with which the ledger was opened, in order.
    /// Reads one row at a time.
    ///
    /// # Errors
    /// Returns an error if the ledger cannot be read or is damaged. The entries visited so far must
    /// then not be used.
    pub fn visit_entries(&self, visit: &mut dyn FnMut(Entry)) -> Result<(), LedgerError> {
        let mut visit_entry = |_, _: &str, entry: Entry| {
            visit(entry);
            Ok(ControlFlow::Continue(()))
        };
        schema::read_entries(&self.connection, self.start, None, &mut visit_entry, &mut |damage| {
            Err(damage.into())
        })
        .map(drop)
        .map_err(ReadError::at(&self.path, "read"))
    }

    /// Returns the workers by name, each with its owner according to its last recorded call.
    pub fn owners(&self) -> impl Iterator<Item = (&str, &str)> {
        self.state.owners()
    }

    /// Returns the jobs in the order of submission, with their running totals.
    pub fn jobs(&self) -> impl Iterator<Item = JobRecord> {
        self.state.jobs().map(|job| JobRecord::new(job.submission.clone(), &job.row))
    }

    /// Returns a job with its running totals, or `None` if it was never submitted.
    pub fn job(&self, job: &JobHash) -> Option<JobRecord> {
        let job = self.state.job(job)?;
        Some(JobRecord::new(job.submission.clone(), &job.row))
    }

    /// Returns the running totals of a job, or `None` if it was never submitted.
    pub fn totals(&self, job: &JobHash) -> Option<JobTotals> {
        self.state.job(job).map(|job| job.row.totals)
    }

    /// Returns the number of entries up to the snapshot with which the ledger was opened.
    pub const fn entries_before(&self) -> u64 {
        self.start.entries
    }

    /// Returns the number of entries.
    pub const fn entries(&self) -> u64 {
        self.head.entries
    }
}

/// Reads the state of a ledger, and the head that belongs to it, from a snapshot.
fn restore(
    snapshot: &Arc<SnapshotFile>,
    connection: &Connection,
) -> Result<(LedgerState, Head), SnapshotError> {
    let (head, mut state): (Head, LedgerState) = snapshot.state(SNAPSHOT)?;
    state.complete(schema::folder(connection), snapshot);
    Ok((state, head))
}

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
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Returns whether the ledger at `path` has yet to be created. An empty file is rejected unless its
/// mark says that its creation had begun.
fn is_new(path: &Path, mark: Option<CommitMark>) -> io::Result<Result<bool, LedgerCorruption>> {
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
        (schema::APPLICATION, schema::VERSION) => Ok(false),
        (schema::APPLICATION, version) if version > schema::VERSION => {
            Err(OpenError::Newer(version))
        }
        _ => Err(OpenError::NotALedger),
    }
}

/// Checks a file that is to be written. Creates the tables in an empty database if its creation had
/// `begun`, and returns whether it did so. Otherwise changes nothing. Reads all of it if `whole`.
fn prepare(
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
fn enable_writes(connection: &Connection) -> Result<(), ReadError> {
    enable_wal(connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Switches to a write-ahead log, so that readers keep the snapshot with which they began.
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

/// Returns whether the error is a failed sync, after which the content of the disk is unknown.
fn is_failed_sync(error: &LedgerError) -> bool {
    let LedgerError::Sqlite { source: rusqlite::Error::SqliteFailure(failure, _), .. } = error
    else {
        return false;
    };
    [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_DIR_FSYNC].contains(&failure.extended_code)
}
