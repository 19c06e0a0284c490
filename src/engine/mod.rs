//! Whole jobs: units on every core, estimates, progress.

mod count;
mod estimate;
mod progress;

pub use count::{CountError, CountOptions, CountOutcome, CountTask, count};
pub use estimate::{Estimate, Forecast, Mean, estimate, forecast};
pub use progress::Progress;
