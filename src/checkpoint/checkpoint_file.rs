//! The checkpoint: the finished units of one job and the partial results of others, written while a
//! count runs, so that a kill at any time loses no finished unit and little of the others.
//!
//! # Format
//! The file is text with one record per line: 16 hexadecimal digits, a space, a JSON object, a line
//! feed. The digits are the first 64 bits of the SHA-256 of the JSON. The first record is the
//! header; every other record is about a unit:
//!
//! ```text
//! 0a1b… {"format":"nqueens-run/1","job":"nqueens-job/1 piece=queen n=18 …","job_hash":"9f3c…","units":64}
//! 77ee… {"unit":0,"tally":{"thirds":"31213344","residues":[31213344,31213344],"nodes":"55180493"},…}
//! 51f0… {"unit":1,"counted":350,"tally":{"thirds":"17212992",…},"elapsed_s":10.4,"kernel":"avx2"}
//! ```
//!
//! A record with `counted` is a partial result: the sum of the first 350 subproblems of unit 1,
//! with the time that they took and the kernel that counted them. A later record of the unit
//! supersedes it: its whole result, a partial result of the same kernel with more subproblems, or a
//! partial result of another kernel, which counted the unit from its beginning. A file without
//! partial results is one of earlier versions, which reject any other file as written by another
//! version.
//!
//! The record `{"disputed":N}` voids all results of unit N, because two results for it differed, or
//! because its kernel failed or turned out to miscount; the unit is open again.
//!
//! Superseded partial results are removed from time to time: the file is then replaced atomically
//! by one without them.
//!
//! # Guarantees
//! - A result is accepted only once [`Checkpoint::append`] or [`Checkpoint::append_partial`] has
//!   returned, that is, once it is durable.
//! - Anything after the last line feed is a write that a kill interrupted. The next record
//!   overwrites it, and its unit is counted again. Until then the file stays unchanged.
//! - The header is written in place, under the lock, and is durable before any unit. In a file with
//!   a torn header, no unit was ever acknowledged.
//! - Any other damage (a flipped bit, a missing line feed, a unit outside the job, a partial result
//!   that supersedes nothing) makes the whole file untrusted. It is rejected and left unchanged.
//! - Nothing is written that would be rejected on reading: a unit that contradicts the file is an
//!   error instead, and a superseded partial result is not written.
//! - A file has a single user at a time.

use std::io;
use std::path::{Path, PathBuf};

use hmac_sha256::Hash as Sha256;
use serde::{Deserialize, Serialize};

use super::completed_units::{CompletedUnits, EnterError, FinishedUnit};
use super::errors::{CheckpointError, Corruption};
use super::partial_units::{PartialUnit, PartialUnits};
use super::storage::{DiskFile, LARGEST_FILE, Storage};
use crate::atomic_file;
use crate::decomposition::{Decomposition, Job, JobHash};

const FORMAT: &str = "nqueens-run/1";

/// The beginning of the JSON of a header, of any version.
const HEADER_BEGINS: &[u8] = br#"{"format":"nqueens-run/"#;

/// The bytes of superseded partial results from which the file is compacted, and those that it may
/// hold if it cannot be.
const COMPACT_AFTER: u64 = 1 << 24;
const MOST_PARTIAL_BYTES: u64 = LARGEST_FILE / 2;

/// The field common to the headers of all versions.
#[derive(Debug, Deserialize)]
struct Format {
    format: String,
}

/// The first record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    job: String,
    job_hash: JobHash,
    units: u64,
}

/// A record that voids the results of a unit.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Dispute {
    disputed: u64,
}

/// An open checkpoint.
#[derive(Debug)]
pub struct Checkpoint<S = DiskFile> {
    path: PathBuf,
    storage: S,
    /// The length up to which the file is valid; the next record overwrites anything beyond it.
    valid_len: u64,
    /// The bytes beyond it when the file was opened.
    torn: Vec<u8>,
    job: Option<Job>,
    completed: CompletedUnits,
    partial: PartialUnits,
    /// The bytes of all partial results, including superseded ones.
    partial_bytes: u64,
    /// The number of these bytes from which the file is compacted.
    compact_at: u64,
    /// Set if a write has failed: the content of the disk beyond `valid_len` is unknown.
    failed: bool,
}

impl Checkpoint<DiskFile> {
    /// Opens the checkpoint at `path`, or creates an empty one, and reads its content.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, is in use by another process, or is damaged.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let file = DiskFile::open(path)
            .map_err(CheckpointError::io(path, "opened for writing"))?
            .ok_or_else(|| CheckpointError::InUse(path.to_owned()))?;
        Self::open_in(path, file)
    }
}

/// The content of a checkpoint that is read and never written.
#[derive(Debug)]
pub struct ReadOnlyBytes(Vec<u8>);

impl Storage for ReadOnlyBytes {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(std::mem::take(&mut self.0))
    }

    fn write_at_end(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn replace(&mut self, _: &[u8]) -> io::Result<bool> {
        Ok(false)
    }
}

impl Checkpoint<ReadOnlyBytes> {
    /// Reads the content of the checkpoint at `path`, without a lock and without changing it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is damaged.
    pub fn read(path: &Path) -> Result<Self, CheckpointError> {
        let bytes = atomic_file::read(path, LARGEST_FILE);
        Self::open_in(path, ReadOnlyBytes(bytes.map_err(CheckpointError::io(path, "read"))?))
    }
}

impl<S: Storage> Checkpoint<S> {
    /// Opens a checkpoint in any storage; `path` is only used in messages.
    ///
    /// # Errors
    /// Returns an error if the storage cannot be read or its content is damaged.
    pub fn open_in(path: &Path, mut storage: S) -> Result<Self, CheckpointError> {
        let bytes = storage.read().map_err(CheckpointError::io(path, "read"))?;
        // A power loss may leave zeros in place of a line.
        let valid_len = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        let torn = bytes[valid_len..].to_vec();
        let mut file = Self {
            path: path.to_owned(),
            storage,
            valid_len: valid_len as u64,
            torn,
            job: None,
            completed: CompletedUnits::new(0),
            partial: PartialUnits::default(),
            partial_bytes: 0,
            compact_at: COMPACT_AFTER,
            failed: false,
        };
        for (line, record) in (1..).zip(bytes[..valid_len].split_inclusive(|&byte| byte == b'\n')) {
            let damaged = |damage| CheckpointError::Damaged { path: path.to_owned(), line, damage };
            file.read_record(record).map_err(damaged)?;
        }
        Ok(file)
    }

    fn read_record(&mut self, line: &[u8]) -> Result<(), Corruption> {
        /// Upper limit of the length of a line, in bytes; a hundred times that of the job of the
        /// largest board that is counted, with every square decided.
        const LONGEST_LINE: usize = 1 << 20;
        if line.len() > LONGEST_LINE {
            return Err(Corruption::Unknown(format!("a line of {} bytes", line.len())));
        }
        let json = checked(line).ok_or(if self.job.is_none() {
            Corruption::NoHeader
        } else {
            Corruption::Checksum
        })?;
        let unknown = |what: &dyn std::fmt::Display| Corruption::Unknown(what.to_string());
        if let Some(job) = &self.job {
            if let Ok(Dispute { disputed }) = serde_json::from_slice(json) {
                self.completed.reopen(disputed);
                self.partial.remove(disputed);
                return Ok(());
            }
            if let Some(partial) = partial_unit(json) {
                let unit = partial.unit;
                partial.check(self.completed.units(), job.unit_prefixes())?;
                if self.completed.has(unit) || !self.partial.enter(partial) {
                    return Err(EnterError::Superseded(unit).into());
                }
                self.partial_bytes += line.len() as u64;
                return Ok(());
            }
            let finished: FinishedUnit = serde_json::from_slice(json).map_err(|e| unknown(&e))?;
            self.completed.enter(finished.unit, &finished.tally)?;
            self.partial.remove(finished.unit);
        } else {
            let Format { format } = serde_json::from_slice(json).map_err(|e| unknown(&e))?;
            if format != FORMAT {
                return Err(unknown(&format_args!(
                    "format {format}, this version writes {FORMAT}"
                )));
            }
            let header: Header = serde_json::from_slice(json).map_err(|e| unknown(&e))?;
            let job: Job = header.job.parse().map_err(|e| unknown(&e))?;
            if job.hash() != header.job_hash {
                return Err(Corruption::JobHash(job.hash()));
            }
            self.completed = CompletedUnits::new(header.units);
            self.job = Some(job);
        }
        Ok(())
    }

    /// Returns the job of the file, or `None` if it is new.
    pub const fn job(&self) -> Option<&Job> {
        self.job.as_ref()
    }

    /// Returns the units in the file, including those appended since it was opened.
    pub const fn completed(&self) -> &CompletedUnits {
        &self.completed
    }

    /// Returns the partial results of units that are not finished.
    pub const fn partial(&self) -> &PartialUnits {
        &self.partial
    }

    /// Checks the content against the units of its job.
    ///
    /// # Errors
    /// Returns an error if the number of units differs, or a partial result is larger than its
    /// unit.
    pub fn check_units(&self, decomposition: &Decomposition) -> Result<(), CheckpointError> {
        let (found, units) = (self.completed.units(), decomposition.units());
        let damage = if found == units {
            let size = |unit| {
                let range = decomposition.unit(unit);
                range.end - range.start
            };
            self.partial.iter().find_map(|p| p.check(units, size(p.unit)).err()).map(Into::into)
        } else {
            Some(Corruption::Unknown(format!("{found} units, where the job has {units}")))
        };
        // The first line states the job.
        damage.map_or(Ok(()), |damage| {
            Err(CheckpointError::Damaged { path: self.path.clone(), line: 1, damage })
        })
    }

    /// Returns the number of bytes of a torn last line, which the next record overwrites.
    pub fn torn_bytes(&self) -> usize {
        self.torn.len()
    }

    /// Writes the header of a new file for `job`, which has `units` units.
    ///
    /// # Errors
    /// Returns an error if the header cannot be written, or if the file contains anything other
    /// than a torn header.
    pub fn begin(&mut self, job: &Job, units: u64) -> Result<(), CheckpointError> {
        assert!(self.job.is_none(), "a checkpoint has one header");
        let header =
            Header { format: FORMAT.into(), job: job.to_string(), job_hash: job.hash(), units };
        let line = record(&header);
        if !is_torn_header(&self.torn, &line) {
            let path = self.path.clone();
            return Err(CheckpointError::Damaged { path, line: 1, damage: Corruption::NoHeader });
        }
        self.write(&line)?;
        self.completed = CompletedUnits::new(units);
        self.job = Some(job.clone());
        Ok(())
    }

    /// Appends finished units. Once this has returned, they survive a power loss. Units that are
    /// already in the file are not written again.
    ///
    /// # Errors
    /// Returns an error if a unit is invalid; nothing is then written, and the file stays usable.
    /// Also returns an error if the units cannot be written; none of them may then be trusted, and
    /// the file rejects further writes.
    pub fn append(&mut self, units: &[FinishedUnit]) -> Result<(), CheckpointError> {
        assert!(self.job.is_some(), "the header comes first");
        let refused = |source| CheckpointError::Refused { path: self.path.clone(), source };
        let new = self.completed.new_among(units).map_err(refused)?;
        if new.is_empty() {
            return Ok(());
        }
        let lines: Vec<u8> = new.iter().flat_map(record).collect();
        self.write(&lines)?;
        for finished in new {
            self.completed.enter(finished.unit, &finished.tally).expect("new_among has checked it");
            self.partial.remove(finished.unit);
        }
        Ok(())
    }

    /// Appends partial results. Once this has returned, they survive a power loss. Those of
    /// finished units, and those that do not [supersede](PartialUnit::supersedes) the last one of
    /// their unit, are not written.
    ///
    /// # Errors
    /// Returns an error if a result is invalid; nothing is then written, and the file stays usable.
    /// Also returns an error if the results cannot be written; the file then rejects further writes.
    pub fn append_partial(&mut self, units: &[PartialUnit]) -> Result<(), CheckpointError> {
        let job = self.job.as_ref().expect("the header comes first");
        let refused = |source| CheckpointError::Refused { path: self.path.clone(), source };
        let mut partial = self.partial.clone();
        let mut lines = Vec::new();
        for new in units {
            new.check(self.completed.units(), job.unit_prefixes()).map_err(refused)?;
            if !self.completed.has(new.unit) && partial.enter(new.clone()) {
                lines.extend(record(new));
            }
        }
        if lines.is_empty() || self.partial_bytes > MOST_PARTIAL_BYTES {
            return Ok(());
        }
        self.write(&lines)?;
        self.partial = partial;
        self.partial_bytes += lines.len() as u64;
        if self.partial_bytes >= self.compact_at { self.compact() } else { Ok(()) }
    }

    /// Replaces the file atomically by one without superseded partial results, if its storage can
    /// do that.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if it is unknown whether it was replaced.
    pub fn compact(&mut self) -> Result<(), CheckpointError> {
        if self.failed {
            return Err(CheckpointError::FailedBefore(self.path.clone()));
        }
        self.compact_at = self.partial_bytes + COMPACT_AFTER;
        let bytes = self.storage.read().map_err(CheckpointError::io(&self.path, "read"))?;
        let valid = usize::try_from(self.valid_len).ok().and_then(|length| bytes.get(..length));
        let Some(valid) = valid else {
            // Another program has truncated it.
            return Ok(());
        };
        let is_partial = |line: &[u8]| checked(line).and_then(partial_unit).is_some();
        let others = valid.split_inclusive(|&byte| byte == b'\n').filter(|line| !is_partial(line));
        let mut content = others.collect::<Vec<_>>().concat();
        let partial: Vec<u8> = self.partial.iter().flat_map(record).collect();
        content.extend(&partial);
        self.failed = true;
        let replaced = self.storage.replace(&content);
        if replaced.map_err(CheckpointError::io(&self.path, "compacted"))? {
            self.valid_len = content.len() as u64;
            self.torn.clear();
            self.partial_bytes = partial.len() as u64;
            self.compact_at = self.partial_bytes + COMPACT_AFTER;
        }
        self.failed = false;
        Ok(())
    }

    /// Voids all results of units durably, because two results of a unit differ or because they are
    /// no longer trusted.
    ///
    /// # Errors
    /// Returns an error if the records cannot be written.
    pub fn void(&mut self, units: &[u64]) -> Result<(), CheckpointError> {
        let lines: Vec<u8> =
            units.iter().flat_map(|&unit| record(&Dispute { disputed: unit })).collect();
        self.write(&lines)?;
        for &unit in units {
            self.completed.reopen(unit);
            self.partial.remove(unit);
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        if self.failed {
            return Err(CheckpointError::FailedBefore(self.path.clone()));
        }
        // Unless everything succeeds, the content beyond `valid_len` is unknown.
        self.failed = true;
        let written =
            self.storage.write_at_end(self.valid_len, bytes).and_then(|()| self.storage.sync());
        written.map_err(CheckpointError::io(&self.path, "written"))?;
        self.failed = false;
        self.valid_len += bytes.len() as u64;
        self.torn.clear();
        Ok(())
    }
}

/// Returns whether `torn`, the whole content of a file, is a torn header: a prefix of `line`, which
/// is to be written now, or enough of the header of another job or number of units to distinguish
/// it from any other text. Zeros may follow.
fn is_torn_header(torn: &[u8], line: &[u8]) -> bool {
    let end = torn.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let torn = &torn[..end];
    let another = || {
        let (digits, rest) = torn.split_at_checked(16)?;
        let json = rest.strip_prefix(b" ")?;
        Some(digits.iter().all(u8::is_ascii_hexdigit) && json.starts_with(HEADER_BEGINS))
    };
    line.starts_with(torn) || another() == Some(true)
}

fn checksum(json: &[u8]) -> String {
    Sha256::hash(json)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a record as a line.
fn record(content: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(content).expect("numbers and strings serialise");
    [checksum(&json).as_bytes(), b" ", &json, b"\n"].concat()
}

/// Returns the JSON of a line, or `None` if its checksum does not match.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let (digits, rest) = line.split_at_checked(16)?;
    let json = rest.strip_prefix(b" ")?.strip_suffix(b"\n")?;
    (checksum(json).as_bytes() == digits).then_some(json)
}

/// Returns the partial result in the JSON of a record, if it is one.
fn partial_unit(json: &[u8]) -> Option<PartialUnit> {
    serde_json::from_slice(json).ok()
}
