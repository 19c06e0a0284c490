//! The work queue: the leases that a worker holds and the state of each of their units. Executors
//! take units from it, and the worker loop reports its contents to the coordinator. It knows
//! nothing of threads, the network or the disk.
//!
//! A unit of a lease is *waiting*, then *counting* while an executor works on it, then *kept* until
//! its result is acknowledged, and is then removed. A lease is held as long as any of its units is
//! in the queue.

mod executor_methods;
mod lease_entry;
mod queue_state;
mod rates;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use lease_entry::{LeaseEntry, check_lease};
use queue_state::QueueState;
use rates::JobRates;

use crate::cluster::campaign::{Assignment, HeldLease, UnitId};
use crate::cluster::protocol::v1::FailReason;
use crate::decomposition::{Decomposition, JobHash};
use crate::executor::{self, KernelPreference, SHADERS};

/// A unit to be counted, and the lease that it belongs to.
#[derive(Clone, Debug)]
pub(super) struct LeasedUnit {
    pub(super) lease: Arc<Assignment>,
    pub(super) unit: u64,
}

/// Units to be counted, all of the same image of the same job.
pub(super) type Batch = executor::Batch<LeasedUnit>;

/// A unit that cannot be counted by this worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailedUnit {
    pub(super) attempt: u64,
    pub(super) unit: UnitId,
    pub(super) reason: FailReason,
    pub(super) detail: String,
}

/// The status of a device other than the CPU.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeviceStatus {
    pub(super) id: String,
    pub(super) name: String,
    /// Why the device no longer counts.
    pub(super) fault: Option<String>,
}

/// The worker's part of a sync request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QueueReport {
    pub(super) capacity: u32,
    pub(super) kernels: Vec<String>,
    pub(super) units_per_s: Vec<(JobHash, f64)>,
    pub(super) held: Vec<HeldLease>,
    pub(super) devices: Vec<DeviceStatus>,
    pub(super) cpu_threads: usize,
}

/// Numbers of units counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitCounts {
    pub(super) units: u64,
    pub(super) recounts: u64,
}

/// The work queue of a worker.
#[derive(Debug)]
pub(super) struct WorkQueue {
    preference: KernelPreference,
    state: Mutex<QueueState>,
    work: Condvar,
    changes: watch::Sender<()>,
}

impl WorkQueue {
    /// Creates an empty queue for `cpu_threads` CPU threads. They count if `cpu_counts` is set, or
    /// once no device is left.
    pub(super) fn new(preference: KernelPreference, cpu_threads: usize, cpu_counts: bool) -> Self {
        let discovering = !cpu_counts;
        let state = QueueState { cpu_threads, cpu_counts, discovering, ..QueueState::default() };
        let (work, changes) = Default::default();
        Self { preference, state: Mutex::new(state), work, changes }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        // No code that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a change and wakes everything that waits for changes.
    fn change<T>(&self, apply: impl FnOnce(&mut QueueState) -> T) -> T {
        let returned = apply(&mut self.state());
        self.work.notify_all();
        self.changes.send_replace(());
        returned
    }

    /// Returns a receiver that is notified of every change.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Adds leases. Their units wait until they are [decomposed](Self::set_decomposition).
    pub(super) fn assign(&self, leases: impl IntoIterator<Item = Assignment>) {
        self.change(|state| {
            for lease in leases {
                if !state.resting && !state.stopped && !lease.units.is_empty() {
                    state.entries.insert(lease.attempt, LeaseEntry::new(lease));
                }
            }
        });
    }

    /// Sets the decomposition of a lease's job, or gives the lease up if the job cannot be
    /// decomposed.
    pub(super) fn set_decomposition(
        &self,
        attempt: u64,
        decomposition: Result<Arc<Decomposition>, String>,
    ) {
        self.change(|state| {
            let Some(entry) = state.entries.get_mut(&attempt) else { return };
            let checked = decomposition.and_then(|decomposition| {
                check_lease(&entry.assignment, &decomposition)?;
                Ok(decomposition)
            });
            match checked {
                Ok(decomposition) => entry.decomposition = Some(decomposition),
                Err(detail) => Self::give_up(state, attempt, FailReason::Job, detail),
            }
            self.give_up_unsuited(state);
        });
    }

    /// Applies the coordinator's updates to held leases. Units beyond the new end of a lease that
    /// were not started are dropped: they now belong to another worker.
    pub(super) fn update(&self, leases: impl IntoIterator<Item = Assignment>) {
        self.change(|state| {
            for lease in leases {
                let attempt = lease.attempt;
                let Some(entry) = state.entries.get_mut(&attempt) else { continue };
                let before = Arc::make_mut(&mut entry.assignment);
                // A lease never grows, and never changes its job.
                before.units.end = before.units.end.min(lease.units.end).max(before.units.start);
                if !lease.grant.is_empty() {
                    before.grant = lease.grant;
                }
                let end = before.units.end;
                entry.waiting.retain(|&unit| unit < end);
                state.remove_if_done(attempt);
            }
        });
    }

    /// Removes cancelled leases. Units that were not started are not counted, and nothing more is
    /// reported about them.
    pub(super) fn cancel(&self, attempts: impl IntoIterator<Item = u64>) {
        self.change(|state| {
            attempts.into_iter().for_each(|attempt| drop(state.entries.remove(&attempt)))
        });
    }

    /// Removes acknowledged results, which need not be kept any more.
    pub(super) fn acknowledge(&self, results: impl IntoIterator<Item = (u64, u64)>) {
        self.change(|state| {
            for (attempt, unit) in results {
                if let Some(entry) = state.entries.get_mut(&attempt) {
                    entry.kept.remove(&unit);
                    state.remove_if_done(attempt);
                }
            }
            state.acknowledged = true;
        });
    }

    /// Starts or ends a rest. At its start, waiting units are given back, while those in progress
    /// are finished.
    pub(super) fn rest(&self, rest: bool) {
        self.change(|state| {
            if state.resting == rest {
                return;
            }
            state.resting = rest;
            state.urgent = true;
            if rest {
                state.entries.values_mut().for_each(|entry| entry.waiting.clear());
                state.entries.retain(|_, entry| entry.left() > 0);
            }
        });
    }

    /// Stops the threads. Units in progress are lost.
    pub(super) fn stop(&self) {
        self.change(|state| {
            state.stopped = true;
            state.entries.clear();
        });
    }

    /// Returns the queue's part of a sync request. It lists at most `most_held` leases; the
    /// coordinator takes the others for released.
    pub(super) fn report(&self, most_held: usize) -> QueueReport {
        let mut state = self.state();
        (state.acknowledged, state.urgent) = (false, false);
        let shaders = (state.working_devices() > 0).then_some(SHADERS);
        let kinds = self.preference.kinds().iter().filter(|_| state.cpu_counts);
        let kernels = shaders.into_iter().chain(kinds.map(|kind| kind.name()));
        let cpu_threads = state.counting_threads();
        let rate =
            |(&job, job_rates): (&JobHash, &JobRates)| (job, job_rates.units_per_s(cpu_threads));
        QueueReport {
            // There are far fewer than 2^32 threads.
            capacity: state.capacity() as u32,
            kernels: kernels.map(str::to_owned).collect(),
            units_per_s: state.rates.iter().map(rate).collect(),
            held: state.entries.values().take(most_held).map(LeaseEntry::held).collect(),
            devices: state.devices.clone(),
            cpu_threads,
        }
    }

    /// Returns whether threads are idle or soon will be: fewer units wait than can be counted at
    /// once, or the waiting units last no longer than a sync may take.
    pub(super) fn needs_work(&self) -> bool {
        const SOON_S: f64 = 0.5;
        let state = self.state();
        let waiting: usize = state.entries.values().map(|entry| entry.waiting.len()).sum();
        let capacity = state.capacity();
        capacity > 0
            && (waiting < capacity || state.waiting_s().is_some_and(|seconds| seconds < SOON_S))
    }

    /// Returns whether results were acknowledged since the last report.
    pub(super) fn was_acknowledged(&self) -> bool {
        self.state().acknowledged
    }

    /// Requests a sync at once: the coordinator has something for this worker.
    pub(super) fn request_sync(&self) {
        self.change(|state| state.urgent = true);
    }

    /// Returns whether the worker should sync at once.
    pub(super) fn is_urgent(&self) -> bool {
        self.state().urgent
    }

    /// Returns whether no lease is held.
    pub(super) fn is_empty(&self) -> bool {
        self.state().entries.is_empty()
    }

    /// Returns the number of units in progress.
    pub(super) fn being_counted(&self) -> usize {
        self.state().entries.values().map(|entry| entry.counting.len()).sum()
    }

    /// Returns the next failure to report. It stays in the queue until [`Self::pop_failed`] is
    /// called.
    pub(super) fn next_failed(&self) -> Option<FailedUnit> {
        self.state().failed.front().cloned()
    }

    /// Removes the next failure, which was reported.
    pub(super) fn pop_failed(&self) {
        self.change(|state| drop(state.failed.pop_front()));
    }

    /// Returns whether anything failed since the last call, and clears the flag. After a failure
    /// there is no hurry to lease more of the same.
    pub(super) fn take_failed_lately(&self) -> bool {
        std::mem::take(&mut self.state().failed_lately)
    }

    /// Returns the numbers of units counted since the start.
    pub(super) fn counted(&self) -> UnitCounts {
        self.state().counted
    }

    /// Returns why this worker must not count any more, if that is so.
    pub(super) fn broken(&self) -> Option<String> {
        self.state().broken.clone()
    }

    /// Gives up leases that nothing here may or can count.
    fn give_up_unsuited(&self, state: &mut QueueState) {
        let devices = state.discovering || state.working_devices() > 0;
        let can = |entry: &LeaseEntry| {
            let Some(decomposition) = &entry.decomposition else { return true };
            let by_cpu = || {
                self.preference
                    .pick(decomposition.job(), entry.assignment.not_kernel.as_deref())
                    .is_some()
            };
            (devices && state.for_shaders(entry)) || (state.cpu_counts && by_cpu())
        };
        let unsuited: Vec<u64> = state
            .entries
            .iter()
            .filter(|(_, entry)| !can(entry))
            .map(|(&attempt, _)| attempt)
            .collect();
        for attempt in unsuited {
            let detail = "no other kernel of this worker can count it".to_owned();
            Self::give_up(state, attempt, FailReason::Unsuited, detail);
        }
    }

    /// Gives up a lease; the reported failure names one of its units.
    fn give_up(state: &mut QueueState, attempt: u64, reason: FailReason, detail: String) {
        let Some(entry) = state.entries.remove(&attempt) else { return };
        let Some(&unit) = entry.waiting.front() else { return };
        let unit = UnitId { job: entry.assignment.job, unit };
        state.failed.push_back(FailedUnit { attempt, unit, reason, detail });
        state.failed_lately = true;
    }
}
