//! Batches of units, the kernels and devices that count them, and their counts so far.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::devices::Device;
use crate::decomposition::{Decomposition, JobHash};
use crate::kernel::KernelKind;
use crate::tally::{Parts, TallyError};

/// Units that are taken together, all of one image of one job.
#[derive(Clone, Debug)]
pub(crate) struct Batch<U> {
    pub(crate) job: JobHash,
    pub(crate) decomposition: Arc<Decomposition>,
    /// The CPU kernels that may count the units, the preferred one first.
    pub(crate) kernels: Arc<[KernelKind]>,
    pub(crate) units: Vec<U>,
}

/// A kernel, and the device that it runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    /// A kernel of the CPU.
    Cpu(KernelKind),
    /// The shaders on a device.
    Device(DeviceLabel),
}

/// The name of the shaders where kernels are named.
pub(crate) const SHADERS: &str = "wgsl";

impl Counter {
    /// Returns the name of the kernel.
    pub(crate) const fn kernel(&self) -> &'static str {
        match self {
            Self::Cpu(kind) => kind.name(),
            Self::Device(_) => SHADERS,
        }
    }

    /// Returns the description of the device: "cpu" or the adapter's id, and its name.
    #[cfg(feature = "cluster")]
    pub(crate) fn device(&self) -> String {
        match self {
            Self::Cpu(_) => format!("cpu, {}", super::processor::processor()),
            Self::Device(device) => device.to_string(),
        }
    }

    /// Returns the number of the device, or `None` for the CPU.
    pub(crate) const fn device_number(&self) -> Option<usize> {
        match self {
            Self::Cpu(_) => None,
            Self::Device(device) => Some(device.number),
        }
    }
}

/// A device as its source of units knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceLabel {
    /// The number that the source gave it; 0 before.
    pub(crate) number: usize,
    /// The adapter's id.
    pub(crate) id: String,
    /// The names of the adapter and its driver; may be empty.
    pub(crate) name: String,
}

impl fmt::Display for DeviceLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.name {
            "" => f.write_str(&self.id),
            name => write!(f, "{}, {name}", self.id),
        }
    }
}

impl DeviceLabel {
    pub(super) fn new(device: &Device) -> Self {
        let described = device.info().map(|info| format!("{}, {}", info.name, info.driver));
        Self { number: 0, id: device.id().to_owned(), name: described.unwrap_or_default() }
    }
}

/// The count of one unit so far.
pub(crate) trait UnitCount {
    /// The result of a unit that is counted.
    type Result: Send;

    /// Returns the ranges of subproblems that were left to be counted when this count began.
    fn ranges(&self) -> Vec<Range<u64>>;

    /// Adds the sum of the next `subproblems` of range number `range`.
    ///
    /// # Errors
    /// The sum exceeds 128 bits, or disagrees with its residues.
    fn add(
        &mut self,
        range: usize,
        subproblems: u64,
        parts: &Parts,
        elapsed: Duration,
    ) -> Result<(), TallyError>;

    /// Returns the result, once all ranges are counted.
    ///
    /// # Errors
    /// The sum exceeds 128 bits, or disagrees with its residues.
    fn finish(self) -> Result<Self::Result, TallyError>;
}

/// Returns the number of units that a device is to take of `open` ones, at a rate in units per
/// second that was measured before: enough for some seconds, and near the end no more than the
/// device's share of the work, of which the CPU counts `cpu_units_per_s`.
pub(crate) fn batch_size(rate: Option<f64>, cpu_units_per_s: f64, open: usize) -> usize {
    /// Filling and draining the device costs some milliseconds.
    const BATCH_S: f64 = 2.0;
    // The first time take one unit: its duration is unknown.
    rate.map_or(1, |rate| {
        let share = open as f64 * rate / (rate + cpu_units_per_s);
        // The cast saturates.
        (rate * BATCH_S).min(share.ceil()) as usize
    })
}
