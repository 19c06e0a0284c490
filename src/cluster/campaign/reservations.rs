//! Reservations of checks: which worker makes a check, and until when.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::assignment::{Assignment, SubRangeSet};
use super::checks::{Check, Depth, MOST_MISSES};
use super::guests::is_guest;
use super::job::Job;
use super::key::{Grant, Grantee};
use super::leases::Lease;
use super::reputation::OwnerId;
use super::state::Campaign;
use super::sync::SyncRequest;
use super::{UnitId, WorkerName};
use crate::decomposition::JobHash;

/// Checks for which one call draws a checker.
const MOST_DRAWN: usize = 256;

/// A worker that may be drawn as a checker.
struct Candidate {
    worker: WorkerName,
    owner: OwnerId,
    address: Option<IpAddr>,
    weight: f64,
}

impl Campaign {
    /// Returns the active workers that may check units of a job: no guests.
    fn candidates(&self, job: &Job, now_ms: u64) -> Vec<Candidate> {
        let lease_ms = self.settings.lease_ms;
        let mut candidates: Vec<Candidate> = self
            .workers
            .iter()
            .filter(|(name, worker)| {
                !is_guest(name)
                    && !job.unsuited.contains(*name)
                    && self.is_active(name, worker, lease_ms, now_ms)
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
            if job.checks.unreserved.is_empty() || !job.state.is_counted() {
                continue;
            }
            let candidates = self.candidates(job, now_ms);
            if candidates.is_empty() {
                continue;
            }
            let from = job.checks.cursor;
            let unreserved = &job.checks.unreserved;
            let units: Vec<u64> = unreserved
                .range(from..)
                .chain(unreserved.range(..from))
                .copied()
                .take(MOST_DRAWN)
                .collect();
            let next = units.last().map_or(0, |last| last + 1);
            for unit in units {
                if let Some(worker) = self.draw_checker(hash, unit, &candidates) {
                    self.reserve(hash, unit, worker, now_ms);
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
        let earlier_checker = check.earlier_checker.map(|number| self.reputation.owner_of(number));
        candidates
            .iter()
            .filter(|c| c.owner != outcome.owner && Some(c.owner) != earlier_checker)
            .collect()
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

    /// Ends the reservations that have expired, and those of workers that have not synced for
    /// the lifetime of a lease.
    pub(super) fn expire_reservations(&mut self, now_ms: u64) {
        let is_alive = |name: &WorkerName| {
            let worker = self.workers.get(name);
            worker.is_some_and(|worker| self.is_alive(name, worker, self.settings.lease_ms, now_ms))
        };
        let gone: Vec<WorkerName> = self
            .reserved
            .iter()
            .filter(|(name, reserved)| !reserved.is_empty() && !is_alive(name))
            .map(|(name, _)| name.clone())
            .collect();
        gone.iter().for_each(|worker| self.end_reservations_of(worker));
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
    /// are left alone, since there is enough other work.
    pub(super) fn withdraw_late_checks(&mut self, now_ms: u64) {
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
            let may = self.eligible_checkers(job, unit, check, &candidates);
            may.iter().any(|c| c.worker != *worker).then_some(unit)
        };
        late.filter_map(others).collect()
    }

    /// Withdraws a check from the worker that has its reservation or lease.
    fn withdraw_check(&mut self, hash: JobHash, unit: u64) {
        let leased = self.jobs.get(&hash).and_then(|job| job.checks.get(unit)?.leased);
        match leased.filter(|attempt| self.leases.contains_key(attempt)) {
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
        let job = self.jobs.get(&hash)?;
        let outcome = *job.units.outcome(unit)?;
        let sub_ranges = match depth {
            Depth::Spot => self.random.sample(
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
        self.reserved.get_mut(&request.worker)?.remove(&(hash, unit));
        // The reservation starts again with the lease.
        let until_ms = now_ms.saturating_add(self.patience_ms(hash, unit));
        let check = self.jobs.get_mut(&hash)?.checks.due.get_mut(&unit)?;
        check.leased = Some(attempt);
        check.since_ms = now_ms;
        if let Some((_, before_ms)) = check.reservation.replace((request.worker.clone(), until_ms))
        {
            self.reservation_ends.remove(&(before_ms, hash, unit));
        }
        self.reservation_ends.insert((until_ms, hash, unit));
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
}
