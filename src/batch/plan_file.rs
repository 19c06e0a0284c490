//! The plan of a count on a batch system: the job and the number of its parts.
//!
//! One JSON object:
//!
//! ```text
//! {"format":"nqueens-plan/1","job":"nqueens-job/1 piece=queen n=22 …","job_hash":"9f3c…","units":31234,"parts":500}
//! ```
//!
//! Part i of K (from 0) consists of the units i, i + K, i + 2K, …. Neighbouring units are similar,
//! so all parts take about the same time.

use std::io::{self, Write as _};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, AtomicFile};
use crate::decomposition::{Decomposition, Job, JobHash};
use crate::engine::JobPart;

const FORMAT: &str = "nqueens-plan/1";

/// The maximum size in bytes of a file to be read.
const LARGEST_FILE: u64 = 16 << 20;

/// The maximum number of parts: the largest array that schedulers accept.
pub const MOST_PARTS: u64 = 1_000_000;

/// A plan. Each program that reads it decomposes the job again, and must get the same number of
/// units.
#[derive(Clone, Debug)]
pub struct PlanFile {
    decomposition: Decomposition,
    parts: NonZeroU64,
}

/// The error returned when a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
    /// An I/O operation failed.
    #[error("plan {path} cannot be {action}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted operation.
        action: &'static str,
        /// The underlying error.
        source: io::Error,
    },
    /// The file is not a plan, or was changed.
    #[error("{path} is not a usable plan: {why}; create one with nqueens plan N --out FILE", path = .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// There is no such part.
    #[error("the plan has {parts} parts, numbered from 0 to {}; there is no part {index}", .parts.get() - 1)]
    NoSuchPart {
        /// The index of the part.
        index: u64,
        /// The number of parts of the plan.
        parts: NonZeroU64,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: String,
    job: String,
    job_hash: JobHash,
    units: u64,
    parts: NonZeroU64,
}

impl PlanFile {
    /// Creates a plan of a job in this many parts, or in as many as it has units, if those are
    /// fewer.
    pub fn new(decomposition: Decomposition, parts: NonZeroU64) -> Self {
        let units = NonZeroU64::new(decomposition.units()).unwrap_or(NonZeroU64::MIN);
        Self { decomposition, parts: parts.min(units) }
    }

    /// Returns the job.
    pub fn job(&self) -> &Job {
        self.decomposition.job()
    }

    /// Returns the job's decomposition.
    pub const fn decomposition(&self) -> &Decomposition {
        &self.decomposition
    }

    /// Returns the number of parts.
    pub const fn parts(&self) -> NonZeroU64 {
        self.parts
    }

    /// Returns part `index`, starting at 0.
    ///
    /// # Errors
    /// There is no such part.
    pub const fn part(&self, index: u64) -> Result<JobPart, PlanFileError> {
        match JobPart::new(index, self.parts) {
            Some(part) => Ok(part),
            None => Err(PlanFileError::NoSuchPart { index, parts: self.parts }),
        }
    }

    /// Returns a title such as "count of 22 queens".
    pub fn title(&self) -> String {
        let problem = self.job().problem();
        format!("count of {} {}s", problem.n(), problem.piece().name())
    }

    /// Returns the plan as text.
    pub fn text(&self) -> String {
        let job = self.job();
        let content = Content {
            format: FORMAT.to_owned(),
            job: job.to_string(),
            job_hash: job.hash(),
            units: self.decomposition.units(),
            parts: self.parts,
        };
        serde_json::to_string(&content).expect("numbers and strings serialise") + "\n"
    }

    /// Writes the plan to `path` atomically.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), PlanFileError> {
        let written = AtomicFile::begin(path)
            .and_then(|file| file.finish_with(|out| out.write_all(self.text().as_bytes())));
        written.map_err(|source| PlanFileError::Io {
            path: path.to_owned(),
            action: "written",
            source,
        })
    }

    /// Reads a plan from `path`, and decomposes its job again.
    ///
    /// # Errors
    /// The file cannot be read, is not a plan, or its job has a different number of units here.
    pub fn read(path: &Path) -> Result<Self, PlanFileError> {
        let io = |source| PlanFileError::Io { path: path.to_owned(), action: "read", source };
        let unusable = |why: String| PlanFileError::Unusable { path: path.to_owned(), why };
        let bytes = atomic_file::read(path, LARGEST_FILE).map_err(io)?;
        let content: Content =
            serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string()))?;
        if content.format != FORMAT {
            return Err(unusable(format!(
                "it has format {}, but this program reads {FORMAT}",
                content.format
            )));
        }
        let job: Job = content.job.parse().map_err(|error| unusable(format!("{error}")))?;
        if job.hash() != content.job_hash {
            return Err(unusable("its job hash does not match its job".to_owned()));
        }
        let decomposition = Decomposition::new(job);
        let units = decomposition.units();
        if units != content.units {
            return Err(unusable(format!(
                "it states {} units, but its job has {units}",
                content.units
            )));
        }
        if content.parts.get() > units.max(1) {
            return Err(unusable(format!(
                "it has {} parts, but its job has only {units} units",
                content.parts
            )));
        }
        Ok(Self { decomposition, parts: content.parts })
    }
}
