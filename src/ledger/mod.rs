//! What keeps finished units: the books of a job, and the run file that survives a kill at any moment.

mod book;
mod run_file;
mod storage;

pub use book::{BookError, FinishedUnit, UnitBook};
pub use run_file::{Damage, RunFile, RunFileError};
pub use storage::{DiskFile, Storage};
