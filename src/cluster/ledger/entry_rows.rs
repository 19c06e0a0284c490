//! The entries of a ledger: rows of the table `entry`, and blocks.
//!
//! Each entry is written as a row of its own. Once all entries of a *block* are there, the rows are
//! replaced by one row of the table `block`: their JSON, one line for each, compressed (Zstandard,
//! RFC 8878). Block k, counted from 0, has the entries from k × [`ENTRIES`] + 1 on. Whether it is
//! in a row or in a block, an entry has the same number, JSON and digest, and so the same chain.

use std::collections::VecDeque;
use std::io::Read;
use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension, Row, params};
use sha2::{Digest, Sha256};

use super::commit_mark::CommitMark;
use super::entry::Entry;
use super::ledger_error::{LedgerCorruption, ReadError};
use super::ledger_state::LedgerState;
use super::schema::{Head, add_blocks, first_8, has_blocks, has_sum, read_head};
use crate::cluster::campaign::CampaignEvent;
use crate::tally::Tally;

/// The number of entries of a block.
pub(super) const ENTRIES: u64 = 256;

/// The level of compression. The highest one saves 4 % more and takes 50 times as long.
const LEVEL: i32 = 1;

/// The maximum length of the JSON of a block in bytes. An entry has no more than a message of the
/// protocol, 1 MiB, of which six bytes of JSON may stand for one.
const MOST_BYTES: u64 = 2 << 30;

const INSERT_ENTRY: &str = "INSERT INTO entry VALUES (?1, ?2, ?3)";
const SELECT_ENTRY: &str = "SELECT number, body, sum FROM entry WHERE number = ?1";
const SELECT_ENTRIES: &str =
    "SELECT number, body, sum FROM entry WHERE number > ?1 ORDER BY number";
const SELECT_RANGE: &str =
    "SELECT number, body, sum FROM entry WHERE number > ?1 AND number <= ?2 ORDER BY number";
const DELETE_RANGE: &str = "DELETE FROM entry WHERE number > ?1 AND number <= ?2";
const INSERT_BLOCK: &str = "INSERT INTO block VALUES (?1, ?2, ?3)";
const SELECT_BLOCK: &str = "SELECT number, content, sum FROM block WHERE number = ?1";
const SELECT_BLOCKS: &str =
    "SELECT number, content, sum FROM block WHERE number >= ?1 ORDER BY number";
const COUNT_BLOCKS: &str = "SELECT coalesce(max(number) + 1, 0) FROM block";

fn digest_of_entry(number: u64, body: &str) -> [u8; 32] {
    let digest = Sha256::new().chain_update(b"entry").chain_update(number.to_be_bytes());
    digest.chain_update(body.as_bytes()).finalize().into()
}

fn sum_of_block(number: u64, content: &[u8]) -> [u8; 8] {
    let digest = Sha256::new().chain_update(b"block").chain_update(number.to_be_bytes());
    first_8(&digest.chain_update(content).finalize().into())
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

/// Returns the number of blocks.
pub(super) fn count_blocks(connection: &Connection) -> rusqlite::Result<u64> {
    if !has_blocks(connection)? {
        return Ok(0);
    }
    let count = connection.query_row(COUNT_BLOCKS, [], |row| row.get::<_, i64>(0))?;
    Ok(count.cast_unsigned())
}

/// Makes the next block, number `number`, of rows. All its entries must be there.
pub(super) fn make_block(connection: &Connection, number: u64) -> Result<(), ReadError> {
    if !has_blocks(connection)? {
        add_blocks(connection)?;
    }
    let range = params![(number * ENTRIES).cast_signed(), ((number + 1) * ENTRIES).cast_signed()];
    let mut lines = String::new();
    let mut select = connection.prepare_cached(SELECT_RANGE)?;
    let mut rows = select.query(range)?;
    let mut next = number * ENTRIES + 1;
    while let Some(row) = rows.next()? {
        let RawEntry { number, content } = raw_entry(row)?;
        let damaged = LedgerCorruption::Checksum { table: "entry", row: number };
        let (body, _) = content.ok_or(damaged)?;
        if number != next {
            break;
        }
        lines.push_str(body);
        lines.push('\n');
        next += 1;
    }
    if next != (number + 1) * ENTRIES + 1 {
        return Err(LedgerCorruption::Missing { table: "entry", row: next }.into());
    }
    let compressed = zstd::bulk::compress(lines.as_bytes(), LEVEL);
    let content =
        compressed.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let mut insert = connection.prepare_cached(INSERT_BLOCK)?;
    insert.execute(params![number.cast_signed(), content, sum_of_block(number, &content)])?;
    connection.prepare_cached(DELETE_RANGE)?.execute(range)?;
    Ok(())
}

/// A row of `block` as stored.
struct RawBlock {
    number: u64,
    /// The JSON of its entries, one line for each; `None` if the row is damaged.
    lines: Option<String>,
}

fn raw_block(row: &Row<'_>) -> rusqlite::Result<RawBlock> {
    let number = row.get::<_, i64>(0)?.cast_unsigned();
    let content = row.get_ref(1)?.as_blob().unwrap_or_default();
    let is_sound = has_sum(row, 2, &sum_of_block(number, content));
    Ok(RawBlock { number, lines: is_sound.then(|| decompress(content)).flatten() })
}

fn decompress(content: &[u8]) -> Option<String> {
    let mut lines = String::new();
    let decoder = zstd::stream::read::Decoder::new(content).ok()?;
    decoder.take(MOST_BYTES).read_to_string(&mut lines).ok()?;
    (lines.ends_with('\n') && lines.lines().count() as u64 == ENTRIES).then_some(lines)
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

/// The blocks that were read last. Most results that are recounted are a few thousand entries old.
#[derive(Debug, Default)]
pub(super) struct BlockCache(VecDeque<(u64, Vec<String>)>);

/// The number of blocks in a cache. Each takes about 100 KB.
const MOST_CACHED: usize = 64;

impl BlockCache {
    /// Returns the JSON of the entries of a block, or `None` if there is no such block.
    fn read(
        &mut self,
        connection: &Connection,
        number: u64,
    ) -> Result<Option<&[String]>, ReadError> {
        let block = match self.0.iter().position(|(known, _)| *known == number) {
            Some(place) => self.0.remove(place),
            None => read_block(connection, number)?.map(|lines| (number, lines)),
        };
        let Some(block) = block else { return Ok(None) };
        self.0.truncate(MOST_CACHED - 1);
        self.0.push_front(block);
        Ok(self.0.front().map(|(_, lines)| &lines[..]))
    }
}

fn read_block(connection: &Connection, number: u64) -> Result<Option<Vec<String>>, ReadError> {
    let mut statement = connection.prepare_cached(SELECT_BLOCK)?;
    let found = statement.query_row([number.cast_signed()], raw_block).optional()?;
    let Some(RawBlock { lines, .. }) = found else { return Ok(None) };
    let lines = lines.ok_or(LedgerCorruption::Checksum { table: "block", row: number })?;
    Ok(Some(lines.lines().map(str::to_owned).collect()))
}

/// Reads one entry.
pub(super) fn read_entry(
    connection: &Connection,
    number: u64,
    cache: &mut BlockCache,
) -> Result<Entry, ReadError> {
    let mut statement = connection.prepare_cached(SELECT_ENTRY)?;
    let found = statement
        .query_row([number.cast_signed()], |row| {
            Ok(raw_entry(row)?.content.map(|(body, _)| parse(number, body)))
        })
        .optional()?;
    match found {
        Some(content) => {
            Ok(content.ok_or(LedgerCorruption::Checksum { table: "entry", row: number })??)
        }
        None => read_entry_of_block(connection, number, cache),
    }
}

fn read_entry_of_block(
    connection: &Connection,
    number: u64,
    cache: &mut BlockCache,
) -> Result<Entry, ReadError> {
    let missing = LedgerCorruption::Missing { table: "entry", row: number };
    if number == 0 || !has_blocks(connection)? {
        return Err(missing.into());
    }
    let (block, line) = ((number - 1) / ENTRIES, (number - 1) % ENTRIES);
    let lines = cache.read(connection, block)?.ok_or(missing)?;
    Ok(parse(number, &lines[line as usize])?)
}

/// Returns the tally of the result that `entry` refers to.
pub(super) fn result_for(
    connection: &Connection,
    state: &LedgerState,
    entry: &Entry,
    cache: &mut BlockCache,
) -> Result<Option<Tally>, ReadError> {
    let Some(number) = state.result_of(entry) else { return Ok(None) };
    match read_entry(connection, number, cache)?.event {
        CampaignEvent::UnitDone { tally, .. } => Ok(Some(tally)),
        _ => Err(LedgerCorruption::Chain.into()),
    }
}

/// A visitor of entries with their number and JSON; it may stop the reading.
pub(super) type Visit<'a> = dyn FnMut(u64, &str, Entry) -> Result<ControlFlow<()>, ReadError> + 'a;

/// Decides what happens to damage: whether the reading goes on.
pub(super) type Report<'a> = dyn FnMut(LedgerCorruption) -> Result<(), ReadError> + 'a;

/// The reading of all entries in order.
struct Reading<'a, 'b> {
    visit: &'a mut Visit<'b>,
    report: &'a mut Report<'b>,
    mark: Option<CommitMark>,
    /// The head of the ledger.
    expected: Head,
    /// The head after the last entry that was read.
    head: Head,
    /// True if an entry is missing or damaged, so that the chain cannot be verified.
    is_broken: bool,
}

impl Reading<'_, '_> {
    /// Verifies the next entry, which is damaged if there is no content, and calls the visitor.
    fn next(
        &mut self,
        number: u64,
        content: Option<(&str, [u8; 32])>,
    ) -> Result<ControlFlow<()>, ReadError> {
        if number > self.expected.entries || number <= self.head.entries {
            (self.report)(LedgerCorruption::Extra { table: "entry", row: number })?;
            return Ok(ControlFlow::Continue(()));
        }
        self.skip_to(number)?;
        let Some((body, digest)) = content else {
            (self.report)(LedgerCorruption::Checksum { table: "entry", row: number })?;
            self.is_broken = true;
            self.head.entries = number;
            return Ok(ControlFlow::Continue(()));
        };
        self.head = self.head.after(&digest);
        let differs =
            |mark: CommitMark| mark.entries == number && mark.chain != self.head.mark().chain;
        if !self.is_broken && self.mark.is_some_and(differs) {
            (self.report)(LedgerCorruption::Diverged(number))?;
        }
        match parse(number, body) {
            Ok(entry) => (self.visit)(number, body, entry),
            Err(unknown) => {
                (self.report)(unknown)?;
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Reports the entries before `number` as missing, if any are.
    fn skip_to(&mut self, number: u64) -> Result<(), ReadError> {
        if number != self.head.entries + 1 {
            let row = self.head.entries + 1;
            (self.report)(LedgerCorruption::Missing { table: "entry", row })?;
            self.is_broken = true;
            self.head.entries = number - 1;
        }
        Ok(())
    }

    /// Verifies the next block and calls the visitor with its entries after `start`.
    fn next_block(&mut self, block: RawBlock, start: u64) -> Result<ControlFlow<()>, ReadError> {
        let RawBlock { number, lines } = block;
        if number >= self.expected.entries / ENTRIES {
            (self.report)(LedgerCorruption::Extra { table: "block", row: number })?;
            return Ok(ControlFlow::Continue(()));
        }
        let first = number * ENTRIES + 1;
        let Some(lines) = lines else {
            self.skip_to(first.max(start + 1))?;
            (self.report)(LedgerCorruption::Checksum { table: "block", row: number })?;
            self.is_broken = true;
            self.head.entries = first + ENTRIES - 1;
            return Ok(ControlFlow::Continue(()));
        };
        for (number, body) in
            (first..).zip(lines.lines()).skip_while(|(number, _)| *number <= start)
        {
            let content = Some((body, digest_of_entry(number, body)));
            if self.next(number, content)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn read(&mut self, connection: &Connection) -> Result<ControlFlow<()>, ReadError> {
        let start = self.head.entries;
        if has_blocks(connection)? {
            let mut statement = connection.prepare(SELECT_BLOCKS)?;
            let mut rows = statement.query([(start / ENTRIES).cast_signed()])?;
            while let Some(row) = rows.next()? {
                if self.next_block(raw_block(row)?, start)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        let mut statement = connection.prepare(SELECT_ENTRIES)?;
        let mut rows = statement.query([start.cast_signed()])?;
        while let Some(row) = rows.next()? {
            let RawEntry { number, content } = raw_entry(row)?;
            if self.next(number, content)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Calls `visit` with every entry after `start`, its number and its JSON until it breaks. Checks
/// each entry by itself and all of them against the head and the mark; reports damage to `report`.
/// Returns the head. The default head is the start of the ledger.
pub(super) fn read_entries(
    connection: &Connection,
    start: Head,
    mark: Option<CommitMark>,
    visit: &mut Visit<'_>,
    report: &mut Report<'_>,
) -> Result<Head, ReadError> {
    let expected = read_head(connection)?;
    let mut reading = Reading { visit, report, mark, expected, head: start, is_broken: false };
    if reading.read(connection)?.is_break() {
        return Ok(reading.head);
    }
    let Reading { report, head, is_broken, .. } = reading;
    if head.entries != expected.entries {
        report(LedgerCorruption::Missing { table: "entry", row: head.entries + 1 })?;
    } else if !is_broken && head != expected {
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
