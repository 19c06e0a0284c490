//! The plan of a count for engines of others: which job, and into how many parts it goes.
//!
//! One JSON object:
//!
//! ```text
//! {"format":"nqueens-plan/1","job":"nqueens-job/1 piece=queen n=22 …","job_hash":"9f3c…","units":31234,"parts":500}
//! ```
//!
//! Part i of K (from 0) is the units i, i + K, i + 2K, …: neighbouring units are alike, so that all parts take about as
//! long.

use std::io::{self, Write as _};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, AtomicFile};
use crate::decomposition::{Decomposition, Job, JobHash};
use crate::engine::Part;

const FORMAT: &str = "nqueens-plan/1";

/// Larger files are not read.
const LARGEST_FILE: u64 = 16 << 20;

/// The most parts: as many array tasks as schedulers take.
pub const MOST_PARTS: u64 = 1_000_000;

/// A plan. Its job is planned again where it is used, and has as many units there.
#[derive(Clone, Debug)]
pub struct PlanFile {
    decomposition: Decomposition,
    parts: NonZeroU64,
}

/// Why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
    /// The system refused.
    #[error("plan {path} cannot be {action}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// It is something else, or was changed.
    #[error("{path} is not a plan that can be used: {why}; nqueens plan N --out FILE writes one", path = .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// There is no such part.
    #[error("the plan has {parts} parts, numbered from 0 to {}; there is no part {index}", .parts.get() - 1)]
    NoSuchPart {
        /// The part.
        index: u64,
        /// Parts of the plan.
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
    /// A job in so many parts, or in as many as it has units, if those are fewer.
    pub fn new(decomposition: Decomposition, parts: NonZeroU64) -> Self {
        let units = NonZeroU64::new(decomposition.units()).unwrap_or(NonZeroU64::MIN);
        Self { decomposition, parts: parts.min(units) }
    }

    /// The job.
    pub fn job(&self) -> &Job {
        self.decomposition.job()
    }

    /// The job's units.
    pub const fn decomposition(&self) -> &Decomposition {
        &self.decomposition
    }

    /// Parts that the job goes into.
    pub const fn parts(&self) -> NonZeroU64 {
        self.parts
    }

    /// Part `index`, from 0.
    ///
    /// # Errors
    /// There is none.
    pub const fn part(&self, index: u64) -> Result<Part, PlanFileError> {
        match Part::new(index, self.parts) {
            Some(part) => Ok(part),
            None => Err(PlanFileError::NoSuchPart { index, parts: self.parts }),
        }
    }

    /// "count of 22 queens".
    pub fn title(&self) -> String {
        let problem = self.job().problem();
        format!("count of {} {}s", problem.n(), problem.piece().name())
    }

    /// The plan as text.
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

    /// Writes it to `path`, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), PlanFileError> {
        let written = AtomicFile::begin(path)
            .and_then(|file| file.finish_with(|out| out.write_all(self.text().as_bytes())));
        written.map_err(|source| PlanFileError::Io { path: path.to_owned(), action: "written", source })
    }

    /// Reads it from `path`, and plans its job again.
    ///
    /// # Errors
    /// It cannot be read, is no plan, or its job has other units here.
    pub fn read(path: &Path) -> Result<Self, PlanFileError> {
        let io = |source| PlanFileError::Io { path: path.to_owned(), action: "read", source };
        let unusable = |why: String| PlanFileError::Unusable { path: path.to_owned(), why };
        let bytes = atomic_file::read(path, LARGEST_FILE).map_err(io)?;
        let content: Content = serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string()))?;
        if content.format != FORMAT {
            return Err(unusable(format!(
                "it has format {}, and this program reads {FORMAT}",
                content.format
            )));
        }
        let job: Job = content.job.parse().map_err(|error| unusable(format!("{error}")))?;
        if job.hash() != content.job_hash {
            return Err(unusable("its job is not the one that it names".to_owned()));
        }
        let decomposition = Decomposition::new(job);
        let units = decomposition.units();
        if units != content.units {
            return Err(unusable(format!("it says {} units, and its job has {units}", content.units)));
        }
        if content.parts.get() > units.max(1) {
            return Err(unusable(format!("it has {} parts, and its job {units} units", content.parts)));
        }
        Ok(Self { decomposition, parts: content.parts })
    }
}
