//! The state of the work queue.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::lease_entry::LeaseEntry;
use super::rates::JobRates;
use super::{DeviceStatus, FailedUnit, UnitCounts};
use crate::board::Piece;
use crate::decomposition::{JobHash, MOST_SUB_RANGES};
use crate::executor::SHADERS;

/// The state of the queue, behind its lock.
#[derive(Debug, Default)]
pub(super) struct QueueState {
    pub(super) entries: BTreeMap<u64, LeaseEntry>,
    pub(super) cpu_threads: usize,
    /// True if CPU threads count: either they were selected, or no device is left.
    pub(super) cpu_counts: bool,
    pub(super) devices: Vec<DeviceStatus>,
    /// True if the search for devices is still to come.
    pub(super) discovering: bool,
    /// Jobs that the shaders cannot count.
    pub(super) not_for_shaders: HashSet<JobHash>,
    pub(super) rates: HashMap<JobHash, JobRates>,
    pub(super) failed: VecDeque<FailedUnit>,
    /// True if anything failed since the flag was last taken.
    pub(super) failed_lately: bool,
    pub(super) counted: UnitCounts,
    /// True if the worker is resting, so that nothing new is started.
    pub(super) resting: bool,
    /// True if the threads are to end.
    pub(super) stopped: bool,
    /// True if results were acknowledged since the last report.
    pub(super) acknowledged: bool,
    /// True if the worker should sync at once.
    pub(super) urgent: bool,
    /// Why the worker must not count any more: a CPU kernel miscounts.
    pub(super) broken: Option<String>,
}

impl QueueState {
    pub(super) fn working_devices(&self) -> usize {
        self.devices.iter().filter(|device| device.fault.is_none()).count()
    }

    pub(super) fn capacity(&self) -> usize {
        if self.resting || self.stopped {
            return 0;
        }
        self.counting_threads() + self.working_devices()
    }

    /// Returns the number of CPU threads that count.
    pub(super) fn counting_threads(&self) -> usize {
        if self.cpu_counts { self.cpu_threads } else { 0 }
    }

    /// Returns the lease entries with recounts first: those are short, and other workers' results
    /// depend on them.
    pub(super) fn recounts_first(&self) -> impl Iterator<Item = (u64, &LeaseEntry)> {
        let entries = |mirrored| {
            self.entries.iter().filter(move |(_, entry)| entry.assignment.mirrored == mirrored)
        };
        entries(true).chain(entries(false)).map(|(&attempt, entry)| (attempt, entry))
    }

    /// Returns how many seconds the waiting units will last, or `None` if the rate of any of their
    /// jobs is unknown.
    pub(super) fn waiting_s(&self) -> Option<f64> {
        let waiting = self.entries.values().filter(|entry| !entry.waiting.is_empty());
        waiting
            .map(|entry| {
                let units_per_s =
                    self.rates.get(&entry.assignment.job)?.units_per_s(self.counting_threads());
                let spots = if entry.is_spot() {
                    entry.assignment.sub_ranges.len() as f64 / MOST_SUB_RANGES as f64
                } else {
                    1.0
                };
                (units_per_s > 0.0).then(|| entry.waiting.len() as f64 * spots / units_per_s)
            })
            .sum()
    }

    /// Returns whether the shaders may count a lease. They are slow at small amounts of work.
    pub(super) fn for_shaders(&self, entry: &LeaseEntry) -> bool {
        let Some(decomposition) = &entry.decomposition else { return false };
        let job = decomposition.job();
        job.problem().piece() == Piece::Queen
            && !(entry.is_spot() && self.cpu_counts)
            && entry.assignment.not_kernel.as_deref() != Some(SHADERS)
            && !self.not_for_shaders.contains(&entry.assignment.job)
    }

    pub(super) fn remove_if_done(&mut self, attempt: u64) {
        if self.entries.get(&attempt).is_some_and(|entry| entry.left() == 0) {
            self.entries.remove(&attempt);
        }
    }
}
