//! Leases: who counts which unit at the moment. Volatile; a worker's next sync tells again what it has in hand.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use super::state::{Campaign, Event, Job, JobState, WorkerState};
use super::units::Status;
use super::{UnitId, WorkerName};
use crate::preplacement::JobHash;

/// Units lent to a worker until a deadline.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) worker: WorkerName,
    pub(super) job: JobHash,
    pub(super) units: Range<u64>,
    pub(super) mirrored: bool,
    /// For a recount by the worker that counted first: the kernel that it must not use again.
    pub(super) not_kernel: Option<String>,
    /// Whether others have these units too: recounts, and copies of a straggler's.
    pub(super) copy: bool,
    pub(super) granted_ms: u64,
    pub(super) deadline_ms: u64,
    /// Seconds that it should take, if the worker's rate is known.
    pub(super) predicted_s: Option<f64>,
}

/// Work for a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The lease's number.
    pub attempt: u64,
    /// The job.
    pub job: JobHash,
    /// The units.
    pub units: Range<u64>,
    /// Whether their mirror images are to be counted.
    pub mirrored: bool,
    /// For a recount by the worker that counted first: a kernel that must not be used again.
    pub not_kernel: Option<String>,
}

/// What a worker has in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The lease's number.
    pub attempt: u64,
    /// The job.
    pub job: JobHash,
    /// The units of the lease.
    pub units: Range<u64>,
    /// Units of it whose results were not acknowledged yet. A worker has a lease in hand until there are none.
    pub left: u64,
    /// Whether mirror images are counted.
    pub mirrored: bool,
    /// The kernel that must not be used.
    pub not_kernel: Option<String>,
}

/// A worker's sync.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncRequest {
    /// The worker.
    pub worker: WorkerName,
    /// Changes when the worker restarts.
    pub boot: u64,
    /// Units that it counts at once; 0 asks for nothing.
    pub capacity: u32,
    /// Kernels that it has, the fastest first.
    pub kernels: Vec<String>,
    /// Units a second that it measured, by job.
    pub units_per_s: Vec<(JobHash, f64)>,
    /// What it has in hand.
    pub held: Vec<Held>,
    /// It will stop soon: it asks for nothing more.
    pub draining: bool,
}

/// What a worker is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncResponse {
    /// All that it is to have in hand, new leases included.
    pub desired: Vec<Assignment>,
    /// Leases that it has and is to drop.
    pub cancel: Vec<u64>,
    /// When it is to sync again, in ms from now, before jitter.
    pub next_sync_ms: u64,
}

/// Units that a worker may bring along in a sync, from before a restart of the coordinator, say.
const MOST_ADOPTED: u64 = 1 << 16;

/// Leases that are remembered after their end: a worker gives a lease back and then tells what failed in it.
const MOST_ENDED: usize = 4096;

/// New leases in one sync.
const MOST_GRANTED: u32 = 64;

impl Campaign {
    /// A worker says what it has; it is told what it is to have.
    pub fn sync(&mut self, request: &SyncRequest, now_ms: u64) -> SyncResponse {
        let next_sync_ms = self.settings.sync_ms;
        self.greet(request, now_ms);
        let mut desired = Vec::new();
        let mut cancel = Vec::new();
        let mut work_s = 0.0;
        let mut room = MOST_ADOPTED;
        for held in &request.held {
            if self.keep(request, held, &mut room, now_ms) {
                work_s += self.predicted_s(&request.worker, held.job, held.left).unwrap_or(0.0);
                desired.push(Assignment {
                    attempt: held.attempt,
                    job: held.job,
                    units: held.units.clone(),
                    mirrored: held.mirrored,
                    not_kernel: held.not_kernel.clone(),
                });
            } else {
                cancel.push(held.attempt);
            }
        }
        // A lease that was granted, and the reply lost: it is told again.
        let told: BTreeSet<u64> = request.held.iter().map(|held| held.attempt).collect();
        let forgotten: Vec<u64> = self
            .leases
            .iter()
            .filter(|(attempt, lease)| lease.worker == request.worker && !told.contains(attempt))
            .map(|(&attempt, _)| attempt)
            .collect();
        forgotten.into_iter().for_each(|attempt| self.drop_lease(attempt));

        let draining = self.workers.get(&request.worker).is_none_or(|worker| worker.draining);
        if request.capacity == 0 || draining || self.trust.is_quarantined(&request.worker) {
            return SyncResponse { desired, cancel, next_sync_ms };
        }
        let mut granted = 0;
        while granted < MOST_GRANTED && (desired.is_empty() || work_s < self.settings.lease_s / 2.0) {
            granted += 1;
            let Some(assignment) = self.grant(request, desired.is_empty(), now_ms) else { break };
            let units = assignment.units.end - assignment.units.start;
            let unknown = self.settings.lease_s / 2.0;
            work_s += self.predicted_s(&request.worker, assignment.job, units).unwrap_or(unknown);
            desired.push(assignment);
        }
        SyncResponse { desired, cancel, next_sync_ms }
    }

    /// Remembers what the worker says of itself; leases of an earlier boot are void.
    fn greet(&mut self, request: &SyncRequest, now_ms: u64) {
        let known = self.workers.get(&request.worker);
        if known.is_some_and(|worker| worker.boot != request.boot) {
            for job in self.jobs.values_mut() {
                job.one_kernel.remove(&request.worker);
                job.unsuited.remove(&request.worker);
            }
            let before: Vec<u64> =
                self.leases.iter().filter(|(_, l)| l.worker == request.worker).map(|(&a, _)| a).collect();
            before.into_iter().for_each(|attempt| self.drop_lease(attempt));
        }
        let entry = self.workers.entry(request.worker.clone());
        let worker = entry.or_insert_with(|| WorkerState {
            boot: request.boot,
            capacity: 0,
            kernels: Vec::new(),
            units_per_s: Default::default(),
            seen_ms: now_ms,
            draining: false,
            units_done: 0,
        });
        if worker.boot != request.boot {
            worker.draining = false;
        }
        worker.boot = request.boot;
        worker.capacity = request.capacity;
        worker.kernels.clone_from(&request.kernels);
        worker.seen_ms = now_ms;
        worker.draining |= request.draining;
        let plausible = |rate: &f64| rate.is_finite() && *rate > 0.0;
        worker.units_per_s =
            request.units_per_s.iter().copied().filter(|(_, rate)| plausible(rate)).collect();
    }

    /// Whether the worker may keep a lease; one that is not known any more is adopted if it is still of use.
    /// `room` is how many units may yet be adopted.
    fn keep(&mut self, request: &SyncRequest, held: &Held, room: &mut u64, now_ms: u64) -> bool {
        let owner = self.leases.get(&held.attempt).map(|lease| &lease.worker);
        if owner.is_some_and(|owner| *owner != request.worker) {
            return false;
        }
        if self.trust.is_quarantined(&request.worker) || held.left == 0 {
            self.drop_lease(held.attempt);
            return false;
        }
        let deadline_ms = now_ms + self.settings.lease_ms;
        let Some(job) = self.jobs.get_mut(&held.job) else { return false };
        if job.state != JobState::Running {
            self.drop_lease(held.attempt);
            return false;
        }
        if let Some(lease) = self.leases.get_mut(&held.attempt) {
            lease.deadline_ms = deadline_ms;
            return true;
        }
        // Only what could have been granted is adopted. Recounts are granted anew: whoever says that it was asked for
        // one is not believed.
        let size = held.units.end.saturating_sub(held.units.start);
        let granted = held.attempt < self.next_attempt && size <= self.settings.most_lease_units;
        if held.mirrored || !granted || size > *room {
            return false;
        }
        *room -= size;
        // It expired, or the coordinator restarted. The units may be in the hands of another by now.
        let end = held.units.end.min(job.units.len());
        let start = held.units.start.min(end);
        let of_use = job.units.adopt(start..end) > 0;
        if of_use {
            let lease = Lease {
                worker: request.worker.clone(),
                job: held.job,
                units: start..end,
                mirrored: false,
                not_kernel: None,
                copy: false,
                granted_ms: now_ms,
                deadline_ms,
                predicted_s: None,
            };
            self.leases.insert(held.attempt, lease);
        }
        of_use
    }

    fn predicted_s(&self, worker: &str, job: JobHash, units: u64) -> Option<f64> {
        let rate = self.workers.get(worker)?.units_per_s.get(&job)?;
        Some(units as f64 / rate)
    }

    /// A new lease: a recount that is due, else open units of the most urgent job, else, if the worker would be idle, a
    /// copy of what a straggler has.
    fn grant(&mut self, request: &SyncRequest, idle: bool, now_ms: u64) -> Option<Assignment> {
        let mut order: Vec<(Reverse<i32>, u64, JobHash)> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.state == JobState::Running && !job.unsuited.contains(&request.worker))
            .map(|(&hash, job)| (Reverse(job.priority), job.submitted_ms, hash))
            .collect();
        order.sort_unstable_by_key(|&(priority, age, hash)| (priority, age, hash.to_string()));
        for (_, _, hash) in order {
            let found = self.grant_recount(request, hash, now_ms);
            let found = found.or_else(|| self.grant_open(request, hash, now_ms));
            let copy = || idle.then(|| self.grant_straggler(request, hash, now_ms)).flatten();
            let found = found.or_else(copy);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn lease(
        &mut self,
        request: &SyncRequest,
        job: JobHash,
        units: Range<u64>,
        (mirrored, copy): (bool, bool),
        now_ms: u64,
    ) -> Assignment {
        let attempt = self.next_attempt;
        self.next_attempt += 1;
        // What it has in hand already goes first.
        let of_worker = self.leases.values().filter(|lease| lease.worker == request.worker);
        let before_s: f64 = of_worker
            .filter_map(|l| self.predicted_s(&request.worker, l.job, l.units.end - l.units.start))
            .sum();
        let own_s = self.predicted_s(&request.worker, job, units.end - units.start);
        let predicted_s = own_s.map(|own_s| before_s + own_s);
        let lease = Lease {
            worker: request.worker.clone(),
            job,
            units: units.clone(),
            mirrored,
            not_kernel: None,
            copy,
            granted_ms: now_ms,
            deadline_ms: now_ms + self.settings.lease_ms,
            predicted_s,
        };
        self.leases.insert(attempt, lease);
        Assignment { attempt, job, units, mirrored, not_kernel: None }
    }

    /// The oldest recount that is due and that this worker may make: of another worker's unit, or of its own with
    /// another kernel if it is alone.
    fn grant_recount(&mut self, request: &SyncRequest, hash: JobHash, now_ms: u64) -> Option<Assignment> {
        /// Entries that are looked at; more would make a sync slow.
        const LOOK_AT: usize = 256;
        let others = self.workers.iter().filter(|(name, _)| **name != request.worker);
        let lease_ms = self.settings.lease_ms;
        let unsuited =
            |name: &WorkerName| self.jobs.get(&hash).is_some_and(|job| job.unsuited.contains(name));
        let alone = !others
            .into_iter()
            .any(|(name, worker)| !unsuited(name) && self.is_at_work(name, worker, lease_ms, now_ms));
        let being_checked: BTreeSet<u64> = self
            .leases
            .values()
            .filter(|lease| lease.mirrored && lease.job == hash)
            .map(|lease| lease.units.start)
            .collect();
        let job = self.jobs.get_mut(&hash)?;
        let unchecked =
            |job: &Job, unit: u64| job.units.outcome(unit).is_some_and(|outcome| outcome.checker.is_none());
        while job.to_check.front().is_some_and(|&unit| !unchecked(job, unit)) {
            job.to_check.pop_front();
        }
        let (unit, not_kernel) = job.to_check.iter().take(LOOK_AT).copied().find_map(|unit| {
            let outcome = job.units.outcome(unit).filter(|outcome| outcome.checker.is_none())?;
            let first = self.trust.source(outcome.source);
            if being_checked.contains(&unit) || job.disputes.contains_key(&unit) {
                return None;
            }
            if first.worker != request.worker {
                return Some((unit, None));
            }
            let another = request.kernels.iter().any(|kernel| *kernel != first.kernel)
                && !job.one_kernel.contains(&request.worker);
            (alone && another).then(|| (unit, Some(first.kernel.clone())))
        })?;
        let assignment = self.lease(request, hash, unit..unit + 1, (true, true), now_ms);
        if let Some(lease) = self.leases.get_mut(&assignment.attempt) {
            lease.not_kernel.clone_from(&not_kernel);
        }
        Some(Assignment { not_kernel, ..assignment })
    }

    /// Open units: as many as the worker counts in the time of a lease, fewer near the end, fewer of those that were in
    /// leases that expired, and fewer as long as all that it counts is counted again: the sooner others have done that
    /// with its first units, the fewer there are.
    fn grant_open(&mut self, request: &SyncRequest, hash: JobHash, now_ms: u64) -> Option<Assignment> {
        let active = self.workers.values().filter(|worker| worker.capacity > 0).count() as u64;
        let rate = self.workers.get(&request.worker)?.units_per_s.get(&hash).copied();
        let (lease_s, most) = (self.settings.lease_s, self.settings.most_lease_units);
        let capacity = u64::from(request.capacity);
        let proven = self.trust.is_proven(&request.worker, &self.settings);
        let most = if proven { most } else { most.min(self.settings.full_check.max(capacity)) };
        let often = self.settings.poison_failures.div_ceil(2);
        let job = self.jobs.get_mut(&hash)?;
        // What failed here again and again is for others.
        let avoid: BTreeSet<u64> = job
            .failures
            .iter()
            .filter(|(_, workers)| workers.get(&request.worker).is_some_and(|times| *times >= often))
            .map(|(&unit, _)| unit)
            .collect();
        // The cast saturates.
        let in_time = rate.map_or(capacity, |rate| (rate * lease_s) as u64).max(capacity);
        let share = job.units.open().div_ceil(2 * active.max(1));
        let mut size = in_time.min(share.max(capacity)).clamp(1, most.max(1));
        let range = job.units.lease(size, &avoid)?;
        if let Some(&smaller) = range.clone().filter_map(|unit| job.suspects.get(&unit)).min()
            && smaller < range.end - range.start
        {
            job.units.release(range, |_| false);
            size = smaller.max(1);
            let range = job.units.lease(size, &avoid)?;
            return Some(self.lease(request, hash, range, (false, false), now_ms));
        }
        Some(self.lease(request, hash, range, (false, false), now_ms))
    }

    /// Near the end: a unit of a lease that takes too long, once for each lease.
    fn grant_straggler(&mut self, request: &SyncRequest, hash: JobHash, now_ms: u64) -> Option<Assignment> {
        let job = self.jobs.get(&hash)?;
        if job.units.open() > 0 {
            return None;
        }
        let copied = |unit: u64| {
            self.leases.values().any(|l| l.job == hash && l.copy && !l.mirrored && l.units.contains(&unit))
        };
        let late = |lease: &Lease| {
            let took_s = now_ms.saturating_sub(lease.granted_ms) as f64 / 1000.0;
            let predicted_s = lease.predicted_s.unwrap_or(self.settings.lease_s);
            took_s > self.settings.straggler * predicted_s
        };
        let unit = self
            .leases
            .values()
            .filter(|l| l.job == hash && !l.copy && l.worker != request.worker && late(l))
            .flat_map(|lease| lease.units.clone())
            .find(|&unit| job.units.status(unit) == Some(Status::Leased) && !copied(unit))?;
        Some(self.lease(request, hash, unit..unit + 1, (false, true), now_ms))
    }

    /// Ends a lease; its units that nobody else has are open again.
    pub(super) fn drop_lease(&mut self, attempt: u64) {
        let Some(lease) = self.leases.remove(&attempt) else { return };
        if self.ended.len() == MOST_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((attempt, lease.clone()));
        if lease.mirrored {
            return;
        }
        let overlaps =
            |other: &Lease| other.units.start < lease.units.end && lease.units.start < other.units.end;
        let others: Vec<Range<u64>> = self
            .leases
            .values()
            .filter(|other| other.job == lease.job && !other.mirrored && overlaps(other))
            .map(|other| other.units.clone())
            .collect();
        if let Some(job) = self.jobs.get_mut(&lease.job) {
            job.units.release(lease.units, |unit| others.iter().any(|range| range.contains(&unit)));
        }
    }

    /// Lets leases expire, and says which jobs are finished and which units are to be set aside.
    pub fn tick(&mut self, now_ms: u64) -> Vec<Event> {
        self.started_ms.get_or_insert(now_ms);
        let expired: Vec<u64> =
            self.leases.iter().filter(|(_, lease)| lease.deadline_ms <= now_ms).map(|(&a, _)| a).collect();
        let mut events = Vec::new();
        for attempt in expired {
            if let Some(lease) = self.leases.get(&attempt).cloned() {
                self.drop_lease(attempt);
                events.extend(self.suspect(&lease));
            }
        }
        for (&hash, job) in &self.jobs {
            let all_done = job.units.done() == job.units.len();
            let settled = all_done && job.disputes.is_empty();
            if job.state == JobState::Running && settled && !self.checks_due(job, now_ms) {
                events.push(Event::JobState { job: hash, state: JobState::Finished });
            }
        }
        events
    }

    /// Whether a worker that is believed was heard of in the last `within_ms`, and takes work.
    fn is_at_work(&self, name: &str, worker: &WorkerState, within_ms: u64, now_ms: u64) -> bool {
        worker.capacity > 0 && self.is_about(name, worker, within_ms, now_ms)
    }

    /// The same, also if it rests at the moment.
    fn is_about(&self, name: &str, worker: &WorkerState, within_ms: u64, now_ms: u64) -> bool {
        !worker.draining
            && now_ms.saturating_sub(worker.seen_ms) < within_ms
            && !self.trust.is_quarantined(name)
    }

    /// Whether a recount is due that somebody can make; after a start, whoever was there before may yet come back.
    fn checks_due(&self, job: &Job, now_ms: u64) -> bool {
        let patience_ms = self.settings.patience_ms;
        let just_started = self.started_ms.is_none_or(|started| now_ms.saturating_sub(started) < patience_ms);
        let at_work: Vec<(&WorkerName, &WorkerState)> = self
            .workers
            .iter()
            .filter(|(name, worker)| self.is_about(name, worker, patience_ms, now_ms))
            .collect();
        job.to_check.iter().any(|&unit| {
            job.units.outcome(unit).filter(|outcome| outcome.checker.is_none()).is_some_and(|outcome| {
                let first = self.trust.source(outcome.source);
                let can = |(name, worker): &(&WorkerName, &WorkerState)| {
                    let another = || {
                        worker.kernels.iter().any(|kernel| *kernel != first.kernel)
                            && !job.one_kernel.contains(*name)
                    };
                    !job.unsuited.contains(*name) && (**name != first.worker || another())
                };
                just_started || at_work.iter().any(can)
            })
        })
    }

    /// Units of a lease that expired may be what killed its worker: they go in ever smaller leases, and one that is
    /// alone in its lease has failed.
    fn suspect(&mut self, lease: &Lease) -> Option<Event> {
        let count = lease.units.end - lease.units.start;
        if lease.mirrored {
            return None;
        }
        if count == 1 {
            let unit = UnitId { job: lease.job, unit: lease.units.start };
            return self.failed(unit, &lease.worker, "its lease expired");
        }
        let job = self.jobs.get_mut(&lease.job)?;
        for unit in lease.units.clone() {
            if job.units.status(unit) == Some(Status::Open) {
                job.suspects.insert(unit, count.div_ceil(4));
            }
        }
        None
    }

    /// A worker has no kernel that can count a unit as its lease says: it is not asked again until it restarts.
    pub fn unsuited(&mut self, unit: UnitId, attempt: u64, worker: &str) {
        let own = self.leases.get(&attempt).filter(|lease| lease.mirrored).is_some_and(|lease| {
            let first = self.jobs.get(&lease.job).and_then(|job| job.units.outcome(lease.units.start));
            first.is_some_and(|first| self.trust.source(first.source).worker == worker)
        });
        if self.leases.get(&attempt).is_some_and(|lease| lease.worker == worker) {
            self.drop_lease(attempt);
        }
        if let Some(job) = self.jobs.get_mut(&unit.job) {
            if own { &mut job.one_kernel } else { &mut job.unsuited }.insert(worker.to_owned());
        }
    }

    /// A worker could not count a unit of a lease that it has or had. Says so if the unit is to be set aside now. Whoever was
    /// not asked is not heard.
    pub fn fail(&mut self, unit: UnitId, attempt: u64, worker: &str, reason: &str) -> Option<Event> {
        let ended = || self.ended.iter().rev().find(|(ended, _)| *ended == attempt).map(|(_, lease)| lease);
        let lease = self.leases.get(&attempt).or_else(ended)?;
        let asked = lease.worker == worker && lease.job == unit.job && lease.units.contains(&unit.unit);
        if asked { self.failed(unit, worker, reason) } else { None }
    }

    fn failed(&mut self, unit: UnitId, worker: &str, reason: &str) -> Option<Event> {
        let settings = self.settings;
        let job = self.jobs.get_mut(&unit.job)?;
        if !matches!(job.units.status(unit.unit)?, Status::Open | Status::Leased) {
            return None;
        }
        let workers = job.failures.entry(unit.unit).or_default();
        *workers.entry(worker.to_owned()).or_default() += 1;
        let failures: u32 = workers.values().sum();
        let poison = failures >= settings.poison_failures && workers.len() >= settings.poison_workers;
        let reason = format!("failed {failures} times on {} workers, at last: {reason}", workers.len());
        poison.then_some(Event::UnitPoisoned { unit, reason })
    }

    /// Every unit that nobody confirmed is to be counted again: some result of the job is wrong.
    pub fn recount_all(&mut self, job: JobHash) {
        let Some(job) = self.jobs.get_mut(&job) else { return };
        let unconfirmed = job.units.outcomes().filter(|(_, outcome)| outcome.checker.is_none());
        job.to_check = unconfirmed.map(|(unit, _)| unit).collect();
    }

    /// A worker is to take nothing more. False if it is not known.
    pub fn drain(&mut self, worker: &str) -> bool {
        self.workers.get_mut(worker).map(|worker| worker.draining = true).is_some()
    }

    /// Whether a worker takes nothing more.
    pub fn is_draining(&self, worker: &str) -> bool {
        self.workers.get(worker).is_some_and(|worker| worker.draining)
    }
}
