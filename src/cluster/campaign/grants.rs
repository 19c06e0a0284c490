//! The choice of the units of a new lease.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use super::assignment::Assignment;
use super::checks::Depth;
use super::guests::is_guest;
use super::leases::Lease;
use super::reputation::OwnerId;
use super::state::Campaign;
use super::sync::SyncRequest;
use super::units::UnitStatus;
use crate::decomposition::JobHash;

/// Upper limit of the workers that hold a unit at the same time. A worker of a further owner is
/// admitted up to the same number of owners.
const MOST_COPIES: usize = 3;

/// The number of leases among which an idle worker looks for units of others. Near the end of a
/// job with 100,000 workers there are tens of thousands of leases, and most workers are idle.
const LEASE_SAMPLE: usize = 64;

/// Upper limit of the units in a lease of a guest.
const MOST_GUEST_LEASE_UNITS: u64 = 2;

/// The rates of the active workers for a job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JobRates {
    workers: u64,
    /// Those whose rate is known, and their total in units per second.
    measured: u64,
    units_per_s: f64,
}

impl JobRates {
    fn add(&mut self, rate: Option<f64>) {
        self.workers += 1;
        if let Some(rate) = rate {
            self.measured += 1;
            self.units_per_s += rate;
        }
    }

    /// Returns the rate that a worker of unknown rate counts with.
    fn usual(&self) -> f64 {
        if self.measured == 0 { 1.0 } else { self.units_per_s / self.measured as f64 }
    }

    fn total(&self) -> f64 {
        self.units_per_s + (self.workers - self.measured) as f64 * self.usual()
    }
}

impl Campaign {
    /// Returns how many more units a worker may hold; new owners may hold few.
    pub(super) fn remaining_quota(&self, request: &SyncRequest) -> u64 {
        let Some(owner) = self.reputation.known_owner(&request.worker, &request.owner) else {
            return 0;
        };
        if self.reputation.is_guest(owner) {
            return self.guest_quota(owner);
        }
        let few = self.settings.new_owner_units;
        if !self.reputation.is_new(owner, few) {
            return u64::MAX;
        }
        few.saturating_sub(self.leases.units_of(owner) + self.unproven(owner))
    }

    /// Returns the number of units of an owner, in jobs that are being counted, that no other owner
    /// has checked.
    pub(super) fn unproven(&self, owner: OwnerId) -> u64 {
        let counted = self.jobs.values().filter(|job| job.state.is_counted());
        counted.map(|job| job.unproven.get(&owner).copied().unwrap_or_default()).sum()
    }

    /// Records when an owner was first leased these units.
    pub(super) fn record_holder(
        &mut self,
        request: &SyncRequest,
        hash: JobHash,
        units: Range<u64>,
        now_ms: u64,
    ) {
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
        let job = self.jobs.get(&lease.job);
        let since = job
            .and_then(|job| job.held_since.get(&unit)?.iter().find(|(by, _)| *by == lease.owner));
        since.map_or(lease.granted_ms, |(_, since_ms)| *since_ms)
    }

    fn predicted_s(&self, worker: &str, job: JobHash, units: u64) -> Option<f64> {
        let rate = self.workers.get(worker)?.units_per_s.get(&job)?;
        Some(units as f64 / rate)
    }

    /// Grants a lease: a spot check reserved for the worker; if it holds too few units, a full
    /// check or open units, of the most urgent job first; if it is idle, units that another worker
    /// has not started or is slow to finish.
    pub(super) fn grant(
        &mut self,
        request: &SyncRequest,
        idle: bool,
        now_ms: u64,
    ) -> Option<Assignment> {
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
        if !idle || is_guest(&request.worker) {
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
        let of_worker = self.leases.of_worker(&request.worker);
        let unstarted: u64 = of_worker
            .filter(|(_, lease)| lease.sub_ranges.is_empty())
            .map(|(_, lease)| lease.unstarted)
            .sum();
        unstarted < self.lease_units(request, hash)
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
        let most = if is_guest(&request.worker) {
            MOST_GUEST_LEASE_UNITS
        } else {
            self.settings.most_lease_units
        };
        // The cast saturates.
        let in_time =
            worker.units_per_s.get(&hash).map(|rate| (rate * self.lease_s() / 2.0) as u64);
        grown.min(in_time.unwrap_or(u64::MAX)).clamp(1, most.max(1))
    }

    /// Returns the rates of all active workers but guests for a job. They are up to a tick old in a
    /// campaign of many workers.
    fn job_rates(&mut self, hash: JobHash, now_ms: u64) -> JobRates {
        if let Some(rates) = self.rates.get(&hash) {
            return *rates;
        }
        let mut rates = JobRates::default();
        for (name, worker) in &self.workers {
            if !is_guest(name) && self.is_active(name, worker, now_ms) {
                rates.add(worker.units_per_s.get(&hash).copied());
            }
        }
        self.rates.insert(hash, rates);
        rates
    }

    /// Returns a worker's share of the total rate of all active workers but guests, as far as their
    /// rates are known.
    fn share(&mut self, worker: &str, hash: JobHash, now_ms: u64) -> f64 {
        let mut rates = self.job_rates(hash, now_ms);
        let own = self.workers.get(worker).and_then(|state| state.units_per_s.get(&hash).copied());
        if is_guest(worker) {
            rates.add(own);
        }
        let own = own.unwrap_or_else(|| rates.usual());
        own / rates.total().max(own)
    }

    fn lease(
        &mut self,
        request: &SyncRequest,
        job: JobHash,
        units: Range<u64>,
        copy: bool,
        now_ms: u64,
    ) -> Assignment {
        // The leases that it already holds come first.
        let of_worker = self.leases.of_worker(&request.worker);
        let before_s: f64 =
            of_worker.filter_map(|(_, l)| self.predicted_s(&request.worker, l.job, l.len())).sum();
        let own_s = self.predicted_s(&request.worker, job, units.end - units.start);
        let predicted_s = own_s.map(|own_s| before_s + own_s);
        self.record_holder(request, job, units.clone(), now_ms);
        let lease = self.new_lease(request, job, units, now_ms);
        self.add_lease(request, Lease { copy, predicted_s, ..lease })
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
        let quota = self.remaining_quota(request);
        if quota == 0 {
            return None;
        }
        let counts = || self.leases.of_worker(&request.worker).filter(|(_, lease)| !lease.mirrored);
        let is_idle = counts().next().is_none();
        // A suspect unit is leased alone, so that a failure can be attributed to it.
        let is_alone =
            |lease: &Lease| lease.len() == 1 && self.is_suspect(lease.job, lease.units.start);
        if counts().any(|(_, lease)| is_alone(lease)) {
            return None;
        }
        let usual = self.lease_units(request, hash);
        let share = self.share(&request.worker, hash, now_ms);
        let often = self.settings.poison_failures.div_ceil(2);
        let overdue = self.overdue_at_guest(&request.worker, hash, now_ms);
        let job = self.jobs.get_mut(&hash)?;
        // Units that failed repeatedly on this worker are left to others, and so are those that a
        // guest had for too long.
        let avoid: BTreeSet<u64> = job
            .failures
            .iter()
            .filter(|(_, workers)| {
                workers.get(&request.worker).is_some_and(|times| *times >= often)
            })
            .map(|(&unit, _)| unit)
            .chain(overdue)
            .collect();
        // Half of the worker's share of the remaining units (Hummel, Schonberg and Flynn,
        // "Factoring", 1992).
        let fair = (job.units.open() as f64 * share / 2.0).ceil() as u64;
        let size = usual.min(fair).min(quota).max(1);
        let mut range = job.units.lease(size, &avoid)?;
        if let Some(&smaller) = range.clone().filter_map(|unit| job.suspects.get(&unit)).min()
            && smaller < range.end - range.start
        {
            job.units.release(range, |_| false);
            if smaller <= 1 && !is_idle {
                return None;
            }
            range = job.units.lease(smaller.max(1), &avoid)?;
        }
        Some(self.lease(request, hash, range, false, now_ms))
    }

    /// Moves units that another worker has not started from the end of its lease into a new one:
    /// the lease of a sample that will take longest. Used when no unit is open.
    fn take_over(
        &mut self,
        request: &SyncRequest,
        hash: JobHash,
        now_ms: u64,
    ) -> Option<Assignment> {
        let quota = self.remaining_quota(request);
        if quota == 0 {
            return None;
        }
        let usual = self.lease_units(request, hash);
        let sample = self.leases.sample_unstarted(hash, LEASE_SAMPLE);
        let mut most: Option<(u64, u64, f64)> = None;
        for attempt in sample {
            let lease = self.leases.get(attempt)?;
            if lease.worker == request.worker {
                continue;
            }
            let holder = self.workers.get(&lease.worker)?;
            // Its progress is unknown until its next sync.
            if holder.seen_ms <= lease.granted_ms {
                continue;
            }
            let since_s = now_ms.saturating_sub(holder.seen_ms) as f64 / 1000.0;
            let rate = holder.units_per_s.get(&hash).copied();
            let begun = (rate.unwrap_or(0.0) * since_s) as u64;
            let left = lease.unstarted.saturating_sub(begun).min(lease.len());
            let left_s = left as f64 / rate.unwrap_or(1.0).max(1e-9);
            if left > 0 && most.is_none_or(|(_, _, most_s)| left_s > most_s) {
                most = Some((attempt, left, left_s));
            }
        }
        let (attempt, left, _) = most?;
        let victim = self.leases.get(attempt)?.clone();
        let own = self.share(&request.worker, hash, now_ms);
        let theirs = self.share(&victim.worker, hash, now_ms);
        let taken = (left as f64 * own / (own + theirs)).ceil() as u64;
        let taken = taken.clamp(1, left).min(usual).min(quota);
        let (start, end) = (victim.units.end - taken, victim.units.end);
        let job = self.jobs.get(&hash)?;
        // Units that are done need no lease.
        let start =
            (start..end).find(|&unit| job.units.status(unit) == Some(UnitStatus::Leased))?;
        self.leases.shorten(attempt, start, taken);
        Some(self.lease(request, hash, start..end, false, now_ms))
    }

    /// Grants a copy of a unit that another worker holds for longer than predicted, or for longer
    /// than this worker would take: of the oldest such lease of a sample.
    fn grant_copy(
        &mut self,
        request: &SyncRequest,
        hash: JobHash,
        now_ms: u64,
    ) -> Option<Assignment> {
        if self.remaining_quota(request) == 0 {
            return None;
        }
        let sample = self.leases.sample(hash, LEASE_SAMPLE);
        let job = self.jobs.get(&hash)?;
        let own_s = self
            .predicted_s(&request.worker, hash, 1)
            .map(|s| s * f64::from(request.capacity.max(1)));
        let own = self.reputation.known_owner(&request.worker, &request.owner);
        // Neither a holder that has had a unit for very long nor many workers of one owner may
        // keep others from a unit.
        let age_ms = |l: &Lease, unit| now_ms.saturating_sub(self.held_since(l, unit));
        // A lease of the requesting owner counts from its grant. For other owners, returning a unit
        // and leasing it again does not reset its age.
        let copied_ms = |l: &Lease, unit| match Some(l.owner) == own {
            true => now_ms.saturating_sub(l.granted_ms),
            false => age_ms(l, unit),
        };
        let may_get_lease = |unit: u64| {
            let of_unit = self.leases.overlapping(hash, unit..unit + 1);
            let recent = of_unit.filter(|l| copied_ms(l, unit) < self.settings.patience_ms);
            let holders: Vec<OwnerId> = recent.map(|lease| lease.owner).collect();
            let owners: BTreeSet<OwnerId> = holders.iter().copied().collect();
            let is_new = own.is_none_or(|own| !owners.contains(&own));
            holders.len() < MOST_COPIES || is_new && owners.len() < MOST_COPIES
        };
        let has_it = |unit: u64| {
            let mut of_worker = self.leases.of_worker(&request.worker);
            of_worker.any(|(_, lease)| lease.job == hash && lease.units.contains(&unit))
        };
        let late = |lease: &Lease, unit: u64| {
            let took_s = age_ms(lease, unit) as f64 / 1000.0;
            // The prediction rests on the worker's own report, so it is bounded: a worker that
            // reports a low rate must not escape this check.
            let most_s = self.settings.patience_ms as f64 / 1000.0;
            let predicted_s = lease.predicted_s.unwrap_or(self.lease_s()).min(most_s);
            took_s > self.settings.straggler * predicted_s
                || own_s.is_some_and(|own_s| took_s > own_s)
        };
        let is_leased = |unit: &u64| job.units.status(*unit) == Some(UnitStatus::Leased);
        let mut oldest: Vec<&Lease> = sample
            .into_iter()
            .filter_map(|attempt| self.leases.get(attempt))
            .filter(|l| l.worker != request.worker)
            .filter(|l| l.units.clone().find(is_leased).is_some_and(|unit| late(l, unit)))
            .collect();
        oldest.sort_by_key(|lease| lease.granted_ms);
        let mut units =
            oldest.into_iter().flat_map(|lease| lease.units.clone().map(move |unit| (lease, unit)));
        let (_, unit) = units.find(|&(lease, unit)| {
            is_leased(&unit) && late(lease, unit) && may_get_lease(unit) && !has_it(unit)
        })?;
        Some(self.lease(request, hash, unit..unit + 1, true, now_ms))
    }
}
