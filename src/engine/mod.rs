//! Whole jobs: units on every core and device, estimates, progress.

mod annealing;
mod calibration;
mod campaign_plan;
mod count;
mod count_task;
mod estimate;
mod growth;
mod part;
mod progress;
mod queue;
mod selected_devices;
mod session_results;
mod swap_chain;
mod unit_size;
mod unit_store;
mod workers;

pub use annealing::{AnnealingEstimate, MAX_ANNEALING_SIZE, TooLarge, estimate_by_annealing};
pub use calibration::TimeForecast;
pub use campaign_plan::{fastest_subproblems, plan_for_campaign, usual_campaign_time};
pub use count::{
    CountCheck, CountError, CountErrorClass, CountEvent, CountOptions, CountOutcome, PartOutcome,
    count,
};
pub use count_task::CountTask;
pub use estimate::{Estimate, Forecast, Mean, estimate, forecast};
pub use growth::{CountGrowth, count_growth};
pub use part::JobPart;
pub use progress::CountProgress;
#[cfg(feature = "cli")]
pub(crate) use unit_size::has_gpu;

pub use crate::executor::{
    Device, DeviceChoice, DeviceError, DeviceName, KernelFactory, UnknownDevice, find_devices,
    find_every_device, processor,
};
