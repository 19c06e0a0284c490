//! The tables of a ledger and their rows.
//!
//! - `entry`: the events, one JSON object per row, numbered from 1 without gaps. They are never
//!   changed or removed, but moved to `block`.
//! - `block`: the entries of whole blocks, compressed ([`super::entry_rows`]). Ledgers have this
//!   table from their first block on, and then version 2.
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

use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::commit_mark::CommitMark;
use super::entry_rows::{self, BlockCache, Report};
use super::ledger_error::{LedgerCorruption, ReadError};
use super::ledger_state::{JobRow, JobTotals, LedgerState};
use crate::cluster::campaign::JobState;
use crate::tally::{Residues, Tally};

/// Identifies ledgers among SQLite files: "nqLG".
pub(super) const APPLICATION: i64 = 0x6e71_4c47;
/// The version of ledgers without blocks. It must be increased when earlier versions of the program
/// must no longer write the file.
const WITHOUT_BLOCKS: i64 = 1;
/// The version of ledgers with blocks.
pub(super) const VERSION: i64 = 2;

/// The tables in the order of their creation; the last one is missing in ledgers without blocks.
const TABLES: [(&str, &str); 4] = [
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
    (
        "block",
        "CREATE TABLE block (number INTEGER PRIMARY KEY, content BLOB NOT NULL, sum BLOB NOT NULL) STRICT",
    ),
];

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

pub(super) fn first_8(digest: &[u8; 32]) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = *digest;
    [a, b, c, d, e, f, g, h]
}

/// Creates the tables of a new ledger.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", WITHOUT_BLOCKS)?;
    let [head, entry, totals, _] = TABLES;
    for (_, sql) in [head, entry, totals] {
        connection.execute_batch(sql)?;
    }
    write_head(connection, &Head::default())
}

/// Returns whether this is a version of ledgers that this program can read.
pub(super) fn is_known(version: i64) -> bool {
    (WITHOUT_BLOCKS..=VERSION).contains(&version)
}

/// Returns whether a ledger has the table of blocks.
pub(super) fn has_blocks(connection: &Connection) -> rusqlite::Result<bool> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(version > WITHOUT_BLOCKS)
}

/// Adds the table of blocks to a ledger that has none.
pub(super) fn add_blocks(connection: &Connection) -> rusqlite::Result<()> {
    let [.., (_, sql)] = TABLES;
    connection.execute_batch(sql)?;
    connection.pragma_update(None, "user_version", VERSION)
}

/// Checks that the tables are those that [`create`] and [`add_blocks`] make.
pub(super) fn verify_tables(connection: &Connection) -> Result<(), ReadError> {
    let tables = if has_blocks(connection)? { &TABLES[..] } else { &TABLES[..3] };
    let mut statement =
        connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid")?;
    let mut rows = statement.query([])?;
    for &(name, sql) in tables {
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

pub(super) fn has_sum(row: &Row<'_>, column: usize, sum: &[u8; 8]) -> bool {
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

/// Returns the folder of a ledger.
pub(super) fn folder(connection: &Connection) -> Option<PathBuf> {
    connection.path().and_then(|path| Path::new(path).parent()).map(Path::to_owned)
}

/// Applies every entry to an empty state and compares the result with the running totals. Reports
/// damage to `report`.
pub(super) fn replay(
    connection: &Connection,
    mark: Option<CommitMark>,
    report: &mut Report<'_>,
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
    report: &mut Report<'_>,
) -> Result<(LedgerState, Head), ReadError> {
    let (mut undo, mut cache) = (Vec::new(), BlockCache::default());
    let mut invalid = Vec::new();
    let head = entry_rows::read_entries(
        connection,
        start,
        mark,
        &mut |number, _, entry| {
            let result = entry_rows::result_for(connection, &state, &entry, &mut cache)?;
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
