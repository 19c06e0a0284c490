//! The tables of a ledger and their rows.
//!
//! - `entry`: the events, one JSON object per row, numbered from 1 without gaps, never changed or
//!   removed.
//! - `totals`: the running totals of each job, keyed by the number of the entry that submitted it.
//! - `head`: the number of entries, and the chain after the last one.
//!
//! SQLite does not detect a flipped bit in a row, so each row carries the first 8 bytes of the
//! SHA-256 of its fields. The *chain* after an entry is the SHA-256 of the chain before it and of
//! the digest of the entry, so rows that are valid individually but not together do not match the
//! head. 128-bit numbers are stored as 16 bytes, most significant first; other numbers are SQLite
//! integers with the bits of the unsigned value.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row, Statement, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::commit_mark::CommitMark;
use super::entry::Entry;
use super::ledger_error::{LedgerCorruption, ReadError};
use super::ledger_state::{JobRow, JobTotals, LedgerState};
use crate::cluster::campaign::{CampaignEvent, JobState};
use crate::tally::{Residues, Tally};

/// Identifies ledgers among SQLite files: "nqLG".
pub(super) const APPLICATION: i64 = 0x6e71_4c47;
/// Must be increased when earlier versions of the program must no longer write the file.
pub(super) const VERSION: i64 = 1;

const TABLES: [(&str, &str); 3] = [
    (
        "head",
        "CREATE TABLE head (id INTEGER PRIMARY KEY, entries INTEGER NOT NULL, chain BLOB NOT NULL, sum BLOB NOT NULL) STRICT",
    ),
    (
        "entry",
        "CREATE TABLE entry (number INTEGER PRIMARY KEY, body TEXT NOT NULL, sum BLOB NOT NULL) STRICT",
    ),
    (
        "totals",
        "CREATE TABLE totals (submitted_by INTEGER PRIMARY KEY, phase INTEGER NOT NULL, phase_ms INTEGER NOT NULL, thirds BLOB NOT NULL, residue_a INTEGER NOT NULL, residue_b INTEGER NOT NULL, nodes BLOB NOT NULL, done INTEGER NOT NULL, verified INTEGER NOT NULL, poisoned INTEGER NOT NULL, recounts INTEGER NOT NULL, disagreements INTEGER NOT NULL, voided INTEGER NOT NULL, sum BLOB NOT NULL) STRICT",
    ),
];

const INSERT_ENTRY: &str = "INSERT INTO entry VALUES (?1, ?2, ?3)";
const SELECT_ENTRY: &str = "SELECT number, body, sum FROM entry WHERE number = ?1";
const SELECT_ENTRIES: &str =
    "SELECT number, body, sum FROM entry WHERE number > ?1 ORDER BY number";
const UPDATE_HEAD: &str = "INSERT OR REPLACE INTO head VALUES (1, ?1, ?2, ?3)";
const SELECT_HEAD: &str = "SELECT entries, chain, sum FROM head WHERE id = 1";
const PUT_TOTALS: &str = "INSERT OR REPLACE INTO totals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
const SELECT_TOTALS: &str = "SELECT * FROM totals ORDER BY submitted_by";

/// The number of entries, and the chain after the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) entries: u64,
    pub(super) chain: [u8; 32],
}

impl Head {
    /// Returns the head after one more entry with this digest.
    pub(super) fn after(&self, digest: &[u8; 32]) -> Self {
        let chain = Sha256::new().chain_update(self.chain).chain_update(digest).finalize().into();
        Self { entries: self.entries + 1, chain }
    }

    pub(super) fn mark(&self) -> CommitMark {
        CommitMark { entries: self.entries, chain: first_8(&self.chain) }
    }

    fn sum(&self) -> [u8; 8] {
        let digest = Sha256::new().chain_update(b"head").chain_update(self.entries.to_be_bytes());
        first_8(&digest.chain_update(self.chain).finalize().into())
    }
}

fn first_8(digest: &[u8; 32]) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = *digest;
    [a, b, c, d, e, f, g, h]
}

fn digest_of_entry(number: u64, body: &str) -> [u8; 32] {
    let digest = Sha256::new().chain_update(b"entry").chain_update(number.to_be_bytes());
    digest.chain_update(body.as_bytes()).finalize().into()
}

/// Creates the tables of a new ledger.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", VERSION)?;
    for (_, sql) in TABLES {
        connection.execute_batch(sql)?;
    }
    write_head(connection, &Head::default())
}

/// Checks that the tables are those that [`create`] makes.
pub(super) fn verify_tables(connection: &Connection) -> Result<(), ReadError> {
    let mut statement =
        connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid")?;
    let mut rows = statement.query([])?;
    for (name, sql) in TABLES {
        let row = rows.next()?.ok_or(LedgerCorruption::Schema)?;
        let fits = |column, text: &str| row.get_ref(column).is_ok_and(|v| v.as_str() == Ok(text));
        if !(fits(0, "table") && fits(1, name) && fits(2, name) && fits(3, sql)) {
            return Err(LedgerCorruption::Schema.into());
        }
    }
    if rows.next()?.is_some() { Err(LedgerCorruption::Schema.into()) } else { Ok(()) }
}

/// Runs SQLite's check of its file structure.
pub(super) fn verify_structure(connection: &Connection) -> Result<(), ReadError> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    let found = found.split_whitespace().collect::<Vec<_>>().join(" ");
    if found == "ok" { Ok(()) } else { Err(LedgerCorruption::Structure(found).into()) }
}

/// Writes entry number `number`. Returns its digest.
pub(super) fn write_entry(
    connection: &Connection,
    number: u64,
    body: &str,
) -> rusqlite::Result<[u8; 32]> {
    let digest = digest_of_entry(number, body);
    let mut statement = connection.prepare_cached(INSERT_ENTRY)?;
    statement.execute(params![number.cast_signed(), body, first_8(&digest)])?;
    Ok(digest)
}

pub(super) fn write_head(connection: &Connection, head: &Head) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(UPDATE_HEAD)?;
    statement.execute(params![head.entries.cast_signed(), head.chain, head.sum()])?;
    Ok(())
}

pub(super) fn read_head(connection: &Connection) -> Result<Head, ReadError> {
    let mut statement = connection.prepare_cached(SELECT_HEAD)?;
    let mut rows = statement.query([])?;
    let row = rows.next()?.ok_or(LedgerCorruption::Missing { table: "head", row: 1 })?;
    let head = Head {
        entries: row.get::<_, i64>(0)?.cast_unsigned(),
        chain: row.get(1).unwrap_or_default(),
    };
    if has_sum(row, 2, &head.sum()) {
        Ok(head)
    } else {
        Err(LedgerCorruption::Checksum { table: "head", row: 1 }.into())
    }
}

fn has_sum(row: &Row<'_>, column: usize, sum: &[u8; 8]) -> bool {
    row.get_ref(column).is_ok_and(|value| value.as_blob() == Ok(sum.as_slice()))
}

/// Returns the integers of a row of totals, starting with its key, and its checksum.
fn numbers_of(row: &JobRow) -> ([i64; 11], [u8; 8]) {
    let JobRow { submitted_by, state, state_ms, totals } = *row;
    let JobTotals { tally, done, verified, poisoned, recounts, disagreements, voided } = totals;
    let [a, b] = tally.residues().values();
    let numbers = [
        submitted_by,
        state as u64,
        state_ms,
        a,
        b,
        done,
        verified,
        poisoned,
        recounts,
        disagreements,
        voided,
    ];
    let mut digest = Sha256::new().chain_update(b"totals");
    for number in numbers {
        digest.update(number.to_be_bytes());
    }
    digest.update(tally.thirds().to_be_bytes());
    digest.update(tally.nodes().to_be_bytes());
    (numbers.map(u64::cast_signed), first_8(&digest.finalize().into()))
}

pub(super) fn write_totals(connection: &Connection, row: &JobRow) -> rusqlite::Result<()> {
    let ([by, state, ms, a, b, done, verified, poisoned, recounts, disagreements, voided], sum) =
        numbers_of(row);
    let (thirds, nodes) =
        (row.totals.tally.thirds().to_be_bytes(), row.totals.tally.nodes().to_be_bytes());
    let mut statement = connection.prepare_cached(PUT_TOTALS)?;
    statement.execute(params![
        by,
        state,
        ms,
        thirds,
        a,
        b,
        nodes,
        done,
        verified,
        poisoned,
        recounts,
        disagreements,
        voided,
        sum
    ])?;
    Ok(())
}

/// Reads all rows of totals, in the order of submission.
pub(super) fn read_totals(connection: &Connection) -> Result<Vec<JobRow>, ReadError> {
    let mut statement = connection.prepare_cached(SELECT_TOTALS)?;
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let key = row.get::<_, i64>(0)?.cast_unsigned();
        all.push(totals_in(row).ok_or(LedgerCorruption::Checksum { table: "totals", row: key })?);
    }
    Ok(all)
}

fn totals_in(row: &Row<'_>) -> Option<JobRow> {
    let number = |column| row.get::<_, i64>(column).ok().map(i64::cast_unsigned);
    let wide = |column| row.get::<_, [u8; 16]>(column).ok().map(u128::from_be_bytes);
    let residues = Residues::from_values([number(4)?, number(5)?]);
    let found = JobRow {
        submitted_by: number(0)?,
        state: *JobState::ALL.get(usize::try_from(number(1)?).ok()?)?,
        state_ms: number(2)?,
        totals: JobTotals {
            tally: Tally::from_parts(wide(3)?, residues, wide(6)?),
            done: number(7)?,
            verified: number(8)?,
            poisoned: number(9)?,
            recounts: number(10)?,
            disagreements: number(11)?,
            voided: number(12)?,
        },
    };
    has_sum(row, 13, &numbers_of(&found).1).then_some(found)
}

/// A row of `entry` as stored.
struct RawEntry<'a> {
    number: u64,
    /// Its JSON and its digest; `None` if the checksum does not match.
    content: Option<(&'a str, [u8; 32])>,
}

fn raw_entry<'a>(row: &'a Row<'_>) -> rusqlite::Result<RawEntry<'a>> {
    let number = row.get::<_, i64>(0)?.cast_unsigned();
    let body = row.get_ref(1)?.as_str().ok();
    let content = body.map(|body| (body, digest_of_entry(number, body)));
    Ok(RawEntry {
        number,
        content: content.filter(|(_, digest)| has_sum(row, 2, &first_8(digest))),
    })
}

fn parse(number: u64, body: &str) -> Result<Entry, LedgerCorruption> {
    Entry::from_json(body)
        .map_err(|error| LedgerCorruption::Unknown { number, reason: error.to_string() })
}

/// Reads one entry.
pub(super) fn read_entry(connection: &Connection, number: u64) -> Result<Entry, ReadError> {
    let mut statement = connection.prepare_cached(SELECT_ENTRY)?;
    let found = statement
        .query_row([number.cast_signed()], |row| {
            Ok(raw_entry(row)?.content.map(|(body, _)| parse(number, body)))
        })
        .optional()?;
    let content = found.ok_or(LedgerCorruption::Missing { table: "entry", row: number })?;
    Ok(content.ok_or(LedgerCorruption::Checksum { table: "entry", row: number })??)
}

/// Returns the tally of the result that `entry` refers to.
pub(super) fn result_for(
    connection: &Connection,
    state: &LedgerState,
    entry: &Entry,
) -> Result<Option<Tally>, ReadError> {
    let Some(number) = state.result_of(entry) else { return Ok(None) };
    match read_entry(connection, number)?.event {
        CampaignEvent::UnitDone { tally, .. } => Ok(Some(tally)),
        _ => Err(LedgerCorruption::Chain.into()),
    }
}

/// A visitor of entries with their number and JSON; it may stop the reading.
pub(super) type Visit<'a> = dyn FnMut(u64, &str, Entry) -> Result<ControlFlow<()>, ReadError> + 'a;

/// Calls `visit` with every entry after `start`, its number and its JSON until it breaks. Checks each
/// entry by itself and all of them against the head and the mark; reports damage to `report`. Returns
/// the head. The default head is the start of the ledger.
pub(super) fn read_entries(
    connection: &Connection,
    start: Head,
    mark: Option<CommitMark>,
    visit: &mut Visit<'_>,
    report: &mut dyn FnMut(LedgerCorruption) -> Result<(), ReadError>,
) -> Result<Head, ReadError> {
    let expected = read_head(connection)?;
    let mut head = start;
    let mut statement: Statement<'_> = connection.prepare(SELECT_ENTRIES)?;
    let mut rows = statement.query([start.entries.cast_signed()])?;
    let mut broken = false;
    while let Some(row) = rows.next()? {
        let RawEntry { number, content } = raw_entry(row)?;
        if number > expected.entries || number <= head.entries {
            report(LedgerCorruption::Extra { table: "entry", row: number })?;
            continue;
        }
        if number != head.entries + 1 {
            report(LedgerCorruption::Missing { table: "entry", row: head.entries + 1 })?;
            broken = true;
            head.entries = number - 1;
        }
        let Some((body, digest)) = content else {
            report(LedgerCorruption::Checksum { table: "entry", row: number })?;
            broken = true;
            head.entries = number;
            continue;
        };
        head = head.after(&digest);
        if !broken && mark.is_some_and(|m| m.entries == number && m.chain != head.mark().chain) {
            report(LedgerCorruption::Diverged(number))?;
        }
        match parse(number, body) {
            Ok(entry) => {
                if visit(number, body, entry)?.is_break() {
                    return Ok(head);
                }
            }
            Err(unknown) => report(unknown)?,
        }
    }
    if head.entries != expected.entries {
        report(LedgerCorruption::Missing { table: "entry", row: head.entries + 1 })?;
    } else if !broken && head != expected {
        report(LedgerCorruption::Chain)?;
    }
    match mark {
        Some(mark) if mark.entries > expected.entries => {
            report(LedgerCorruption::Lost { acknowledged: mark.entries, found: expected.entries })?;
        }
        _ => {}
    }
    Ok(expected)
}

/// Returns the folder of a ledger.
pub(super) fn folder(connection: &Connection) -> Option<PathBuf> {
    connection.path().and_then(|path| Path::new(path).parent()).map(Path::to_owned)
}

/// Applies every entry to an empty state and compares the result with the running totals. Reports
/// damage to `report`.
pub(super) fn replay(
    connection: &Connection,
    mark: Option<CommitMark>,
    report: &mut dyn FnMut(LedgerCorruption) -> Result<(), ReadError>,
) -> Result<(LedgerState, Head), ReadError> {
    let empty = LedgerState::new(folder(connection));
    replay_after(connection, (empty, Head::default()), mark, report)
}

/// Applies every entry after `start` to the state there and compares the result with the running
/// totals. Reports damage to `report`.
pub(super) fn replay_after(
    connection: &Connection,
    (mut state, start): (LedgerState, Head),
    mark: Option<CommitMark>,
    report: &mut dyn FnMut(LedgerCorruption) -> Result<(), ReadError>,
) -> Result<(LedgerState, Head), ReadError> {
    let mut undo = Vec::new();
    let mut invalid = Vec::new();
    let head = read_entries(
        connection,
        start,
        mark,
        &mut |number, _, entry| {
            let result = result_for(connection, &state, &entry)?;
            if let Err(reason) = state.apply(number, &entry, result.as_ref(), &mut undo) {
                invalid.push(LedgerCorruption::Entry { number, reason: Box::new(reason) });
            }
            undo.clear();
            // Stop after 1000 findings, to bound the memory.
            Ok(if invalid.len() < 1000 {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            })
        },
        report,
    )?;
    for damage in invalid {
        report(damage)?;
    }
    let mut written = read_totals(connection)?.into_iter().peekable();
    for job in state.jobs() {
        let key = job.row.submitted_by;
        while let Some(extra) = written.next_if(|row| row.submitted_by < key) {
            report(LedgerCorruption::Extra { table: "totals", row: extra.submitted_by })?;
        }
        match written.next_if(|row| row.submitted_by == key) {
            None => report(LedgerCorruption::Missing { table: "totals", row: key })?,
            Some(row) if row != job.row => {
                report(LedgerCorruption::Totals(job.submission.job.to_string()))?
            }
            Some(_) => {}
        }
    }
    for extra in written {
        report(LedgerCorruption::Extra { table: "totals", row: extra.submitted_by })?;
    }
    Ok((state, head))
}
