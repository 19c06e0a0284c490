//! The methods of the work queue that the executors use: they take units, and return or finish
//! them.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::lease_entry::LeaseEntry;
use super::queue_state::QueueState;
use super::rates::smoothed;
use super::{Batch, DeviceStatus, FailedUnit, LeasedUnit, WorkQueue};
use crate::cluster::campaign::UnitId;
use crate::cluster::protocol::v1::FailReason;
use crate::decomposition::JobHash;
use crate::executor::{Counter, DeviceLabel};
use crate::kernel::KernelKind;

impl WorkQueue {
    /// Waits for a unit for a CPU thread. Returns `None` if the thread is to end.
    pub(in crate::cluster::worker) fn take_for_cpu(&self) -> Option<Batch> {
        self.wait_for(|state| self.next_for_cpu(state, |_| true))
    }

    /// Returns a waiting unit of which only some sub-ranges are to be counted, if there is one. A
    /// CPU thread counts it in the middle of another unit: a new owner may be granted no further
    /// leases until its results are checked.
    pub(in crate::cluster::worker) fn take_spot_for_cpu(&self) -> Option<Batch> {
        let found = self.next_for_cpu(&mut self.state(), LeaseEntry::is_spot);
        if found.is_some() {
            self.changes.send_replace(());
        }
        found
    }

    fn next_for_cpu(
        &self,
        state: &mut QueueState,
        may: impl Fn(&LeaseEntry) -> bool,
    ) -> Option<Batch> {
        if !state.cpu_counts || state.stopped {
            return None;
        }
        let (attempt, kernels) = state.recounts_first().find_map(|(attempt, entry)| {
            if entry.waiting.is_empty() || !may(entry) {
                return None;
            }
            let job = entry.decomposition.as_ref()?.job();
            let not_kernel = entry.assignment.not_kernel.as_deref();
            let kernels = self.preference.for_job(job);
            let kernels: Arc<[KernelKind]> =
                kernels.filter(|kind| not_kernel != Some(kind.name())).collect();
            (!kernels.is_empty()).then_some((attempt, kernels))
        })?;
        let entry = state.entries.get_mut(&attempt)?;
        let unit = entry.waiting.pop_front()?;
        entry.counting.insert(unit);
        batch(entry, kernels, vec![entry.leased(unit)])
    }

    /// Waits for units for device number `device` and returns them, or `None` if the thread is to
    /// end. `size` gets the measured rates and the number of waiting units of the job, and returns
    /// how many to take; at least one is taken. `size` must not use the queue, which is locked.
    pub(in crate::cluster::worker) fn take_for_device(
        &self,
        device: usize,
        size: impl Fn(Option<f64>, f64, usize) -> usize,
    ) -> Option<Batch> {
        self.wait_for(|state| {
            let may = |entry: &LeaseEntry| !entry.waiting.is_empty() && state.for_shaders(entry);
            let (_, first) = state.recounts_first().find(|(_, entry)| may(entry))?;
            let (job, image) = (first.assignment.job, first.decomposition.clone()?);
            let of_image = |entry: &LeaseEntry| {
                entry.decomposition.as_ref().is_some_and(|d| Arc::ptr_eq(d, &image)) && may(entry)
            };
            let (entries, waiting): (Vec<u64>, Vec<usize>) = state
                .entries
                .iter()
                .filter(|(_, entry)| of_image(entry))
                .map(|(&attempt, entry)| (attempt, entry.waiting.len()))
                .unzip();
            let (rate, cpu_units_per_s) = state.rates.get(&job).map_or((None, 0.0), |rates| {
                let cpu_units_per_s = rates.cpu_units_per_s(state.counting_threads());
                (rates.devices.get(&device).copied(), cpu_units_per_s)
            });
            let most = size(rate, cpu_units_per_s, waiting.iter().sum()).max(1);
            let mut units = Vec::new();
            // Take units from the front: the unstarted units of a lease are its tail, which the
            // coordinator may reassign.
            for attempt in &entries {
                let Some(entry) = state.entries.get_mut(attempt) else { continue };
                while units.len() < most
                    && let Some(unit) = entry.waiting.pop_front()
                {
                    entry.counting.insert(unit);
                    units.push(entry.leased(unit));
                }
            }
            batch(state.entries.get(entries.first()?)?, Arc::default(), units)
        })
    }

    /// Waits until there is work that a device might do. Returns `false` if the queue was stopped.
    pub(in crate::cluster::worker) fn wait_for_device_work(&self) -> bool {
        let work = |state: &mut QueueState| {
            state.entries.values().any(|entry| state.for_shaders(entry)).then_some(())
        };
        self.wait_for(work).is_some()
    }

    fn wait_for<T>(&self, mut find: impl FnMut(&mut QueueState) -> Option<T>) -> Option<T> {
        /// Only a safeguard: every change wakes the waiting threads.
        const RECHECK: Duration = Duration::from_secs(5);
        let mut state = self.state();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(found) = find(&mut state) {
                drop(state);
                self.changes.send_replace(());
                return Some(found);
            }
            let waited = self.work.wait_timeout(state, RECHECK);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that the units of a batch were counted in `elapsed_s` seconds.
    pub(in crate::cluster::worker) fn finish(&self, batch: &Batch, by: &Counter, elapsed_s: f64) {
        self.change(|state| {
            for LeasedUnit { lease, unit } in &batch.units {
                if let Some(entry) = state.entries.get_mut(&lease.attempt)
                    && entry.counting.remove(unit)
                {
                    entry.kept.insert(*unit);
                }
            }
            let count = batch.units.len() as u64;
            if batch.units.iter().all(|unit| unit.lease.mirrored) {
                state.counted.recounts += count;
            } else {
                state.counted.units += count;
            }
            // Neither a CPU kernel other than the preferred one nor partial units say anything
            // about the usual rate.
            let is_usual = |LeasedUnit { lease, .. }: &LeasedUnit| {
                let is_preferred = lease.not_kernel.is_none() || by.device_number().is_some();
                is_preferred && lease.sub_ranges.is_empty()
            };
            if batch.units.iter().all(is_usual) {
                Self::forget_old_rates(state);
                let job_rates = state.rates.entry(batch.job).or_default();
                let unit_s = elapsed_s.max(1e-6) / count as f64;
                match by.device_number() {
                    None => job_rates.cpu_unit_s = Some(smoothed(job_rates.cpu_unit_s, unit_s)),
                    Some(device) => {
                        let before = job_rates.devices.get(&device).copied();
                        job_rates.devices.insert(device, smoothed(before, 1.0 / unit_s));
                    }
                }
            }
        });
    }

    fn forget_old_rates(state: &mut QueueState) {
        const MOST: usize = 64;
        if state.rates.len() >= MOST {
            let held: HashSet<JobHash> =
                state.entries.values().map(|entry| entry.assignment.job).collect();
            state.rates.retain(|job, _| held.contains(job));
        }
    }

    /// Returns the measured time in seconds that a CPU thread needs for a unit of a job.
    pub(in crate::cluster::worker) fn cpu_unit_s(&self, job: JobHash) -> Option<f64> {
        self.state().rates.get(&job)?.cpu_unit_s
    }

    /// Puts units that were taken and will not be counted back among the waiting ones.
    pub(in crate::cluster::worker) fn give_back(&self, batch: &Batch) {
        self.change(|state| {
            let resting = state.resting;
            // Reversed, so that the units wait in their original order.
            for LeasedUnit { lease, unit } in batch.units.iter().rev() {
                if let Some(entry) = state.entries.get_mut(&lease.attempt)
                    && entry.counting.remove(unit)
                    && !resting
                    && entry.assignment.units.contains(unit)
                {
                    entry.waiting.push_front(*unit);
                }
                state.remove_if_done(lease.attempt);
            }
        });
    }

    /// Records that units cannot be counted.
    pub(in crate::cluster::worker) fn fail(&self, batch: &Batch, reason: FailReason, detail: &str) {
        self.change(|state| {
            for LeasedUnit { lease, unit } in &batch.units {
                let attempt = lease.attempt;
                if let Some(entry) = state.entries.get_mut(&attempt) {
                    entry.counting.remove(unit);
                }
                let unit = UnitId { job: batch.job, unit: *unit };
                state.failed.push_back(FailedUnit {
                    attempt,
                    unit,
                    reason,
                    detail: detail.to_owned(),
                });
                state.failed_lately = true;
                state.remove_if_done(attempt);
            }
        });
    }

    /// Adds devices that were found and will count, and numbers them.
    pub(in crate::cluster::worker) fn add_devices(&self, devices: &mut [DeviceLabel]) {
        self.change(|state| {
            for device in devices {
                device.number = state.devices.len();
                let (id, name) = (device.id.clone(), device.name.clone());
                state.devices.push(DeviceStatus { id, name, fault: None });
            }
            state.discovering = false;
            state.urgent = true;
            self.give_up_unsuited(state);
        });
    }

    /// Marks a device as failed. If no device is left, the CPU counts instead.
    pub(in crate::cluster::worker) fn device_failed(&self, device: usize, fault: String) {
        self.change(|state| {
            if let Some(seen) = state.devices.get_mut(device) {
                seen.fault = Some(fault);
            }
            for job_rates in state.rates.values_mut() {
                job_rates.devices.remove(&device);
            }
            state.cpu_counts |= state.working_devices() == 0;
            state.urgent = true;
            self.give_up_unsuited(state);
        });
    }

    /// Records that the shaders cannot count a job.
    pub(in crate::cluster::worker) fn not_for_shaders(&self, job: JobHash) {
        self.change(|state| {
            state.not_for_shaders.insert(job);
            self.give_up_unsuited(state);
        });
    }

    /// Stops the queue for good: a CPU kernel miscounts, so no result of this machine can be
    /// trusted.
    pub(in crate::cluster::worker) fn mark_broken(&self, why: String) {
        self.change(|state| {
            state.broken.get_or_insert(why);
            state.entries.clear();
            state.stopped = true;
            state.urgent = true;
        });
    }

    /// Returns whether the worker is resting.
    pub(in crate::cluster::worker) fn is_resting(&self) -> bool {
        self.state().resting
    }

    /// Returns whether the threads are to end.
    pub(in crate::cluster::worker) fn is_stopped(&self) -> bool {
        self.state().stopped
    }
}

fn batch(entry: &LeaseEntry, kernels: Arc<[KernelKind]>, units: Vec<LeasedUnit>) -> Option<Batch> {
    let decomposition = Arc::clone(entry.decomposition.as_ref()?);
    Some(Batch { job: entry.assignment.job, decomposition, kernels, units })
}
