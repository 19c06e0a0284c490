//! A pass over a log: its signatures, its tree, its earlier states, and its entries.

use super::replay::{LogState, WrongReason};
use super::{AuditError, WrongEntry};
use crate::decomposition::JobHash;
use crate::transparency::checkpoint::{Checkpoint, LogKey, MOST_CHECKPOINT_BYTES};
use crate::transparency::entry::LogEntry;
use crate::transparency::merkle::{Frontier, Hash, leaf_hash};
use crate::transparency::source::{LogSource, MOST_BUNDLE_BYTES, SourceError};
use crate::transparency::tile::{Tile, WIDTH, entries_of, hashes_of};

/// The largest sizes of files, in bytes.
const MOST_KEY_BYTES: u64 = 1024;
const MOST_CHECKPOINTS_BYTES: u64 = 1 << 28;
const MOST_OWNERS_BYTES: u64 = 1 << 20;
const MOST_TILE_BYTES: u64 = 32 * WIDTH;

/// A log whose signature was checked.
#[derive(Debug)]
pub struct OpenLog<'a> {
    source: &'a LogSource,
    /// The key of the log.
    pub key: LogKey,
    /// The note with the last checkpoint.
    pub note: String,
    /// The last checkpoint.
    pub checkpoint: Checkpoint,
}

/// A log that was read and found right, but for its counts.
#[derive(Debug)]
pub struct ReadLog {
    /// The state of the job.
    pub state: LogState,
    /// The number of earlier checkpoints whose trees are parts of this one.
    pub earlier: u64,
    /// The owners that are named, by number.
    pub owners: Vec<(u64, String)>,
}

impl<'a> OpenLog<'a> {
    /// Reads the last checkpoint of a log. If `expected` is given, the log must have that key;
    /// otherwise it must have the one that it states itself.
    ///
    /// # Errors
    /// A file cannot be read, or the checkpoint is not signed by the key.
    pub fn open(source: &'a LogSource, expected: Option<&LogKey>) -> Result<Self, AuditError> {
        let stated = source.read_text("key", MOST_KEY_BYTES)?;
        let key: LogKey =
            stated.parse().map_err(|reason| AuditError::Form(source.address("key"), reason))?;
        if expected.is_some_and(|expected| *expected != key) {
            return Err(AuditError::AnotherKey(key.to_string()));
        }
        let note = source.read_text("checkpoint", MOST_CHECKPOINT_BYTES)?;
        let checkpoint = Checkpoint::open(&note, &key)
            .map_err(|error| AuditError::Checkpoint(source.address("checkpoint"), error))?;
        Ok(Self { source, key, note, checkpoint })
    }

    /// Returns the job that the log is about, according to its name.
    ///
    /// # Errors
    /// The name is not that of a log of a job.
    pub fn job(&self) -> Result<JobHash, AuditError> {
        self.key.job().ok_or_else(|| {
            AuditError::Form(self.source.address("key"), "its name is not nqueens/JOB")
        })
    }

    /// Reads and checks the whole log. The trees of the checkpoints in `earlier`, and of those that
    /// the log lists, must be parts of its tree. `progress` receives the number of entries read,
    /// and ends the audit with `None` by returning `false`.
    ///
    /// # Errors
    /// A file cannot be read, or something in the log is wrong.
    pub fn read(
        &self,
        earlier: &[Checkpoint],
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<Option<ReadLog>, AuditError> {
        let Checkpoint { size, root } = self.checkpoint;
        let mut earlier: Vec<Checkpoint> =
            self.listed()?.into_iter().chain(earlier.iter().copied()).collect();
        earlier.sort_unstable_by_key(|checkpoint| checkpoint.size);
        if let Some(last) = earlier.last().filter(|last| last.size > size) {
            return Err(AuditError::Shortened { size, earlier: last.size });
        }
        let earlier_checkpoints = earlier.iter().filter(|checkpoint| checkpoint.size < size);
        let count = earlier_checkpoints.count() as u64;
        let mut pending = earlier.into_iter().peekable();
        let (mut frontier, mut state) = (Frontier::default(), None);
        let job = self.job()?;
        loop {
            let number = frontier.size();
            while let Some(checkpoint) = pending.next_if(|next| next.size == number) {
                if checkpoint.root != frontier.root() {
                    return Err(self
                        .changed_entry(number)?
                        .unwrap_or(AuditError::Rewritten(number)));
                }
            }
            if number == size {
                break;
            }
            let tile = Tile::with_entry(number, size);
            let bundle = self.bundle(tile)?;
            let entries = self.entries(&bundle, tile)?;
            // Up to the next checkpoint, whose root must be compared there.
            let until = pending.peek().map_or(size, |next| next.size);
            let first = (number - tile.number * WIDTH) as usize;
            for (number, bytes) in (number..until).zip(&entries[first..]) {
                frontier.push(leaf_hash(bytes));
                if let Err(wrong) = apply(&mut state, job, number, bytes) {
                    // An entry that was changed after it was signed is reported as such.
                    return Err(self.changed_in(tile)?.unwrap_or(AuditError::Wrong(wrong)));
                }
            }
            if !progress(frontier.size()) {
                return Ok(None);
            }
        }
        if frontier.root() != root {
            return Err(self.changed_entry(size)?.unwrap_or(AuditError::Root(size)));
        }
        let first = WrongEntry { entry: 0, unit: None, reason: WrongReason::Place };
        let state = state.ok_or(AuditError::Wrong(first))?;
        Ok(Some(ReadLog { state, earlier: count, owners: self.owners()? }))
    }

    /// Returns the checkpoints that the log lists.
    fn listed(&self) -> Result<Vec<Checkpoint>, AuditError> {
        const FILE: &str = "checkpoints.jsonl";
        let address = || self.source.address(FILE);
        let lines = self.source.read_text(FILE, MOST_CHECKPOINTS_BYTES)?;
        let open = |line: &str| {
            let note: String = serde_json::from_str(line)
                .map_err(|_| AuditError::Form(address(), "a line is not a JSON string"))?;
            Checkpoint::open(&note, &self.key)
                .map_err(|error| AuditError::Checkpoint(address(), error))
        };
        lines.lines().map(open).collect()
    }

    /// Returns the names of owners.
    fn owners(&self) -> Result<Vec<(u64, String)>, AuditError> {
        const FILE: &str = "owners";
        let wrong = |reason| AuditError::Form(self.source.address(FILE), reason);
        let note = self.source.read_text(FILE, MOST_OWNERS_BYTES)?;
        let text =
            self.key.open(&note).ok_or_else(|| wrong("the key of the log has not signed it"))?;
        let head = format!("{}\nowners\n", self.key.name());
        let lines = text.strip_prefix(&head).ok_or_else(|| wrong("it is of another log"))?;
        let owner = |line: &str| {
            let (number, name) = line.split_once(' ')?;
            Some((
                number.parse().ok()?,
                name.chars().filter(|letter| !letter.is_control()).collect(),
            ))
        };
        let owners: Option<Vec<_>> = lines.lines().map(owner).collect();
        owners.ok_or_else(|| wrong("a line is not a number and a name"))
    }

    fn bundle(&self, tile: Tile) -> Result<Vec<u8>, SourceError> {
        self.source.read(&tile.to_string(), MOST_BUNDLE_BYTES)
    }

    fn entries<'b>(&self, bundle: &'b [u8], tile: Tile) -> Result<Vec<&'b [u8]>, AuditError> {
        entries_of(bundle, tile.width).ok_or_else(|| {
            let reason = "it has not as many entries as the tree";
            AuditError::Form(self.source.address(&tile.to_string()), reason)
        })
    }

    /// Reads a tile of hashes.
    ///
    /// # Errors
    /// It cannot be read, or has not as many hashes as the tree.
    pub fn hashes(&self, tile: Tile) -> Result<Vec<Hash>, AuditError> {
        let bytes = self.source.read(&tile.to_string(), MOST_TILE_BYTES)?;
        hashes_of(&bytes, tile.width).map(<[Hash]>::to_vec).ok_or_else(|| {
            let reason = "it has not as many hashes as the tree";
            AuditError::Form(self.source.address(&tile.to_string()), reason)
        })
    }

    /// Returns the bytes of an entry.
    ///
    /// # Errors
    /// Its bundle cannot be read.
    pub fn entry(&self, number: u64) -> Result<Vec<u8>, AuditError> {
        let tile = Tile::with_entry(number, self.checkpoint.size);
        let bundle = self.bundle(tile)?;
        let entries = self.entries(&bundle, tile)?;
        Ok(entries[(number % WIDTH) as usize].to_vec())
    }

    /// Returns the first entry of a bundle that has not the hash that the tree has for it.
    fn changed_in(&self, bundle: Tile) -> Result<Option<AuditError>, AuditError> {
        let first = bundle.number * WIDTH;
        let hashes = self.hashes(Tile::with_hash(0, first, self.checkpoint.size))?;
        let bytes = self.bundle(bundle)?;
        let entries = self.entries(&bytes, bundle)?;
        let found = (first..)
            .zip(entries.iter().zip(&hashes))
            .find(|(_, (entry, hash))| leaf_hash(entry) != **hash);
        Ok(found.map(|(entry, (bytes, _))| {
            let unit = LogEntry::from_bytes(bytes).and_then(|entry| entry.unit());
            AuditError::Wrong(WrongEntry { entry, unit, reason: WrongReason::Hash })
        }))
    }

    /// Returns the first of the first `size` entries that has not the hash that the tree has for
    /// it.
    fn changed_entry(&self, size: u64) -> Result<Option<AuditError>, AuditError> {
        let bundles = (0..size.div_ceil(WIDTH))
            .map(|number| Tile::with_entry(number * WIDTH, self.checkpoint.size));
        bundles.map(|bundle| self.changed_in(bundle)).find_map(Result::transpose).transpose()
    }
}

/// Applies the bytes of an entry to the state of the log, which begins with the first one.
fn apply(
    state: &mut Option<LogState>,
    job: JobHash,
    number: u64,
    bytes: &[u8],
) -> Result<(), WrongEntry> {
    let wrong = |reason| WrongEntry { entry: number, unit: None, reason };
    let entry = LogEntry::from_bytes(bytes).ok_or_else(|| wrong(WrongReason::Form))?;
    match state {
        Some(state) => state.apply(number, &entry),
        None => {
            *state = Some(LogState::new(job, &entry).map_err(wrong)?);
            Ok(())
        }
    }
}
