//! The shop: leases that a worker has in hand, and what each of their units is at. Threads take units from here, and the
//! worker's calls say what is in here. It knows no threads, no network and no disk.
//!
//! A unit of a lease *waits*, is *counted* by a thread, is *kept* until its result is acknowledged, and is then gone.
//! A lease is held as long as any of its units is in here.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::kernels::Ladder;
use crate::board::Piece;
use crate::campaign::{Assignment, Held, UnitId};
use crate::kernel::KernelKind;
use crate::preplacement::{Decomposition, JobHash};
use crate::wire::v1::FailReason;

/// The kernel of devices, as sources name it.
pub(super) const SHADERS: &str = "wgsl";

/// Units to be counted, all of one image of one job.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) job: JobHash,
    pub(super) decomposition: Arc<Decomposition>,
    pub(super) not_kernel: Option<String>,
    pub(super) mirrored: bool,
    /// Each with its lease.
    pub(super) units: Vec<(u64, u64)>,
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
    pub(super) held: Vec<Held>,
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
struct Lot {
    assignment: Assignment,
    /// `None` until it is planned.
    decomposition: Option<Arc<Decomposition>>,
    waiting: VecDeque<u64>,
    counting: BTreeSet<u64>,
    kept: BTreeSet<u64>,
}

impl Lot {
    fn new(assignment: Assignment) -> Self {
        let waiting = assignment.units.clone().collect();
        Self { assignment, decomposition: None, waiting, counting: BTreeSet::new(), kept: BTreeSet::new() }
    }

    fn left(&self) -> usize {
        self.waiting.len() + self.counting.len() + self.kept.len()
    }

    fn held(&self) -> Held {
        let Assignment { attempt, job, units, mirrored, not_kernel } = self.assignment.clone();
        Held { attempt, job, units, left: self.left() as u64, mirrored, not_kernel }
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
    lots: BTreeMap<u64, Lot>,
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
    /// The coordinator should hear of a change at once.
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
        let cpu = if self.cpu_counts { self.cpu_threads } else { 0 };
        cpu + self.alive()
    }

    fn measured(&self, job: JobHash, device: usize) -> Measured {
        let pace = self.paces.get(&job);
        Measured {
            rate: pace.and_then(|pace| pace.devices.get(&device).copied()),
            cpu_unit_s: pace.and_then(|pace| pace.cpu_unit_s),
            cpu_threads: if self.cpu_counts { self.cpu_threads } else { 0 },
        }
    }

    /// Whether the shaders may count a lot.
    fn for_shaders(&self, lot: &Lot) -> bool {
        let Some(decomposition) = &lot.decomposition else { return false };
        let job = decomposition.job();
        job.problem().piece() == Piece::Queen
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
pub(super) struct Shop {
    ladder: Ladder,
    state: Mutex<State>,
    work: Condvar,
    changes: watch::Sender<()>,
}

impl Shop {
    /// An empty shop for so many threads of the CPU, which count if `cpu_counts`, or when no device is left.
    pub(super) fn new(ladder: Ladder, cpu_threads: usize, cpu_counts: bool) -> Self {
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
                    state.lots.insert(lease.attempt, Lot::new(lease));
                }
            }
        });
    }

    /// The units of a lease are known, or it is known that they never will be.
    pub(super) fn planned(&self, attempt: u64, decomposition: Result<Arc<Decomposition>, String>) {
        self.change(|state| {
            let Some(lot) = state.lots.get_mut(&attempt) else { return };
            let last = lot.assignment.units.end;
            let outside = |units| format!("the job has {units} units, and this is unit {}", last - 1);
            let checked = decomposition.and_then(|decomposition| {
                let units = decomposition.units();
                if last <= units { Ok(decomposition) } else { Err(outside(units)) }
            });
            match checked {
                Ok(decomposition) => lot.decomposition = Some(decomposition),
                Err(detail) => Self::give_up(state, attempt, FailReason::Job, detail),
            }
            self.give_up_unsuited(state);
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
        let threads = if state.cpu_counts { state.cpu_threads as f64 } else { 0.0 };
        let rate = |pace: &Pace| {
            pace.cpu_unit_s.map_or(0.0, |unit_s| threads / unit_s) + pace.devices.values().sum::<f64>()
        };
        Report {
            // There are far fewer than 2^32 threads.
            capacity: state.capacity() as u32,
            kernels,
            units_per_s: state.paces.iter().map(|(&job, pace)| (job, rate(pace))).collect(),
            held: state.lots.values().take(most_held).map(Lot::held).collect(),
            devices: state.devices.clone(),
            cpu_threads: if state.cpu_counts { state.cpu_threads } else { 0 },
        }
    }

    /// Whether threads have, or soon will have, nothing to do.
    pub(super) fn is_hungry(&self) -> bool {
        let state = self.state();
        let waiting: usize = state.lots.values().map(|lot| lot.waiting.len()).sum();
        waiting < state.capacity()
    }

    /// Whether results were acknowledged since the last report.
    pub(super) fn was_acknowledged(&self) -> bool {
        self.state().acknowledged
    }

    /// Whether the coordinator should hear of a change at once.
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
        self.wait_for(|state| {
            if !state.cpu_counts {
                return None;
            }
            let (attempt, lot, kind) = state.lots.iter_mut().find_map(|(&attempt, lot)| {
                if lot.waiting.is_empty() {
                    return None;
                }
                let job = lot.decomposition.as_ref()?.job();
                let kind = self.ladder.pick(job, lot.assignment.not_kernel.as_deref())?;
                Some((attempt, lot, kind))
            })?;
            let unit = lot.waiting.pop_front()?;
            lot.counting.insert(unit);
            Some((batch(lot, vec![(attempt, unit)])?, kind))
        })
    }

    /// Units for the device with this number, as many as `size` says of what was measured and of the open units of a
    /// job, from the end, one at least; waits for some. `None`: the thread is to end. `size` must not use the shop.
    pub(super) fn take_for_device(
        &self,
        device: usize,
        size: impl Fn(Measured, usize) -> usize,
    ) -> Option<Batch> {
        self.wait_for(|state| {
            let may = |lot: &Lot| !lot.waiting.is_empty() && state.for_shaders(lot);
            let first = state.lots.values().find(|lot| may(lot))?;
            let (job, image) = (first.assignment.job, first.decomposition.clone()?);
            let of_image =
                |lot: &Lot| lot.decomposition.as_ref().is_some_and(|d| Arc::ptr_eq(d, &image)) && may(lot);
            let lots: Vec<u64> =
                state.lots.iter().filter(|(_, lot)| of_image(lot)).map(|(&attempt, _)| attempt).collect();
            let open =
                lots.iter().filter_map(|attempt| state.lots.get(attempt)).map(|lot| lot.waiting.len()).sum();
            let most = size(state.measured(job, device), open).max(1);
            let mut units = Vec::new();
            for attempt in lots.iter().rev() {
                let Some(lot) = state.lots.get_mut(attempt) else { continue };
                while units.len() < most
                    && let Some(unit) = lot.waiting.pop_back()
                {
                    lot.counting.insert(unit);
                    units.push((*attempt, unit));
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
            for (attempt, unit) in &batch.units {
                if let Some(lot) = state.lots.get_mut(attempt)
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
            // Another kernel of the CPU than the usual one says nothing about the usual rate.
            if by.is_some() || batch.not_kernel.is_none() {
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
            for (attempt, unit) in &batch.units {
                if let Some(lot) = state.lots.get_mut(attempt)
                    && lot.counting.remove(unit)
                    && !resting
                {
                    lot.waiting.push_front(*unit);
                }
                state.remove_if_done(*attempt);
            }
        });
    }

    /// Units that cannot be counted.
    pub(super) fn fail(&self, batch: &Batch, reason: FailReason, detail: &str) {
        self.change(|state| {
            for &(attempt, unit) in &batch.units {
                if let Some(lot) = state.lots.get_mut(&attempt) {
                    lot.counting.remove(&unit);
                }
                let unit = UnitId { job: batch.job, unit };
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
        let can = |lot: &Lot| {
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

fn batch(lot: &Lot, units: Vec<(u64, u64)>) -> Option<Batch> {
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
    use crate::preplacement::{Job, Scheme};

    fn decomposition(piece: Piece, n: usize) -> Arc<Decomposition> {
        let problem = Problem::empty(piece, n);
        let scheme = Scheme::best(&problem);
        Arc::new(Decomposition::new(Job::new(problem, scheme, None, 10).expect("a small board")))
    }

    fn lease(attempt: u64, decomposition: &Decomposition, units: std::ops::Range<u64>) -> Assignment {
        let job = decomposition.job().hash();
        Assignment { attempt, job, units, mirrored: false, not_kernel: None }
    }

    fn shop() -> Shop {
        Shop::new(Ladder::new(Some(KernelKind::Scalar)).expect("runs everywhere"), 2, true)
    }

    fn take_in(shop: &Shop, decomposition: &Arc<Decomposition>, lease: Assignment) {
        let attempt = lease.attempt;
        shop.assign([lease]);
        shop.planned(attempt, Ok(Arc::clone(decomposition)));
    }

    fn device() -> DeviceSeen {
        DeviceSeen { id: "test-0".into(), name: "a device".into(), fault: None }
    }

    /// What is held, and how much of it is left.
    fn held(shop: &Shop) -> Vec<(u64, u64)> {
        shop.report(100).held.iter().map(|held| (held.attempt, held.left)).collect()
    }

    #[test]
    fn a_lease_is_held_until_its_last_result_is_acknowledged() {
        let (shop, queens) = (shop(), decomposition(Piece::Queen, 9));
        assert!(shop.is_hungry() && shop.is_empty());
        take_in(&shop, &queens, lease(7, &queens, 2..4));
        assert!(!shop.is_hungry());
        let (first, kind) = shop.take_for_cpu().expect("a unit");
        assert_eq!((first.units.clone(), kind), (vec![(7, 2)], KernelKind::Scalar));
        assert_eq!((held(&shop), shop.being_counted()), (vec![(7, 2)], 1));
        shop.finish(&first, None, 0.5);
        let (second, _) = shop.take_for_cpu().expect("a unit");
        shop.finish(&second, None, 0.5);
        assert_eq!(held(&shop), [(7, 2)]);
        let report = shop.report(100);
        assert_eq!(report.units_per_s, [(queens.job().hash(), 4.0)]);
        shop.acknowledge([(7, 2)]);
        assert!(shop.was_acknowledged());
        assert_eq!(held(&shop), [(7, 1)]);
        assert!(!shop.was_acknowledged());
        // Twice, or of a lease of an earlier life: that is nothing.
        shop.acknowledge([(7, 2), (1, 1)]);
        shop.acknowledge([(7, 3)]);
        assert!(shop.is_empty());
        assert_eq!(shop.counted(), Counted { units: 2, recounts: 0 });
    }

    #[test]
    fn a_resting_shop_finishes_what_it_has_begun_and_gives_the_rest_back() {
        let (shop, queens) = (shop(), decomposition(Piece::Queen, 9));
        take_in(&shop, &queens, lease(1, &queens, 0..3));
        take_in(&shop, &queens, lease(2, &queens, 3..5));
        let (begun, _) = shop.take_for_cpu().expect("a unit");
        shop.rest(true);
        assert!(shop.is_urgent());
        let report = shop.report(100);
        assert_eq!((report.capacity, report.held.len(), report.held[0].left), (0, 1, 1));
        // What comes all the same is not taken.
        take_in(&shop, &queens, lease(3, &queens, 5..6));
        shop.finish(&begun, None, 1.0);
        assert_eq!(held(&shop), [(1, 1)]);
        shop.acknowledge([(1, 0)]);
        assert!(shop.is_empty() && !shop.is_hungry());
        shop.rest(false);
        assert!(shop.is_urgent() && shop.is_hungry());
        assert_eq!(shop.report(100).capacity, 2);
    }

    #[test]
    fn a_cancelled_lease_is_not_held_though_a_unit_of_it_is_still_counted() {
        let (shop, queens) = (shop(), decomposition(Piece::Queen, 9));
        take_in(&shop, &queens, lease(1, &queens, 0..3));
        let (begun, _) = shop.take_for_cpu().expect("a unit");
        shop.cancel([1]);
        assert!(shop.is_empty());
        shop.finish(&begun, None, 1.0);
        assert!(shop.is_empty());
        shop.give_back(&begun);
        assert!(shop.is_empty());
    }

    #[test]
    fn a_kernel_that_must_not_count_does_not() {
        let (shop, queens) = (shop(), decomposition(Piece::Queen, 12));
        let not = |attempt, kernel: &str| Assignment {
            not_kernel: Some(kernel.to_owned()),
            mirrored: true,
            ..lease(attempt, &queens, 0..1)
        };
        take_in(&shop, &queens, not(1, "scalar"));
        let (batch, kind) = shop.take_for_cpu().expect("a unit");
        assert_eq!(kind, KernelKind::Generic);
        shop.finish(&batch, None, 9.0);
        // Another kernel says nothing about the rate.
        assert_eq!((shop.report(9).units_per_s, shop.counted().recounts), (vec![], 1));
        // Where there is no other one, the coordinator is told.
        let rooks = decomposition(Piece::Rook, 12);
        let job = rooks.job().hash();
        let lease = Assignment { job, ..not(2, "generic") };
        take_in(&shop, &rooks, lease);
        let failed = shop.next_failed().expect("it cannot be counted");
        assert_eq!(
            (failed.attempt, failed.unit, failed.reason),
            (2, UnitId { job, unit: 0 }, FailReason::Unsuited)
        );
        shop.told();
        assert_eq!((shop.next_failed(), held(&shop)), (None, vec![(1, 1)]));
    }

    #[test]
    fn what_is_no_job_or_no_unit_of_it_is_given_back() {
        let (shop, queens) = (shop(), decomposition(Piece::Queen, 9));
        shop.assign([lease(1, &queens, 0..3), lease(2, &queens, 0..queens.units() + 1)]);
        shop.planned(1, Err("what is this".into()));
        shop.planned(2, Ok(Arc::clone(&queens)));
        for attempt in [1, 2] {
            let failed = shop.next_failed().expect("given up");
            assert_eq!((failed.attempt, failed.reason), (attempt, FailReason::Job));
            shop.told();
        }
        assert!(shop.is_empty());
    }

    #[test]
    fn devices_take_many_units_of_one_image_from_the_end_and_the_cpu_one_from_the_front() {
        let (shop, queens) = (shop(), decomposition(Piece::Queen, 9));
        assert_eq!(shop.add_devices([device()]), 0);
        let image = Arc::new(queens.mirrored());
        take_in(&shop, &queens, lease(1, &queens, 0..3));
        take_in(&shop, &image, Assignment { mirrored: true, ..lease(2, &queens, 0..1) });
        take_in(&shop, &queens, lease(3, &queens, 3..5));
        assert_eq!((shop.report(9).capacity, shop.report(9).kernels[0].as_str()), (3, SHADERS));
        let batch = shop.take_for_device(0, |_, open| {
            assert_eq!(open, 5);
            3
        });
        let batch = batch.expect("units");
        assert_eq!(batch.units, [(3, 4), (3, 3), (1, 2)]);
        let (front, _) = shop.take_for_cpu().expect("a unit");
        assert_eq!(front.units, [(1, 0)]);
        shop.give_back(&batch);
        assert_eq!(shop.take_for_device(0, |_, _| 100).expect("units").units.len(), 4);
        // Then the image.
        let image = shop.take_for_device(0, |_, _| 100).expect("units");
        assert_eq!((image.units, image.mirrored), (vec![(2, 0)], true));
    }

    #[test]
    fn where_no_device_is_left_the_cpu_counts() {
        let ladder = Ladder::new(Some(KernelKind::Scalar)).expect("runs everywhere");
        let (shop, queens) = (Shop::new(ladder, 2, false), decomposition(Piece::Queen, 9));
        shop.add_devices([device()]);
        assert_eq!((shop.report(9).capacity, shop.report(9).kernels), (1, vec![SHADERS.to_owned()]));
        // No GPU counts toroidal queens.
        let toroidal = decomposition(Piece::Toroidal, 7);
        take_in(&shop, &toroidal, lease(1, &toroidal, 0..1));
        assert_eq!(shop.next_failed().map(|failed| failed.reason), Some(FailReason::Unsuited));
        take_in(&shop, &queens, lease(2, &queens, 0..2));
        let batch = shop.take_for_device(0, |_, _| 5).expect("units");
        shop.device_gone(0, "it was lost".into());
        shop.give_back(&batch);
        let (unit, _) = shop.take_for_cpu().expect("a unit");
        assert_eq!(unit.units, [(2, 0)]);
        let report = shop.report(9);
        assert_eq!((report.capacity, report.devices[0].fault.as_deref()), (2, Some("it was lost")));
        assert!(report.kernels.iter().all(|kernel| kernel != SHADERS));
    }

    #[test]
    fn threads_end_when_the_shop_stops_or_a_kernel_miscounts() {
        for stop in [Shop::stop as fn(&Shop), |shop| shop.breaks("2 + 2 = 5".into())] {
            let shop = shop();
            std::thread::scope(|scope| {
                let threads = [
                    scope.spawn(|| shop.take_for_cpu().is_none()),
                    scope.spawn(|| shop.take_for_device(0, |_, _| 1).is_none()),
                    scope.spawn(|| !shop.wait_for_device_work()),
                ];
                stop(&shop);
                assert!(threads.into_iter().all(|thread| thread.join().expect("no panic")));
            });
            assert_eq!(shop.report(9).capacity, 0);
        }
    }
}
