//! Read access to a campaign, for reports.

use std::collections::HashMap;

use super::cells::UnitMap;
use super::event::JobState;
use super::finish::DisputeStage;
use super::guests::GuestShare;
use super::state::Campaign;
use super::unit_result::Source;
use super::workers::WorkerState;
use super::{UnitId, WorkerName};
use crate::decomposition::JobHash;
use crate::tally::Tally;

/// The progress of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobProgress {
    /// Its state.
    pub state: JobState,
    /// Priority; jobs with a higher one come first.
    pub priority: i32,
    /// Time of submission, in ms.
    pub submitted_ms: u64,
    /// Units of the job.
    pub units: u64,
    /// Units counted.
    pub done: u64,
    /// Units confirmed in full by workers of other owners or by the coordinator.
    pub checked: u64,
    /// Units confirmed in full by the coordinator; part of `checked`.
    pub audited: u64,
    /// Units of which workers of other owners or the coordinator confirmed some sub-ranges.
    pub spot_checked: u64,
    /// Units confirmed only by their own owner.
    pub self_checked: u64,
    /// Poisoned units.
    pub poisoned: u64,
    /// Units that are not leased, done or poisoned.
    pub open: u64,
    /// Pending checks, audits included.
    pub checks_due: u64,
    /// Pending audits.
    pub audits_due: u64,
    /// Units with two different results.
    pub disputes: u64,
    /// The sum of the units that are done.
    pub total: Tally,
    /// Total counting time of all sources, in seconds.
    pub counting_s: f64,
    /// Total time of recounts, in seconds.
    pub checking_s: f64,
    /// The contribution of guests.
    pub guests: GuestShare,
}

/// The units in force that a worker counted first, over all jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerRecord {
    /// Their number.
    pub units: u64,
    /// Those that others confirmed in full.
    pub confirmed: u64,
    /// Those of which others confirmed any part.
    pub proven: u64,
}

impl JobProgress {
    /// Returns whether units are leased for counting.
    pub const fn is_counted(&self) -> bool {
        self.done + self.open + self.poisoned < self.units
    }
}

/// A source's contribution to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceShare {
    /// The source.
    pub source: Source,
    /// Units in force that it counted first.
    pub units: u64,
    /// Units among them that another source confirmed in full.
    pub confirmed: u64,
    /// Units in force of other sources that it confirmed in full.
    pub confirmations: u64,
}

impl Campaign {
    /// Returns a job's state.
    pub fn state(&self, job: &JobHash) -> Option<JobState> {
        Some(self.jobs.get(job)?.state)
    }

    /// Returns a job's progress.
    pub fn progress(&self, job: &JobHash) -> Option<JobProgress> {
        let job = self.jobs.get(job)?;
        Some(JobProgress {
            guests: self.guest_share(job),
            state: job.state,
            priority: job.priority,
            submitted_ms: job.submitted_ms,
            units: job.units.len(),
            done: job.units.done(),
            checked: job.units.checked(),
            audited: job.units.audited(),
            spot_checked: job.units.spot_checked(),
            self_checked: job.units.self_checked(),
            poisoned: job.units.poisoned(),
            open: job.units.open(),
            checks_due: (job.checks.len() + job.checks.audits()) as u64,
            audits_due: job.checks.audits() as u64,
            disputes: job.disputes.len() as u64,
            total: *job.units.total(),
            counting_s: job.counting_s,
            checking_s: job.checking_s,
        })
    }

    /// Returns the numbers of units of a job that are done and that are confirmed in full. Takes
    /// constant time.
    pub fn done_and_checked(&self, job: &JobHash) -> Option<(u64, u64)> {
        let units = &self.jobs.get(job)?.units;
        Some((units.done(), units.checked()))
    }

    /// Returns the map of a job's units.
    pub fn map(&self, job: &JobHash) -> Option<&UnitMap> {
        Some(self.jobs.get(job)?.units.map())
    }

    /// Returns each source's contribution to a job, sorted by source.
    pub fn shares(&self, job: &JobHash) -> Vec<SourceShare> {
        let Some(job) = self.jobs.get(job) else { return Vec::new() };
        let mut shares: Vec<SourceShare> = job
            .units
            .shares()
            .map(|(&number, share)| SourceShare {
                source: self.reputation.source(number).clone(),
                units: share.units,
                confirmed: share.confirmed,
                confirmations: share.confirmations,
            })
            .collect();
        shares.sort_by(|a, b| a.source.cmp(&b.source));
        shares
    }

    /// Returns the record of each worker over all jobs.
    pub fn records(&self) -> HashMap<&WorkerName, WorkerRecord> {
        let mut records: HashMap<&WorkerName, WorkerRecord> = HashMap::new();
        for (&number, share) in self.jobs.values().flat_map(|job| job.units.shares()) {
            let record = records.entry(&self.reputation.source(number).worker).or_default();
            record.units += share.units;
            record.confirmed += share.confirmed;
            record.proven += share.proven;
        }
        records
    }

    /// Returns the poisoned units of a job.
    pub fn poisoned(&self, job: &JobHash) -> Vec<u64> {
        self.jobs.get(job).map(|job| job.units.poisoned_units().collect()).unwrap_or_default()
    }

    /// Returns the jobs, in no particular order.
    pub fn jobs(&self) -> impl Iterator<Item = JobHash> {
        self.jobs.keys().copied()
    }

    /// Returns the workers that have synced since the start, by name.
    pub fn workers(&self) -> impl Iterator<Item = (&WorkerName, &WorkerState)> {
        self.workers.iter()
    }

    /// Returns the number of leased units of each worker that has any.
    pub fn held(&self) -> HashMap<&WorkerName, u64> {
        let mut held: HashMap<&WorkerName, u64> = HashMap::new();
        for lease in self.leases.values() {
            *held.entry(&lease.worker).or_default() += lease.len();
        }
        held
    }

    /// Returns the quarantined workers, with the reason.
    pub fn quarantined(&self) -> &HashMap<WorkerName, String> {
        self.reputation.quarantined()
    }

    /// Returns the stage of the dispute about a job's total, or `None` without a dispute.
    pub fn dispute_stage(&self, job: &JobHash) -> Option<DisputeStage> {
        let job = self.jobs.get(job).filter(|job| job.state == JobState::Disputed)?;
        Some(job.stage)
    }

    /// Returns whether a worker has synced since the start. Its kernels and devices are unknown
    /// before that.
    pub fn has_synced(&self, worker: &str) -> bool {
        self.workers.contains_key(worker)
    }

    /// Returns the units with two different results, which the arbiter is to count.
    pub fn disputes(&self) -> impl Iterator<Item = UnitId> {
        self.jobs
            .iter()
            .flat_map(|(&job, state)| state.disputes.keys().map(move |&unit| UnitId { job, unit }))
    }

    /// Returns the source and the result of a unit that is done.
    pub fn outcome(&self, unit: UnitId) -> Option<(&Source, Tally)> {
        let outcome = self.jobs.get(&unit.job)?.units.outcome(unit.unit)?;
        Some((self.reputation.source(outcome.source), outcome.tally))
    }
}
