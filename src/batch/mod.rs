//! Counts on batch systems that users already have: a plan divides a job into parts, any scheduler
//! runs them, and the results are added up.
//!
//! The result of a part is a checkpoint ([`crate::checkpoint::Checkpoint`]) with its units, under
//! another name while it is incomplete, so that no unit is lost if the process is killed, and a
//! restarted task continues. Only units in such files are added, each once, and a total needs all
//! of them.

mod merge;
mod plan_file;
mod scripts;

pub use merge::{MergeError, MergedResults, RecountError, is_whole, result_file, unfinished_file};
pub use plan_file::{MOST_PARTS, PlanFile, PlanFileError};
pub use scripts::{Htcondor, Kubernetes, Slurm, TaskSettings};
