//! Checks: which units are recounted, to what extent, and by which worker.
//!
//! A *spot check* recounts some sub-ranges of a unit, drawn after the unit's sums of all its
//! sub-ranges are known; a *full check* recounts the whole unit. The checks of a result are decided
//! when it is validated, by a draw that no worker can predict. The checker is drawn as well, from
//! the workers of other owners and in proportion to the units that they have counted; the check is
//! then reserved for it for a limited time. Asking first gives no advantage. Checks that no worker
//! can make are made by the coordinator's arbiter, which also audits a share of all units.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;

use super::key::{Grant, Grantee};
use super::lease::{Assignment, SubRangeSet};
use super::leases::{Lease, SyncRequest};
use super::reputation::OwnerId;
use super::state::{Campaign, Job, JobState, WorkerState};
use super::{UnitId, WorkerName};
use crate::decomposition::JobHash;

/// The extent of a recount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// Some sub-ranges.
    Spot,
    /// The whole unit.
    Full,
}

/// The checks drawn for a unit when it was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CheckPlan {
    /// The check by a worker of another owner.
    pub peer: Option<Depth>,
    /// The check by the coordinator.
    pub audit: Option<Depth>,
}

impl CheckPlan {
    /// Returns whether the sums of the unit's sub-ranges will be needed.
    pub fn has_spot(self) -> bool {
        self.peer == Some(Depth::Spot) || self.audit == Some(Depth::Spot)
    }
}

/// A pending check by a worker.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) depth: Depth,
    /// Source that confirmed the unit before it became doubtful again, by number; a worker of
    /// another owner must check it now.
    pub(super) vouched: Option<u32>,
    /// Worker for which the check is reserved, and the end of the reservation in ms.
    drawn: Option<(WorkerName, u64)>,
    /// Start of the lease or, if there is none, of the reservation, in ms.
    since_ms: u64,
    /// Lease under which the check is being made.
    leased: Option<u64>,
    /// Last worker that did not make it in time.
    missed: Option<WorkerName>,
    /// Number of times that a worker did not make it in time.
    misses: u32,
}

impl Check {
    pub(super) const fn new(depth: Depth, vouched: Option<u32>) -> Self {
        Self { depth, vouched, drawn: None, since_ms: 0, leased: None, missed: None, misses: 0 }
    }
}

/// The pending checks of a job.
#[derive(Debug, Default)]
pub(super) struct Checks {
    due: BTreeMap<u64, Check>,
    /// Units whose check is neither reserved nor leased.
    undrawn: BTreeSet<u64>,
    /// Unit at which the next scan of `undrawn` begins.
    cursor: u64,
    /// Unit at which the arbiter's next scan of `undrawn` begins.
    pub(super) orphans_from: u64,
    /// Pending checks by the coordinator.
    audits: BTreeMap<u64, Depth>,
    /// Number of full audits among them.
    full_audits: usize,
}

impl Checks {
    /// Adds a check, or deepens the pending one.
    pub(super) fn insert(&mut self, unit: u64, check: Check) {
        match self.due.get_mut(&unit) {
            Some(known) => {
                known.depth = known.depth.max(check.depth);
                known.vouched = known.vouched.or(check.vouched);
            }
            None => {
                self.due.insert(unit, check);
                self.undrawn.insert(unit);
            }
        }
    }

    pub(super) fn insert_audit(&mut self, unit: u64, depth: Depth) {
        let known = self.audits.get(&unit).copied();
        if known.is_none_or(|known| known < depth) {
            self.full_audits += usize::from(depth == Depth::Full);
            self.audits.insert(unit, depth);
        }
    }

    pub(super) fn remove(&mut self, unit: u64) -> Option<Check> {
        self.undrawn.remove(&unit);
        self.due.remove(&unit)
    }

    pub(super) fn remove_audit(&mut self, unit: u64) {
        if self.audits.remove(&unit) == Some(Depth::Full) {
            self.full_audits -= 1;
        }
    }

    pub(super) fn get(&self, unit: u64) -> Option<&Check> {
        self.due.get(&unit)
    }

    /// Returns the first pending audit that is not skipped.
    pub(super) fn first_audit(&self, skip: impl Fn(u64) -> bool) -> Option<(u64, Depth)> {
        self.audits.iter().map(|(&unit, &depth)| (unit, depth)).find(|&(unit, _)| !skip(unit))
    }

    /// Returns a pending check, preferably a spot check, whether or not it is reserved.
    pub(super) fn shallowest(&self, skip: impl Fn(u64) -> bool) -> Option<(u64, Depth)> {
        let due = || {
            self.due
                .iter()
                .filter(|(unit, _)| !skip(**unit))
                .map(|(&unit, check)| (unit, check.depth))
        };
        due().find(|(_, depth)| *depth == Depth::Spot).or_else(|| due().next())
    }

    /// Returns the checks that are not reserved, starting at a unit.
    pub(super) fn undrawn_from(&self, unit: u64) -> impl Iterator<Item = (u64, &Check)> {
        self.undrawn.range(unit..).filter_map(|unit| Some((*unit, self.due.get(unit)?)))
    }

    pub(super) fn len(&self) -> usize {
        self.due.len()
    }

    pub(super) fn audits(&self) -> usize {
        self.audits.len()
    }

    /// Returns whether a unit has a pending check by a worker or the coordinator.
    pub(super) fn is_due(&self, unit: u64) -> bool {
        self.due.contains_key(&unit) || self.audits.contains_key(&unit)
    }

    /// Removes all pending checks.
    pub(super) fn clear(&mut self) {
        *self = Self { cursor: self.cursor, orphans_from: self.orphans_from, ..Self::default() };
    }
}

/// A worker that may be drawn as a checker.
struct Candidate {
    worker: WorkerName,
    owner: OwnerId,
    address: Option<IpAddr>,
    weight: f64,
}

/// Number of pending full audits at which no more are drawn.
const MOST_FULL_AUDITS: usize = 8;
/// Number of pending audits at which no more are drawn.
const MOST_AUDITS: usize = 32;
/// Missed deadlines after which an urgent check goes to the coordinator.
const MOST_MISSES: u32 = 2;
/// Checks for which one call draws a checker.
const MOST_DRAWN: usize = 256;

impl Campaign {
    /// Returns the checks that a result needs. The draws are the same for the same result, but an
    /// audit is also subject to the current limits.
    pub(super) fn plan_checks(
        &self,
        unit: UnitId,
        owner: Option<OwnerId>,
        itemised: bool,
        worker: &str,
    ) -> CheckPlan {
        let Some(job) = self.jobs.get(&unit.job) else { return CheckPlan::default() };
        let settings = &self.settings;
        let new = owner.is_none_or(|owner| self.reputation.is_new(owner, settings.new_owner_units));
        let draw = |purpose: &str| {
            let fields = [&unit.job.to_bytes()[..], &unit.unit.to_be_bytes(), worker.as_bytes()];
            self.key.draw(purpose, &fields)
        };
        let full = self.target(job).max(settings.full_check);
        let peer = if draw("full check") < full {
            Some(Depth::Full)
        } else if new || draw("spot check") < settings.spot_check {
            Some(if itemised { Depth::Spot } else { Depth::Full })
        } else {
            None
        };
        let owners = job.owners.len().max(1) as f64;
        let some = settings.owner_audits as f64;
        let while_new = if new { some / settings.new_owner_units.max(1) as f64 } else { 0.0 };
        let spot = while_new.max(some * owners / job.units.len().max(1) as f64);
        let room_for_full = self.has_room_for_full_audits(job);
        let audit = if room_for_full && draw("audit") < settings.audit {
            Some(Depth::Full)
        } else if draw("spot audit") < spot.max(settings.audit) {
            // Without sums of sub-ranges, only a full audit is possible.
            let few = job.checks.full_audits < MOST_FULL_AUDITS;
            if itemised { Some(Depth::Spot) } else { few.then_some(Depth::Full) }
        } else {
            None
        };
        let audit = audit.filter(|_| job.checks.audits.len() < MOST_AUDITS);
        CheckPlan { peer, audit }
    }

    /// Returns whether another full audit may be added. Pending full audits must not delay a job
    /// for long once everything else is done.
    fn has_room_for_full_audits(&self, job: &Job) -> bool {
        const AT_LEAST_S: f64 = 1.0;
        const OF_ELAPSED: f64 = 0.02;
        let elapsed_s = self.ticked_ms.saturating_sub(job.submitted_ms) as f64 / 1000.0;
        let (arbiter_s, arbiter_units) = job.arbiter;
        // The time of an audit is unknown until the arbiter has counted something.
        let unit_s = if arbiter_units > 0.0 { arbiter_s / arbiter_units } else { 0.0 };
        let waiting = job.checks.full_audits;
        waiting < MOST_FULL_AUDITS
            && waiting as f64 * unit_s <= AT_LEAST_S.max(OF_ELAPSED * elapsed_s)
    }

    /// Returns the active workers that may check units of a job.
    fn candidates(&self, job: &Job, now_ms: u64) -> Vec<Candidate> {
        let lease_ms = self.settings.lease_ms;
        let mut candidates: Vec<Candidate> = self
            .workers
            .iter()
            .filter(|(name, worker)| {
                !job.unsuited.contains(*name) && self.is_at_work(name, worker, lease_ms, now_ms)
            })
            .filter_map(|(name, worker)| {
                Some(Candidate {
                    worker: name.clone(),
                    owner: self.reputation.known_owner(name, &worker.owner)?,
                    address: worker.address.filter(|address| !address.is_loopback()),
                    // Units that the worker has counted; a new owner can count only a few before
                    // others confirm them.
                    weight: 1.0 + worker.units_done as f64,
                })
            })
            .collect();
        // With more than two owners, none has a larger weight than all others together, whatever it
        // claims to have counted.
        let total: f64 = candidates.iter().map(|candidate| candidate.weight).sum();
        let mut of_owner: BTreeMap<OwnerId, f64> = BTreeMap::new();
        for candidate in &candidates {
            *of_owner.entry(candidate.owner).or_default() += candidate.weight;
        }
        if of_owner.len() > 2 {
            for candidate in &mut candidates {
                let own = of_owner[&candidate.owner];
                let others = total - own;
                if own > others {
                    candidate.weight *= others / own;
                }
            }
        }
        candidates
    }

    /// Draws a checker for each check that is not reserved.
    pub(super) fn draw_checkers(&mut self, now_ms: u64) {
        let jobs: Vec<JobHash> = self.jobs.keys().copied().collect();
        for hash in jobs {
            let Some(job) = self.jobs.get(&hash) else { continue };
            if job.checks.undrawn.is_empty() || !job.state.is_counted() {
                continue;
            }
            let candidates = self.candidates(job, now_ms);
            if candidates.is_empty() {
                continue;
            }
            let from = job.checks.cursor;
            let undrawn = &job.checks.undrawn;
            let units: Vec<u64> = undrawn
                .range(from..)
                .chain(undrawn.range(..from))
                .copied()
                .take(MOST_DRAWN)
                .collect();
            let next = units.last().map_or(0, |last| last + 1);
            for unit in units {
                if let Some(worker) = self.draw_checker(hash, unit, &candidates) {
                    self.keep_for(hash, unit, worker, now_ms);
                }
            }
            if let Some(job) = self.jobs.get_mut(&hash) {
                job.checks.cursor = next;
            }
        }
    }

    fn draw_checker(
        &mut self,
        hash: JobHash,
        unit: u64,
        candidates: &[Candidate],
    ) -> Option<WorkerName> {
        let job = self.jobs.get(&hash)?;
        let check = job.checks.get(unit)?;
        if check.misses >= MOST_MISSES && self.is_urgent(job, unit, check) {
            return None;
        }
        let may = self.eligible_checkers(job, unit, check, candidates);
        let outcome = job.units.outcome(unit)?;
        let first = self.workers.get(&self.reputation.source(outcome.source).worker);
        let address = first.and_then(|worker| worker.address);
        // Prefer workers at another address, then workers that did not miss this check before.
        let elsewhere: Vec<&Candidate> =
            may.iter().copied().filter(|c| address.is_none() || c.address != address).collect();
        let may = if elsewhere.is_empty() { may } else { elsewhere };
        let in_time: Vec<&Candidate> =
            may.iter().copied().filter(|c| check.missed.as_ref() != Some(&c.worker)).collect();
        let may = if in_time.is_empty() { may } else { in_time };
        let total: f64 = may.iter().map(|c| c.weight).sum();
        let mut left = self.random.draw(&self.key) * total;
        let chosen = may.iter().find(|c| {
            left -= c.weight;
            left < 0.0
        });
        chosen.or(may.last()).map(|c| c.worker.clone())
    }

    /// Returns the candidates whose owner neither counted the unit nor confirmed it before.
    fn eligible_checkers<'a>(
        &self,
        job: &Job,
        unit: u64,
        check: &Check,
        candidates: &'a [Candidate],
    ) -> Vec<&'a Candidate> {
        let Some(outcome) = job.units.outcome(unit) else { return Vec::new() };
        let vouched = check.vouched.map(|number| self.reputation.owner_of(number));
        candidates.iter().filter(|c| c.owner != outcome.owner && Some(c.owner) != vouched).collect()
    }

    fn keep_for(&mut self, hash: JobHash, unit: u64, worker: WorkerName, now_ms: u64) {
        let until_ms = now_ms.saturating_add(self.patience_ms(hash, unit));
        let Some(job) = self.jobs.get_mut(&hash) else { return };
        let Some(check) = job.checks.due.get_mut(&unit) else { return };
        check.drawn = Some((worker.clone(), until_ms));
        check.since_ms = now_ms;
        job.checks.undrawn.remove(&unit);
        if check.depth == Depth::Spot {
            self.newly_kept.insert(worker.clone());
        }
        self.kept.entry(worker).or_default().insert((hash, unit));
        self.kept_until.insert((until_ms, hash, unit));
    }

    /// Returns whether a spot check is reserved for a worker and may be leased to it now.
    pub fn is_spot_check_kept(&self, worker: &str) -> bool {
        /// Scanning more in one call would be slow.
        const LOOK_AT: usize = 256;
        let kept = self.kept.get(worker).into_iter().flatten().take(LOOK_AT);
        kept.copied()
            .any(|(job, unit)| self.may_be_leased(worker, Depth::Spot, UnitId { job, unit }))
    }

    /// Returns whether a check that is reserved for a worker may be leased to it.
    fn may_be_leased(&self, worker: &str, depth: Depth, id: UnitId) -> bool {
        self.at_arbiter != Some(id)
            && self.jobs.get(&id.job).is_some_and(|job| {
                job.state.is_counted()
                    && !job.unsuited.contains(worker)
                    && job.checks.get(id.unit).is_some_and(|check| check.depth == depth)
            })
    }

    /// Removes and returns the workers for which spot checks were reserved since the last call.
    pub fn take_newly_kept(&mut self) -> BTreeSet<WorkerName> {
        std::mem::take(&mut self.newly_kept)
    }

    /// Returns how long a check is reserved for a worker, in ms: a spot check for about the time of
    /// a few units, a full check until the worker has had time for the leases that it holds.
    fn patience_ms(&self, hash: JobHash, unit: u64) -> u64 {
        /// Upper limit, since the counting times are reported by workers.
        const AT_MOST_S: f64 = 7.0 * 86_400.0;
        let Some(job) = self.jobs.get(&hash) else { return 0 };
        let longest_s = self.settings.lease_s.max(self.settings.lease_ms as f64 / 1000.0);
        let spot_s = Self::spot_patience_s(job);
        let spot = job.checks.get(unit).is_some_and(|check| check.depth == Depth::Spot);
        let patience_s = if spot { spot_s } else { longest_s + spot_s };
        (patience_s.min(AT_MOST_S) * 1000.0) as u64
    }

    /// Returns how long a spot check is reserved, in seconds.
    fn spot_patience_s(job: &Job) -> f64 {
        const AT_LEAST_S: f64 = 10.0;
        AT_LEAST_S + 3.0 * job.counting_s / job.units.done().max(1) as f64
    }

    /// Ends the reservation of a check that is still pending, so that another checker can be drawn.
    fn put_back(&mut self, hash: JobHash, unit: u64) {
        let Some(job) = self.jobs.get_mut(&hash) else { return };
        let Some(check) = job.checks.due.get_mut(&unit) else { return };
        check.leased = None;
        if let Some((worker, until_ms)) = check.drawn.take() {
            self.kept_until.remove(&(until_ms, hash, unit));
            if let Some(kept) = self.kept.get_mut(&worker) {
                kept.remove(&(hash, unit));
            }
            check.missed = Some(worker);
            check.misses += 1;
        }
        job.checks.undrawn.insert(unit);
    }

    /// Removes a check that was made or is no longer needed.
    pub(super) fn remove_check(&mut self, hash: JobHash, unit: u64) {
        let Some(job) = self.jobs.get_mut(&hash) else { return };
        if let Some(Check { drawn: Some((worker, until_ms)), .. }) = job.checks.remove(unit) {
            self.kept_until.remove(&(until_ms, hash, unit));
            if let Some(kept) = self.kept.get_mut(&worker) {
                kept.remove(&(hash, unit));
            }
        }
    }

    /// Ends the reservations that have expired, and those of workers that were not heard from for
    /// the lifetime of a lease.
    pub(super) fn expire_kept(&mut self, now_ms: u64) {
        let is_about = |name: &WorkerName| {
            let worker = self.workers.get(name);
            worker.is_some_and(|worker| self.is_about(name, worker, self.settings.lease_ms, now_ms))
        };
        let gone: Vec<WorkerName> = self
            .kept
            .iter()
            .filter(|(name, kept)| !kept.is_empty() && !is_about(name))
            .map(|(name, _)| name.clone())
            .collect();
        gone.iter().for_each(|worker| self.put_back_all_of(worker));
        while let Some(&(until_ms, hash, unit)) = self.kept_until.first()
            && until_ms <= now_ms
        {
            self.kept_until.pop_first();
            // A worker that holds the lease but reports nothing must not hold up the job.
            self.take_back(hash, unit);
        }
    }

    /// In jobs without open units: ends the reservations and leases of full checks that another
    /// worker would have made by now, so that it can make them. Jobs whose units are all recounted
    /// are left alone, since there is enough other work.
    pub(super) fn put_back_late(&mut self, now_ms: u64) {
        let late: Vec<(JobHash, u64)> = self
            .jobs
            .iter()
            .filter(|(_, job)| {
                job.state.is_counted() && job.units.open() == 0 && self.target(job) < 1.0
            })
            .flat_map(|(&hash, job)| {
                self.late_checks(job, now_ms).into_iter().map(move |unit| (hash, unit))
            })
            .collect();
        for (hash, unit) in late {
            self.take_back(hash, unit);
        }
    }

    /// Returns the full checks of a job that another worker would have made by now.
    fn late_checks(&self, job: &Job, now_ms: u64) -> Vec<u64> {
        let unit_s = job.counting_s / job.units.done().max(1) as f64;
        let late_s = self.settings.first_lease_s + self.settings.straggler * unit_s;
        let is_late = |check: &Check| {
            let since_s = now_ms.saturating_sub(check.since_ms) as f64 / 1000.0;
            check.depth == Depth::Full && check.misses < MOST_MISSES && since_s > late_s
        };
        let mut late = job.checks.due.iter().filter(|(_, check)| is_late(check)).peekable();
        if late.peek().is_none() {
            return Vec::new();
        }
        let candidates = self.candidates(job, now_ms);
        let others = |(&unit, check): (&u64, &Check)| {
            let (worker, _) = check.drawn.as_ref()?;
            let may = self.eligible_checkers(job, unit, check, &candidates);
            may.iter().any(|c| c.worker != *worker).then_some(unit)
        };
        late.filter_map(others).collect()
    }

    /// Withdraws a check from the worker that has its reservation or lease.
    fn take_back(&mut self, hash: JobHash, unit: u64) {
        let leased = self.jobs.get(&hash).and_then(|job| job.checks.get(unit)?.leased);
        match leased.filter(|attempt| self.leases.contains_key(attempt)) {
            Some(attempt) => self.drop_lease(attempt),
            None => self.put_back(hash, unit),
        }
    }

    /// Ends all reservations of a worker that takes no more work.
    pub(super) fn put_back_all_of(&mut self, worker: &str) {
        for (hash, unit) in self.kept.remove(worker).unwrap_or_default() {
            self.put_back(hash, unit);
        }
    }

    /// Returns whether a check is still pending and is leased under `attempt`.
    pub(super) fn is_check_leased(&self, hash: JobHash, unit: u64, attempt: u64) -> bool {
        let check = self.jobs.get(&hash).and_then(|job| job.checks.get(unit));
        check.is_some_and(|check| check.leased == Some(attempt))
    }

    /// Makes a check available for another draw when its lease ends, if it is still pending.
    pub(super) fn check_lease_ended(&mut self, lease: &Lease, attempt: u64) {
        for unit in lease.units.clone() {
            let leased = self.jobs.get(&lease.job).and_then(|job| job.checks.get(unit)?.leased);
            if leased == Some(attempt) {
                self.put_back(lease.job, unit);
            }
        }
    }

    /// Leases the next check reserved for the worker to it.
    pub(super) fn grant_check(
        &mut self,
        request: &SyncRequest,
        depth: Depth,
        now_ms: u64,
    ) -> Option<Assignment> {
        let may = |&(job, unit): &(JobHash, u64)| {
            self.may_be_leased(&request.worker, depth, UnitId { job, unit })
        };
        let (hash, unit) = self.kept.get(&request.worker)?.iter().copied().find(may)?;
        let job = self.jobs.get(&hash)?;
        let outcome = *job.units.outcome(unit)?;
        let sub_ranges = match depth {
            Depth::Spot => self.random.some_of(
                &self.key,
                u32::from(outcome.sub_ranges),
                self.settings.spot_sub_ranges,
            ),
            Depth::Full => SubRangeSet::default(),
        };
        let attempt = self.next_attempt();
        let grantee = Grantee {
            attempt,
            worker: &request.worker,
            owner: &request.owner,
            job: &hash,
            thirds: Some(outcome.tally.thirds()),
        };
        let grant = Grant { units: unit..unit + 1, mirrored: true, sub_ranges };
        let grant = self.key.seal(&grant, &grantee);
        let lease = Lease {
            worker: request.worker.clone(),
            job: hash,
            units: unit..unit + 1,
            mirrored: true,
            sub_ranges,
            thirds: grantee.thirds,
            copy: true,
            unstarted: 1,
            granted_ms: now_ms,
            deadline_ms: now_ms + self.settings.lease_ms,
            predicted_s: None,
        };
        self.leases.insert(attempt, lease);
        self.kept.get_mut(&request.worker)?.remove(&(hash, unit));
        // The reservation starts again with the lease.
        let until_ms = now_ms.saturating_add(self.patience_ms(hash, unit));
        let check = self.jobs.get_mut(&hash)?.checks.due.get_mut(&unit)?;
        check.leased = Some(attempt);
        check.since_ms = now_ms;
        if let Some((_, before_ms)) = check.drawn.replace((request.worker.clone(), until_ms)) {
            self.kept_until.remove(&(before_ms, hash, unit));
        }
        self.kept_until.insert((until_ms, hash, unit));
        Some(Assignment {
            attempt,
            job: hash,
            units: unit..unit + 1,
            mirrored: true,
            not_kernel: None,
            sub_ranges,
            grant,
        })
    }

    /// Returns whether a check must be made before the rest of the job is done: a spot check, since
    /// it is cheap, or a check of a unit of a new owner, since the owner gets little more work
    /// until its units are confirmed.
    fn is_urgent(&self, job: &Job, unit: u64, check: &Check) -> bool {
        check.depth == Depth::Spot || self.is_of_new_owner(job, unit)
    }

    /// Returns whether the owner of a unit is new and nothing of the unit has been confirmed.
    fn is_of_new_owner(&self, job: &Job, unit: u64) -> bool {
        job.units.outcome(unit).is_some_and(|outcome| {
            let few = self.settings.new_owner_units;
            !outcome.is_proven() && self.reputation.is_new(outcome.owner, few)
        })
    }

    /// Returns whether the coordinator must make an urgent check, because workers missed it too
    /// often or none can make it.
    pub(super) fn is_orphan(&self, job: &Job, unit: u64, check: &Check, now_ms: u64) -> bool {
        self.is_urgent(job, unit, check)
            && (check.misses >= MOST_MISSES || !self.has_eligible_checker(job, unit, now_ms))
    }

    /// Returns the next check that is reserved but not leased and that the coordinator may make
    /// early: a spot check on which a new owner waits for more work, or a check that was missed
    /// before. In jobs whose units are all recounted, full checks are left to the workers.
    pub(super) fn next_reserved_for_arbiter(
        &mut self,
        skip: impl Fn(UnitId) -> bool,
    ) -> Option<(UnitId, Depth)> {
        /// Scanning more in one call would be slow.
        const LOOK_AT: usize = 64;
        let from = self.looked_at.map_or(Bound::Unbounded, Bound::Excluded);
        let window: Vec<_> =
            self.kept_until.range((from, Bound::Unbounded)).take(LOOK_AT).copied().collect();
        for &kept in &window {
            let (_, hash, unit) = kept;
            let id = UnitId { job: hash, unit };
            let Some(job) = self.jobs.get(&hash).filter(|job| job.state.is_counted()) else {
                continue;
            };
            let Some(check) = job.checks.get(unit).filter(|check| check.leased.is_none()) else {
                continue;
            };
            let spot = check.depth == Depth::Spot;
            let missed = check.misses > 0 && (spot || self.target(job) < 1.0);
            if !skip(id) && (missed || spot && self.is_of_new_owner(job, unit)) {
                self.looked_at = Some(kept);
                return Some((id, check.depth));
            }
        }
        // After the last reservation, start again at the first.
        self.looked_at = window.last().copied().filter(|_| window.len() == LOOK_AT);
        None
    }

    /// Returns whether a worker may still make a check: a suitable one is active, or the
    /// coordinator has just started and the job's earlier workers may return.
    fn has_eligible_checker(&self, job: &Job, unit: u64, now_ms: u64) -> bool {
        let Some(outcome) = job.units.outcome(unit) else { return false };
        let just_started = self
            .started_ms
            .is_none_or(|started| now_ms.saturating_sub(started) < self.settings.lease_ms);
        let vouched = job.checks.get(unit).and_then(|check| check.vouched);
        let vouched = vouched.map(|number| self.reputation.owner_of(number));
        let can = |(name, worker): (&WorkerName, &WorkerState)| {
            let owner = self.reputation.known_owner(name, &worker.owner);
            owner.is_some_and(|owner| owner != outcome.owner && Some(owner) != vouched)
                && !job.unsuited.contains(name)
                && self.is_at_work(name, worker, self.settings.lease_ms, now_ms)
        };
        (just_started && job.owners.len() > 1 && job.state == JobState::Running)
            || self.workers.iter().any(can)
    }
}
