//! The work queue: the leases that a worker holds and the state of each of their units. Executors
//! take units from it, and the worker loop reports its contents to the coordinator. It knows
//! nothing of threads, the network or the disk.
//!
//! A unit of a lease is *waiting*, then *counting* while an executor works on it, then *kept* until
//! its result is acknowledged, and is then removed. A lease is held as long as any of its units is
//! in the queue.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::board::Piece;
use crate::cluster::campaign::{Assignment, HeldLease, UnitId};
use crate::cluster::protocol::v1::FailReason;
use crate::decomposition::{Decomposition, JobHash, MOST_SUB_RANGES};
use crate::engine::KernelPreference;
use crate::kernel::KernelKind;

/// The kernel name that devices report in the source of a result.
pub(super) const SHADERS: &str = "wgsl";

/// A unit to be counted, and the lease that it belongs to.
#[derive(Clone, Debug)]
pub(super) struct LeasedUnit {
    pub(super) lease: Arc<Assignment>,
    pub(super) unit: u64,
}

/// Units to be counted, all of the same image of the same job.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) job: JobHash,
    pub(super) decomposition: Arc<Decomposition>,
    pub(super) not_kernel: Option<String>,
    pub(super) mirrored: bool,
    pub(super) units: Vec<LeasedUnit>,
}

impl Batch {
    /// Returns whether every unit is to be counted in full rather than in some sub-ranges only.
    pub(super) fn is_whole(&self) -> bool {
        self.units.iter().all(|unit| unit.lease.sub_ranges.is_empty())
    }
}

/// A unit that cannot be counted by this worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) attempt: u64,
    pub(super) unit: UnitId,
    pub(super) reason: FailReason,
    pub(super) detail: String,
}

/// A device other than the CPU.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeviceSeen {
    pub(super) id: String,
    pub(super) name: String,
    /// Why the device no longer counts.
    pub(super) fault: Option<String>,
}

/// The worker's part of a sync request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) capacity: u32,
    pub(super) kernels: Vec<String>,
    pub(super) units_per_s: Vec<(JobHash, f64)>,
    pub(super) held: Vec<HeldLease>,
    pub(super) devices: Vec<DeviceSeen>,
    pub(super) cpu_threads: usize,
}

/// Numbers of units counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) units: u64,
    pub(super) recounts: u64,
}

/// A held lease.
#[derive(Debug)]
struct LeaseEntry {
    assignment: Arc<Assignment>,
    /// `None` until the job is planned.
    decomposition: Option<Arc<Decomposition>>,
    waiting: VecDeque<u64>,
    counting: BTreeSet<u64>,
    kept: BTreeSet<u64>,
}

impl LeaseEntry {
    fn new(assignment: Assignment) -> Self {
        let waiting = assignment.units.clone().collect();
        let assignment = Arc::new(assignment);
        Self {
            assignment,
            decomposition: None,
            waiting,
            counting: BTreeSet::new(),
            kept: BTreeSet::new(),
        }
    }

    fn left(&self) -> usize {
        self.waiting.len() + self.counting.len() + self.kept.len()
    }

    fn held(&self) -> HeldLease {
        let (left, unstarted) = (self.left() as u64, self.waiting.len() as u64);
        HeldLease { lease: Assignment::clone(&self.assignment), left, unstarted }
    }

    /// Returns whether only some sub-ranges of the lease's units are to be counted.
    fn is_spot(&self) -> bool {
        !self.assignment.sub_ranges.is_empty()
    }

    /// Returns a unit of the lease, ready to be counted.
    fn leased(&self, unit: u64) -> LeasedUnit {
        LeasedUnit { lease: Arc::clone(&self.assignment), unit }
    }
}

/// The rates at which a job's units are counted.
#[derive(Debug, Default)]
struct Pace {
    /// Smoothed time that one CPU thread needs for a unit, in seconds.
    cpu_unit_s: Option<f64>,
    /// Smoothed rate of each device in units per second, by device number.
    devices: HashMap<usize, f64>,
}

impl Pace {
    /// Returns the combined rate of `cpu_threads` CPU threads and all devices, in units per second.
    fn units_per_s(&self, cpu_threads: usize) -> f64 {
        self.cpu_unit_s.map_or(0.0, |unit_s| cpu_threads as f64 / unit_s)
            + self.devices.values().sum::<f64>()
    }
}

/// The measured rates of a job's units, as a device needs them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// Rate of the device, in units per second.
    pub(super) rate: Option<f64>,
    /// Time that one CPU thread needs for a unit, in seconds.
    pub(super) cpu_unit_s: Option<f64>,
    /// Number of CPU threads that count.
    pub(super) cpu_threads: usize,
}

/// Returns the exponential moving average; a new measurement has a weight of one quarter.
fn smoothed(before: Option<f64>, now: f64) -> f64 {
    const WEIGHT: f64 = 0.25;
    before.map_or(now, |before| before + WEIGHT * (now - before))
}

#[derive(Debug)]
struct State {
    entries: BTreeMap<u64, LeaseEntry>,
    cpu_threads: usize,
    /// Whether CPU threads count: either they were selected, or no device is left.
    cpu_counts: bool,
    devices: Vec<DeviceSeen>,
    /// Whether the search for devices is still to come.
    looking: bool,
    /// Jobs that the shaders cannot count.
    not_for_shaders: HashSet<JobHash>,
    paces: HashMap<JobHash, Pace>,
    failed: VecDeque<Failed>,
    /// Whether anything failed since the flag was last taken.
    failed_lately: bool,
    counted: Counted,
    /// Whether the worker is resting, so that nothing new is started.
    resting: bool,
    /// Whether the threads are to end.
    stopped: bool,
    /// Whether results were acknowledged since the last report.
    acknowledged: bool,
    /// Whether the worker should sync at once.
    urgent: bool,
    /// Why the worker must not count any more: a CPU kernel miscounts.
    broken: Option<String>,
}

impl State {
    fn alive(&self) -> usize {
        self.devices.iter().filter(|device| device.fault.is_none()).count()
    }

    fn capacity(&self) -> usize {
        if self.resting || self.stopped {
            return 0;
        }
        self.counting_threads() + self.alive()
    }

    fn measured(&self, job: JobHash, device: usize) -> Measured {
        let pace = self.paces.get(&job);
        Measured {
            rate: pace.and_then(|pace| pace.devices.get(&device).copied()),
            cpu_unit_s: pace.and_then(|pace| pace.cpu_unit_s),
            cpu_threads: self.counting_threads(),
        }
    }

    /// Returns the number of CPU threads that count.
    fn counting_threads(&self) -> usize {
        if self.cpu_counts { self.cpu_threads } else { 0 }
    }

    /// Returns the lease entries with recounts first: those are short, and other workers' results
    /// depend on them.
    fn recounts_first(&self) -> impl Iterator<Item = (u64, &LeaseEntry)> {
        let entries = |mirrored| {
            self.entries.iter().filter(move |(_, entry)| entry.assignment.mirrored == mirrored)
        };
        entries(true).chain(entries(false)).map(|(&attempt, entry)| (attempt, entry))
    }

    /// Returns how many seconds the waiting units will last, or `None` if the rate of any of their
    /// jobs is unknown.
    fn waiting_s(&self) -> Option<f64> {
        let waiting = self.entries.values().filter(|entry| !entry.waiting.is_empty());
        waiting
            .map(|entry| {
                let units_per_s =
                    self.paces.get(&entry.assignment.job)?.units_per_s(self.counting_threads());
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
    fn for_shaders(&self, entry: &LeaseEntry) -> bool {
        let Some(decomposition) = &entry.decomposition else { return false };
        let job = decomposition.job();
        job.problem().piece() == Piece::Queen
            && !(entry.is_spot() && self.cpu_counts)
            && entry.assignment.not_kernel.as_deref() != Some(SHADERS)
            && !self.not_for_shaders.contains(&entry.assignment.job)
    }

    fn remove_if_done(&mut self, attempt: u64) {
        if self.entries.get(&attempt).is_some_and(|entry| entry.left() == 0) {
            self.entries.remove(&attempt);
        }
    }
}

/// The work queue of a worker.
#[derive(Debug)]
pub(super) struct WorkQueue {
    preference: KernelPreference,
    state: Mutex<State>,
    work: Condvar,
    changes: watch::Sender<()>,
}

impl WorkQueue {
    /// Creates an empty queue for `cpu_threads` CPU threads. They count if `cpu_counts` is set, or
    /// once no device is left.
    pub(super) fn new(preference: KernelPreference, cpu_threads: usize, cpu_counts: bool) -> Self {
        let state = State {
            entries: BTreeMap::new(),
            cpu_threads,
            cpu_counts,
            devices: Vec::new(),
            looking: !cpu_counts,
            not_for_shaders: HashSet::new(),
            paces: HashMap::new(),
            failed: VecDeque::new(),
            failed_lately: false,
            counted: Counted::default(),
            resting: false,
            stopped: false,
            acknowledged: false,
            urgent: false,
            broken: None,
        };
        Self {
            preference,
            state: Mutex::new(state),
            work: Condvar::new(),
            changes: watch::Sender::new(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a change and wakes everything that waits for changes.
    fn change<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let outcome = act(&mut self.state());
        self.work.notify_all();
        self.changes.send_replace(());
        outcome
    }

    /// Returns a receiver that is notified of every change.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    // Methods for the worker loop.

    /// Adds leases. Their units wait until they are [planned](Self::planned).
    pub(super) fn assign(&self, leases: impl IntoIterator<Item = Assignment>) {
        self.change(|state| {
            for lease in leases {
                if !state.resting && !state.stopped && !lease.units.is_empty() {
                    state.entries.insert(lease.attempt, LeaseEntry::new(lease));
                }
            }
        });
    }

    /// Sets the decomposition of a lease's job, or gives the lease up if the job cannot be planned.
    pub(super) fn planned(&self, attempt: u64, decomposition: Result<Arc<Decomposition>, String>) {
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
    pub(super) fn report(&self, most_held: usize) -> Report {
        let mut state = self.state();
        (state.acknowledged, state.urgent) = (false, false);
        let cpu_name = |kind: &KernelKind| kind.name().to_owned();
        let mut kernels: Vec<String> = if state.cpu_counts {
            self.preference.kinds().iter().map(cpu_name).collect()
        } else {
            Vec::new()
        };
        if state.alive() > 0 {
            kernels.insert(0, SHADERS.to_owned());
        }
        let cpu_threads = state.counting_threads();
        let rate = |(&job, pace): (&JobHash, &Pace)| (job, pace.units_per_s(cpu_threads));
        Report {
            // There are far fewer than 2^32 threads.
            capacity: state.capacity() as u32,
            kernels,
            units_per_s: state.paces.iter().map(rate).collect(),
            held: state.entries.values().take(most_held).map(LeaseEntry::held).collect(),
            devices: state.devices.clone(),
            cpu_threads,
        }
    }

    /// Returns whether threads are idle or soon will be: fewer units wait than can be counted at
    /// once, or the waiting units last no longer than a sync may take.
    pub(super) fn is_hungry(&self) -> bool {
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

    /// Returns the next failure to report. It stays in the queue until [`Self::told`].
    pub(super) fn next_failed(&self) -> Option<Failed> {
        self.state().failed.front().cloned()
    }

    /// Removes the next failure, which was reported.
    pub(super) fn told(&self) {
        self.change(|state| drop(state.failed.pop_front()));
    }

    /// Returns whether anything failed since the last call, and clears the flag. After a failure
    /// there is no hurry to lease more of the same.
    pub(super) fn take_failed_lately(&self) -> bool {
        std::mem::take(&mut self.state().failed_lately)
    }

    /// Returns the numbers of units counted since the start.
    pub(super) fn counted(&self) -> Counted {
        self.state().counted
    }

    /// Returns why this worker must not count any more, if that is so.
    pub(super) fn broken(&self) -> Option<String> {
        self.state().broken.clone()
    }

    // Methods for the executors.

    /// Waits for a unit for a CPU thread, and returns it with the kernel to use. Returns `None` if
    /// the thread is to end.
    pub(super) fn take_for_cpu(&self) -> Option<(Batch, KernelKind)> {
        self.wait_for(|state| self.next_for_cpu(state, |_| true))
    }

    /// Returns a waiting unit of which only some sub-ranges are to be counted, if there is one. A
    /// CPU thread counts it in the middle of another unit: a new owner may be granted no further
    /// leases until its results are checked.
    pub(super) fn take_spot_for_cpu(&self) -> Option<(Batch, KernelKind)> {
        let found = self.next_for_cpu(&mut self.state(), LeaseEntry::is_spot);
        if found.is_some() {
            self.changes.send_replace(());
        }
        found
    }

    fn next_for_cpu(
        &self,
        state: &mut State,
        may: impl Fn(&LeaseEntry) -> bool,
    ) -> Option<(Batch, KernelKind)> {
        if !state.cpu_counts || state.stopped {
            return None;
        }
        let (attempt, kind) = state.recounts_first().find_map(|(attempt, entry)| {
            if entry.waiting.is_empty() || !may(entry) {
                return None;
            }
            let job = entry.decomposition.as_ref()?.job();
            let kind = self.preference.pick(job, entry.assignment.not_kernel.as_deref())?;
            Some((attempt, kind))
        })?;
        let entry = state.entries.get_mut(&attempt)?;
        let unit = entry.waiting.pop_front()?;
        entry.counting.insert(unit);
        Some((batch(entry, vec![entry.leased(unit)])?, kind))
    }

    /// Waits for units for device number `device` and returns them, or `None` if the thread is to
    /// end. `size` gets the measured rates and the number of waiting units of the job, and returns
    /// how many to take; at least one is taken. `size` must not use the queue, which is locked.
    pub(super) fn take_for_device(
        &self,
        device: usize,
        size: impl Fn(Measured, usize) -> usize,
    ) -> Option<Batch> {
        self.wait_for(|state| {
            let may = |entry: &LeaseEntry| !entry.waiting.is_empty() && state.for_shaders(entry);
            let (_, first) = state.recounts_first().find(|(_, entry)| may(entry))?;
            let (job, image) = (first.assignment.job, first.decomposition.clone()?);
            let of_image = |entry: &LeaseEntry| {
                entry.decomposition.as_ref().is_some_and(|d| Arc::ptr_eq(d, &image)) && may(entry)
            };
            let entries: Vec<u64> = state
                .entries
                .iter()
                .filter(|(_, entry)| of_image(entry))
                .map(|(&attempt, _)| attempt)
                .collect();
            let open = entries
                .iter()
                .filter_map(|attempt| state.entries.get(attempt))
                .map(|entry| entry.waiting.len())
                .sum();
            let most = size(state.measured(job, device), open).max(1);
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
            batch(state.entries.get(entries.first()?)?, units)
        })
    }

    /// Waits until there is work that a device might do. Returns `false` if the queue was stopped.
    pub(super) fn wait_for_device_work(&self) -> bool {
        let work = |state: &mut State| {
            state.entries.values().any(|entry| state.for_shaders(entry)).then_some(())
        };
        self.wait_for(work).is_some()
    }

    fn wait_for<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        /// Only a safeguard: every change wakes the waiting threads.
        const LOOK_AGAIN: Duration = Duration::from_secs(5);
        let mut state = self.state();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(found) = look(&mut state) {
                drop(state);
                self.changes.send_replace(());
                return Some(found);
            }
            let waited = self.work.wait_timeout(state, LOOK_AGAIN);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that the units of a batch were counted in `elapsed_s` seconds, by device number `by`
    /// or by a CPU thread.
    pub(super) fn finish(&self, batch: &Batch, by: Option<usize>, elapsed_s: f64) {
        self.change(|state| {
            for LeasedUnit { lease, unit } in &batch.units {
                if let Some(entry) = state.entries.get_mut(&lease.attempt)
                    && entry.counting.remove(unit)
                {
                    entry.kept.insert(*unit);
                }
            }
            let count = batch.units.len() as u64;
            if batch.mirrored {
                state.counted.recounts += count;
            } else {
                state.counted.units += count;
            }
            // Neither a CPU kernel other than the preferred one nor partial units say anything
            // about the usual rate.
            if batch.is_whole() && (by.is_some() || batch.not_kernel.is_none()) {
                Self::forget_old_paces(state);
                let pace = state.paces.entry(batch.job).or_default();
                let unit_s = elapsed_s.max(1e-6) / count as f64;
                match by {
                    None => pace.cpu_unit_s = Some(smoothed(pace.cpu_unit_s, unit_s)),
                    Some(device) => {
                        let before = pace.devices.get(&device).copied();
                        pace.devices.insert(device, smoothed(before, 1.0 / unit_s));
                    }
                }
            }
        });
    }

    fn forget_old_paces(state: &mut State) {
        const MOST: usize = 64;
        if state.paces.len() >= MOST {
            let in_hand: HashSet<JobHash> =
                state.entries.values().map(|entry| entry.assignment.job).collect();
            state.paces.retain(|job, _| in_hand.contains(job));
        }
    }

    /// Returns the measured rates of a job for device number `device`.
    pub(super) fn measured(&self, job: JobHash, device: usize) -> Measured {
        self.state().measured(job, device)
    }

    /// Puts units that were taken and will not be counted back among the waiting ones.
    pub(super) fn give_back(&self, batch: &Batch) {
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
    pub(super) fn fail(&self, batch: &Batch, reason: FailReason, detail: &str) {
        self.change(|state| {
            for LeasedUnit { lease, unit } in &batch.units {
                let attempt = lease.attempt;
                if let Some(entry) = state.entries.get_mut(&attempt) {
                    entry.counting.remove(unit);
                }
                let unit = UnitId { job: batch.job, unit: *unit };
                state.failed.push_back(Failed { attempt, unit, reason, detail: detail.to_owned() });
                state.failed_lately = true;
                state.remove_if_done(attempt);
            }
        });
    }

    /// Adds devices that were found and will count. Returns the number of the first; the others
    /// follow it.
    pub(super) fn add_devices(&self, devices: impl IntoIterator<Item = DeviceSeen>) -> usize {
        self.change(|state| {
            let first = state.devices.len();
            state.devices.extend(devices);
            state.looking = false;
            state.urgent = true;
            self.give_up_unsuited(state);
            first
        })
    }

    /// Marks a device as failed. If no device is left, the CPU counts instead.
    pub(super) fn device_gone(&self, device: usize, fault: String) {
        self.change(|state| {
            if let Some(seen) = state.devices.get_mut(device) {
                seen.fault = Some(fault);
            }
            for pace in state.paces.values_mut() {
                pace.devices.remove(&device);
            }
            state.cpu_counts |= state.alive() == 0;
            state.urgent = true;
            self.give_up_unsuited(state);
        });
    }

    /// Records that the shaders cannot count a job.
    pub(super) fn not_for_shaders(&self, job: JobHash) {
        self.change(|state| {
            state.not_for_shaders.insert(job);
            self.give_up_unsuited(state);
        });
    }

    /// Stops the queue for good: a CPU kernel miscounts, so no result of this machine can be
    /// trusted.
    pub(super) fn mark_broken(&self, why: String) {
        self.change(|state| {
            state.broken.get_or_insert(why);
            state.entries.clear();
            state.stopped = true;
            state.urgent = true;
        });
    }

    /// Returns whether the worker is resting.
    pub(super) fn is_resting(&self) -> bool {
        self.state().resting
    }

    /// Returns whether the threads are to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Gives up leases that nothing here may or can count.
    fn give_up_unsuited(&self, state: &mut State) {
        let devices = state.looking || state.alive() > 0;
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
            let detail = "no other kernel here can count it".to_owned();
            Self::give_up(state, attempt, FailReason::Unsuited, detail);
        }
    }

    /// Gives up a lease; the reported failure names one of its units.
    fn give_up(state: &mut State, attempt: u64, reason: FailReason, detail: String) {
        let Some(entry) = state.entries.remove(&attempt) else { return };
        let Some(&unit) = entry.waiting.front() else { return };
        let unit = UnitId { job: entry.assignment.job, unit };
        state.failed.push_back(Failed { attempt, unit, reason, detail });
        state.failed_lately = true;
    }
}

/// Checks that a job has all units and sub-ranges that a lease asks for.
///
/// # Errors
/// A description of the missing unit or sub-range.
fn check_lease(lease: &Assignment, decomposition: &Decomposition) -> Result<(), String> {
    let (last, units) = (lease.units.end.saturating_sub(1), decomposition.units());
    if last >= units {
        return Err(format!("the job has {units} units, and this is unit {last}"));
    }
    let Some(number) = lease.sub_ranges.numbers().last() else { return Ok(()) };
    // All units but the last have the same size.
    let sub_ranges = decomposition.sub_ranges(last).len();
    if number as usize >= sub_ranges {
        return Err(format!(
            "unit {last} has {sub_ranges} sub-ranges, and this is number {number}"
        ));
    }
    Ok(())
}

fn batch(entry: &LeaseEntry, units: Vec<LeasedUnit>) -> Option<Batch> {
    Some(Batch {
        job: entry.assignment.job,
        decomposition: Arc::clone(entry.decomposition.as_ref()?),
        not_kernel: entry.assignment.not_kernel.clone(),
        mirrored: entry.assignment.mirrored,
        units,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Problem;
    use crate::cluster::campaign::SubRangeSet;
    use crate::decomposition::{Job, Scheme};

    fn decomposition(piece: Piece, n: usize) -> Arc<Decomposition> {
        let problem = Problem::empty(piece, n);
        let scheme = Scheme::best(&problem);
        Arc::new(Decomposition::new(Job::new(problem, scheme, None, 10).expect("a small board")))
    }

    fn lease(
        attempt: u64,
        decomposition: &Decomposition,
        units: std::ops::Range<u64>,
    ) -> Assignment {
        let job = decomposition.job().hash();
        let (sub_ranges, grant) = (SubRangeSet::default(), vec![7, attempt as u8]);
        Assignment { attempt, job, units, mirrored: false, not_kernel: None, sub_ranges, grant }
    }

    /// Returns a recount of some sub-ranges of a unit.
    fn spot(attempt: u64, decomposition: &Decomposition, unit: u64) -> Assignment {
        let sub_ranges = SubRangeSet::from_numbers([1, 4]).expect("below 32");
        Assignment { mirrored: true, sub_ranges, ..lease(attempt, decomposition, unit..unit + 1) }
    }

    /// Returns the units of a batch, each with its lease.
    fn units(batch: &Batch) -> Vec<(u64, u64)> {
        batch.units.iter().map(|LeasedUnit { lease, unit }| (lease.attempt, *unit)).collect()
    }

    fn queue() -> WorkQueue {
        WorkQueue::new(
            KernelPreference::new(Some(KernelKind::Scalar)).expect("runs everywhere"),
            2,
            true,
        )
    }

    fn take_in(queue: &WorkQueue, decomposition: &Arc<Decomposition>, lease: Assignment) {
        let attempt = lease.attempt;
        queue.assign([lease]);
        queue.planned(attempt, Ok(Arc::clone(decomposition)));
    }

    fn device() -> DeviceSeen {
        DeviceSeen { id: "test-0".into(), name: "a device".into(), fault: None }
    }

    /// Returns the held leases, each with its number of remaining units.
    fn held(queue: &WorkQueue) -> Vec<(u64, u64)> {
        queue.report(100).held.iter().map(|held| (held.lease.attempt, held.left)).collect()
    }

    #[test]
    fn a_lease_is_held_until_its_last_result_is_acknowledged() {
        let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
        assert!(queue.is_hungry() && queue.is_empty());
        take_in(&queue, &queens, lease(7, &queens, 2..4));
        assert!(!queue.is_hungry());
        let (first, kind) = queue.take_for_cpu().expect("a unit");
        assert_eq!((units(&first), kind), (vec![(7, 2)], KernelKind::Scalar));
        assert_eq!(first.units[0].lease.grant, [7, 7]);
        assert_eq!((held(&queue), queue.being_counted()), (vec![(7, 2)], 1));
        queue.finish(&first, None, 0.5);
        let (second, _) = queue.take_for_cpu().expect("a unit");
        queue.finish(&second, None, 0.5);
        assert_eq!(held(&queue), [(7, 2)]);
        let report = queue.report(100);
        assert_eq!(report.units_per_s, [(queens.job().hash(), 4.0)]);
        queue.acknowledge([(7, 2)]);
        assert!(queue.was_acknowledged());
        assert_eq!(held(&queue), [(7, 1)]);
        assert!(!queue.was_acknowledged());
        // Repeated acknowledgements and those of leases of an earlier run are ignored.
        queue.acknowledge([(7, 2), (1, 1)]);
        queue.acknowledge([(7, 3)]);
        assert!(queue.is_empty());
        assert_eq!(queue.counted(), Counted { units: 2, recounts: 0 });
    }

    #[test]
    fn a_resting_shop_finishes_what_it_has_begun_and_gives_the_rest_back() {
        let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
        take_in(&queue, &queens, lease(1, &queens, 0..3));
        take_in(&queue, &queens, lease(2, &queens, 3..5));
        let (begun, _) = queue.take_for_cpu().expect("a unit");
        queue.rest(true);
        assert!(queue.is_urgent());
        let report = queue.report(100);
        assert_eq!((report.capacity, report.held.len(), report.held[0].left), (0, 1, 1));
        // Leases that arrive while resting are not accepted.
        take_in(&queue, &queens, lease(3, &queens, 5..6));
        queue.finish(&begun, None, 1.0);
        assert_eq!(held(&queue), [(1, 1)]);
        queue.acknowledge([(1, 0)]);
        assert!(queue.is_empty() && !queue.is_hungry());
        queue.rest(false);
        assert!(queue.is_urgent() && queue.is_hungry());
        assert_eq!(queue.report(100).capacity, 2);
    }

    #[test]
    fn a_cancelled_lease_is_not_held_though_a_unit_of_it_is_still_counted() {
        let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
        take_in(&queue, &queens, lease(1, &queens, 0..3));
        let (begun, _) = queue.take_for_cpu().expect("a unit");
        queue.cancel([1]);
        assert!(queue.is_empty());
        queue.finish(&begun, None, 1.0);
        assert!(queue.is_empty());
        queue.give_back(&begun);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_kernel_that_must_not_count_does_not() {
        let (queue, queens) = (queue(), decomposition(Piece::Queen, 12));
        let not = |attempt, kernel: &str| Assignment {
            not_kernel: Some(kernel.to_owned()),
            mirrored: true,
            ..lease(attempt, &queens, 0..1)
        };
        take_in(&queue, &queens, not(1, "scalar"));
        let (batch, kind) = queue.take_for_cpu().expect("a unit");
        assert_eq!(kind, KernelKind::Generic);
        queue.finish(&batch, None, 9.0);
        // A different kernel says nothing about the usual rate.
        assert_eq!((queue.report(9).units_per_s, queue.counted().recounts), (vec![], 1));
        // If there is no other kernel, the coordinator is told.
        let rooks = decomposition(Piece::Rook, 12);
        let job = rooks.job().hash();
        let lease = Assignment { job, ..not(2, "generic") };
        take_in(&queue, &rooks, lease);
        let failed = queue.next_failed().expect("it cannot be counted");
        assert_eq!(
            (failed.attempt, failed.unit, failed.reason),
            (2, UnitId { job, unit: 0 }, FailReason::Unsuited)
        );
        queue.told();
        assert_eq!((queue.next_failed(), held(&queue)), (None, vec![(1, 1)]));
    }

    #[test]
    fn what_is_no_job_or_no_unit_of_it_is_given_back() {
        let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
        queue.assign([lease(1, &queens, 0..3), lease(2, &queens, 0..queens.units() + 1)]);
        queue.planned(1, Err("what is this".into()));
        queue.planned(2, Ok(Arc::clone(&queens)));
        for attempt in [1, 2] {
            let failed = queue.next_failed().expect("given up");
            assert_eq!((failed.attempt, failed.reason), (attempt, FailReason::Job));
            queue.told();
        }
        assert!(queue.is_empty());
    }

    #[test]
    fn devices_take_many_units_of_one_image_and_the_cpu_takes_one() {
        let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
        assert_eq!(queue.add_devices([device()]), 0);
        let image = Arc::new(queens.mirrored());
        take_in(&queue, &queens, lease(1, &queens, 0..3));
        take_in(&queue, &image, Assignment { mirrored: true, ..lease(2, &queens, 0..1) });
        take_in(&queue, &queens, lease(3, &queens, 3..5));
        assert_eq!((queue.report(9).capacity, queue.report(9).kernels[0].as_str()), (3, SHADERS));
        let image = queue.take_for_device(0, |_, _| 100).expect("the recount");
        assert_eq!((units(&image), image.mirrored), (vec![(2, 0)], true));
        let batch = queue.take_for_device(0, |_, open| {
            assert_eq!(open, 5);
            4
        });
        let batch = batch.expect("units");
        assert_eq!(units(&batch), [(1, 0), (1, 1), (1, 2), (3, 3)]);
        let (rest, _) = queue.take_for_cpu().expect("a unit");
        assert_eq!(units(&rest), [(3, 4)]);
        queue.give_back(&batch);
        let again = queue.take_for_device(0, |_, _| 100).expect("units");
        assert_eq!(units(&again), [(1, 0), (1, 1), (1, 2), (3, 3)]);
    }

    #[test]
    fn where_no_device_is_left_the_cpu_counts() {
        let preference = KernelPreference::new(Some(KernelKind::Scalar)).expect("runs everywhere");
        let (queue, queens) =
            (WorkQueue::new(preference, 2, false), decomposition(Piece::Queen, 9));
        queue.add_devices([device()]);
        assert_eq!(
            (queue.report(9).capacity, queue.report(9).kernels),
            (1, vec![SHADERS.to_owned()])
        );
        // No GPU counts toroidal queens.
        let toroidal = decomposition(Piece::Toroidal, 7);
        take_in(&queue, &toroidal, lease(1, &toroidal, 0..1));
        assert_eq!(queue.next_failed().map(|failed| failed.reason), Some(FailReason::Unsuited));
        take_in(&queue, &queens, lease(2, &queens, 0..2));
        let batch = queue.take_for_device(0, |_, _| 5).expect("units");
        queue.device_gone(0, "it was lost".into());
        queue.give_back(&batch);
        let (unit, _) = queue.take_for_cpu().expect("a unit");
        assert_eq!(units(&unit), [(2, 0)]);
        let report = queue.report(9);
        assert_eq!((report.capacity, report.devices[0].fault.as_deref()), (2, Some("it was lost")));
        assert!(report.kernels.iter().all(|kernel| kernel != SHADERS));
    }

    #[test]
    fn recounts_go_first_and_those_of_some_sub_ranges_to_the_cpu() {
        let (queue, queens) = (queue(), decomposition(Piece::Queen, 11));
        let image = Arc::new(queens.mirrored());
        queue.add_devices([device()]);
        take_in(&queue, &queens, lease(1, &queens, 0..9));
        take_in(&queue, &image, spot(2, &queens, 9));
        take_in(&queue, &image, Assignment { mirrored: true, ..lease(3, &queens, 10..11) });
        take_in(&queue, &image, spot(4, &queens, 11));
        let by_device = queue.take_for_device(0, |_, _| 100).expect("units");
        assert_eq!(units(&by_device), [(3, 10)]);
        let recounts = [(); 2].map(|()| queue.take_for_cpu().expect("a unit").0);
        assert_eq!(recounts.each_ref().map(units), [[(2, 9)], [(4, 11)]]);
        assert_eq!(units(&queue.take_for_cpu().expect("a unit").0), [(1, 0)]);
        // Partial units say nothing about the rate of whole ones.
        queue.finish(&recounts[0], None, 1.0);
        assert_eq!((queue.report(9).units_per_s, queue.counted().recounts), (vec![], 1));
        // If only a device counts, it also counts these, and everything of one image together.
        let preference = KernelPreference::new(Some(KernelKind::Scalar)).expect("runs everywhere");
        let alone = WorkQueue::new(preference, 2, false);
        alone.add_devices([device()]);
        for lease in [spot(1, &queens, 3), Assignment { mirrored: true, ..lease(2, &queens, 4..6) }]
        {
            take_in(&alone, &image, lease);
        }
        let batch = alone.take_for_device(0, |_, _| 100).expect("units");
        assert_eq!(units(&batch), [(1, 3), (2, 4), (2, 5)]);
        alone.finish(&batch, Some(0), 1.0);
        assert_eq!(alone.report(9).units_per_s, []);
        // If that device is lost, such a recount goes to the CPU.
        take_in(&alone, &image, spot(3, &queens, 6));
        alone.device_gone(0, "it was lost".into());
        assert_eq!(units(&alone.take_for_cpu().expect("a unit").0), [(3, 6)]);
    }

    #[test]
    fn sub_ranges_that_a_unit_does_not_have_are_not_counted() {
        let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
        let image = Arc::new(queens.mirrored());
        let sub_ranges = SubRangeSet::from_numbers([31]).expect("below 32");
        take_in(&queue, &image, Assignment { sub_ranges, ..spot(1, &queens, 0) });
        let failed = queue.next_failed().expect("a unit has 10 prefixes");
        assert_eq!((failed.attempt, failed.reason), (1, FailReason::Job));
        assert!(failed.detail.contains("has 10 sub-ranges"), "{}", failed.detail);
    }

    #[test]
    fn of_a_lease_that_shrinks_only_what_was_not_begun_is_dropped() {
        let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
        take_in(&queue, &queens, lease(1, &queens, 2..8));
        take_in(&queue, &queens, lease(2, &queens, 8..9));
        let begun = [(); 3].map(|()| queue.take_for_cpu().expect("a unit").0);
        assert_eq!(begun.each_ref().map(units), [[(1, 2)], [(1, 3)], [(1, 4)]]);
        queue.finish(&begun[0], None, 1.0);
        let (left, unstarted) = (queue.report(9).held[0].left, queue.report(9).held[0].unstarted);
        assert_eq!((left, unstarted), (6, 3));
        // The same range again changes nothing, nor does a range that has grown or starts
        // elsewhere.
        for same in [2..8, 2..20, 0..8] {
            queue.update([lease(1, &queens, same)]);
            assert_eq!(queue.report(9).held[0].lease.units, 2..8);
        }
        queue.update([
            Assignment { grant: vec![9], ..lease(1, &queens, 2..4) },
            lease(7, &queens, 0..1),
        ]);
        let report = queue.report(9);
        assert_eq!((report.held.len(), report.held[0].left, report.held[0].unstarted), (2, 3, 0));
        assert_eq!(
            (&report.held[0].lease.units, &report.held[0].lease.grant[..]),
            (&(2..4), &[9][..])
        );
        // Units beyond the end that were started continue, and their results are kept until
        // acknowledged.
        queue.finish(&begun[2], None, 1.0);
        // Unless they are given back.
        queue.give_back(&begun[1]);
        assert_eq!(units(&queue.take_for_cpu().expect("a unit").0), [(1, 3)]);
        queue.acknowledge([(1, 2), (1, 4)]);
        assert_eq!(held(&queue), [(1, 1), (2, 1)]);
        // A lease without started units is no longer held.
        queue.update([lease(2, &queens, 8..8)]);
        assert_eq!(held(&queue), [(1, 1)]);
    }

    #[test]
    fn a_shop_is_hungry_before_its_threads_run_out_of_work() {
        let (queue, queens) = (queue(), decomposition(Piece::Queen, 11));
        take_in(&queue, &queens, lease(1, &queens, 0..12));
        let (begun, _) = queue.take_for_cpu().expect("a unit");
        assert!(!queue.is_hungry(), "11 units wait, and nobody knows for how long");
        // Two threads that take 0.1 s per unit: the waiting units last 0.55 s.
        queue.finish(&begun, None, 0.1);
        assert!(!queue.is_hungry());
        queue.take_for_cpu().expect("a unit");
        queue.take_for_cpu().expect("a unit");
        assert!(queue.is_hungry(), "9 units wait");
        // The rate of another job is unknown.
        let other = decomposition(Piece::Queen, 10);
        take_in(&queue, &other, lease(2, &other, 0..3));
        assert!(!queue.is_hungry());
        queue.rest(true);
        assert!(!queue.is_hungry());
    }

    #[test]
    fn threads_end_when_the_shop_stops_or_a_kernel_miscounts() {
        for stop in
            [WorkQueue::stop as fn(&WorkQueue), |queue| queue.mark_broken("2 + 2 = 5".into())]
        {
            let queue = queue();
            std::thread::scope(|scope| {
                let threads = [
                    scope.spawn(|| queue.take_for_cpu().is_none()),
                    scope.spawn(|| queue.take_for_device(0, |_, _| 1).is_none()),
                    scope.spawn(|| !queue.wait_for_device_work()),
                ];
                stop(&queue);
                assert!(threads.into_iter().all(|thread| thread.join().expect("no panic")));
            });
            assert_eq!(queue.report(9).capacity, 0);
        }
    }
}
