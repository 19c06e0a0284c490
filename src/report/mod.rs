//! The reports of jobs and proofs for the command line and the dashboard, and the formatting of
//! numbers and times.

mod format;
mod job;
mod proof;
mod published;
mod status;

pub use format::{counted, duration, grouped, percent, plural, predicted, rounded, time};
pub use job::{JobReport, count_title, job_name, state_name};
pub use proof::{ProofReport, proof_title};
pub use published::Published;
pub use status::StatusReport;
