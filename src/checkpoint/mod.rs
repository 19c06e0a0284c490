//! The checkpoint of `count --resume`: the finished units of one job, readable after a kill at any
//! time.

mod checkpoint_file;
mod completed_units;
mod storage;

pub use checkpoint_file::{Checkpoint, CheckpointError, Corruption, ReadOnlyBytes};
pub use completed_units::{CompletedUnits, EnterError, FinishedUnit};
pub use storage::{DiskFile, Storage};
