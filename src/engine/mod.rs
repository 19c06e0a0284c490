//! Whole jobs: units on every core, estimates, comparisons, progress.

mod bench;
mod count;
mod energy;
mod estimate;
mod progress;

pub use bench::{BenchError, Contestant, ContestantKind, Measured, Run, Spread, Turn, Watch, compare};
pub use count::{CountError, CountOptions, CountOutcome, CountTask, count};
pub use estimate::{Estimate, Forecast, Mean, estimate, forecast};
pub use progress::Progress;
