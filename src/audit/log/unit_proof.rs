//! The proof that a log has a result of a unit: the entries with the job, the key of the author and
//! the result, each with its inclusion proof, and the checkpoint. A few files of the log suffice
//! for it.
//!
//! Such a proof does not show whether the result was taken back later.

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};

use super::read::OpenLog;
use super::replay::{LogState, WrongReason};
use super::{AuditError, WrongEntry};
use crate::cluster::campaign::JobState;
use crate::transparency::checkpoint::{Checkpoint, LogKey};
use crate::transparency::entry::{Author, LogEntry};
use crate::transparency::inclusion::inclusion_path;
use crate::transparency::merkle::{Hash, leaf_hash, root_of_inclusion};
use crate::transparency::source::LogSource;
use crate::transparency::unit_index::{PAGE_BYTES, Page};

/// The name of the format.
const FORMAT: &str = "nqueens unit proof 1";
/// The largest size of a proof, in bytes.
pub const MOST_PROOF_BYTES: u64 = 1 << 20;

/// A proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitProof {
    format: String,
    /// The key of the log.
    key: String,
    /// The note with the checkpoint.
    checkpoint: String,
    /// The entries with the job, with the key of the author if it has one, and with the result.
    entries: Vec<IncludedEntry>,
}

/// An entry with the proof that it is in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IncludedEntry {
    /// Its number, from 0.
    number: u64,
    /// The entry.
    entry: String,
    /// The hashes of the siblings on its way to the root, in base64, from the lowest.
    path: Vec<String>,
}

/// The result that a proof shows.
#[derive(Debug)]
pub struct ProvedResult {
    /// The key of the log.
    pub key: LogKey,
    /// The number of entries of the log.
    pub size: u64,
    /// The state of the job with this result alone.
    pub state: LogState,
    /// The unit.
    pub unit: u64,
    /// Its sum, in thirds of a solution.
    pub thirds: u128,
    /// The author.
    pub by: Author,
}

impl UnitProof {
    /// Reads the proof of the result of a unit from a log.
    ///
    /// # Errors
    /// A file cannot be read or is damaged, or the log has no result of the unit.
    pub fn from_log(log: &OpenLog<'_>, source: &LogSource, unit: u64) -> Result<Self, AuditError> {
        let path = Page::path(unit);
        let page = match source.read(&path, PAGE_BYTES as u64) {
            Ok(bytes) => Page::from_bytes(bytes).ok_or_else(|| {
                AuditError::Form(source.address(&path), "it has not the size of a page")
            })?,
            Err(crate::transparency::source::SourceError::Missing(_)) => {
                return Err(AuditError::NoResult(unit));
            }
            Err(error) => return Err(error.into()),
        };
        let size = log.checkpoint.size;
        let number = page.entry(unit).filter(|number| *number < size);
        let number = number.ok_or(AuditError::NoResult(unit))?;
        let entry = LogEntry::from_bytes(&log.entry(number)?);
        let signer = match entry {
            Some(LogEntry::Result { by: Author::Signer(signer), .. }) => {
                // An entry before the result, so it is there.
                Some(signer.min(number))
            }
            _ => None,
        };
        let mut hashes = |tile| log.hashes(tile);
        let mut include = |number| {
            let entry = String::from_utf8(log.entry(number)?).map_err(|_| {
                let reason = WrongReason::Form;
                AuditError::Wrong(WrongEntry { entry: number, unit: None, reason })
            })?;
            let path = inclusion_path(number, size, &mut hashes)?;
            let path = path.iter().map(|hash| BASE64.encode(hash)).collect();
            Ok::<_, AuditError>(IncludedEntry { number, entry, path })
        };
        let numbers = [0].into_iter().chain(signer).chain([number]);
        let entries = numbers.map(&mut include).collect::<Result<_, _>>()?;
        let (format, key) = (FORMAT.to_owned(), log.key.to_string());
        Ok(Self { format, key, checkpoint: log.note.clone(), entries })
    }

    /// Returns the proof as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers can be encoded") + "\n"
    }

    /// Checks the proof. If `expected` is given, the log must have that key.
    ///
    /// # Errors
    /// The proof does not show a result. `name` is that of its file.
    pub fn check(&self, name: &str, expected: Option<&LogKey>) -> Result<ProvedResult, AuditError> {
        let form = |reason| AuditError::Form(name.to_owned(), reason);
        if self.format != FORMAT {
            return Err(form("it is not a unit proof of this version"));
        }
        let key: LogKey = self.key.parse().map_err(form)?;
        if expected.is_some_and(|expected| *expected != key) {
            return Err(AuditError::AnotherKey(key.to_string()));
        }
        let checkpoint = Checkpoint::open(&self.checkpoint, &key)
            .map_err(|error| AuditError::Checkpoint(name.to_owned(), error))?;
        let job = key.job().ok_or_else(|| form("the name of the log is not nqueens/JOB"))?;
        let mut state: Option<LogState> = None;
        let mut shown = None;
        for IncludedEntry { number, entry, path } in &self.entries {
            let wrong =
                |unit, reason| AuditError::Wrong(WrongEntry { entry: *number, unit, reason });
            let path: Option<Vec<Hash>> = path
                .iter()
                .map(|hash| BASE64.decode(hash.as_bytes()).ok()?.try_into().ok())
                .collect();
            let root = path.and_then(|path| {
                root_of_inclusion(*number, checkpoint.size, leaf_hash(entry.as_bytes()), &path)
            });
            if root != Some(checkpoint.root) {
                return Err(wrong(None, WrongReason::Hash));
            }
            let parsed = LogEntry::from_bytes(entry.as_bytes());
            let parsed = parsed.ok_or_else(|| wrong(None, WrongReason::Form))?;
            match &mut state {
                None if *number == 0 => {
                    let first = LogState::new(job, &parsed);
                    state = Some(first.map_err(|reason| wrong(None, reason))?);
                }
                None => return Err(wrong(None, WrongReason::Place)),
                Some(state) => state.apply(*number, &parsed).map_err(AuditError::Wrong)?,
            }
            if let LogEntry::Result { unit, thirds, by, .. } = parsed {
                shown = Some((unit, thirds, by));
            }
        }
        match (state, shown) {
            (Some(state), Some((unit, thirds, by))) if state.state() == JobState::Running => {
                Ok(ProvedResult { key, size: checkpoint.size, state, unit, thirds, by })
            }
            _ => Err(form("it shows no result")),
        }
    }
}
