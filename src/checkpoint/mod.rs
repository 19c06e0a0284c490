//! The checkpoint of `count --resume`: the finished units of one job, readable after a kill at any
//! time.

mod completed_units;
mod run_file;
mod storage;

pub use completed_units::{CompletedUnits, EnterError, FinishedUnit};
pub use run_file::{Checkpoint, CheckpointError, Corruption, Seen};
pub use storage::{DiskFile, Storage};
