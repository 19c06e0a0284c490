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

use rusqlite::{Connection, OpenFlags, TransactionBehavior, ffi};

use super::check::open_for_reading;
use super::commit_mark::{Lock, read_mark};
use super::entry::Entry;
use super::entry_rows::{self, BlockCache};
use super::job_entries::JobEntries;
use super::ledger_error::{LedgerError, ReadError};
use super::ledger_state::{JobRow, JobSubmission, JobTotals, LedgerState, Undo};
use super::opening::{canonical_path, enable_writes, is_new, prepare};
use super::schema::{self, Head};
use crate::atomic_file::sync_directory_of;
use crate::cluster::campaign::JobState;
use crate::cluster::storage::{SnapshotError, SnapshotFile, SnapshotWriter};
use crate::decomposition::JobHash;

/// The number of blocks that are made with a batch besides those of its own entries. Each takes
/// about a millisecond.
const MORE_BLOCKS: u64 = 4;

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
    /// The number of blocks of entries.
    blocks: u64,
    cache: BlockCache,
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

    /// Opens the ledger at `path` with the state of a snapshot, and checks only the entries after
    /// it.
    ///
    /// # Errors
    /// As [`Self::open`], also if the snapshot is that of another ledger or if it cannot be read.
    pub fn open_with(path: &Path, snapshot: &Arc<SnapshotFile>) -> Result<Self, LedgerError> {
        Self::open_after(path, Some(snapshot))
    }

    fn open_after(path: &Path, snapshot: Option<&Arc<SnapshotFile>>) -> Result<Self, LedgerError> {
        let io = LedgerError::io(path, "opened for writing");
        let at = ReadError::at(path, "opened for writing");
        let place = canonical_path(path).map_err(&io)?;
        if fs::metadata(&place).is_ok_and(|found| !found.is_file()) {
            return Err(io(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a regular file",
            )));
        }
        let mut lock =
            Lock::take(&place).map_err(&io)?.ok_or_else(|| LedgerError::InUse(path.to_owned()))?;
        let mark = lock.mark().map_err(&io)?;
        let is_new = is_new(&place, mark).map_err(&io)?.map_err(|d| at(d.into()))?;
        if is_new {
            // Written before the ledger exists, to tell a truncated ledger from one that was never
            // filled.
            lock.set(Head::default().mark()).and_then(|()| lock.sync(&place)).map_err(&io)?;
        }
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, is_new);
        let connection = Connection::open_with_flags(&place, flags).map_err(|e| at(e.into()))?;
        let begun = is_new || mark == Some(Head::default().mark());
        let (connection, created) =
            prepare(connection, begun, snapshot.is_none()).map_err(|error| error.at(path))?;
        if created {
            sync_directory_of(&place).map_err(&io)?;
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
        let blocks = entry_rows::count_blocks(&connection).map_err(|e| at(e.into()))?;
        // From here on the file may be changed.
        enable_writes(&connection).map_err(&at)?;
        let mut file = Self {
            path: path.to_owned(),
            connection,
            lock: Some(lock),
            state,
            start,
            head,
            blocks,
            cache: BlockCache::default(),
            failed: false,
        };
        file.set_mark();
        Ok(file)
    }

    /// Opens the ledger at `path` for reading and checks all of it, for a coordinator that could
    /// not open it for writing. It reads its present state and rejects entries. It holds no lock,
    /// so another process may write the ledger as soon as that is possible.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is in use by another process, is not a ledger,
    /// was written by a later version, or is damaged.
    pub fn open_read_only(path: &Path) -> Result<Self, LedgerError> {
        let io = LedgerError::io(path, "opened for reading");
        let place = canonical_path(path).map_err(&io)?;
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
        // It makes no blocks.
        let (blocks, cache, lock) = (0, BlockCache::default(), None);
        Ok(Self { path, connection, lock, state, start, head, blocks, cache, failed: false })
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
            let result = entry_rows::result_for(&transaction, &self.state, entry, &mut self.cache)
                .map_err(&at)?;
            let invalid = |reason| LedgerError::InvalidEntry {
                path: self.path.clone(),
                place,
                reason: Box::new(reason),
            };
            self.state.apply(number, entry, result.as_ref(), undo).map_err(invalid)?;
            let unwritten = LedgerError::io(&self.path, "written");
            let body = entry.to_json().map_err(|error| unwritten(error.into()))?;
            head =
                head.after(&entry_rows::write_entry(&transaction, number, &body).map_err(sqlite)?);
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
        // Some more than the batch has, until a ledger of an earlier version has all its blocks.
        let of_batch = entries.len() as u64 / entry_rows::ENTRIES;
        let most = self.blocks + of_batch + MORE_BLOCKS;
        let blocks = (head.entries / entry_rows::ENTRIES).min(most);
        for block in self.blocks..blocks {
            entry_rows::make_block(&transaction, block).map_err(&at)?;
        }
        transaction.commit().map_err(sqlite)?;
        self.blocks = blocks;
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
    pub fn write(&mut self, snapshot: &mut SnapshotWriter<'_>) -> Result<(), SnapshotError> {
        self.state.write_changed(snapshot)?;
        snapshot.state(SNAPSHOT, &(self.head, &self.state))
    }

    /// Continues with a snapshot to which the state was written and not changed since.
    pub fn continue_with(&mut self, snapshot: &Arc<SnapshotFile>) {
        self.state.continue_with(snapshot);
    }

    /// Calls `visit` with every entry after the snapshot with which the ledger was opened, in
    /// order. Reads one row at a time.
    ///
    /// # Errors
    /// Returns an error if the ledger cannot be read or is damaged. The entries visited so far must
    /// then not be used.
    pub fn visit_entries(&self, visit: &mut dyn FnMut(Entry)) -> Result<(), LedgerError> {
        let mut visit_entry = |_, _: &str, entry: Entry| {
            visit(entry);
            Ok(ControlFlow::Continue(()))
        };
        entry_rows::read_entries(
            &self.connection,
            self.start,
            None,
            &mut visit_entry,
            &mut |damage| Err(damage.into()),
        )
        .map(drop)
        .map_err(ReadError::at(&self.path, "read"))
    }

    /// Returns the workers by name, each with its owner according to its last recorded call.
    pub fn owners(&self) -> impl Iterator<Item = (&str, &str)> {
        self.state.owners()
    }

    /// Returns the jobs in the order of submission, with their running totals.
    pub fn jobs(&self) -> impl Iterator<Item = JobRecord> {
        self.state.jobs().map(JobEntries::record)
    }

    /// Returns a job with its running totals, or `None` if it was never submitted.
    pub fn job(&self, job: &JobHash) -> Option<JobRecord> {
        self.state.job(job).map(JobEntries::record)
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

/// Returns whether the error is a failed sync, after which the content of the disk is unknown.
fn is_failed_sync(error: &LedgerError) -> bool {
    let LedgerError::Sqlite { source: rusqlite::Error::SqliteFailure(failure, _), .. } = error
    else {
        return false;
    };
    [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_DIR_FSYNC].contains(&failure.extended_code)
}
