//! Leases: the current assignment of units to workers. They are volatile; a worker's next sync
//! lists again the leases that it holds.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::ops::Range;

use super::checks::Depth;
use super::key::{Grant, Grantee};
use super::lease::{Assignment, HeldLease, SubRangeSet};
use super::reputation::OwnerId;
use super::state::{Campaign, Event, WorkerState};
use super::units::Status;
use super::{UnitId, WorkerName};
use crate::decomposition::JobHash;

/// Units assigned to a worker until a deadline.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) worker: WorkerName,
    pub(super) job: JobHash,
    pub(super) units: Range<u64>,
    /// Whether it is a recount.
    pub(super) mirrored: bool,
    /// For a recount: the sub-ranges to count; empty for all.
    pub(super) sub_ranges: SubRangeSet,
    /// For a recount: the sum to confirm, in thirds.
    pub(super) thirds: Option<u128>,
    /// Whether other leases contain the same units: recounts, and copies of slow leases.
    pub(super) copy: bool,
    /// Units that the worker had not started at its last sync.
    pub(super) unstarted: u64,
    pub(super) granted_ms: u64,
    pub(super) deadline_ms: u64,
    /// Expected counting time in seconds, if the worker's rate is known.
    pub(super) predicted_s: Option<f64>,
}

impl Lease {
    fn len(&self) -> u64 {
        self.units.end - self.units.start
    }
}

/// A worker's sync request.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncRequest {
    /// The worker.
    pub worker: WorkerName,
    /// Owner that enrolled it.
    pub owner: String,
    /// Address from which it calls.
    pub address: Option<IpAddr>,
    /// Identifier of the worker's start; changes when it restarts.
    pub boot: u64,
    /// Units that it counts at the same time; 0 requests none.
    pub capacity: u32,
    /// Its kernels, the fastest first.
    pub kernels: Vec<String>,
    /// Its devices, as named in its results.
    pub devices: Vec<String>,
    /// Measured rate for each job, in units per second.
    pub units_per_s: Vec<(JobHash, f64)>,
    /// The leases that it holds.
    pub held: Vec<HeldLease>,
    /// Whether it will stop soon and requests no more work.
    pub draining: bool,
}

/// The coordinator's answer to a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncResponse {
    /// All leases that it is to hold, new ones included.
    pub desired: Vec<Assignment>,
    /// Leases that it holds and must drop.
    pub cancel: Vec<u64>,
    /// Number of new leases in `desired`.
    pub granted: usize,
    /// Time until the next sync in ms, before jitter.
    pub next_sync_ms: u64,
}

/// Number of ended leases that are remembered: a worker returns a lease and then reports the
/// failures in it.
const MOST_ENDED: usize = 4096;

/// Upper limit of new leases in one sync.
pub(super) const MOST_GRANTED: u32 = 64;

/// Upper limit of the leases of a worker, in addition to its capacity.
const MOST_LEASES: usize = 128;

/// Upper limit of the kernels and devices that are remembered of a worker.
const MOST_ANNOUNCED: usize = 512;

/// Upper limit of the workers that hold a unit at the same time. A worker of a further owner is
/// admitted up to the same number of owners.
const MOST_COPIES: usize = 3;

/// Returns the maximum number of leases of a worker.
const fn most_leases(request: &SyncRequest) -> usize {
    /// Upper limit of the reported capacity that is taken into account.
    const MOST_CAPACITY: u32 = 1024;
    let capacity = if request.capacity < MOST_CAPACITY { request.capacity } else { MOST_CAPACITY };
    MOST_LEASES + capacity as usize
}

impl Campaign {
    /// Processes a worker's sync: takes note of the leases that it holds, and returns those that it
    /// is to hold.
    pub fn sync(&mut self, request: &SyncRequest, now_ms: u64) -> SyncResponse {
        let next_sync_ms = self.settings.sync_ms;
        self.greet(request, now_ms);
        let mut desired = Vec::new();
        let mut cancel = Vec::new();
        for held in &request.held {
            match self.keep(request, held, now_ms) {
                Some(units) => desired.push(Assignment { units, ..held.lease.clone() }),
                None => cancel.push(held.lease.attempt),
            }
        }
        // End the leases that the worker does not list: it completed or dropped them, or the
        // response that granted them was lost.
        let told: BTreeSet<u64> = request.held.iter().map(|held| held.lease.attempt).collect();
        let forgotten: Vec<u64> = self
            .leases
            .iter()
            .filter(|(attempt, lease)| lease.worker == request.worker && !told.contains(attempt))
            .map(|(&attempt, _)| attempt)
            .collect();
        forgotten.into_iter().for_each(|attempt| self.end_lease(attempt));
        let kept = desired.len();

        let draining = self.workers.get(&request.worker).is_none_or(|worker| worker.draining);
        let quarantined = self.reputation.is_quarantined(&request.worker, &request.owner);
        if request.capacity > 0 && !draining && !quarantined {
            self.draw_checkers(now_ms);
            while desired.len() < (kept + MOST_GRANTED as usize).min(most_leases(request)) {
                let idle = desired.is_empty();
                let Some(assignment) = self.grant(request, idle, now_ms) else { break };
                desired.push(assignment);
            }
        }
        SyncResponse { granted: desired.len() - kept, desired, cancel, next_sync_ms }
    }

    /// Records the worker's description of itself. Drops its leases of an earlier boot.
    fn greet(&mut self, request: &SyncRequest, now_ms: u64) {
        let known = self.workers.get(&request.worker);
        if known.is_some_and(|worker| worker.boot != request.boot) {
            for job in self.jobs.values_mut() {
                job.unsuited.remove(&request.worker);
            }
            let before: Vec<u64> = self
                .leases
                .iter()
                .filter(|(_, l)| l.worker == request.worker)
                .map(|(&a, _)| a)
                .collect();
            before.into_iter().for_each(|attempt| self.drop_lease(attempt));
        }
        self.reputation.owner(&request.worker, &request.owner);
        let drained = self.drained.remove(&request.worker) == Some(request.boot);
        let entry = self.workers.entry(request.worker.clone());
        let worker = entry.or_insert_with(|| WorkerState {
            boot: request.boot,
            owner: String::new(),
            address: None,
            capacity: 0,
            kernels: Vec::new(),
            announced: BTreeSet::new(),
            units_per_s: HashMap::new(),
            seen_ms: now_ms,
            draining: drained,
            units_done: 0,
            lease_units: HashMap::new(),
        });
        if worker.boot != request.boot {
            worker.draining = false;
        }
        worker.boot = request.boot;
        worker.owner.clone_from(&request.owner);
        worker.address = request.address;
        worker.capacity = request.capacity;
        worker.kernels.clone_from(&request.kernels);
        for name in request.kernels.iter().chain(&request.devices) {
            if worker.announced.len() < MOST_ANNOUNCED {
                worker.announced.insert(name.clone());
            }
        }
        worker.seen_ms = now_ms;
        worker.draining |= request.draining;
        let plausible = |rate: &f64| rate.is_finite() && *rate > 0.0;
        worker.units_per_s =
            request.units_per_s.iter().copied().filter(|(_, rate)| plausible(rate)).collect();
        if worker.draining || worker.capacity == 0 {
            self.put_back_all_of(&request.worker);
        }
    }

    /// Returns the units of a lease that the worker may keep, or `None` if it must drop the lease.
    /// An unknown lease is adopted if it is still useful and its grant proves that it was this
    /// worker's.
    fn keep(&mut self, request: &SyncRequest, held: &HeldLease, now_ms: u64) -> Option<Range<u64>> {
        let HeldLease { lease: Assignment { attempt, job: hash, .. }, left, unstarted } = held;
        if self.leases.get(attempt).is_some_and(|lease| lease.worker != request.worker) {
            return None;
        }
        if self.reputation.is_quarantined(&request.worker, &request.owner) || *left == 0 {
            self.end_lease(*attempt);
            return None;
        }
        let deadline_ms = now_ms + self.settings.lease_ms;
        if !self.jobs.get(hash)?.state.is_counted() {
            self.drop_lease(*attempt);
            return None;
        }
        if let Some(lease) = self.leases.get(attempt) {
            // Others have taken all of it, or the check is no longer needed.
            let unneeded =
                lease.mirrored && !self.is_check_leased(*hash, lease.units.start, *attempt);
            if lease.units.is_empty() || unneeded {
                self.end_lease(*attempt);
                return None;
            }
        }
        if let Some(lease) = self.leases.get_mut(attempt) {
            lease.deadline_ms = deadline_ms;
            lease.unstarted = (*unstarted).min(lease.len());
            return Some(lease.units.clone());
        }
        self.adopt(request, held, now_ms)
    }

    /// Adopts a lease that expired or was granted before the coordinator restarted. Others may hold
    /// its units by now.
    fn adopt(
        &mut self,
        request: &SyncRequest,
        held: &HeldLease,
        now_ms: u64,
    ) -> Option<Range<u64>> {
        let HeldLease { lease: Assignment { attempt, job: hash, grant, .. }, unstarted, .. } = held;
        let grantee = Grantee {
            attempt: *attempt,
            worker: &request.worker,
            owner: &request.owner,
            job: hash,
            thirds: None,
        };
        // Recounts are drawn again.
        let Grant { units, .. } = self.key.open(grant, &grantee).filter(|grant| !grant.mirrored)?;
        let in_hand = self.leases.values().filter(|lease| lease.worker == request.worker).count();
        if in_hand >= most_leases(request) {
            return None;
        }
        let room = self.remaining_quota(request);
        let job = self.jobs.get_mut(hash)?;
        let start = held.lease.units.start.max(units.start);
        let end = held
            .lease
            .units
            .end
            .min(units.end)
            .min(start.saturating_add(room))
            .min(job.units.len());
        if start >= end || job.units.adopt(start..end) == 0 {
            return None;
        }
        let lease = Lease {
            worker: request.worker.clone(),
            job: *hash,
            units: start..end,
            mirrored: false,
            sub_ranges: SubRangeSet::default(),
            thirds: None,
            copy: false,
            unstarted: (*unstarted).min(end - start),
            granted_ms: now_ms,
            deadline_ms: now_ms + self.settings.lease_ms,
            predicted_s: None,
        };
        self.leases.insert(*attempt, lease);
        self.note_held(request, *hash, start..end, now_ms);
        Some(start..end)
    }

    /// Returns how many more units a worker may hold; new owners may hold few.
    fn remaining_quota(&self, request: &SyncRequest) -> u64 {
        let Some(owner) = self.reputation.known_owner(&request.worker, &request.owner) else {
            return 0;
        };
        let few = self.settings.new_owner_units;
        if !self.reputation.is_new(owner, few) {
            return u64::MAX;
        }
        let of_owner = |lease: &&Lease| {
            !lease.mirrored
                && self.workers.get(&lease.worker).is_some_and(|worker| {
                    self.reputation.known_owner(&lease.worker, &worker.owner) == Some(owner)
                })
        };
        let leased: u64 = self.leases.values().filter(of_owner).map(Lease::len).sum();
        few.saturating_sub(leased + self.unproven(owner))
    }

    /// Returns the number of units of an owner, in jobs that are being counted, that nobody else
    /// has checked.
    pub(super) fn unproven(&self, owner: OwnerId) -> u64 {
        let counted = self.jobs.values().filter(|job| job.state.is_counted());
        counted.map(|job| job.unproven.get(&owner).copied().unwrap_or_default()).sum()
    }

    /// Records when an owner was first leased these units.
    fn note_held(&mut self, request: &SyncRequest, hash: JobHash, units: Range<u64>, now_ms: u64) {
        let owner = self.reputation.owner(&request.worker, &request.owner);
        let Some(job) = self.jobs.get_mut(&hash) else { return };
        for unit in units {
            let since = job.held_since.entry(unit).or_default();
            if !since.iter().any(|(held_by, _)| *held_by == owner) {
                since.push((owner, now_ms));
            }
        }
    }

    /// Returns the time at which the owner of a lease's worker was first leased a unit, in ms, even
    /// in a lease that it returned.
    pub(super) fn held_since(&self, lease: &Lease, unit: u64) -> u64 {
        let worker = self.workers.get(&lease.worker);
        let owner =
            worker.and_then(|worker| self.reputation.known_owner(&lease.worker, &worker.owner));
        let job = self.jobs.get(&lease.job);
        let since = job
            .and_then(|job| job.held_since.get(&unit)?.iter().find(|(by, _)| Some(*by) == owner));
        since.map_or(lease.granted_ms, |(_, since_ms)| *since_ms)
    }

    fn predicted_s(&self, worker: &str, job: JobHash, units: u64) -> Option<f64> {
        let rate = self.workers.get(worker)?.units_per_s.get(&job)?;
        Some(units as f64 / rate)
    }

    /// Grants a lease: a spot check reserved for the worker; if it holds too few units, a full
    /// check or open units, of the most urgent job first; if it is idle, units that another worker
    /// has not started or is slow to finish.
    fn grant(&mut self, request: &SyncRequest, idle: bool, now_ms: u64) -> Option<Assignment> {
        if let Some(check) = self.grant_check(request, Depth::Spot, now_ms) {
            return Some(check);
        }
        let mut order: Vec<(Reverse<i32>, u64, JobHash)> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.state.is_counted() && !job.unsuited.contains(&request.worker))
            .map(|(&hash, job)| (Reverse(job.priority), job.submitted_ms, hash))
            .collect();
        order.sort_unstable_by_key(|&(priority, age, hash)| (priority, age, hash.to_string()));
        let most_urgent = order.first().map(|&(_, _, hash)| hash)?;
        if !self.may_get_lease(request, most_urgent) {
            return None;
        }
        if let Some(check) = self.grant_check(request, Depth::Full, now_ms) {
            return Some(check);
        }
        for &(_, _, hash) in &order {
            let found = self.grant_open(request, hash, now_ms);
            if found.is_some() {
                return found;
            }
        }
        if !idle {
            return None;
        }
        order.into_iter().find_map(|(_, _, hash)| {
            let taken = self.take_over(request, hash, now_ms);
            taken.or_else(|| self.grant_copy(request, hash, now_ms))
        })
    }

    /// Returns whether a worker may get another lease because it holds fewer units than its next
    /// lease of the job would have.
    fn may_get_lease(&self, request: &SyncRequest, hash: JobHash) -> bool {
        let of_worker = self.leases.values().filter(|lease| lease.worker == request.worker);
        let in_hand: u64 = of_worker
            .filter(|lease| lease.sub_ranges.is_empty())
            .map(|lease| lease.unstarted)
            .sum();
        in_hand < self.lease_units(request, hash)
    }

    /// Returns the number of units of a worker's next lease of a job. The first lease takes about
    /// `first_lease_s` according to the units done so far; each later one is at most twice as large
    /// as one that the worker completed, up to the time of a full lease.
    fn lease_units(&self, request: &SyncRequest, hash: JobHash) -> u64 {
        let Some(worker) = self.workers.get(&request.worker) else { return 1 };
        let Some(job) = self.jobs.get(&hash) else { return 1 };
        let capacity = f64::from(request.capacity.max(1));
        let first = || {
            let unit_s =
                if job.units.done() > 0 { job.counting_s / job.units.done() as f64 } else { 0.0 };
            let in_time = capacity * self.settings.first_lease_s / unit_s.max(1e-3);
            // Nothing is known of the first units of a job.
            if unit_s > 0.0 { in_time.max(1.0) as u64 } else { u64::from(request.capacity.max(1)) }
        };
        let grown = worker.lease_units.get(&hash).copied().unwrap_or_else(first);
        // The cast saturates.
        let in_time =
            worker.units_per_s.get(&hash).map(|rate| (rate * self.settings.lease_s / 2.0) as u64);
        grown.min(in_time.unwrap_or(u64::MAX)).clamp(1, self.settings.most_lease_units.max(1))
    }

    /// Returns a worker's share of the total rate of all active workers, as far as their rates are
    /// known.
    fn share(&self, worker: &str, hash: JobHash, now_ms: u64) -> f64 {
        let at_work: Vec<(&WorkerName, Option<f64>)> = self
            .workers
            .iter()
            .filter(|(name, state)| self.is_at_work(name, state, self.settings.lease_ms, now_ms))
            .map(|(name, state)| (name, state.units_per_s.get(&hash).copied()))
            .collect();
        let known: Vec<f64> = at_work.iter().filter_map(|(_, rate)| *rate).collect();
        // A worker of unknown rate counts as average.
        let usual =
            if known.is_empty() { 1.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
        let total: f64 = at_work.iter().map(|(_, rate)| rate.unwrap_or(usual)).sum();
        let own = at_work
            .iter()
            .find(|(name, _)| *name == worker)
            .map_or(usual, |(_, rate)| rate.unwrap_or(usual));
        own / total.max(own)
    }

    fn lease(
        &mut self,
        request: &SyncRequest,
        job: JobHash,
        units: Range<u64>,
        copy: bool,
        now_ms: u64,
    ) -> Assignment {
        let attempt = self.next_attempt();
        // The leases that it already holds come first.
        let of_worker = self.leases.values().filter(|lease| lease.worker == request.worker);
        let before_s: f64 =
            of_worker.filter_map(|l| self.predicted_s(&request.worker, l.job, l.len())).sum();
        let own_s = self.predicted_s(&request.worker, job, units.end - units.start);
        let predicted_s = own_s.map(|own_s| before_s + own_s);
        let lease = Lease {
            worker: request.worker.clone(),
            job,
            units: units.clone(),
            mirrored: false,
            sub_ranges: SubRangeSet::default(),
            thirds: None,
            copy,
            unstarted: units.end - units.start,
            granted_ms: now_ms,
            deadline_ms: now_ms + self.settings.lease_ms,
            predicted_s,
        };
        self.leases.insert(attempt, lease);
        self.note_held(request, job, units.clone(), now_ms);
        let grant =
            Grant { units: units.clone(), mirrored: false, sub_ranges: SubRangeSet::default() };
        let grantee = Grantee {
            attempt,
            worker: &request.worker,
            owner: &request.owner,
            job: &job,
            thirds: None,
        };
        let grant = self.key.seal(&grant, &grantee);
        let (mirrored, not_kernel, sub_ranges) = (false, None, SubRangeSet::default());
        Assignment { attempt, job, units, mirrored, not_kernel, sub_ranges, grant }
    }

    /// Grants open units: at most the worker's usual number, fewer near the end of the job, fewer
    /// of units of expired leases, and few to a new owner.
    fn grant_open(
        &mut self,
        request: &SyncRequest,
        hash: JobHash,
        now_ms: u64,
    ) -> Option<Assignment> {
        if self.jobs.get(&hash)?.units.open() == 0 {
            return None;
        }
        let room = self.remaining_quota(request);
        if room == 0 {
            return None;
        }
        let mut in_hand =
            self.leases.values().filter(|l| l.worker == request.worker && !l.mirrored).peekable();
        let is_idle = in_hand.peek().is_none();
        // A suspect unit is leased alone, so that a failure can be attributed to it.
        if in_hand.any(|lease| lease.len() == 1 && self.is_suspect(lease.job, lease.units.start)) {
            return None;
        }
        let usual = self.lease_units(request, hash);
        let share = self.share(&request.worker, hash, now_ms);
        let often = self.settings.poison_failures.div_ceil(2);
        let job = self.jobs.get_mut(&hash)?;
        // Units that failed repeatedly on this worker are left to others.
        let avoid: BTreeSet<u64> = job
            .failures
            .iter()
            .filter(|(_, workers)| {
                workers.get(&request.worker).is_some_and(|times| *times >= often)
            })
            .map(|(&unit, _)| unit)
            .collect();
        // Half of the worker's share of the remaining units (Hummel, Schonberg and Flynn,
        // "Factoring", 1992).
        let fair = (job.units.open() as f64 * share / 2.0).ceil() as u64;
        let mut size = usual.min(fair).min(room).max(1);
        let range = job.units.lease(size, &avoid)?;
        if let Some(&smaller) = range.clone().filter_map(|unit| job.suspects.get(&unit)).min()
            && smaller < range.end - range.start
        {
            job.units.release(range, |_| false);
            size = smaller.max(1);
            if size == 1 && !is_idle {
                return None;
            }
            let range = job.units.lease(size, &avoid)?;
            return Some(self.lease(request, hash, range, false, now_ms));
        }
        Some(self.lease(request, hash, range, false, now_ms))
    }

    /// Returns whether a unit of expired leases must be alone in its next lease.
    fn is_suspect(&self, hash: JobHash, unit: u64) -> bool {
        self.jobs.get(&hash).is_some_and(|job| job.suspects.get(&unit) == Some(&1))
    }

    /// Moves units that another worker has not started from the end of its lease into a new one.
    /// Used when no unit is open.
    fn take_over(
        &mut self,
        request: &SyncRequest,
        hash: JobHash,
        now_ms: u64,
    ) -> Option<Assignment> {
        let room = self.remaining_quota(request);
        let usual = self.lease_units(request, hash);
        let own = self.share(&request.worker, hash, now_ms);
        let mut most: Option<(u64, u64, f64)> = None;
        for (&attempt, lease) in &self.leases {
            if lease.job != hash || lease.mirrored || lease.copy || lease.worker == request.worker {
                continue;
            }
            let seen_ms = self.workers.get(&lease.worker)?.seen_ms;
            // Its progress is unknown until its next sync.
            if seen_ms <= lease.granted_ms {
                continue;
            }
            let since_s = now_ms.saturating_sub(seen_ms) as f64 / 1000.0;
            let rate =
                self.workers.get(&lease.worker).and_then(|w| w.units_per_s.get(&hash).copied());
            let begun = (rate.unwrap_or(0.0) * since_s) as u64;
            let left = lease.unstarted.saturating_sub(begun).min(lease.len());
            let left_s = left as f64 / rate.unwrap_or(1.0).max(1e-9);
            if left > 0 && most.is_none_or(|(_, _, most_s)| left_s > most_s) {
                most = Some((attempt, left, left_s));
            }
        }
        let (attempt, left, _) = most?;
        let victim = self.leases.get(&attempt)?;
        let theirs = self.share(&victim.worker, hash, now_ms);
        let taken = (left as f64 * own / (own + theirs)).ceil() as u64;
        let taken = taken.clamp(1, left).min(usual).min(room);
        let (start, end) = (victim.units.end - taken, victim.units.end);
        let job = self.jobs.get(&hash)?;
        // Units that are done need no lease.
        let start = (start..end).find(|&unit| job.units.status(unit) == Some(Status::Leased))?;
        if taken == 0 {
            return None;
        }
        let victim = self.leases.get_mut(&attempt)?;
        victim.units.end = start;
        victim.unstarted = victim.unstarted.saturating_sub(taken);
        Some(self.lease(request, hash, start..end, false, now_ms))
    }

    /// Grants a copy of a unit that another worker holds for longer than predicted, or for longer
    /// than this worker would take.
    fn grant_copy(
        &mut self,
        request: &SyncRequest,
        hash: JobHash,
        now_ms: u64,
    ) -> Option<Assignment> {
        if self.remaining_quota(request) == 0 {
            return None;
        }
        let job = self.jobs.get(&hash)?;
        let own_s = self
            .predicted_s(&request.worker, hash, 1)
            .map(|s| s * f64::from(request.capacity.max(1)));
        let owner_of = |worker: &WorkerName| self.workers.get(worker).map(|worker| &worker.owner);
        // Neither a holder of very long standing nor many workers of one owner may keep others from
        // a unit.
        let age_ms = |l: &Lease, unit| now_ms.saturating_sub(self.held_since(l, unit));
        // A lease of the requesting owner counts from its grant. For other owners, returning a unit
        // and leasing it again does not reset its age.
        let copied_ms = |l: &Lease, unit| match owner_of(&l.worker) {
            Some(owner) if *owner == request.owner => now_ms.saturating_sub(l.granted_ms),
            _ => age_ms(l, unit),
        };
        let may_get_lease = |unit: u64| {
            let of_unit = |l: &&Lease| {
                l.job == hash
                    && !l.mirrored
                    && l.units.contains(&unit)
                    && copied_ms(l, unit) < self.settings.patience_ms
            };
            let holders =
                || self.leases.values().filter(of_unit).map(|lease| owner_of(&lease.worker));
            let owners: BTreeSet<_> = holders().collect();
            let is_new = !owners.contains(&Some(&request.owner));
            holders().count() < MOST_COPIES || is_new && owners.len() < MOST_COPIES
        };
        let has_it = |unit: u64| {
            let its_own =
                |l: &Lease| l.worker == request.worker && l.job == hash && l.units.contains(&unit);
            self.leases.values().any(its_own)
        };
        let late = |lease: &Lease, unit: u64| {
            let took_s = age_ms(lease, unit) as f64 / 1000.0;
            // The prediction rests on the worker's own report, so it is bounded: a worker that
            // reports a low rate must not escape this check.
            let most_s = self.settings.patience_ms as f64 / 1000.0;
            let predicted_s = lease.predicted_s.unwrap_or(self.settings.lease_s).min(most_s);
            took_s > self.settings.straggler * predicted_s
                || own_s.is_some_and(|own_s| took_s > own_s)
        };
        let in_hand = |unit: &u64| job.units.status(*unit) == Some(Status::Leased);
        let mut oldest: Vec<&Lease> = self
            .leases
            .values()
            .filter(|l| l.job == hash && !l.mirrored && l.worker != request.worker)
            .filter(|l| l.units.clone().find(in_hand).is_some_and(|unit| late(l, unit)))
            .collect();
        oldest.sort_by_key(|lease| lease.granted_ms);
        let mut units =
            oldest.into_iter().flat_map(|lease| lease.units.clone().map(move |unit| (lease, unit)));
        let (_, unit) = units.find(|&(lease, unit)| {
            in_hand(&unit) && late(lease, unit) && may_get_lease(unit) && !has_it(unit)
        })?;
        Some(self.lease(request, hash, unit..unit + 1, true, now_ms))
    }

    /// Ends a lease that the worker no longer holds. If all of it is done, the worker's next lease
    /// may be larger.
    fn end_lease(&mut self, attempt: u64) {
        if let Some(lease) = self.leases.get(&attempt)
            && !lease.mirrored
            && let Some(job) = self.jobs.get(&lease.job)
            && lease.units.clone().all(|unit| job.units.status(unit) == Some(Status::Done))
            && let Some(worker) = self.workers.get_mut(&lease.worker)
        {
            let (twice, most) = (2 * lease.len().max(1), self.settings.most_lease_units);
            let next = worker.lease_units.entry(lease.job).or_insert(1);
            *next = (*next).max(twice).min(most.max(1));
        }
        self.drop_lease(attempt);
    }

    /// Returns a lease that ended recently.
    pub(super) fn ended(&self, attempt: u64) -> Option<&Lease> {
        self.ended.get(&attempt)
    }

    /// Ends a lease and opens those of its units that no other lease contains.
    pub(super) fn drop_lease(&mut self, attempt: u64) {
        let Some(lease) = self.leases.remove(&attempt) else { return };
        if self.ended_order.len() == MOST_ENDED
            && let Some(oldest) = self.ended_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
        // An adopted lease may end again.
        if self.ended.insert(attempt, lease.clone()).is_none() {
            self.ended_order.push_back(attempt);
        }
        if lease.mirrored {
            return self.check_lease_ended(&lease, attempt);
        }
        let overlaps = |other: &Lease| {
            other.units.start < lease.units.end && lease.units.start < other.units.end
        };
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

    /// Ends expired leases and advances the jobs. Returns the events for units that are now
    /// poisoned and for jobs that are finished or disputed.
    pub fn tick(&mut self, now_ms: u64) -> Vec<Event> {
        self.started_ms.get_or_insert(now_ms);
        self.ticked_ms = now_ms;
        let expired: Vec<u64> = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.deadline_ms <= now_ms)
            .map(|(&a, _)| a)
            .collect();
        let mut events = Vec::new();
        let mut in_hand: HashMap<WorkerName, usize> = HashMap::new();
        if !expired.is_empty() {
            for lease in
                self.leases.values().filter(|lease| !lease.mirrored && !lease.units.is_empty())
            {
                *in_hand.entry(lease.worker.clone()).or_default() += 1;
            }
        }
        for attempt in expired {
            if let Some(lease) = self.leases.get(&attempt).cloned() {
                self.drop_lease(attempt);
                let alone = in_hand.get(&lease.worker) == Some(&1);
                events.extend(self.suspect(&lease, alone));
            }
        }
        self.expire_kept(now_ms);
        self.put_back_late(now_ms);
        self.draw_checkers(now_ms);
        events.extend(self.conclude());
        events
    }

    /// Returns whether a worker is not quarantined, takes work, and was heard from in the last
    /// `within_ms`.
    pub(super) fn is_at_work(
        &self,
        name: &str,
        worker: &WorkerState,
        within_ms: u64,
        now_ms: u64,
    ) -> bool {
        worker.capacity > 0 && self.is_about(name, worker, within_ms, now_ms)
    }

    /// Returns the same as [`Self::is_at_work`], but also true for a worker whose capacity is 0.
    pub(super) fn is_about(
        &self,
        name: &str,
        worker: &WorkerState,
        within_ms: u64,
        now_ms: u64,
    ) -> bool {
        !worker.draining
            && now_ms.saturating_sub(worker.seen_ms) < within_ms
            && !self.reputation.is_quarantined(name, &worker.owner)
    }

    /// Treats the units of an expired lease as suspects, since one of them may have crashed the
    /// worker: their next leases are ever smaller. A unit that was `alone` with its worker has
    /// failed.
    fn suspect(&mut self, lease: &Lease, alone: bool) -> Option<Event> {
        let count = lease.len();
        if lease.mirrored {
            return None;
        }
        if count == 1 && alone {
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

    /// Marks a worker as having no kernel for the job until it restarts. Drops its lease and its
    /// reservations of checks.
    pub fn unsuited(&mut self, unit: UnitId, attempt: u64, worker: &str) {
        if self.leases.get(&attempt).is_some_and(|lease| lease.worker == worker) {
            self.drop_lease(attempt);
        }
        if let Some(job) = self.jobs.get_mut(&unit.job) {
            job.unsuited.insert(worker.to_owned());
        }
        self.put_back_all_of(worker);
    }

    /// Records that a worker could not count a unit of a lease that it holds or held. Returns an
    /// event if the unit is to be poisoned. Ignores workers that did not have this lease.
    pub fn fail(
        &mut self,
        unit: UnitId,
        attempt: u64,
        worker: &str,
        reason: &str,
    ) -> Option<Event> {
        if self.was_asked(unit, attempt, worker) { self.failed(unit, worker, reason) } else { None }
    }

    /// Returns whether a unit is or was leased to a worker under this number.
    pub fn was_asked(&self, unit: UnitId, attempt: u64, worker: &str) -> bool {
        let lease = self.leases.get(&attempt).or_else(|| self.ended(attempt));
        lease.is_some_and(|lease| {
            lease.worker == worker && lease.job == unit.job && lease.units.contains(&unit.unit)
        })
    }

    fn failed(&mut self, unit: UnitId, worker: &str, reason: &str) -> Option<Event> {
        let settings = self.settings;
        let job = self.jobs.get_mut(&unit.job)?;
        if !matches!(job.units.status(unit.unit)?, Status::Open | Status::Leased) {
            return None;
        }
        let job_owners = job.owners.clone();
        let workers = job.failures.entry(unit.unit).or_default();
        *workers.entry(worker.to_owned()).or_default() += 1;
        let failures: u32 = workers.values().sum();
        let owner = |name: &WorkerName| {
            let owner = self.workers.get(name).map(|worker| &worker.owner[..]).unwrap_or_default();
            self.reputation.known_owner(name, owner)
        };
        let owners: BTreeSet<_> = workers.keys().map(owner).collect();
        // Where several owners count, a single owner cannot poison a unit, however often it reports
        // failures.
        let mut all: BTreeSet<_> = self.workers.keys().map(owner).collect();
        all.extend(job_owners.into_iter().map(Some));
        let of_owner = |one: &Option<OwnerId>| -> u32 {
            workers.iter().filter(|(name, _)| owner(name) == *one).map(|(_, times)| times).sum()
        };
        let most = owners.iter().map(of_owner).max().unwrap_or_default();
        let enough = workers.len() >= settings.poison_workers
            && owners.len() >= all.len().min(settings.poison_workers)
            && (all.len() < 2 || failures - most >= settings.poison_failures / 2);
        let poison = failures >= settings.poison_failures && enough;
        let reason =
            format!("failed {failures} times on {} workers, at last: {reason}", workers.len());
        poison.then_some(Event::UnitPoisoned { unit, reason })
    }

    /// Drains a worker: it gets no more work. Returns false if the worker is unknown.
    pub fn drain(&mut self, worker: &str) -> bool {
        self.put_back_all_of(worker);
        self.workers.get_mut(worker).map(|worker| worker.draining = true).is_some()
    }

    /// Restores the draining of a worker at the start. It applies if the worker returns with the
    /// same boot.
    pub fn restore_draining(&mut self, worker: &str, boot: u64) {
        self.drained.insert(worker.to_owned(), boot);
    }

    /// Returns whether a worker is draining.
    pub fn is_draining(&self, worker: &str) -> bool {
        self.workers.get(worker).is_some_and(|worker| worker.draining)
    }
}
