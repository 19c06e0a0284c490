//! Counts on engines that users already have: a plan cuts a job into parts, any scheduler runs them, and the results are
//! added up.
//!
//! A part's result is a run file ([`crate::checkpoint::Checkpoint`]) with its units, under another name while it is not whole, so
//! that a kill at any moment loses no unit and a task that is started again goes on. Nothing is ever added that is not
//! in such a file, once for each unit, and a total needs all of them.

mod merge;
mod plan_file;
mod scripts;

pub use merge::{MergeError, Merged, RecountError, is_whole, result_file, unfinished_file};
pub use plan_file::{MOST_PARTS, PlanFile, PlanFileError};
pub use scripts::{Htcondor, Kubernetes, Shared, Slurm};
