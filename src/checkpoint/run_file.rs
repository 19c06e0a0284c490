//! The run file: finished units of one job, kept while a count runs, so that a kill at any moment loses none.
//!
//! # Format
//! Text, one record a line: 16 hexadecimal digits, a space, a JSON object, a line feed. The digits are the
//! first 64 bits of the SHA-256 of the JSON. The first record is the header, every other one a unit:
//!
//! ```text
//! 0a1b… {"format":"nqueens-run/1","job":"nqueens-job/1 piece=queen n=18 …","job_hash":"9f3c…","units":64}
//! 77ee… {"unit":0,"tally":{"thirds":"31213344","residues":[31213344,31213344],"nodes":"55180493"},…}
//! ```
//!
//! {"disputed":N} takes back unit N, of which two results differed, or whose kernel turned out to miscount; it is open again.
//!
//! # Promises
//! - A unit is believed only after [`Checkpoint::append`] returned, that is, after the disk has it.
//! - What follows the last line feed was being written when the program was killed. The next record
//!   overwrites it, and the unit is counted again. Until then the file stays as it is.
//! - The header is written in place, under the lock, and durable before any unit: in a file with a torn one
//!   no unit was ever acknowledged.
//! - Anything else that is not as written (a flipped bit, a missing line feed, a unit outside the job) makes
//!   the whole file untrusted. It is refused and left as it is.
//! - Nothing is written that would be refused on reading: a unit that contradicts the file is an error first.
//! - A file has one user at a time.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::completed_units::{BookError, CompletedUnits, FinishedUnit};
use super::storage::{DiskFile, LARGEST_FILE, Storage};
use crate::atomic_file;
use crate::decomposition::{Job, JobHash};

const FORMAT: &str = "nqueens-run/1";

/// How the JSON of every header begins, of any version.
const HEADER_BEGINS: &[u8] = br#"{"format":"nqueens-run/"#;

/// What every version of a header has.
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

/// A unit that is taken back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Dispute {
    disputed: u64,
}

/// A run file in use.
#[derive(Debug)]
pub struct Checkpoint<S = DiskFile> {
    path: PathBuf,
    storage: S,
    /// The length up to which the file is trusted; what lies beyond is overwritten by the next record.
    trusted: u64,
    /// What lay beyond when the file was opened.
    torn: Vec<u8>,
    job: Option<Job>,
    book: CompletedUnits,
    /// A write failed: what is on disk past `trusted` is unknown.
    failed: bool,
}

/// Why a run file cannot be used. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The system refused.
    #[error("run file {path}: cannot be {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// Another process has it.
    #[error("run file {0} is in use by another process; wait for it, or name another file")]
    InUse(PathBuf),
    /// It is not as it was written.
    #[error(
        "run file {path}, line {line}: {damage}; nothing in it was changed: restore a copy, or name another file to start anew"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        damage: Corruption,
    },
    /// It belongs to another job.
    #[error("run file {path} belongs to another job ({found}); this is {wanted}: name another file")]
    AnotherJob {
        /// The file.
        path: PathBuf,
        /// The job of the file.
        found: String,
        /// The job at hand.
        wanted: String,
    },
    /// A unit that may not be kept.
    #[error("run file {path}: {source}; nothing was written")]
    Refused {
        /// The file.
        path: PathBuf,
        /// What is wrong with the unit.
        source: BookError,
    },
    /// A unit was counted twice, with different results.
    #[error(
        "run file {path}: unit {unit} was counted twice with different results, so a kernel or a device is faulty; the unit is open again: run nqueens selftest --long, then the same command on what passed"
    )]
    Disputed {
        /// The file.
        path: PathBuf,
        /// The unit.
        unit: u64,
    },
    /// An earlier write failed.
    #[error("run file {0}: a write failed before, and nothing more is written; open it again to go on")]
    FailedBefore(PathBuf),
}

/// What is wrong with a line of a run file.
#[derive(Debug, thiserror::Error)]
pub enum Corruption {
    /// The digits do not belong to the text.
    #[error("the checksum does not fit, so the line is not as it was written")]
    Checksum,
    /// The first line is not as a header is written.
    #[error("the header is missing or damaged, so this is no run file")]
    NoHeader,
    /// A header whose job and hash do not belong together.
    #[error("the job of the header has the hash {0}, the header says another")]
    JobHash(JobHash),
    /// A record with a right checksum that this version does not understand.
    #[error("unknown content ({0}), written by another version")]
    Unknown(String),
    /// The same unit with two results, or one outside the job.
    #[error("{0}")]
    Book(#[from] BookError),
}

impl Checkpoint<DiskFile> {
    /// Opens the run file at `path`, or creates an empty one, and reads what it holds.
    ///
    /// # Errors
    /// It cannot be opened, another process has it, or it is damaged.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let io = |source| CheckpointError::Io { path: path.to_owned(), action: "opened for writing", source };
        let file =
            DiskFile::open(path).map_err(io)?.ok_or_else(|| CheckpointError::InUse(path.to_owned()))?;
        Self::open_in(path, file)
    }
}

/// Bytes that were read, to be looked at only.
#[derive(Debug)]
pub struct Seen(Vec<u8>);

impl Storage for Seen {
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

impl Checkpoint<Seen> {
    /// Reads what the run file at `path` holds, without a lock and without changing it.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn look(path: &Path) -> Result<Self, CheckpointError> {
        let io = |source| CheckpointError::Io { path: path.to_owned(), action: "read", source };
        Self::open_in(path, Seen(atomic_file::read(path, LARGEST_FILE).map_err(io)?))
    }
}

impl<S: Storage> Checkpoint<S> {
    /// The same over any storage; `path` is for messages.
    ///
    /// # Errors
    /// The storage cannot be read, or what it holds is damaged.
    pub fn open_in(path: &Path, mut storage: S) -> Result<Self, CheckpointError> {
        let bytes = storage.read().map_err(|source| CheckpointError::Io {
            path: path.to_owned(),
            action: "read",
            source,
        })?;
        // A power loss may leave zeros where a line was to be.
        let trusted = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        let torn = bytes[trusted..].to_vec();
        let mut file = Self {
            path: path.to_owned(),
            storage,
            trusted: trusted as u64,
            torn,
            job: None,
            book: CompletedUnits::new(0),
            failed: false,
        };
        for (line, record) in (1..).zip(bytes[..trusted].split_inclusive(|&byte| byte == b'\n')) {
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
        /// The job of the largest board that is counted, with decided squares everywhere, takes a hundredth of it.
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
                self.book.reopen(disputed);
                return Ok(());
            }
            let finished: FinishedUnit = serde_json::from_slice(json).map_err(|e| unknown(&e))?;
            self.book.enter(finished.unit, &finished.tally)?;
        } else {
            let Format { format } = serde_json::from_slice(json).map_err(|e| unknown(&e))?;
            if format != FORMAT {
                return Err(unknown(&format_args!("format {format}, this version writes {FORMAT}")));
            }
            let header: Header = serde_json::from_slice(json).map_err(|e| unknown(&e))?;
            let job: Job = header.job.parse().map_err(|e| unknown(&e))?;
            if job.hash() != header.job_hash {
                return Err(Corruption::JobHash(job.hash()));
            }
            self.book = CompletedUnits::new(header.units);
            self.job = Some(job);
        }
        Ok(())
    }

    /// The job of the file; `None` if it is new.
    pub const fn job(&self) -> Option<&Job> {
        self.job.as_ref()
    }

    /// The units that the file holds: those that it held when it was opened, and those appended since.
    pub const fn book(&self) -> &CompletedUnits {
        &self.book
    }

    /// Bytes of a torn last line, which the next record overwrites.
    pub fn torn_bytes(&self) -> usize {
        self.torn.len()
    }

    /// Writes the header of a new file: `job`, in `units` units.
    ///
    /// # Errors
    /// It cannot be written; the file holds something that is no torn header.
    pub fn begin(&mut self, job: &Job, units: u64) -> Result<(), CheckpointError> {
        assert!(self.job.is_none(), "a run file has one header");
        let header = Header { format: FORMAT.into(), job: job.to_string(), job_hash: job.hash(), units };
        let line = record(&header);
        if !is_torn_header(&self.torn, &line) {
            let path = self.path.clone();
            return Err(CheckpointError::Damaged { path, line: 1, damage: Corruption::NoHeader });
        }
        self.write(&line)?;
        self.book = CompletedUnits::new(units);
        self.job = Some(job.clone());
        Ok(())
    }

    /// Keeps finished units. Once this returns, they survive a power loss. Those that are kept already are
    /// not written again.
    ///
    /// # Errors
    /// One of them may not be kept: nothing is written then, and the file goes on. Or they cannot be written:
    /// none of them is to be believed then, and the file takes no more.
    pub fn append(&mut self, units: &[FinishedUnit]) -> Result<(), CheckpointError> {
        assert!(self.job.is_some(), "the header comes first");
        let refused = |source| CheckpointError::Refused { path: self.path.clone(), source };
        let new = self.book.new_among(units).map_err(refused)?;
        if new.is_empty() {
            return Ok(());
        }
        let lines: Vec<u8> = new.iter().flat_map(record).collect();
        self.write(&lines)?;
        for finished in new {
            self.book.enter(finished.unit, &finished.tally).expect("the book took it ahead");
        }
        Ok(())
    }

    /// Takes a unit back, durably: two results for it differ.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn dispute(&mut self, unit: u64) -> Result<(), CheckpointError> {
        self.take_back(&[unit])
    }

    /// Takes units back, durably: their results are not believed any more.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn take_back(&mut self, units: &[u64]) -> Result<(), CheckpointError> {
        let lines: Vec<u8> = units.iter().flat_map(|&unit| record(&Dispute { disputed: unit })).collect();
        self.write(&lines)?;
        units.iter().for_each(|&unit| self.book.reopen(unit));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        if self.failed {
            return Err(CheckpointError::FailedBefore(self.path.clone()));
        }
        // Unless all of it succeeds, nothing past `trusted` is known.
        self.failed = true;
        let written = self.storage.write_at_end(self.trusted, bytes).and_then(|()| self.storage.sync());
        written.map_err(|source| CheckpointError::Io {
            path: self.path.clone(),
            action: "written",
            source,
        })?;
        self.failed = false;
        self.trusted += bytes.len() as u64;
        self.torn.clear();
        Ok(())
    }
}

/// Whether `torn`, all that a file holds, is what a crash leaves of a header: a beginning of `line`, which is
/// to be written now, or enough of a header of other units to be told from anybody's text. Zeros may follow.
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
    Sha256::digest(json)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A record as a line.
fn record(content: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(content).expect("numbers and strings serialise");
    [checksum(&json).as_bytes(), b" ", &json, b"\n"].concat()
}

/// The JSON of a line whose checksum fits.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let (digits, rest) = line.split_at_checked(16)?;
    let json = rest.strip_prefix(b" ")?.strip_suffix(b"\n")?;
    (checksum(json).as_bytes() == digits).then_some(json)
}
