//! The measured rates at which the units of a job are counted.

use std::collections::HashMap;

/// The rates at which a job's units are counted.
#[derive(Debug, Default)]
pub(super) struct JobRates {
    /// Smoothed time that one CPU thread needs for a unit, in seconds.
    pub(super) cpu_unit_s: Option<f64>,
    /// Smoothed rate of each device in units per second, by device number.
    pub(super) devices: HashMap<usize, f64>,
}

impl JobRates {
    /// Returns the rate of `cpu_threads` CPU threads, in units per second; 0 if it is unknown.
    pub(super) fn cpu_units_per_s(&self, cpu_threads: usize) -> f64 {
        self.cpu_unit_s.map_or(0.0, |unit_s| cpu_threads as f64 / unit_s)
    }

    /// Returns the combined rate of `cpu_threads` CPU threads and all devices, in units per second.
    pub(super) fn units_per_s(&self, cpu_threads: usize) -> f64 {
        self.cpu_units_per_s(cpu_threads) + self.devices.values().sum::<f64>()
    }
}

/// Returns the exponential moving average; a new measurement has a weight of one quarter.
pub(super) fn smoothed(before: Option<f64>, now: f64) -> f64 {
    const WEIGHT: f64 = 0.25;
    before.map_or(now, |before| before + WEIGHT * (now - before))
}
