//! The ledger of a campaign: one SQLite file with all that happened, in order, and the running totals.
//!
//! # Promises
//! - A batch of entries is kept as a whole or not at all. Once [`CampaignFile::append`] returned, it survives a
//!   kill and a power loss.
//! - Running totals change in the same transaction as the entries, by checked additions. They are never summed anew;
//!   opening sums once to compare.
//! - Nothing is written that would be refused on reading.
//! - A file that is not as it was written is refused and left as it is: every row has a checksum, the rows
//!   are chained, the totals must be the sum of the entries, and all that was acknowledged must be there (the mark in
//!   the `.lock` file beside it remembers how much that is).
//! - A file has one writer at a time. Others may read it meanwhile ([`super::check`], [`super::show`],
//!   [`super::export`]).
//!
//! The file must be on a local disk: the journal (SQLite's write-ahead log) needs shared memory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, ffi};

use super::check::open_for_reading;
use super::commit_mark::{CommitMark, Lock, read_mark};
use super::entry::{
    Entry, JobSubmitted, Phase, Recount, SpotCheck, UnitDone, UnitReason, WorkerDrained, WorkerQuarantined,
    WorkerReleased,
};
use super::ledger_error::{Fault, LedgerCorruption, LedgerError};
use super::ledger_state::{JobBook, JobRow, JobTotals, LedgerState, Undo, WorkerRecord};
use super::schema::{self, Head};
use crate::atomic_file::sync_directory_of;
use crate::decomposition::JobHash;

/// How long to wait for a reader that is about to be done.
const PATIENCE: Duration = Duration::from_secs(10);

/// The ledger of a campaign, open for writing; or for reading, where it cannot be written.
#[derive(Debug)]
pub struct CampaignFile {
    path: PathBuf,
    // Closed before the lock is let go.
    connection: Connection,
    /// None if the ledger is only read.
    lock: Option<Lock>,
    book: LedgerState,
    head: Head,
    /// The disk failed: what is on it behind `head` is unknown.
    failed: bool,
}

/// What stands when all entries are read: no result that was taken back, no recount of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Loaded {
    /// A job, in the order of submission; all jobs come first.
    Job(JobRecord),
    /// A unit's result in force.
    Unit(UnitDone),
    /// A recount of a result in force, after that result.
    Recount(Recount),
    /// A spot check of a result in force, after that result.
    SpotCheck(SpotCheck),
    /// A worker that was put in quarantine, among results and recounts at its time.
    Quarantined(WorkerQuarantined),
    /// A worker that was let out, likewise.
    Released(WorkerReleased),
    /// A worker that was to take nothing more until it restarts, likewise.
    Drained(WorkerDrained),
    /// A unit that is set aside.
    Poisoned(UnitReason),
    /// A worker as it stands.
    Worker(WorkerRecord),
}

/// A job as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// What was submitted.
    pub submitted: JobSubmitted,
    /// Its phase.
    pub phase: Phase,
    /// Since when, in milliseconds since the Unix epoch.
    pub phase_ms: u64,
    /// Its running totals.
    pub totals: JobTotals,
}

impl JobRecord {
    pub(super) fn new(submitted: JobSubmitted, row: &JobRow) -> Self {
        Self { submitted, phase: row.phase, phase_ms: row.phase_ms, totals: row.totals }
    }
}

impl CampaignFile {
    /// Opens the ledger at `path`, or begins a new one, and checks all of it.
    ///
    /// # Errors
    /// It cannot be opened, another process writes it, it is no ledger, it is of a later version, or it is not as it
    /// was written. An existing file is as it was then.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let io = |source| LedgerError::Io { path: path.to_owned(), action: "opened for writing", source };
        let at = Fault::at(path, "opened for writing");
        let place = real_place(path).map_err(io)?;
        if fs::metadata(&place).is_ok_and(|found| !found.is_file()) {
            return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
        }
        let mut lock = Lock::take(&place).map_err(io)?.ok_or_else(|| LedgerError::InUse(path.to_owned()))?;
        let mark = lock.mark().map_err(io)?;
        let is_new = is_new(&place, mark).map_err(io)?.map_err(|d| at(d.into()))?;
        if is_new {
            // Before the file is there, so that one that was cut to nothing is told from one that was never filled.
            lock.set(Head::default().mark()).and_then(|()| lock.sync(&place)).map_err(io)?;
        }
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, is_new);
        let connection = Connection::open_with_flags(&place, flags).map_err(|e| at(e.into()))?;
        let begun = is_new || mark == Some(Head::default().mark());
        let (connection, created) = prepare(connection, begun).map_err(|obstacle| obstacle.at(path))?;
        if created {
            sync_directory_of(&place).map_err(io)?;
        }
        let (book, head) =
            schema::replay(&connection, mark, &mut |damage| Err(damage.into())).map_err(&at)?;
        // From here on the file may be changed.
        go_on(&connection).map_err(&at)?;
        let mut file =
            Self { path: path.to_owned(), connection, lock: Some(lock), book, head, failed: false };
        file.set_mark();
        Ok(file)
    }

    /// Opens the ledger at `path` for reading, and checks all of it: for whoever could not open it for writing. It sees what
    /// stands now, takes nothing, and has no lock: as soon as the ledger can be written, whoever comes first may.
    ///
    /// # Errors
    /// It cannot be read, another process writes it, it is no ledger, it is of a later version, or it is not as it was
    /// written.
    pub fn open_read_only(path: &Path) -> Result<Self, LedgerError> {
        let io = |source| LedgerError::Io { path: path.to_owned(), action: "opened for reading", source };
        let place = real_place(path).map_err(io)?;
        // Where there can be no lock there is no writer either.
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
        let (book, head) = read().map_err(Fault::at(path, "opened for reading"))?;
        Ok(Self { path: path.to_owned(), connection, lock: None, book, head, failed: false })
    }

    /// Returns whether it is open for reading alone.
    pub const fn is_read_only(&self) -> bool {
        self.lock.is_none()
    }

    /// Keeps entries, all of them or none. Once this returns, they survive a power loss.
    ///
    /// # Errors
    /// One of them may not follow those before it, or the disk does not take them. Nothing is kept then, and the
    /// ledger goes on; only if the disk failed while it was to make them durable is their fate open, and the ledger
    /// takes no more until it is opened again.
    pub fn append(&mut self, entries: &[Entry]) -> Result<(), LedgerError> {
        if self.is_read_only() {
            return Err(LedgerError::ReadOnly(self.path.clone()));
        }
        if self.failed {
            return Err(LedgerError::FailedBefore(self.path.clone()));
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
                self.book.go_back(undo);
                self.failed = is_failed_sync(&error);
                Err(error)
            }
        }
    }

    fn try_append(&mut self, entries: &[Entry], undo: &mut Vec<Undo>) -> Result<Head, LedgerError> {
        let at = Fault::at(&self.path, "written");
        let sqlite = |error: rusqlite::Error| at(error.into());
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite)?;
        if schema::read_head(&transaction).map_err(&at)? != self.head {
            return Err(LedgerError::ChangedUnderneath(self.path.clone()));
        }
        let mut head = self.head;
        let mut touched = BTreeMap::new();
        for (place, entry) in (1..).zip(entries) {
            let number = head.entries + 1;
            let result = schema::result_for(&transaction, &self.book, entry).map_err(&at)?;
            let refused =
                |refusal| LedgerError::Refused { path: self.path.clone(), place, refusal: Box::new(refusal) };
            self.book.enter(number, entry, result.as_ref(), undo).map_err(refused)?;
            let body = serde_json::to_string(entry).map_err(|error| LedgerError::Io {
                path: self.path.clone(),
                action: "written",
                source: error.into(),
            })?;
            head = head.after(&schema::write_entry(&transaction, number, &body).map_err(sqlite)?);
            if let Some(job) = entry.job().and_then(|job| self.book.job(&job)) {
                touched.insert(job.row.submitted_by, job.submitted.job);
            }
        }
        for job in touched.into_values() {
            if let Some(book) = self.book.job(&job) {
                schema::write_totals(&transaction, &book.row).map_err(sqlite)?;
            }
        }
        schema::write_head(&transaction, &head).map_err(sqlite)?;
        transaction.commit().map_err(sqlite)?;
        Ok(head)
    }

    /// A mark that cannot be written stays an older one, which is right, too.
    fn set_mark(&mut self) {
        if let Some(lock) = &mut self.lock {
            let _ = lock.set(self.head.mark());
        }
    }

    /// Hands over all that stands: jobs, then workers, then results, their recounts, quarantines, releases and drained workers in the order in which
    /// they were entered, then units that are set aside. Reads one row at a time.
    ///
    /// # Errors
    /// It cannot be read, or is not as it was written: what was handed over is not to be used then.
    pub fn load(&mut self, visit: &mut dyn FnMut(Loaded)) -> Result<(), LedgerError> {
        for job in self.jobs() {
            visit(Loaded::Job(job));
        }
        for worker in self.book.workers() {
            visit(Loaded::Worker(worker.clone()));
        }
        let book = &self.book;
        let job = |hash: &JobHash, stands: &dyn Fn(&JobBook) -> bool| book.job(hash).is_some_and(stands);
        let mut visit_entry = |number, _: &str, entry: Entry| {
            match entry {
                Entry::UnitDone(done) if job(&done.job, &|b| b.is_in_force(done.unit, number)) => {
                    visit(Loaded::Unit(done));
                }
                Entry::Recount(count) if job(&count.job, &|b| b.is_after_result(count.unit, number)) => {
                    visit(Loaded::Recount(count));
                }
                Entry::SpotCheck(check) if job(&check.job, &|b| b.is_after_result(check.unit, number)) => {
                    visit(Loaded::SpotCheck(check));
                }
                Entry::WorkerQuarantined(worker) => visit(Loaded::Quarantined(worker)),
                Entry::WorkerReleased(worker) => visit(Loaded::Released(worker)),
                Entry::WorkerDrained(worker) => visit(Loaded::Drained(worker)),
                _ => {}
            }
            Ok(ControlFlow::Continue(()))
        };
        schema::read_entries(&self.connection, None, &mut visit_entry, &mut |damage| Err(damage.into()))
            .map_err(Fault::at(&self.path, "read"))?;
        for unit in self.book.jobs().flat_map(JobBook::poisoned) {
            visit(Loaded::Poisoned(unit.clone()));
        }
        Ok(())
    }

    /// The jobs in the order of submission, with their running totals.
    pub fn jobs(&self) -> impl Iterator<Item = JobRecord> {
        self.book.jobs().map(|book| JobRecord::new(book.submitted.clone(), &book.row))
    }

    /// The running totals of a job; none if it was never submitted.
    pub fn totals(&self, job: &JobHash) -> Option<JobTotals> {
        self.book.job(job).map(|book| book.row.totals)
    }

    /// Entries that the file holds.
    pub const fn entries(&self) -> u64 {
        self.head.entries
    }
}

/// The path behind symbolic links, so that all names of a ledger have one lock.
pub(super) fn real_place(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().ok_or(error)?;
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Ok(fs::canonicalize(parent)?.join(name))
        }
        other => other,
    }
}

/// Where SQLite keeps what is not in the file yet.
pub(super) fn journal_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Whether there is nothing at `path` yet. A file without content is refused unless its mark says that it was
/// just being begun.
fn is_new(path: &Path, mark: Option<CommitMark>) -> io::Result<Result<bool, LedgerCorruption>> {
    let length = match fs::metadata(path) {
        Ok(found) => Some(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if length.is_some_and(|length| length > 0) {
        return Ok(Ok(false));
    }
    let journal = fs::metadata(journal_of(path)).is_ok_and(|journal| journal.len() > 0);
    Ok(match mark {
        Some(CommitMark { entries: 0, .. }) => Ok(true),
        Some(CommitMark { entries, .. }) => Err(LedgerCorruption::Lost { acknowledged: entries, found: 0 }),
        None if length.is_none() && !journal => Ok(true),
        None => Err(LedgerCorruption::Empty),
    })
}

/// Why a file is not opened.
pub(super) enum Obstacle {
    Fault(Fault),
    NotALedger,
    Newer(i64),
}

impl Obstacle {
    pub(super) fn at(self, path: &Path) -> LedgerError {
        match self {
            Self::Fault(fault) => Fault::at(path, "opened")(fault),
            Self::NotALedger => LedgerError::NotALedger(path.to_owned()),
            Self::Newer(found) => LedgerError::Newer { path: path.to_owned(), found, known: schema::VERSION },
        }
    }
}

impl<E: Into<Fault>> From<E> for Obstacle {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}

/// What every connection has, whether it writes or reads.
pub(super) fn settle(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // A file that is refused stays as it is.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // KiB.
    connection.pragma_update(None, "cache_size", -8192)
}

/// The file must be a ledger of this version. Whether it is none yet: SQLite's own, without tables.
pub(super) fn identify(connection: &Connection) -> Result<bool, Obstacle> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (number("application_id")?, number("user_version")?) {
        (0, 0) if tables == 0 => Ok(true),
        (schema::APPLICATION, schema::VERSION) => Ok(false),
        (schema::APPLICATION, version) if version > schema::VERSION => Err(Obstacle::Newer(version)),
        _ => Err(Obstacle::NotALedger),
    }
}

/// Looks at a file that is to be written; makes the tables, if it has none and may be `begun`. True if it did. Else
/// nothing is changed.
fn prepare(mut connection: Connection, begun: bool) -> Result<(Connection, bool), Obstacle> {
    settle(&connection)?;
    let blank = identify(&connection)?;
    if blank && !begun {
        return Err(Obstacle::NotALedger);
    }
    schema::verify_structure(&connection)?;
    connection.pragma_update(None, "synchronous", "full")?;
    // On macOS a plain sync stops at the drive's own cache.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    if blank {
        keep_journal(&connection)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        schema::create(&transaction)?;
        transaction.commit()?;
    }
    schema::verify_tables(&connection)?;
    Ok((connection, blank))
}

/// Lets SQLite write into a file that was found to be sound.
fn go_on(connection: &Connection) -> Result<(), Fault> {
    keep_journal(connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Changes go to a journal first, in which readers find what stood when they began.
fn keep_journal(connection: &Connection) -> Result<(), Fault> {
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode == "wal" {
        Ok(())
    } else {
        Err(LedgerCorruption::Structure(format!(
            "its journal is kept by {mode}, which cannot be changed to wal"
        ))
        .into())
    }
}

/// Whether the disk failed to make durable what it had taken.
fn is_failed_sync(error: &LedgerError) -> bool {
    let LedgerError::Sqlite { source: rusqlite::Error::SqliteFailure(failure, _), .. } = error else {
        return false;
    };
    [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_DIR_FSYNC].contains(&failure.extended_code)
}
