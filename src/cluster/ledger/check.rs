//! Read-only access to the ledger of a campaign. It sees one state of the ledger, even while a
//! coordinator writes.

use std::fmt;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use serde::Serialize;

use super::campaign_file::JobRecord;
use super::commit_mark::read_mark;
use super::entry::Entry;
use super::entry_rows::{self, BlockCache};
use super::ledger_error::{LedgerCorruption, LedgerError, ReadError};
use super::ledger_state::JobSubmission;
use super::opening::{OpenError, canonical_path, configure, identify, wal_path};
use super::schema::{self, Head};
use crate::cluster::campaign::JobState;
use crate::decomposition::JobHash;

/// Number of findings whose text is in a report; further ones are only counted.
const MOST_FINDINGS: usize = 20;

/// The content of a ledger according to its running totals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// Number of entries.
    pub entries: u64,
    /// The jobs in the order of submission.
    pub jobs: Vec<JobOverview>,
}

/// A job and its running totals. Sums are decimal strings, since JSON readers lose digits beyond
/// 2^53.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobOverview {
    /// Its hash.
    pub job: JobHash,
    /// Its text.
    pub text: String,
    /// Its state.
    pub state: JobState,
    /// Time of the last change of state, in milliseconds since the Unix epoch.
    pub state_ms: u64,
    /// The submitter.
    pub submitter: String,
    /// Time of submission, in milliseconds since the Unix epoch.
    pub submitted_ms: u64,
    /// Priority; jobs with a higher one come first.
    pub priority: i32,
    /// Units of the job.
    pub units: u64,
    /// Units that have a result in force.
    pub done: u64,
    /// Units among them that a recount confirmed.
    pub verified: u64,
    /// Poisoned units.
    pub poisoned: u64,
    /// Recounts and spot checks, including those of voided results.
    pub recounts: u64,
    /// Recounts and spot checks that disagreed.
    pub disagreements: u64,
    /// Voided results.
    pub voided: u64,
    /// The sum so far, in thirds of a solution.
    pub thirds: String,
    /// Nodes made so far.
    pub nodes: String,
    /// The number of solutions; `None` while units are missing or if the sum fails its checks.
    pub solutions: Option<String>,
}

/// The report of [`check`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// True if there are no findings.
    pub sound: bool,
    /// True if all rows are as they were written and only sums disagree.
    pub as_written: bool,
    /// The findings, one line each; only the first ones, if there are many.
    pub findings: Vec<String>,
    /// Number of findings, including those without text.
    pub findings_in_all: u64,
    /// Number of entries.
    pub entries: u64,
    /// The jobs, with totals recomputed from the entries.
    pub jobs: Vec<JobOverview>,
}

impl JobOverview {
    fn new(record: JobRecord) -> Self {
        let JobRecord { submission, state, state_ms, totals } = record;
        let complete = totals.done == submission.units;
        let solutions = complete.then(|| totals.tally.solutions().ok()).flatten();
        Self {
            job: submission.job,
            text: submission.text,
            state,
            state_ms,
            submitter: submission.submitter,
            submitted_ms: submission.at_ms,
            priority: submission.priority,
            units: submission.units,
            done: totals.done,
            verified: totals.verified,
            poisoned: totals.poisoned,
            recounts: totals.recounts,
            disagreements: totals.disagreements,
            voided: totals.voided,
            thirds: totals.tally.thirds().to_string(),
            nodes: totals.tally.nodes().to_string(),
            solutions: solutions.map(|solutions| solutions.to_string()),
        }
    }
}

impl fmt::Display for JobOverview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "job {} ({})", self.job, self.state.name())?;
        writeln!(f, "  {:<19} {}", "text", self.text)?;
        writeln!(f, "  {:<19} {}, priority {}", "submitted by", self.submitter, self.priority)?;
        writeln!(
            f,
            "  {:<19} {} of {} done, {} verified, {} set aside",
            "units", self.done, self.units, self.verified, self.poisoned
        )?;
        writeln!(
            f,
            "  {:<19} {} of units or parts of units, {} disagree; {} results taken back",
            "recounts", self.recounts, self.disagreements, self.voided
        )?;
        match &self.solutions {
            Some(solutions) if self.state == JobState::Disputed => {
                writeln!(f, "  {:<19} {solutions}, disputed", "solutions")?;
            }
            Some(solutions) => writeln!(f, "  {:<19} {solutions}", "solutions")?,
            None => writeln!(f, "  {:<19} {} thirds", "sum so far", self.thirds)?,
        }
        writeln!(f, "  {:<19} {}", "nodes", self.nodes)
    }
}

impl fmt::Display for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} entries, {} jobs", self.entries, self.jobs.len())?;
        self.jobs.iter().try_for_each(|job| job.fmt(f))
    }
}

/// Checks the whole ledger: every checksum, the chain, the residues of every tally, every entry
/// against its predecessors, and the running totals against the sum of the entries. Changes
/// nothing.
///
/// # Errors
/// Returns an error if the file cannot be read at all or is not a ledger of this version. All other
/// problems are in the report.
pub fn check(path: &Path) -> Result<CheckReport, LedgerError> {
    let mark = read_mark(&canonical_path(path).map_err(LedgerError::io(path, "read"))?);
    let connection = open_for_reading(path)?;
    let mut findings = Vec::new();
    let mut findings_in_all = 0;
    let mut as_written = true;
    let mut note = |damage: LedgerCorruption| {
        findings_in_all += 1;
        as_written &= damage.is_inconsistency();
        if findings.len() < MOST_FINDINGS {
            findings.push(damage.to_string());
        }
    };
    let mut read = || {
        schema::verify_structure(&connection)?;
        schema::verify_tables(&connection)?;
        schema::replay(&connection, mark, &mut |damage| {
            note(damage);
            Ok(())
        })
    };
    let (jobs, entries) = match read() {
        Ok((state, head)) => {
            let jobs = state.jobs().map(|job| JobOverview::new(job.record()));
            (jobs.collect(), head.entries)
        }
        Err(error) => match ReadError::at(path, "read")(error) {
            LedgerError::Damaged { damage, .. } => {
                note(damage);
                (Vec::new(), 0)
            }
            other => return Err(other),
        },
    };
    Ok(CheckReport {
        sound: findings_in_all == 0,
        as_written,
        findings,
        findings_in_all,
        entries,
        jobs,
    })
}

/// Returns the jobs and their running totals without reading all entries, so its time does not
/// depend on the length of the ledger. The rows read are checked against their checksums only;
/// [`check`] does the rest.
///
/// # Errors
/// Returns an error if the file cannot be read, is not a ledger of this version, or if a row read
/// is damaged.
pub fn show(path: &Path) -> Result<Overview, LedgerError> {
    let connection = open_for_reading(path)?;
    let read = || {
        schema::verify_tables(&connection)?;
        let entries = schema::read_head(&connection)?.entries;
        let (mut jobs, mut cache) = (Vec::new(), BlockCache::default());
        for row in schema::read_totals(&connection)? {
            let entry = entry_rows::read_entry(&connection, row.submitted_by, &mut cache)?;
            let extra = LedgerCorruption::Extra { table: "totals", row: row.submitted_by };
            let submission = JobSubmission::of(&entry.event).ok_or(extra)?;
            jobs.push(JobOverview::new(JobRecord::new(submission, &row)));
        }
        Ok(Overview { entries, jobs })
    };
    read().map_err(ReadError::at(path, "read"))
}

/// Writes the entries of `job`, or all entries without one, as JSON lines
/// `{"number":…,"entry":{…}}`, in order. Reads one row at a time. Returns the number of entries
/// written.
///
/// # Errors
/// Returns an error if the file cannot be read, is not a ledger of this version, or is damaged (the
/// output so far must then not be used), or if `out` cannot be written.
pub fn export(path: &Path, job: Option<&JobHash>, out: &mut dyn Write) -> Result<u64, LedgerError> {
    let connection = open_for_reading(path)?;
    let mut written = 0;
    let mut stuck = None;
    let read = schema::verify_tables(&connection).and_then(|()| {
        entry_rows::read_entries(
            &connection,
            Head::default(),
            None,
            &mut |number, body, entry| {
                if job.is_some() && entry.event.job().as_ref() != job {
                    return Ok(ControlFlow::Continue(()));
                }
                Ok(match writeln!(out, r#"{{"number":{number},"entry":{body}}}"#) {
                    Ok(()) => {
                        written += 1;
                        ControlFlow::Continue(())
                    }
                    Err(error) => {
                        stuck = Some(error);
                        ControlFlow::Break(())
                    }
                })
            },
            &mut |damage| Err(damage.into()),
        )
    });
    read.map_err(ReadError::at(path, "read"))?;
    match stuck.or_else(|| out.flush().err()) {
        Some(source) => Err(LedgerError::Output { path: path.to_owned(), source }),
        None => Ok(written),
    }
}

/// Calls `visit` with every entry, in order, until it returns false. Reads one row at a time, in
/// the state of the ledger at the time of the call.
///
/// # Errors
/// Returns an error if the file cannot be read, is not a ledger of this version, or is damaged. The
/// entries visited so far must then not be used.
pub fn visit(path: &Path, visit: &mut dyn FnMut(Entry) -> bool) -> Result<(), LedgerError> {
    let connection = open_for_reading(path)?;
    let mut visit_entry = |_, _: &str, entry: Entry| {
        Ok(if visit(entry) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    };
    schema::verify_tables(&connection)
        .and_then(|()| {
            let damaged = &mut |damage: LedgerCorruption| Err(damage.into());
            entry_rows::read_entries(&connection, Head::default(), None, &mut visit_entry, damaged)
        })
        .map(drop)
        .map_err(ReadError::at(path, "read"))
}

/// Opens a ledger for reading, in its state at the time of the call.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection, LedgerError> {
    let io = LedgerError::io(path, "read");
    let place = canonical_path(path).map_err(&io)?;
    let length = std::fs::metadata(&place).map_err(&io)?.len();
    if length == 0 {
        return Err(LedgerError::Damaged {
            path: path.to_owned(),
            damage: LedgerCorruption::Empty,
        });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read = |connection: Connection| {
        configure(&connection)?;
        connection.execute_batch("BEGIN")?;
        // The first read determines the state.
        if identify(&connection)? { Err(OpenError::NotALedger) } else { Ok(connection) }
    };
    let opened = Connection::open_with_flags(&place, flags).map_err(OpenError::from).and_then(read);
    match opened {
        Err(OpenError::Read(ReadError::Sqlite(error)))
            if is_unwritable(&error) && !has_wal(&place) =>
        {
            // In a directory that is not writable, SQLite cannot share a journal. Without a journal
            // there is no writer to share it with.
            let uri = immutable_uri(&place);
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(uri, flags).map_err(OpenError::from).and_then(read)
        }
        Err(OpenError::Read(ReadError::Sqlite(error)))
            if is_unwritable(&error) || is_disk_full(&error) =>
        {
            open_exclusive(&place, flags).and_then(read)
        }
        other => other,
    }
    .map_err(|error| error.at(path))
}

/// Opens a ledger whose journal cannot be shared, because the file for the shared memory cannot be
/// created or there is no space for it. No writer can then start either, so SQLite may keep the
/// index of the journal in the memory of this process. The rows are checked against their checksums
/// as usual.
#[cfg(unix)]
fn open_exclusive(place: &Path, flags: OpenFlags) -> Result<Connection, OpenError> {
    // Locks would require a file that is open for writing.
    let connection = Connection::open_with_flags_and_vfs(place, flags, c"unix-none")?;
    // Set before the first read, or SQLite requests shared memory.
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    Ok(connection)
}

/// Opens it normally, since other systems offer no alternative.
#[cfg(not(unix))]
fn open_exclusive(place: &Path, flags: OpenFlags) -> Result<Connection, OpenError> {
    Ok(Connection::open_with_flags(place, flags)?)
}

fn is_disk_full(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure))
}

fn is_unwritable(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

fn has_wal(place: &Path) -> bool {
    std::fs::metadata(wal_path(place)).is_ok_and(|journal| journal.len() > 0)
}

/// Returns the SQLite URI of a file that no process changes.
fn immutable_uri(place: &Path) -> String {
    let name = place.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{name}?immutable=1")
}
