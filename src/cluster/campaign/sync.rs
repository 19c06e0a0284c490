//! The sync of a worker: it reports the leases that it holds and receives those that it is to hold.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::WorkerName;
use super::assignment::{Assignment, HeldLease};
use super::key::{Grant, Grantee};
use super::leases::Lease;
use super::state::Campaign;
use super::workers::WorkerState;
use crate::decomposition::JobHash;

/// A worker's sync request.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// True if it will stop soon and requests no more work.
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

/// Upper limit of new leases in one sync.
pub(super) const MOST_GRANTED: u32 = 64;

/// Upper limit of the leases of a worker, in addition to its capacity.
const MOST_LEASES: usize = 128;

/// Upper limit of the kernels and devices that are remembered of a worker.
const MOST_ANNOUNCED: usize = 512;

/// Upper limit of the workers that are visited for each sync, or for each check of which a checker
/// is drawn, on average. With no more workers than this, every sync visits all of them.
pub(super) const PER_SCAN: usize = 8;

/// Returns the maximum number of leases of a worker.
const fn most_leases(request: &SyncRequest) -> usize {
    /// Upper limit of the reported capacity that is taken into account.
    const MOST_CAPACITY: u32 = 1024;
    let capacity = if request.capacity < MOST_CAPACITY { request.capacity } else { MOST_CAPACITY };
    MOST_LEASES + capacity as usize
}

impl Campaign {
    /// Returns whether this many calls or checks warrant a look at every worker, so that each of
    /// them takes constant time on average. With few workers, one does.
    fn has_many_per_worker(&self, count: usize) -> bool {
        count > 0 && count * PER_SCAN >= self.workers.len()
    }

    /// Forgets the sums of the workers' rates, so that they are computed again.
    pub(super) fn forget_rates(&mut self) {
        self.rates.clear();
        self.syncs_since_rates = 0;
    }

    /// Processes a worker's sync: takes note of the leases that it holds, and returns those that it
    /// is to hold.
    pub fn sync(&mut self, request: &SyncRequest, now_ms: u64) -> SyncResponse {
        let next_sync_ms = self.sync_ms();
        self.record_worker(request, now_ms);
        self.syncs_since_rates += 1;
        if self.has_many_per_worker(self.syncs_since_rates) {
            self.forget_rates();
        }
        let mut desired = Vec::new();
        let mut cancel = Vec::new();
        for held in &request.held {
            match self.renew_lease(request, held, now_ms) {
                Some(assignment) => desired.push(assignment),
                None => cancel.push(held.lease.attempt),
            }
        }
        // End the leases that the worker does not list: it completed or dropped them, or the
        // response that granted them was lost.
        let listed: BTreeSet<u64> = request.held.iter().map(|held| held.lease.attempt).collect();
        for attempt in self.leases.attempts_of(&request.worker) {
            if !listed.contains(&attempt) {
                self.end_lease(attempt);
            }
        }
        let renewed = desired.len();

        let draining = self.workers.get(&request.worker).is_none_or(|worker| worker.draining);
        let quarantined = self.reputation.is_quarantined(&request.worker, &request.owner);
        if request.capacity > 0 && !draining && !quarantined {
            if self.jobs.values().any(|job| self.has_many_per_worker(job.checks.unreserved.len())) {
                self.draw_checkers(now_ms);
            }
            while desired.len() < (renewed + MOST_GRANTED as usize).min(most_leases(request)) {
                let idle = desired.is_empty();
                let Some(assignment) = self.grant(request, idle, now_ms) else { break };
                desired.push(assignment);
            }
        }
        SyncResponse { granted: desired.len() - renewed, desired, cancel, next_sync_ms }
    }

    /// Records the worker's description of itself. Drops its leases of an earlier boot.
    fn record_worker(&mut self, request: &SyncRequest, now_ms: u64) {
        let known = self.workers.get(&request.worker);
        if known.is_some_and(|worker| worker.boot != request.boot) {
            for job in self.jobs.values_mut() {
                job.unsuited.remove(&request.worker);
            }
            for attempt in self.leases.attempts_of(&request.worker) {
                self.drop_lease(attempt);
            }
        }
        let owner_id = self.reputation.owner(&request.worker, &request.owner);
        let drained = self.drained.get(&request.worker) == Some(&request.boot);
        if !drained {
            // It has restarted.
            self.drained.remove(&request.worker);
        }
        let entry = self.workers.entry(request.worker.clone());
        let worker = entry.or_insert_with(|| WorkerState {
            boot: request.boot,
            draining: drained,
            ..WorkerState::default()
        });
        if worker.boot != request.boot {
            worker.draining = false;
        }
        worker.boot = request.boot;
        worker.owner.clone_from(&request.owner);
        worker.owner_id = owner_id;
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
            self.end_reservations_of(&request.worker);
        }
    }

    /// Returns a lease that the worker may keep as it is recorded here, or `None` if it must drop
    /// the lease. An unknown lease is adopted if it is still useful and its grant proves that it
    /// was this worker's.
    fn renew_lease(
        &mut self,
        request: &SyncRequest,
        held: &HeldLease,
        now_ms: u64,
    ) -> Option<Assignment> {
        let HeldLease { lease: claimed, left, unstarted } = held;
        let attempt = claimed.attempt;
        let hash = self.leases.get(attempt).map_or(claimed.job, |lease| lease.job);
        if self.leases.get(attempt).is_some_and(|lease| lease.worker != request.worker) {
            return None;
        }
        if self.reputation.is_quarantined(&request.worker, &request.owner) || *left == 0 {
            self.end_lease(attempt);
            return None;
        }
        let deadline_ms = now_ms + self.lease_ms();
        let is_overdue = self.leases.get(attempt).is_some_and(|lease| {
            self.is_overdue_at_guest(&request.worker, lease.job, &lease.units, now_ms)
        });
        if !self.jobs.get(&hash)?.state.is_counted() || is_overdue {
            self.drop_lease(attempt);
            return None;
        }
        if let Some(lease) = self.leases.get(attempt) {
            // Others have taken all of it, or the check is no longer needed.
            let unneeded =
                lease.mirrored && !self.is_check_leased(hash, lease.units.start, attempt);
            if lease.units.is_empty() || unneeded {
                self.end_lease(attempt);
                return None;
            }
        }
        if !self.leases.renew(attempt, deadline_ms, *unstarted) {
            self.adopt(request, held, now_ms)?;
        }
        let Lease { job, units, mirrored, sub_ranges, .. } = self.leases.get(attempt)?;
        Some(Assignment {
            job: *job,
            units: units.clone(),
            mirrored: *mirrored,
            sub_ranges: *sub_ranges,
            ..claimed.clone()
        })
    }

    /// Adopts a lease that expired or was granted before the coordinator restarted. Others may hold
    /// its units by now. Returns `None` if it is not adopted.
    fn adopt(&mut self, request: &SyncRequest, held: &HeldLease, now_ms: u64) -> Option<()> {
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
        let leases = self.leases.of_worker(&request.worker).count();
        if leases >= most_leases(request) {
            return None;
        }
        let quota = self.remaining_quota(request);
        if self.is_overdue_at_guest(&request.worker, *hash, &units, now_ms) {
            return None;
        }
        let job = self.jobs.get_mut(hash)?;
        let start = held.lease.units.start.max(units.start);
        let end = held
            .lease
            .units
            .end
            .min(units.end)
            .min(start.saturating_add(quota))
            .min(job.units.len());
        if start >= end || job.units.adopt(start..end) == 0 {
            return None;
        }
        let lease = self.new_lease(request, *hash, start..end, now_ms);
        let lease = Lease { unstarted: (*unstarted).min(end - start), ..lease };
        self.leases.insert(*attempt, lease);
        self.record_holder(request, *hash, start..end, now_ms);
        Some(())
    }
}
