//! The checkpoint of `count --resume`: the finished units of one job and the partial results of
//! others, readable after a kill at any time.

mod checkpoint_file;
mod completed_units;
mod errors;
mod partial_units;
mod storage;

pub use checkpoint_file::{Checkpoint, ReadOnlyBytes};
pub use completed_units::{CompletedUnits, EnterError, FinishedUnit};
pub use errors::{CheckpointError, Corruption};
pub use partial_units::{PartialUnit, PartialUnits};
pub use storage::{DiskFile, Storage};
