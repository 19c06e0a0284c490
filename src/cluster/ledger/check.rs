//! Reading the ledger of a campaign without changing it, also while a coordinator writes it: what is read is what
//! stood at one moment.

use std::fmt;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use serde::Serialize;

use super::campaign_file::{JobRecord, Obstacle, identify, journal_of, real_place, settle};
use super::commit_mark::read_mark;
use super::entry::{Entry, Phase};
use super::ledger_error::{Fault, LedgerCorruption, LedgerError};
use super::schema;
use crate::decomposition::JobHash;

/// Findings of which a report has the text; more are only counted.
const MOST_FINDINGS: usize = 20;

/// What a ledger holds, as far as its running totals tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// Entries in all.
    pub entries: u64,
    /// The jobs in the order of submission.
    pub jobs: Vec<JobOverview>,
}

/// A job and its running totals. Sums are decimal strings: JSON readers lose digits past 2^53.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobOverview {
    /// Its hash.
    pub job: JobHash,
    /// Its text.
    pub text: String,
    /// Its phase.
    pub state: Phase,
    /// Since when, in milliseconds since the Unix epoch.
    pub state_ms: u64,
    /// Who submitted it.
    pub submitter: String,
    /// When, in milliseconds since the Unix epoch.
    pub submitted_ms: u64,
    /// Jobs of higher priority come first.
    pub priority: i32,
    /// Units of the job.
    pub units: u64,
    /// Units that have a result in force.
    pub done: u64,
    /// Those of them that a recount agreed with.
    pub verified: u64,
    /// Units that are set aside.
    pub poisoned: u64,
    /// Recounts of units or, as spot checks, of parts of them; those of results taken back included.
    pub recounts: u64,
    /// Recounts that did not agree.
    pub disagreements: u64,
    /// Results that were taken back.
    pub voided: u64,
    /// The sum so far, in thirds of a solution.
    pub thirds: String,
    /// Placements made so far.
    pub nodes: String,
    /// The number of solutions; none while units are missing, or if the sum does not stand its checks.
    pub solutions: Option<String>,
}

/// What [`check`] found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Whether nothing is wrong.
    pub sound: bool,
    /// Whether everything is as it was written, and only sums disagree.
    pub as_written: bool,
    /// What is wrong, a line each; the first of them only, if there are many.
    pub findings: Vec<String>,
    /// How much is wrong.
    pub findings_in_all: u64,
    /// Entries in all.
    pub entries: u64,
    /// The jobs, with totals that were summed anew from the entries.
    pub jobs: Vec<JobOverview>,
}

impl JobOverview {
    fn new(record: JobRecord) -> Self {
        let JobRecord { submitted, phase, phase_ms, totals } = record;
        let complete = totals.done == submitted.units;
        let solutions = complete.then(|| totals.tally.solutions().ok()).flatten();
        Self {
            job: submitted.job,
            text: submitted.text,
            state: phase,
            state_ms: phase_ms,
            submitter: submitted.submitter,
            submitted_ms: submitted.at_ms,
            priority: submitted.priority,
            units: submitted.units,
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
            "  {:<19} {} of units or parts of them, {} disagree; {} results taken back",
            "recounts", self.recounts, self.disagreements, self.voided
        )?;
        match &self.solutions {
            Some(solutions) if self.state == Phase::Disputed => {
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

/// Reads everything, sums anew and compares: each checksum, the chain, each tally with its residues, each entry with
/// those before it, the running totals. Changes nothing.
///
/// # Errors
/// The file cannot be read at all, or is no ledger of this version. All else is in the report.
pub fn check(path: &Path) -> Result<CheckReport, LedgerError> {
    let mark = read_mark(&real_place(path).map_err(unreadable(path))?);
    let connection = open_for_reading(path)?;
    let mut findings = Vec::new();
    let mut findings_in_all = 0;
    let mut as_written = true;
    let mut note = |damage: LedgerCorruption| {
        findings_in_all += 1;
        as_written &= damage.is_disagreement();
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
        Ok((book, head)) => (
            book.jobs()
                .map(|job| JobOverview::new(JobRecord::new(job.submitted.clone(), &job.row)))
                .collect(),
            head.entries,
        ),
        Err(fault) => match Fault::at(path, "read")(fault) {
            LedgerError::Damaged { damage, .. } => {
                note(damage);
                (Vec::new(), 0)
            }
            other => return Err(other),
        },
    };
    Ok(CheckReport { sound: findings_in_all == 0, as_written, findings, findings_in_all, entries, jobs })
}

/// The jobs and their running totals, without reading all entries: fast, however long the ledger is. What is read is
/// held to its checksums; [`check`] does the rest.
///
/// # Errors
/// The file cannot be read, is no ledger of this version, or what is read is not as it was written.
pub fn show(path: &Path) -> Result<Overview, LedgerError> {
    let connection = open_for_reading(path)?;
    let read = || {
        schema::verify_tables(&connection)?;
        let entries = schema::read_head(&connection)?.entries;
        let mut jobs = Vec::new();
        for row in schema::read_totals(&connection)? {
            match schema::read_entry(&connection, row.submitted_by)? {
                Entry::JobSubmitted(submitted) => {
                    jobs.push(JobOverview::new(JobRecord::new(submitted, &row)))
                }
                _ => return Err(LedgerCorruption::Extra { table: "totals", row: row.submitted_by }.into()),
            }
        }
        Ok(Overview { entries, jobs })
    };
    read().map_err(Fault::at(path, "read"))
}

/// Writes the entries of `job` (of all, without one) as JSON lines, `{"number":…,"entry":{…}}`, in order. Reads one row
/// at a time. Returns how many were written.
///
/// # Errors
/// The file cannot be read, is no ledger of this version, or is not as it was written (what was written by then is not
/// to be used); or `out` takes no more.
pub fn export(path: &Path, job: Option<&JobHash>, out: &mut dyn Write) -> Result<u64, LedgerError> {
    let connection = open_for_reading(path)?;
    let mut written = 0;
    let mut stuck = None;
    let read = schema::verify_tables(&connection).and_then(|()| {
        schema::read_entries(
            &connection,
            None,
            &mut |number, body, entry| {
                if job.is_some() && entry.job().as_ref() != job {
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
    read.map_err(Fault::at(path, "read"))?;
    match stuck.or_else(|| out.flush().err()) {
        Some(source) => Err(LedgerError::Output { path: path.to_owned(), source }),
        None => Ok(written),
    }
}

fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> LedgerError {
    move |source| LedgerError::Io { path: path.to_owned(), action: "read", source }
}

/// Opens a ledger for reading, at the moment of the call.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection, LedgerError> {
    let place = real_place(path).map_err(unreadable(path))?;
    let length = std::fs::metadata(&place).map_err(unreadable(path))?.len();
    if length == 0 {
        return Err(LedgerError::Damaged { path: path.to_owned(), damage: LedgerCorruption::Empty });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read = |connection: Connection| {
        settle(&connection)?;
        connection.execute_batch("BEGIN")?;
        // The first look fixes the moment.
        if identify(&connection)? { Err(Obstacle::NotALedger) } else { Ok(connection) }
    };
    let opened = Connection::open_with_flags(&place, flags).map_err(Obstacle::from).and_then(read);
    match opened {
        Err(Obstacle::Fault(Fault::Sqlite(error))) if is_unwritable(&error) && !has_journal(&place) => {
            // In a folder that cannot be written SQLite cannot share a journal; without one there is nobody to
            // share it with.
            let uri = immutable_uri(&place);
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(uri, flags).map_err(Obstacle::from).and_then(read)
        }
        Err(Obstacle::Fault(Fault::Sqlite(error))) if is_unwritable(&error) || is_out_of_room(&error) => {
            open_alone(&place, flags).and_then(read)
        }
        other => other,
    }
    .map_err(|obstacle| obstacle.at(path))
}

/// Opens a ledger whose journal nobody can share, because the memory that they would share is a file for which there is no
/// room, or that cannot be made. So nobody begins to write it meanwhile, and SQLite's index of the journal can be in the
/// memory of this process. Who reads holds the rows to their checksums all the same.
#[cfg(unix)]
fn open_alone(place: &Path, flags: OpenFlags) -> Result<Connection, Obstacle> {
    // Locks would need a file that is open for writing.
    let connection = Connection::open_with_flags_and_vfs(place, flags, c"unix-none")?;
    // Before the first look, or SQLite asks for shared memory.
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    Ok(connection)
}

/// Elsewhere there is no other way to open it.
#[cfg(not(unix))]
fn open_alone(place: &Path, flags: OpenFlags) -> Result<Connection, Obstacle> {
    Ok(Connection::open_with_flags(place, flags)?)
}

fn is_out_of_room(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure))
}

fn is_unwritable(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

fn has_journal(place: &Path) -> bool {
    std::fs::metadata(journal_of(place)).is_ok_and(|journal| journal.len() > 0)
}

/// The address of a file that nobody changes, in SQLite's words.
fn immutable_uri(place: &Path) -> String {
    let name = place.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{name}?immutable=1")
}
