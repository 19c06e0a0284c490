//! Reservations of checks: which worker makes a check, and until when.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::assignment::{Assignment, SubRangeSet};
use super::checks::{Check, Depth, MOST_MISSES};
use super::guests::is_guest;
use super::job::Job;
use super::key::Draws;
use super::leases::Lease;
use super::reputation::OwnerId;
use super::state::Campaign;
use super::sync::{PER_SCAN, SyncRequest};
use super::unit_outcome::UnitOutcome;
use super::{UnitId, WorkerName};
use crate::decomposition::JobHash;

/// Checks for which one call draws a checker, if there are few workers.
const MOST_DRAWN: usize = 256;

/// Number of candidates up to which each draw looks at all of them, and the number of draws among
/// more candidates after which it does so.
const FEW_CANDIDATES: usize = 64;
const MOST_DRAWS: usize = 32;

/// A worker that may be drawn as a checker.
struct Candidate<'a> {
    worker: &'a str,
    owner: OwnerId,
    address: Option<IpAddr>,
    weight: f64,
}

/// The candidates for the checks of a job, to be drawn in proportion to their weights.
struct Candidates<'a> {
    all: Vec<Candidate<'a>>,
    /// For each of them, the sum of the weights up to and with it.
    sums: Vec<f64>,
}

impl<'a> Candidates<'a> {
    fn new(all: Vec<Candidate<'a>>) -> Self {
        let sums = all.iter().scan(0.0, |sum, candidate| {
            *sum += candidate.weight;
            Some(*sum)
        });
        Self { sums: sums.collect(), all }
    }

    /// Returns the candidate at a share of the total weight, from 0 to 1.
    fn at(&self, share: f64) -> Option<&Candidate<'a>> {
        let weight = share * self.sums.last()?;
        let place = self.sums.partition_point(|sum| *sum <= weight);
        self.all.get(place).or(self.all.last())
    }
}

impl Campaign {
    /// Returns the active workers that may check units of a job: no guests.
    fn candidates(&self, job: &Job, now_ms: u64) -> Candidates<'_> {
        let mut candidates: Vec<Candidate<'_>> = self
            .workers
            .iter()
            .filter(|(name, worker)| {
                !is_guest(name)
                    && !job.unsuited.contains(*name)
                    && self.is_active(name, worker, now_ms)
            })
            .map(|(name, worker)| Candidate {
                worker: name,
                owner: worker.owner_id,
                address: worker.address.filter(|address| !address.is_loopback()),
                // Units that the worker has counted; a new owner can count only a few before
                // others confirm them.
                weight: 1.0 + worker.units_done as f64,
            })
            .collect();
        // With more than two owners, none has a larger weight than all others together, whatever it
        // claims to have counted.
        let total: f64 = candidates.iter().map(|candidate| candidate.weight).sum();
        let mut of_owner = vec![0.0; self.reputation.owners()];
        for candidate in &candidates {
            of_owner[candidate.owner as usize] += candidate.weight;
        }
        if of_owner.iter().filter(|weight| **weight > 0.0).nth(2).is_some() {
            for candidate in &mut candidates {
                let own = of_owner[candidate.owner as usize];
                let others = total - own;
                if own > others {
                    candidate.weight *= others / own;
                }
            }
        }
        Candidates::new(candidates)
    }

    /// Draws a checker for each check that is not reserved.
    pub(super) fn draw_checkers(&mut self, now_ms: u64) {
        let jobs: Vec<JobHash> = self.jobs.keys().copied().collect();
        for hash in jobs {
            let Some(job) = self.jobs.get(&hash) else { continue };
            if job.checks.unreserved.is_empty() || !job.state.is_counted() {
                continue;
            }
            let candidates = self.candidates(job, now_ms);
            if candidates.all.is_empty() {
                continue;
            }
            let from = job.checks.cursor;
            let unreserved = &job.checks.unreserved;
            let units: Vec<u64> = unreserved
                .range(from..)
                .chain(unreserved.range(..from))
                .copied()
                .take(MOST_DRAWN.max(candidates.all.len() / PER_SCAN))
                .collect();
            let next = units.last().map_or(0, |last| last + 1);
            let mut random = self.random.clone();
            let draw = |unit| {
                let worker = self.draw_checker(hash, unit, &candidates, &mut random)?;
                Some((unit, worker.to_owned()))
            };
            let drawn: Vec<(u64, WorkerName)> = units.into_iter().filter_map(draw).collect();
            self.random = random;
            for (unit, worker) in drawn {
                self.reserve(hash, unit, worker, now_ms);
            }
            if let Some(job) = self.jobs.get_mut(&hash) {
                job.checks.cursor = next;
            }
        }
    }

    fn draw_checker<'a>(
        &self,
        hash: JobHash,
        unit: u64,
        candidates: &Candidates<'a>,
        random: &mut Draws,
    ) -> Option<&'a str> {
        let job = self.jobs.get(&hash)?;
        let check = job.checks.get(unit)?;
        let outcome = job.units.outcome(unit)?;
        let first = self.workers.get(&self.reputation.source(outcome.source).worker);
        let address = first.and_then(|worker| worker.address);
        // Prefer workers at another address, then workers that did not miss this check before.
        let is_elsewhere = |c: &Candidate<'_>| address.is_none() || c.address != address;
        let is_in_time = |c: &Candidate<'_>| check.missed.as_deref() != Some(c.worker);
        let is_eligible = self.eligibility(job, unit, check)?;
        if candidates.all.len() > FEW_CANDIDATES {
            // Among many candidates nearly all are suitable. Draws that are repeated until one is
            // have the same distribution as a draw among the suitable ones.
            for _ in 0..MOST_DRAWS {
                let drawn = candidates.at(random.draw(&self.key))?;
                if is_eligible(drawn) && is_elsewhere(drawn) && is_in_time(drawn) {
                    return Some(drawn.worker);
                }
            }
        }
        let may: Vec<&Candidate<'_>> = candidates.all.iter().filter(|c| is_eligible(c)).collect();
        let elsewhere: Vec<&Candidate<'_>> =
            may.iter().copied().filter(|c| is_elsewhere(c)).collect();
        let may = if elsewhere.is_empty() { may } else { elsewhere };
        let in_time: Vec<&Candidate<'_>> = may.iter().copied().filter(|c| is_in_time(c)).collect();
        let may = if in_time.is_empty() { may } else { in_time };
        let total: f64 = may.iter().map(|c| c.weight).sum();
        let mut left = random.draw(&self.key) * total;
        let chosen = may.iter().find(|c| {
            left -= c.weight;
            left < 0.0
        });
        chosen.or(may.last()).map(|c| c.worker)
    }

    /// Returns a predicate for candidates whose owner neither counted a unit that is done nor
    /// confirmed it before.
    fn eligibility(
        &self,
        job: &Job,
        unit: u64,
        check: &Check,
    ) -> Option<impl Fn(&Candidate<'_>) -> bool + use<>> {
        let counted_by = job.units.outcome(unit)?.owner;
        let earlier_checker = check.earlier_checker.map(|number| self.reputation.owner_of(number));
        Some(move |c: &Candidate<'_>| c.owner != counted_by && Some(c.owner) != earlier_checker)
    }

    fn reserve(&mut self, hash: JobHash, unit: u64, worker: WorkerName, now_ms: u64) {
        let until_ms = now_ms.saturating_add(self.patience_ms(hash, unit));
        let Some(job) = self.jobs.get_mut(&hash) else { return };
        let Some(check) = job.checks.due.get_mut(&unit) else { return };
        check.reservation = Some((worker.clone(), until_ms));
        check.since_ms = now_ms;
        job.checks.unreserved.remove(&unit);
        if check.depth == Depth::Spot {
            self.newly_reserved.insert(worker.clone());
        }
        self.reserved.entry(worker).or_default().insert((hash, unit));
        self.reservation_ends.insert((until_ms, hash, unit));
    }

    /// Returns whether a spot check is reserved for a worker and may be leased to it now.
    pub fn has_reserved_spot_check(&self, worker: &str) -> bool {
        /// Scanning more in one call would be slow.
        const MOST_SCANNED: usize = 256;
        let reserved = self.reserved.get(worker).into_iter().flatten().take(MOST_SCANNED);
        reserved
            .copied()
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
    pub fn take_newly_reserved(&mut self) -> BTreeSet<WorkerName> {
        std::mem::take(&mut self.newly_reserved)
    }

    /// Returns how long a check is reserved for a worker, in ms: a spot check for about the time of
    /// a few units, a full check until the worker has had time for the leases that it holds.
    fn patience_ms(&self, hash: JobHash, unit: u64) -> u64 {
        /// Upper limit, since the counting times are reported by workers.
        const AT_MOST_S: f64 = 7.0 * 86_400.0;
        let Some(job) = self.jobs.get(&hash) else { return 0 };
        let longest_s = self.lease_s().max(self.lease_ms() as f64 / 1000.0);
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
    fn end_reservation(&mut self, hash: JobHash, unit: u64) {
        let Some(job) = self.jobs.get_mut(&hash) else { return };
        let Some(check) = job.checks.due.get_mut(&unit) else { return };
        check.leased = None;
        if let Some((worker, until_ms)) = check.reservation.take() {
            self.reservation_ends.remove(&(until_ms, hash, unit));
            if let Some(reserved) = self.reserved.get_mut(&worker) {
                reserved.remove(&(hash, unit));
            }
            check.missed = Some(worker);
            check.misses += 1;
        }
        job.checks.unreserved.insert(unit);
    }

    /// Removes a check that was made or is no longer needed.
    pub(super) fn remove_check(&mut self, hash: JobHash, unit: u64) {
        let Some(job) = self.jobs.get_mut(&hash) else { return };
        if let Some(Check { reservation: Some((worker, until_ms)), .. }) = job.checks.remove(unit) {
            self.reservation_ends.remove(&(until_ms, hash, unit));
            if let Some(reserved) = self.reserved.get_mut(&worker) {
                reserved.remove(&(hash, unit));
            }
        }
    }

    /// Ends the reservations of workers that have not synced for the lifetime of a lease.
    pub(super) fn end_reservations_of_silent_workers(&mut self, now_ms: u64) {
        let is_alive = |name: &WorkerName| {
            let worker = self.workers.get(name);
            worker.is_some_and(|worker| self.is_alive(name, worker, now_ms))
        };
        let gone: Vec<WorkerName> = self
            .reserved
            .iter()
            .filter(|(name, reserved)| !reserved.is_empty() && !is_alive(name))
            .map(|(name, _)| name.clone())
            .collect();
        gone.iter().for_each(|worker| self.end_reservations_of(worker));
    }

    /// Ends the reservations that have expired.
    pub(super) fn expire_reservations(&mut self, now_ms: u64) {
        while let Some(&(until_ms, hash, unit)) = self.reservation_ends.first()
            && until_ms <= now_ms
        {
            self.reservation_ends.pop_first();
            // A worker that holds the lease but reports nothing must not hold up the job.
            self.withdraw_check(hash, unit);
        }
    }

    /// In jobs without open units: ends the reservations and leases of full checks that another
    /// worker would have made by now, so that it can make them. Jobs whose units are all recounted
    /// are left alone until all of them are done, since there is enough other work.
    pub(super) fn withdraw_late_checks(&mut self, now_ms: u64) {
        let late: Vec<(JobHash, u64)> = self
            .jobs
            .iter()
            .filter(|(_, job)| {
                let all_done = job.units.done() == job.units.len();
                let ends = job.units.open() == 0 && self.target(job) < 1.0;
                job.state.is_counted() && (all_done || ends)
            })
            .flat_map(|(&hash, job)| {
                self.late_checks(job, now_ms).into_iter().map(move |unit| (hash, unit))
            })
            .collect();
        for (hash, unit) in late {
            self.withdraw_check(hash, unit);
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
            let (worker, _) = check.reservation.as_ref()?;
            let is_eligible = self.eligibility(job, unit, check)?;
            let is_other = |c: &Candidate<'_>| c.worker != worker && is_eligible(c);
            candidates.all.iter().any(is_other).then_some(unit)
        };
        late.filter_map(others).collect()
    }

    /// Withdraws a check from the worker that has its reservation or lease.
    fn withdraw_check(&mut self, hash: JobHash, unit: u64) {
        let leased = self.jobs.get(&hash).and_then(|job| job.checks.get(unit)?.leased);
        match leased.filter(|attempt| self.leases.get(*attempt).is_some()) {
            Some(attempt) => self.drop_lease(attempt),
            None => self.end_reservation(hash, unit),
        }
    }

    /// Ends all reservations of a worker that takes no more work.
    pub(super) fn end_reservations_of(&mut self, worker: &str) {
        for (hash, unit) in self.reserved.remove(worker).unwrap_or_default() {
            self.end_reservation(hash, unit);
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
                self.end_reservation(lease.job, unit);
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
        let (hash, unit) = self.reserved.get(&request.worker)?.iter().copied().find(may)?;
        let outcome = self.jobs.get(&hash)?.units.outcome(unit)?;
        let lease = self.new_lease(request, hash, unit..unit + 1, now_ms);
        let lease = Lease {
            mirrored: true,
            sub_ranges: self.draw_sub_ranges(depth, &outcome),
            thirds: Some(outcome.tally.thirds()),
            copy: true,
            ..lease
        };
        let assignment = self.add_lease(request, lease);
        self.reserved.get_mut(&request.worker)?.remove(&(hash, unit));
        // The reservation starts again with the lease.
        let until_ms = now_ms.saturating_add(self.patience_ms(hash, unit));
        let check = self.jobs.get_mut(&hash)?.checks.due.get_mut(&unit)?;
        check.leased = Some(assignment.attempt);
        check.since_ms = now_ms;
        if let Some((_, before_ms)) = check.reservation.replace((request.worker.clone(), until_ms))
        {
            self.reservation_ends.remove(&(before_ms, hash, unit));
        }
        self.reservation_ends.insert((until_ms, hash, unit));
        Some(assignment)
    }

    /// Returns the sub-ranges that a check of a unit recounts: none for all of it, or else some
    /// that are drawn.
    pub(super) fn draw_sub_ranges(&mut self, depth: Depth, outcome: &UnitOutcome) -> SubRangeSet {
        let (all, some) = (u32::from(outcome.sub_ranges), self.settings.spot_sub_ranges);
        match depth {
            Depth::Spot => self.random.sample(&self.key, all, some),
            Depth::Full => SubRangeSet::default(),
        }
    }
}
