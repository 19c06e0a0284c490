//! Whole jobs: units on every core, estimates, comparisons, progress.

mod bench;
mod count;
mod devices;
mod energy;
mod estimate;
mod kernels;
mod progress;
mod queue;
mod workers;

pub use bench::{
    BenchError, Contestant, ContestantKind, Measured, ProgressFn, Run, Spread, Turn, compare,
};
pub use count::{CountError, CountOptions, CountOutcome, CountTask, Event, Part, PartOutcome};
pub use count::{count, plan_for_campaign};
pub use devices::{Device, find_devices, find_every_device};
pub use devices::{DeviceChoice, DeviceError, DeviceName, UnknownDevice};
pub use estimate::{Estimate, Forecast, Mean, estimate, forecast};
#[cfg(feature = "cluster")]
pub(crate) use kernels::{KernelPreference, known_answers};
pub use progress::Progress;
#[cfg(feature = "cluster")]
pub(crate) use workers::{Pace, check_on_cpu, wait_for_devices};
