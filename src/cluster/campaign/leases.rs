//! Leases: the current assignment of units to workers. They are volatile; a worker's next sync
//! lists again the leases that it holds.

use std::ops::Range;

use super::WorkerName;
use super::assignment::{Assignment, SubRangeSet};
use super::event::CampaignEvent;
use super::key::{Grant, Grantee};
use super::reputation::OwnerId;
use super::state::Campaign;
use super::sync::SyncRequest;
use super::units::UnitStatus;
use crate::decomposition::JobHash;

/// The number of workers for each millisecond between two scans of all workers. A scan takes up to
/// 2 µs for each worker (a tick of `benches/scale` with 10,000 volunteers), so scans take at most
/// about 2 % of the time.
const WORKERS_PER_MS: u64 = 10;

/// Units assigned to a worker until a deadline.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) worker: WorkerName,
    /// Owner of the worker when it was granted.
    pub(super) owner: OwnerId,
    pub(super) job: JobHash,
    pub(super) units: Range<u64>,
    /// True if it is a recount.
    pub(super) mirrored: bool,
    /// For a recount: the sub-ranges to count; empty for all.
    pub(super) sub_ranges: SubRangeSet,
    /// For a recount: the sum to confirm, in thirds of a solution; [`crate::decomposition`]
    /// explains why counts are in thirds.
    pub(super) thirds: Option<u128>,
    /// True if this lease repeats work: it is a recount, or another worker already holds its unit
    /// and is slow.
    pub(super) copy: bool,
    /// Units that the worker had not started at its last sync.
    pub(super) unstarted: u64,
    pub(super) granted_ms: u64,
    pub(super) deadline_ms: u64,
    /// Expected counting time in seconds, if the worker's rate is known.
    pub(super) predicted_s: Option<f64>,
}

impl Lease {
    pub(super) fn len(&self) -> u64 {
        self.units.end - self.units.start
    }

    /// Returns the scope that its grant states.
    pub(super) fn scope(&self) -> Grant {
        let Self { mirrored, sub_ranges, .. } = *self;
        Grant { units: self.units.clone(), mirrored, sub_ranges }
    }
}

/// Number of ended leases that are remembered: a worker returns a lease and then reports the
/// failures in it.
const MOST_ENDED: usize = 4096;

impl Campaign {
    /// Ends a lease that the worker no longer holds. If all of it is done, the worker's next lease
    /// may be larger.
    pub(super) fn end_lease(&mut self, attempt: u64) {
        if let Some(lease) = self.leases.get(attempt)
            && !lease.mirrored
            && let Some(job) = self.jobs.get(&lease.job)
            && lease.units.clone().all(|unit| job.units.status(unit) == Some(UnitStatus::Done))
            && let Some(worker) = self.workers.get_mut(&lease.worker)
        {
            let (twice, most) = (2 * lease.len().max(1), self.settings.most_lease_units);
            let next = worker.lease_units.entry(lease.job).or_insert(1);
            *next = (*next).max(twice).min(most.max(1));
        }
        self.drop_lease(attempt);
    }

    /// Creates a lease for the first count of units by the worker of a request.
    pub(super) fn new_lease(
        &mut self,
        request: &SyncRequest,
        job: JobHash,
        units: Range<u64>,
        now_ms: u64,
    ) -> Lease {
        Lease {
            worker: request.worker.clone(),
            owner: self.reputation.owner(&request.worker, &request.owner),
            job,
            mirrored: false,
            sub_ranges: SubRangeSet::default(),
            thirds: None,
            copy: false,
            unstarted: units.end - units.start,
            units,
            granted_ms: now_ms,
            deadline_ms: now_ms + self.lease_ms(),
            predicted_s: None,
        }
    }

    /// Adds a lease under a new number. Returns it as granted to the worker of the request.
    pub(super) fn add_lease(&mut self, request: &SyncRequest, lease: Lease) -> Assignment {
        let attempt = self.next_attempt();
        let SyncRequest { worker, owner, .. } = request;
        let Lease { job, thirds, .. } = lease;
        let grantee = Grantee { attempt, worker, owner, job: &job, thirds };
        let scope = lease.scope();
        let grant = self.key.seal(&scope, &grantee);
        self.leases.insert(attempt, lease);
        let Grant { units, mirrored, sub_ranges } = scope;
        Assignment { attempt, job, units, mirrored, not_kernel: None, sub_ranges, grant }
    }

    /// Returns a lease, also if it has ended recently.
    pub(super) fn lease_or_ended(&self, attempt: u64) -> Option<&Lease> {
        self.leases.get(attempt).or_else(|| self.ended.get(&attempt))
    }

    /// Ends a lease and opens those of its units that no other lease contains.
    pub(super) fn drop_lease(&mut self, attempt: u64) {
        let Some(lease) = self.leases.remove(attempt) else { return };
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
        let others: Vec<Range<u64>> = self
            .leases
            .overlapping(lease.job, lease.units.clone())
            .map(|other| other.units.clone())
            .collect();
        if let Some(job) = self.jobs.get_mut(&lease.job) {
            job.units.release(lease.units, |unit| others.iter().any(|range| range.contains(&unit)));
        }
    }

    /// Ends expired leases and advances the jobs. Returns the events for units that are now
    /// poisoned and for jobs that are finished or disputed.
    pub fn tick(&mut self, now_ms: u64) -> Vec<CampaignEvent> {
        self.started_ms.get_or_insert(now_ms);
        self.ticked_ms = now_ms;
        let is_alone = |worker: &str| {
            let of_worker = self.leases.of_worker(worker);
            of_worker.filter(|(_, other)| !other.mirrored && !other.units.is_empty()).count() == 1
        };
        let expired: Vec<(u64, Lease, bool)> = self
            .leases
            .expired(now_ms)
            .into_iter()
            .filter_map(|attempt| {
                let lease = self.leases.get(attempt)?;
                Some((attempt, lease.clone(), is_alone(&lease.worker)))
            })
            .collect();
        let mut events = Vec::new();
        for (attempt, lease, alone) in expired {
            self.drop_lease(attempt);
            events.extend(self.mark_suspects(&lease, alone));
        }
        self.expire_reservations(now_ms);
        if now_ms >= self.scan_workers_ms {
            self.scan_workers_ms = now_ms + self.ms_between_scans();
            self.scan_workers(now_ms);
        }
        events.extend(self.conclude());
        events
    }

    /// Returns the least time between two scans of all workers, in ms.
    pub fn ms_between_scans(&self) -> u64 {
        self.workers.len() as u64 / WORKERS_PER_MS
    }

    /// Does the work that requires a scan of all workers.
    fn scan_workers(&mut self, now_ms: u64) {
        self.forget_rates();
        self.count_workers(now_ms);
        self.end_reservations_of_silent_workers(now_ms);
        self.forget_silent_workers(now_ms);
        self.withdraw_late_checks(now_ms);
        self.draw_checkers(now_ms);
    }
}
