//! The file of `count --resume`: the finished units of one job, readable after a kill at any moment.

mod completed_units;
mod run_file;
mod storage;

pub use completed_units::{BookError, FinishedUnit, UnitBook};
pub use run_file::{Damage, RunFile, RunFileError, Seen};
pub use storage::{DiskFile, Storage};
