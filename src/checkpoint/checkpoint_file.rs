//! The checkpoint: the finished units of one job, written while a count runs, so that a kill at any
//! time loses none.
//!
//! # Format
//! The file is text with one record per line: 16 hexadecimal digits, a space, a JSON object, a line
//! feed. The digits are the first 64 bits of the SHA-256 of the JSON. The first record is the
//! header; every other record is a unit:
//!
//! ```text
//! 0a1b… {"format":"nqueens-run/1","job":"nqueens-job/1 piece=queen n=18 …","job_hash":"9f3c…","units":64}
//! 77ee… {"unit":0,"tally":{"thirds":"31213344","residues":[31213344,31213344],"nodes":"55180493"},…}
//! ```
//!
//! The record `{"disputed":N}` voids unit N, because two results for it differed or because its
//! kernel turned out to miscount; the unit is open again.
//!
//! # Guarantees
//! - A unit is accepted only once [`Checkpoint::append`] has returned, that is, once it is durable.
//! - Anything after the last line feed is a write that a kill interrupted. The next record
//!   overwrites it, and the unit is counted again. Until then the file stays unchanged.
//! - The header is written in place, under the lock, and is durable before any unit. In a file with
//!   a torn header, no unit was ever acknowledged.
//! - Any other damage (a flipped bit, a missing line feed, a unit outside the job) makes the whole
//!   file untrusted. It is rejected and left unchanged.
//! - Nothing is written that would be rejected on reading: a unit that contradicts the file is an
//!   error instead.
//! - A file has a single user at a time.

use std::io;
use std::path::{Path, PathBuf};

use hmac_sha256::Hash as Sha256;
use serde::{Deserialize, Serialize};

use super::completed_units::{CompletedUnits, EnterError, FinishedUnit};
use super::storage::{DiskFile, LARGEST_FILE, Storage};
use crate::atomic_file;
use crate::decomposition::{Job, JobHash};

const FORMAT: &str = "nqueens-run/1";

/// The beginning of the JSON of a header, of any version.
const HEADER_BEGINS: &[u8] = br#"{"format":"nqueens-run/"#;

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

/// A record that voids a unit.
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
    /// Set if a write has failed: the content of the disk beyond `valid_len` is unknown.
    failed: bool,
}

/// The reason why a checkpoint cannot be used. Each message says how to proceed.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The operating system reported an error.
    #[error("checkpoint {path} cannot be {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process uses the file.
    #[error(
        "checkpoint {0} is in use by another process; wait until it ends, or give another file"
    )]
    InUse(PathBuf),
    /// The file is damaged.
    #[error(
        "checkpoint {path}, line {line}: {damage}; the file was left unchanged: restore a copy, or give another file to start anew"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The damage.
        damage: Corruption,
    },
    /// The file belongs to another job.
    #[error(
        "checkpoint {path} belongs to another job ({found}), not to {wanted}; give another file"
    )]
    AnotherJob {
        /// The file.
        path: PathBuf,
        /// The job of the file.
        found: String,
        /// The requested job.
        wanted: String,
    },
    /// A unit was rejected.
    #[error("checkpoint {path}: {source}; nothing was written")]
    Refused {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: EnterError,
    },
    /// A unit was counted twice, with different results.
    #[error(
        "checkpoint {path}: unit {unit} was counted twice with different results, so a kernel or a device is faulty; the unit will be counted again: run nqueens selftest --long, then repeat the command with the kernels and devices that passed"
    )]
    Disputed {
        /// The file.
        path: PathBuf,
        /// The unit.
        unit: u64,
    },
    /// An earlier write failed.
    #[error(
        "checkpoint {0}: an earlier write failed, so nothing more is written; open the file again to continue"
    )]
    FailedBefore(PathBuf),
}

/// The damage of a line of a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum Corruption {
    /// The line does not match its checksum.
    #[error("the checksum does not match, so the line is damaged")]
    Checksum,
    /// The first line is not a valid header.
    #[error("the header is missing or damaged, so this is not a checkpoint")]
    NoHeader,
    /// The header's hash is not that of its job.
    #[error("the job in the header has the hash {0}, but the header names another hash")]
    JobHash(JobHash),
    /// A valid record that this version does not understand.
    #[error("unknown content ({0}), written by another version")]
    Unknown(String),
    /// A unit with two results, or outside the job.
    #[error("{0}")]
    Unit(#[from] EnterError),
}

impl Checkpoint<DiskFile> {
    /// Opens the checkpoint at `path`, or creates an empty one, and reads its content.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, is in use by another process, or is damaged.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let io = |source| CheckpointError::Io {
            path: path.to_owned(),
            action: "opened for writing",
            source,
        };
        let file = DiskFile::open(path)
            .map_err(io)?
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
}

impl Checkpoint<ReadOnlyBytes> {
    /// Reads the content of the checkpoint at `path`, without a lock and without changing it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is damaged.
    pub fn read(path: &Path) -> Result<Self, CheckpointError> {
        let io = |source| CheckpointError::Io { path: path.to_owned(), action: "read", source };
        Self::open_in(path, ReadOnlyBytes(atomic_file::read(path, LARGEST_FILE).map_err(io)?))
    }
}

impl<S: Storage> Checkpoint<S> {
    /// Opens a checkpoint in any storage; `path` is only used in messages.
    ///
    /// # Errors
    /// Returns an error if the storage cannot be read or its content is damaged.
    pub fn open_in(path: &Path, mut storage: S) -> Result<Self, CheckpointError> {
        let bytes = storage.read().map_err(|source| CheckpointError::Io {
            path: path.to_owned(),
            action: "read",
            source,
        })?;
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
            failed: false,
        };
        for (line, record) in (1..).zip(bytes[..valid_len].split_inclusive(|&byte| byte == b'\n')) {
            let path = || path.to_owned();
            file.read_record(record).map_err(|damage| CheckpointError::Damaged {
                path: path(),
                line,
                damage,
            })?;
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
        if self.job.is_some() {
            if let Ok(Dispute { disputed }) = serde_json::from_slice(json) {
                self.completed.reopen(disputed);
                return Ok(());
            }
            let finished: FinishedUnit = serde_json::from_slice(json).map_err(|e| unknown(&e))?;
            self.completed.enter(finished.unit, &finished.tally)?;
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
        }
        Ok(())
    }

    /// Voids a unit durably because two results for it differ.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub fn dispute(&mut self, unit: u64) -> Result<(), CheckpointError> {
        self.void(&[unit])
    }

    /// Voids units durably because their results are no longer trusted.
    ///
    /// # Errors
    /// Returns an error if the records cannot be written.
    pub fn void(&mut self, units: &[u64]) -> Result<(), CheckpointError> {
        let lines: Vec<u8> =
            units.iter().flat_map(|&unit| record(&Dispute { disputed: unit })).collect();
        self.write(&lines)?;
        units.iter().for_each(|&unit| self.completed.reopen(unit));
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
        written.map_err(|source| CheckpointError::Io {
            path: self.path.clone(),
            action: "written",
            source,
        })?;
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
