//! The shop: leases that a worker has in hand, and what each of their units is at. Threads take units from here, and the
//! worker's calls say what is in here. It knows no threads, no network and no disk.
//!
//! A unit of a lease *waits*, is *counted* by a thread, is *kept* until its result is acknowledged, and is then gone.
//! A lease is held as long as any of its units is in here.

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

/// The kernel of devices, as sources name it.
pub(super) const SHADERS: &str = "wgsl";

/// A unit to be counted, and the lease that asks for it.
#[derive(Clone, Debug)]
pub(super) struct LeasedUnit {
    pub(super) lease: Arc<Assignment>,
    pub(super) unit: u64,
}

/// Units to be counted, all of one image of one job.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) job: JobHash,
    pub(super) decomposition: Arc<Decomposition>,
    pub(super) not_kernel: Option<String>,
    pub(super) mirrored: bool,
    pub(super) units: Vec<LeasedUnit>,
}

impl Batch {
    /// Returns whether of every unit all is to be counted.
    pub(super) fn is_whole(&self) -> bool {
        self.units.iter().all(|unit| unit.lease.sub_ranges.is_empty())
    }
}

/// A unit that cannot be counted here.
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
    /// Why it does not count any more.
    pub(super) fault: Option<String>,
}

/// What a worker says of itself in a sync.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) capacity: u32,
    pub(super) kernels: Vec<String>,
    pub(super) units_per_s: Vec<(JobHash, f64)>,
    pub(super) held: Vec<HeldLease>,
    pub(super) devices: Vec<DeviceSeen>,
    pub(super) cpu_threads: usize,
}

/// Units that were counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) units: u64,
    pub(super) recounts: u64,
}

/// A lease in hand.
#[derive(Debug)]
struct LeaseEntry {
    assignment: Arc<Assignment>,
    /// `None` until it is planned.
    decomposition: Option<Arc<Decomposition>>,
    waiting: VecDeque<u64>,
    counting: BTreeSet<u64>,
    kept: BTreeSet<u64>,
}

impl LeaseEntry {
    fn new(assignment: Assignment) -> Self {
        let waiting = assignment.units.clone().collect();
        let assignment = Arc::new(assignment);
        Self { assignment, decomposition: None, waiting, counting: BTreeSet::new(), kept: BTreeSet::new() }
    }

    fn left(&self) -> usize {
        self.waiting.len() + self.counting.len() + self.kept.len()
    }

    fn held(&self) -> HeldLease {
        let (left, unstarted) = (self.left() as u64, self.waiting.len() as u64);
        HeldLease { lease: Assignment::clone(&self.assignment), left, unstarted }
    }

    /// Returns whether only some sub-ranges of its units are to be counted.
    fn is_spot(&self) -> bool {
        !self.assignment.sub_ranges.is_empty()
    }

    /// Returns a unit of it, to be counted.
    fn leased(&self, unit: u64) -> LeasedUnit {
        LeasedUnit { lease: Arc::clone(&self.assignment), unit }
    }
}

/// How fast a job's units are counted.
#[derive(Debug, Default)]
struct Pace {
    /// Seconds that a thread of the CPU needs for one, smoothed.
    cpu_unit_s: Option<f64>,
    /// Units a second, by the number of the device, smoothed.
    devices: HashMap<usize, f64>,
}

impl Pace {
    /// Returns the units a second of so many threads of the CPU and all devices.
    fn units_per_s(&self, cpu_threads: usize) -> f64 {
        self.cpu_unit_s.map_or(0.0, |unit_s| cpu_threads as f64 / unit_s) + self.devices.values().sum::<f64>()
    }
}

/// How fast a job's units are counted, as a device needs to know it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// Units a second of the device.
    pub(super) rate: Option<f64>,
    /// Seconds that a thread of the CPU needs for one.
    pub(super) cpu_unit_s: Option<f64>,
    /// Threads of the CPU that count.
    pub(super) cpu_threads: usize,
}

/// New measurements count for a quarter.
fn smoothed(before: Option<f64>, now: f64) -> f64 {
    const WEIGHT: f64 = 0.25;
    before.map_or(now, |before| before + WEIGHT * (now - before))
}

#[derive(Debug)]
struct State {
    lots: BTreeMap<u64, LeaseEntry>,
    cpu_threads: usize,
    /// Whether threads of the CPU count: chosen, or no device is left.
    cpu_counts: bool,
    devices: Vec<DeviceSeen>,
    /// Whether devices are yet to be looked for.
    looking: bool,
    /// Jobs of which the shaders count nothing.
    not_for_shaders: HashSet<JobHash>,
    paces: HashMap<JobHash, Pace>,
    failed: VecDeque<Failed>,
    /// Whether anything failed since that was last asked.
    failed_lately: bool,
    counted: Counted,
    /// Nothing new is begun.
    resting: bool,
    /// Threads are to end.
    stopped: bool,
    /// Results were acknowledged since the last report.
    acknowledged: bool,
    /// The coordinator should hear of this worker at once.
    urgent: bool,
    /// A kernel of the CPU miscounts.
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

    /// Returns the threads of the CPU that count.
    fn counting_threads(&self) -> usize {
        if self.cpu_counts { self.cpu_threads } else { 0 }
    }

    /// Returns the lots, recounts first: they are short, and others wait for them.
    fn recounts_first(&self) -> impl Iterator<Item = (u64, &LeaseEntry)> {
        let lots = |mirrored| self.lots.iter().filter(move |(_, lot)| lot.assignment.mirrored == mirrored);
        lots(true).chain(lots(false)).map(|(&attempt, lot)| (attempt, lot))
    }

    /// Returns the seconds for which what waits will do, or none if the pace of some of it is not known.
    fn waiting_s(&self) -> Option<f64> {
        let waiting = self.lots.values().filter(|lot| !lot.waiting.is_empty());
        waiting
            .map(|lot| {
                let units_per_s = self.paces.get(&lot.assignment.job)?.units_per_s(self.counting_threads());
                let spots = if lot.is_spot() {
                    lot.assignment.sub_ranges.len() as f64 / MOST_SUB_RANGES as f64
                } else {
                    1.0
                };
                (units_per_s > 0.0).then(|| lot.waiting.len() as f64 * spots / units_per_s)
            })
            .sum()
    }

    /// Returns whether the shaders may count a lot. They are slow at small things.
    fn for_shaders(&self, lot: &LeaseEntry) -> bool {
        let Some(decomposition) = &lot.decomposition else { return false };
        let job = decomposition.job();
        job.problem().piece() == Piece::Queen
            && !(lot.is_spot() && self.cpu_counts)
            && lot.assignment.not_kernel.as_deref() != Some(SHADERS)
            && !self.not_for_shaders.contains(&lot.assignment.job)
    }

    fn remove_if_done(&mut self, attempt: u64) {
        if self.lots.get(&attempt).is_some_and(|lot| lot.left() == 0) {
            self.lots.remove(&attempt);
        }
    }
}

/// What a worker has in hand.
#[derive(Debug)]
pub(super) struct WorkQueue {
    ladder: KernelPreference,
    state: Mutex<State>,
    work: Condvar,
    changes: watch::Sender<()>,
}

impl WorkQueue {
    /// An empty shop for so many threads of the CPU, which count if `cpu_counts`, or when no device is left.
    pub(super) fn new(ladder: KernelPreference, cpu_threads: usize, cpu_counts: bool) -> Self {
        let state = State {
            lots: BTreeMap::new(),
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
        Self { ladder, state: Mutex::new(state), work: Condvar::new(), changes: watch::Sender::new(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something, and wakes whoever waits for changes.
    fn change<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let outcome = act(&mut self.state());
        self.work.notify_all();
        self.changes.send_replace(());
        outcome
    }

    /// Tells of every change.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    // The worker's calls.

    /// Takes leases in. Their units wait until they are [planned](Self::planned).
    pub(super) fn assign(&self, leases: impl IntoIterator<Item = Assignment>) {
        self.change(|state| {
            for lease in leases {
                if !state.resting && !state.stopped && !lease.units.is_empty() {
                    state.lots.insert(lease.attempt, LeaseEntry::new(lease));
                }
            }
        });
    }

    /// The units of a lease are known, or it is known that they never will be.
    pub(super) fn planned(&self, attempt: u64, decomposition: Result<Arc<Decomposition>, String>) {
        self.change(|state| {
            let Some(lot) = state.lots.get_mut(&attempt) else { return };
            let checked = decomposition.and_then(|decomposition| {
                check_lease(&lot.assignment, &decomposition)?;
                Ok(decomposition)
            });
            match checked {
                Ok(decomposition) => lot.decomposition = Some(decomposition),
                Err(detail) => Self::give_up(state, attempt, FailReason::Job, detail),
            }
            self.give_up_unsuited(state);
        });
    }

    /// Takes over what the coordinator says of leases that are in hand. Units past the end of one that are not begun are
    /// dropped: they are somebody else's.
    pub(super) fn update(&self, leases: impl IntoIterator<Item = Assignment>) {
        self.change(|state| {
            for lease in leases {
                let attempt = lease.attempt;
                let Some(lot) = state.lots.get_mut(&attempt) else { continue };
                let before = Arc::make_mut(&mut lot.assignment);
                // A lease never grows, and is never of anything else.
                before.units.end = before.units.end.min(lease.units.end).max(before.units.start);
                if !lease.grant.is_empty() {
                    before.grant = lease.grant;
                }
                let end = before.units.end;
                lot.waiting.retain(|&unit| unit < end);
                state.remove_if_done(attempt);
            }
        });
    }

    /// Drops leases: their units that were not begun are never counted, and no more is said of them.
    pub(super) fn cancel(&self, attempts: impl IntoIterator<Item = u64>) {
        self.change(|state| attempts.into_iter().for_each(|attempt| drop(state.lots.remove(&attempt))));
    }

    /// Results that need not be kept any more.
    pub(super) fn acknowledge(&self, results: impl IntoIterator<Item = (u64, u64)>) {
        self.change(|state| {
            for (attempt, unit) in results {
                if let Some(lot) = state.lots.get_mut(&attempt) {
                    lot.kept.remove(&unit);
                    state.remove_if_done(attempt);
                }
            }
            state.acknowledged = true;
        });
    }

    /// Begins to rest: what is being counted is finished, what waits is given back. Or ends it.
    pub(super) fn rest(&self, rest: bool) {
        self.change(|state| {
            if state.resting == rest {
                return;
            }
            state.resting = rest;
            state.urgent = true;
            if rest {
                state.lots.values_mut().for_each(|lot| lot.waiting.clear());
                state.lots.retain(|_, lot| lot.left() > 0);
            }
        });
    }

    /// Ends the threads. What they are at is lost.
    pub(super) fn stop(&self) {
        self.change(|state| {
            state.stopped = true;
            state.lots.clear();
        });
    }

    /// What a sync says. Leases beyond `most_held` are let go.
    pub(super) fn report(&self, most_held: usize) -> Report {
        let mut state = self.state();
        (state.acknowledged, state.urgent) = (false, false);
        let cpu_name = |kind: &KernelKind| kind.name().to_owned();
        let mut kernels: Vec<String> =
            if state.cpu_counts { self.ladder.kinds().iter().map(cpu_name).collect() } else { Vec::new() };
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
            held: state.lots.values().take(most_held).map(LeaseEntry::held).collect(),
            devices: state.devices.clone(),
            cpu_threads,
        }
    }

    /// Returns whether threads have, or soon will have, nothing to do: fewer units wait than are counted at once, or they
    /// will not do for longer than a sync may take.
    pub(super) fn is_hungry(&self) -> bool {
        const SOON_S: f64 = 0.5;
        let state = self.state();
        let waiting: usize = state.lots.values().map(|lot| lot.waiting.len()).sum();
        let capacity = state.capacity();
        capacity > 0 && (waiting < capacity || state.waiting_s().is_some_and(|seconds| seconds < SOON_S))
    }

    /// Whether results were acknowledged since the last report.
    pub(super) fn was_acknowledged(&self) -> bool {
        self.state().acknowledged
    }

    /// The coordinator has something for this worker.
    pub(super) fn hurry(&self) {
        self.change(|state| state.urgent = true);
    }

    /// Whether the coordinator should hear of this worker at once.
    pub(super) fn is_urgent(&self) -> bool {
        self.state().urgent
    }

    /// Whether no lease is in hand.
    pub(super) fn is_empty(&self) -> bool {
        self.state().lots.is_empty()
    }

    /// Units that a thread is at.
    pub(super) fn being_counted(&self) -> usize {
        self.state().lots.values().map(|lot| lot.counting.len()).sum()
    }

    /// The failure that is to be told next; it stays until [`Self::told`].
    pub(super) fn next_failed(&self) -> Option<Failed> {
        self.state().failed.front().cloned()
    }

    /// The next failure was told.
    pub(super) fn told(&self) {
        self.change(|state| drop(state.failed.pop_front()));
    }

    /// Whether anything failed since this was last asked: then more of the same is no hurry.
    pub(super) fn take_failed_lately(&self) -> bool {
        std::mem::take(&mut self.state().failed_lately)
    }

    /// Units that were counted since the start.
    pub(super) fn counted(&self) -> Counted {
        self.state().counted
    }

    /// Why this worker must not count any more.
    pub(super) fn broken(&self) -> Option<String> {
        self.state().broken.clone()
    }

    // The threads.

    /// A unit for a thread of the CPU, and the kernel that is to count it; waits for one. `None`: the thread is to end.
    pub(super) fn take_for_cpu(&self) -> Option<(Batch, KernelKind)> {
        self.wait_for(|state| self.next_for_cpu(state, |_| true))
    }

    /// A unit of which only some sub-ranges are to be counted, if one waits. A thread that is at another unit counts them in
    /// between: an owner that is new may be lent nothing more until it is checked.
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
        let (attempt, kind) = state.recounts_first().find_map(|(attempt, lot)| {
            if lot.waiting.is_empty() || !may(lot) {
                return None;
            }
            let job = lot.decomposition.as_ref()?.job();
            let kind = self.ladder.pick(job, lot.assignment.not_kernel.as_deref())?;
            Some((attempt, kind))
        })?;
        let lot = state.lots.get_mut(&attempt)?;
        let unit = lot.waiting.pop_front()?;
        lot.counting.insert(unit);
        Some((batch(lot, vec![lot.leased(unit)])?, kind))
    }

    /// Units for the device with this number, as many as `size` says of what was measured and of the open units of a
    /// job, one at least; waits for some. `None`: the thread is to end. `size` must not use the shop.
    pub(super) fn take_for_device(
        &self,
        device: usize,
        size: impl Fn(Measured, usize) -> usize,
    ) -> Option<Batch> {
        self.wait_for(|state| {
            let may = |lot: &LeaseEntry| !lot.waiting.is_empty() && state.for_shaders(lot);
            let (_, first) = state.recounts_first().find(|(_, lot)| may(lot))?;
            let (job, image) = (first.assignment.job, first.decomposition.clone()?);
            let of_image = |lot: &LeaseEntry| {
                lot.decomposition.as_ref().is_some_and(|d| Arc::ptr_eq(d, &image)) && may(lot)
            };
            let lots: Vec<u64> =
                state.lots.iter().filter(|(_, lot)| of_image(lot)).map(|(&attempt, _)| attempt).collect();
            let open =
                lots.iter().filter_map(|attempt| state.lots.get(attempt)).map(|lot| lot.waiting.len()).sum();
            let most = size(state.measured(job, device), open).max(1);
            let mut units = Vec::new();
            // From the front: what is not begun of a lease is its end, which the coordinator may give to others.
            for attempt in &lots {
                let Some(lot) = state.lots.get_mut(attempt) else { continue };
                while units.len() < most
                    && let Some(unit) = lot.waiting.pop_front()
                {
                    lot.counting.insert(unit);
                    units.push(lot.leased(unit));
                }
            }
            batch(state.lots.get(lots.first()?)?, units)
        })
    }

    /// Waits until there is work that a device might do. False: there never will be.
    pub(super) fn wait_for_device_work(&self) -> bool {
        let work = |state: &mut State| state.lots.values().any(|lot| state.for_shaders(lot)).then_some(());
        self.wait_for(work).is_some()
    }

    fn wait_for<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        /// Nothing is missed without it: every change wakes those who wait.
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

    /// Units were counted in `elapsed_s` seconds: by a device, with that number, or by a thread of the CPU.
    pub(super) fn finish(&self, batch: &Batch, by: Option<usize>, elapsed_s: f64) {
        self.change(|state| {
            for LeasedUnit { lease, unit } in &batch.units {
                if let Some(lot) = state.lots.get_mut(&lease.attempt)
                    && lot.counting.remove(unit)
                {
                    lot.kept.insert(*unit);
                }
            }
            let count = batch.units.len() as u64;
            if batch.mirrored {
                state.counted.recounts += count;
            } else {
                state.counted.units += count;
            }
            // Another kernel of the CPU than the usual one says nothing about the usual rate, nor do parts of units.
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
            let in_hand: HashSet<JobHash> = state.lots.values().map(|lot| lot.assignment.job).collect();
            state.paces.retain(|job, _| in_hand.contains(job));
        }
    }

    /// What was measured of a job, beside the device with this number.
    pub(super) fn measured(&self, job: JobHash, device: usize) -> Measured {
        self.state().measured(job, device)
    }

    /// Units that somebody took and will not count wait again.
    pub(super) fn give_back(&self, batch: &Batch) {
        self.change(|state| {
            let resting = state.resting;
            // The last one first, so that they wait in their order again.
            for LeasedUnit { lease, unit } in batch.units.iter().rev() {
                if let Some(lot) = state.lots.get_mut(&lease.attempt)
                    && lot.counting.remove(unit)
                    && !resting
                    && lot.assignment.units.contains(unit)
                {
                    lot.waiting.push_front(*unit);
                }
                state.remove_if_done(lease.attempt);
            }
        });
    }

    /// Units that cannot be counted.
    pub(super) fn fail(&self, batch: &Batch, reason: FailReason, detail: &str) {
        self.change(|state| {
            for LeasedUnit { lease, unit } in &batch.units {
                let attempt = lease.attempt;
                if let Some(lot) = state.lots.get_mut(&attempt) {
                    lot.counting.remove(unit);
                }
                let unit = UnitId { job: batch.job, unit: *unit };
                state.failed.push_back(Failed { attempt, unit, reason, detail: detail.to_owned() });
                state.failed_lately = true;
                state.remove_if_done(attempt);
            }
        });
    }

    /// Devices were found, which will count. The number of the first; the others follow.
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

    /// A device does not count any more; where none is left, the CPU does.
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

    /// The shaders count nothing of this job.
    pub(super) fn not_for_shaders(&self, job: JobHash) {
        self.change(|state| {
            state.not_for_shaders.insert(job);
            self.give_up_unsuited(state);
        });
    }

    /// A kernel of the CPU miscounts: nothing that this machine counts can be believed.
    pub(super) fn breaks(&self, why: String) {
        self.change(|state| {
            state.broken.get_or_insert(why);
            state.lots.clear();
            state.stopped = true;
            state.urgent = true;
        });
    }

    /// Whether nothing new is to be begun.
    pub(super) fn is_resting(&self) -> bool {
        self.state().resting
    }

    /// Whether the threads are to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Gives leases back that nothing here may or can count.
    fn give_up_unsuited(&self, state: &mut State) {
        let devices = state.looking || state.alive() > 0;
        let can = |lot: &LeaseEntry| {
            let Some(decomposition) = &lot.decomposition else { return true };
            let by_cpu =
                || self.ladder.pick(decomposition.job(), lot.assignment.not_kernel.as_deref()).is_some();
            (devices && state.for_shaders(lot)) || (state.cpu_counts && by_cpu())
        };
        let unsuited: Vec<u64> =
            state.lots.iter().filter(|(_, lot)| !can(lot)).map(|(&attempt, _)| attempt).collect();
        for attempt in unsuited {
            let detail = "no other kernel here can count it".to_owned();
            Self::give_up(state, attempt, FailReason::Unsuited, detail);
        }
    }

    /// Gives a lease back; one of its units stands for all.
    fn give_up(state: &mut State, attempt: u64, reason: FailReason, detail: String) {
        let Some(lot) = state.lots.remove(&attempt) else { return };
        let Some(&unit) = lot.waiting.front() else { return };
        let unit = UnitId { job: lot.assignment.job, unit };
        state.failed.push_back(Failed { attempt, unit, reason, detail });
        state.failed_lately = true;
    }
}

/// Checks that a job has all that a lease asks for.
///
/// # Errors
/// What it does not have.
fn check_lease(lease: &Assignment, decomposition: &Decomposition) -> Result<(), String> {
    let (last, units) = (lease.units.end.saturating_sub(1), decomposition.units());
    if last >= units {
        return Err(format!("the job has {units} units, and this is unit {last}"));
    }
    let Some(number) = lease.sub_ranges.numbers().last() else { return Ok(()) };
    // All units but the last are of one size.
    let sub_ranges = decomposition.sub_ranges(last).len();
    if number as usize >= sub_ranges {
        return Err(format!("unit {last} has {sub_ranges} sub-ranges, and this is number {number}"));
    }
    Ok(())
}

fn batch(lot: &LeaseEntry, units: Vec<LeasedUnit>) -> Option<Batch> {
    Some(Batch {
        job: lot.assignment.job,
        decomposition: Arc::clone(lot.decomposition.as_ref()?),
        not_kernel: lot.assignment.not_kernel.clone(),
        mirrored: lot.assignment.mirrored,
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

    fn lease(attempt: u64, decomposition: &Decomposition, units: std::ops::Range<u64>) -> Assignment {
        let job = decomposition.job().hash();
        let (sub_ranges, grant) = (SubRangeSet::default(), vec![7, attempt as u8]);
        Assignment { attempt, job, units, mirrored: false, not_kernel: None, sub_ranges, grant }
    }

    /// A recount of some sub-ranges of a unit.
    fn spot(attempt: u64, decomposition: &Decomposition, unit: u64) -> Assignment {
        let sub_ranges = SubRangeSet::from_numbers([1, 4]).expect("below 32");
        Assignment { mirrored: true, sub_ranges, ..lease(attempt, decomposition, unit..unit + 1) }
    }

    /// The units of a batch, each with its lease.
    fn units(batch: &Batch) -> Vec<(u64, u64)> {
        batch.units.iter().map(|LeasedUnit { lease, unit }| (lease.attempt, *unit)).collect()
    }

    fn queue() -> WorkQueue {
        WorkQueue::new(KernelPreference::new(Some(KernelKind::Scalar)).expect("runs everywhere"), 2, true)
    }

    fn take_in(queue: &WorkQueue, decomposition: &Arc<Decomposition>, lease: Assignment) {
        let attempt = lease.attempt;
        queue.assign([lease]);
        queue.planned(attempt, Ok(Arc::clone(decomposition)));
    }

    fn device() -> DeviceSeen {
        DeviceSeen { id: "test-0".into(), name: "a device".into(), fault: None }
    }

    /// What is held, and how much of it is left.
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
        // Twice, or of a lease of an earlier life: that is nothing.
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
        // What comes all the same is not taken.
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
        // Another kernel says nothing about the rate.
        assert_eq!((queue.report(9).units_per_s, queue.counted().recounts), (vec![], 1));
        // Where there is no other one, the coordinator is told.
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
        let ladder = KernelPreference::new(Some(KernelKind::Scalar)).expect("runs everywhere");
        let (queue, queens) = (WorkQueue::new(ladder, 2, false), decomposition(Piece::Queen, 9));
        queue.add_devices([device()]);
        assert_eq!((queue.report(9).capacity, queue.report(9).kernels), (1, vec![SHADERS.to_owned()]));
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
        // Parts of units say nothing about the pace of whole ones.
        queue.finish(&recounts[0], None, 1.0);
        assert_eq!((queue.report(9).units_per_s, queue.counted().recounts), (vec![], 1));
        // Where only a device counts, it counts these, too, and all that is of one image together.
        let ladder = KernelPreference::new(Some(KernelKind::Scalar)).expect("runs everywhere");
        let alone = WorkQueue::new(ladder, 2, false);
        alone.add_devices([device()]);
        for lease in [spot(1, &queens, 3), Assignment { mirrored: true, ..lease(2, &queens, 4..6) }] {
            take_in(&alone, &image, lease);
        }
        let batch = alone.take_for_device(0, |_, _| 100).expect("units");
        assert_eq!(units(&batch), [(1, 3), (2, 4), (2, 5)]);
        alone.finish(&batch, Some(0), 1.0);
        assert_eq!(alone.report(9).units_per_s, []);
        // A device that is lost leaves such a recount to the CPU.
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
        // The same range again changes nothing, nor does one that has grown, or begins elsewhere.
        for same in [2..8, 2..20, 0..8] {
            queue.update([lease(1, &queens, same)]);
            assert_eq!(queue.report(9).held[0].lease.units, 2..8);
        }
        queue.update([Assignment { grant: vec![9], ..lease(1, &queens, 2..4) }, lease(7, &queens, 0..1)]);
        let report = queue.report(9);
        assert_eq!((report.held.len(), report.held[0].left, report.held[0].unstarted), (2, 3, 0));
        assert_eq!((&report.held[0].lease.units, &report.held[0].lease.grant[..]), (&(2..4), &[9][..]));
        // What is past the end and was begun goes on, and its result is kept until it is acknowledged.
        queue.finish(&begun[2], None, 1.0);
        // Unless whoever began it gives it back.
        queue.give_back(&begun[1]);
        assert_eq!(units(&queue.take_for_cpu().expect("a unit").0), [(1, 3)]);
        queue.acknowledge([(1, 2), (1, 4)]);
        assert_eq!(held(&queue), [(1, 1), (2, 1)]);
        // One of which nothing was begun is not held any more.
        queue.update([lease(2, &queens, 8..8)]);
        assert_eq!(held(&queue), [(1, 1)]);
    }

    #[test]
    fn a_shop_is_hungry_before_its_threads_run_out_of_work() {
        let (queue, queens) = (queue(), decomposition(Piece::Queen, 11));
        take_in(&queue, &queens, lease(1, &queens, 0..12));
        let (begun, _) = queue.take_for_cpu().expect("a unit");
        assert!(!queue.is_hungry(), "11 units wait, and nobody knows for how long");
        // Two threads that take 0.1 s each: what waits will do for 0.55 s.
        queue.finish(&begun, None, 0.1);
        assert!(!queue.is_hungry());
        queue.take_for_cpu().expect("a unit");
        queue.take_for_cpu().expect("a unit");
        assert!(queue.is_hungry(), "9 units wait");
        // Of another job nothing is known.
        let other = decomposition(Piece::Queen, 10);
        take_in(&queue, &other, lease(2, &other, 0..3));
        assert!(!queue.is_hungry());
        queue.rest(true);
        assert!(!queue.is_hungry());
    }

    #[test]
    fn threads_end_when_the_shop_stops_or_a_kernel_miscounts() {
        for stop in [WorkQueue::stop as fn(&WorkQueue), |queue| queue.breaks("2 + 2 = 5".into())] {
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
