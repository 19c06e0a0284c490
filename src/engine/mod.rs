//! Whole jobs: units on every core, estimates, progress.

mod count;
mod devices;
mod estimate;
mod progress;
mod queue;
mod workers;

pub use count::{CountError, CountOptions, CountOutcome, CountTask, Event, count};
pub use devices::{DeviceChoice, DeviceError, DeviceName, UnknownDevice};
pub use estimate::{Estimate, Forecast, Mean, estimate, forecast};
pub use progress::Progress;
