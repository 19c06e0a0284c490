//! The operations that others request of the campaign actor.

use std::sync::Arc;

use super::super::commands::{StateError, SubmitReply, SyncReply, Unavailable, WorkerDetails};
use super::super::job_info::JobInfo;
use super::super::now_ms;
use super::super::plan::PlanContext;
use super::CampaignActor;
use crate::board::Problem;
use crate::cluster::campaign::{CampaignEvent, JobState, SyncRequest, UnitId};
use crate::decomposition::{Decomposition, JobHash};

impl CampaignActor {
    /// Takes note that a worker could not count a unit. Ignores a worker to which the unit was
    /// never leased.
    pub(in super::super) fn fail(
        &mut self,
        unit: UnitId,
        attempt: u64,
        worker: &str,
        reason: &str,
    ) -> Result<(), Unavailable> {
        if !self.campaign.was_leased_to(unit, attempt, worker) {
            return Ok(());
        }
        self.observers.unit_failed(worker, unit, reason);
        let events = self.campaign.fail(unit, attempt, worker, reason);
        self.record(events.into_iter().collect())
    }

    /// Takes note that a worker has no kernel for the job of a unit.
    pub(in super::super) fn mark_unsuited(&mut self, unit: UnitId, attempt: u64, worker: &str) {
        self.observers.worker_unsuited(worker, unit.job);
        self.campaign.mark_unsuited(unit, attempt, worker);
    }

    /// Quarantines a worker that gave a wrong answer.
    pub(in super::super) fn report_misbehaviour(&mut self, worker: &str, reason: &str) {
        let events = self.campaign.quarantine(worker, reason, true);
        // If this cannot be written, the answers of the worker are still checked.
        let _ = self.record(events);
    }

    /// Runs an operation and names the person who requested it in the event log.
    pub(in super::super) fn on_behalf_of<T>(
        &mut self,
        name: String,
        act: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.observers.set_requested_by(Some(name));
        let done = act(self);
        self.observers.set_requested_by(None);
        done
    }

    pub(in super::super) fn sync(
        &mut self,
        request: &SyncRequest,
        details: WorkerDetails,
    ) -> SyncReply {
        let from = (&request.worker[..], &request.owner[..]);
        self.workers.record(&self.campaign, from, details, &self.observers);
        let response = self.campaign.sync(request, self.clock.now_ms());
        let mut hashes: Vec<JobHash> = response.desired.iter().map(|lease| lease.job).collect();
        hashes.sort_unstable();
        hashes.dedup();
        let jobs =
            hashes.iter().filter_map(|hash| Some(self.jobs.get(hash)?.job.clone())).collect();
        let running_jobs = self
            .campaign
            .jobs()
            .filter(|job| self.campaign.state(job).is_some_and(JobState::is_counted))
            .count();
        SyncReply {
            response,
            jobs,
            running_jobs: u32::try_from(running_jobs).unwrap_or(u32::MAX),
            quarantined: self.campaign.quarantined().get(&request.worker).cloned(),
            draining: self.campaign.is_draining(&request.worker),
        }
    }

    pub(in super::super) fn plan_context(&self, problem: &Problem) -> PlanContext {
        let same = self.jobs.values().filter(|info| info.job.problem() == problem);
        // A cancelled job is only resumed if there is no other.
        let is_cancelled =
            |info: &&JobInfo| self.campaign.state(&info.job.hash()) == Some(JobState::Cancelled);
        let known = same.min_by_key(is_cancelled).map(|info| info.job.clone());
        PlanContext { known, has_gpu: self.workers.have_gpu() }
    }

    pub(in super::super) fn submit(
        &mut self,
        decomposition: &Arc<Decomposition>,
        priority: i32,
        submitter: &str,
    ) -> Result<SubmitReply, Unavailable> {
        let (job, units) = (decomposition.job(), decomposition.units());
        if let Some(progress) = self.campaign.progress(&job.hash()) {
            let mut state = progress.state;
            if state == JobState::Cancelled {
                // Submitting a cancelled job again resumes it.
                state = JobState::Running;
                let again = vec![CampaignEvent::JobState { job: job.hash(), state }];
                self.on_behalf_of(submitter.to_owned(), |actor| actor.record(again))?;
            }
            return Ok(SubmitReply { known: true, state, priority: progress.priority });
        }
        let submission = CampaignEvent::submission(job, units, priority, submitter, now_ms());
        self.record(vec![submission])?;
        if let Some(info) = self.jobs.get_mut(&job.hash()) {
            info.set_decomposition(decomposition);
        }
        Ok(SubmitReply { known: false, state: JobState::Running, priority })
    }

    /// Returns the job whose name begins with `digits`.
    pub(in super::super) fn find(&self, digits: &str) -> Result<JobHash, StateError> {
        let found: Vec<JobHash> =
            self.jobs.keys().copied().filter(|job| job.to_string().starts_with(digits)).collect();
        match found[..] {
            [job] => Ok(job),
            [] => Err(StateError::NoSuchJob(digits.to_owned())),
            _ => Err(StateError::Ambiguous(digits.to_owned(), found.len())),
        }
    }

    pub(in super::super) fn set_state(
        &mut self,
        digits: &str,
        state: JobState,
    ) -> Result<(JobHash, JobState), StateError> {
        let job = self.find(digits)?;
        let before = self.campaign.state(&job).unwrap_or(JobState::Cancelled);
        let over = matches!(before, JobState::Finished)
            || (before == JobState::Cancelled && state == JobState::Paused)
            || matches!(state, JobState::Finished | JobState::Disputed);
        if over && before != state {
            return Err(StateError::over(job, before, state));
        }
        let mut events = Vec::new();
        if before != state {
            events.push(CampaignEvent::JobState { job, state });
        }
        if state == JobState::Running {
            let poisoned = self.campaign.poisoned(&job).into_iter();
            let revived = |unit| CampaignEvent::UnitRevived { unit: UnitId { job, unit } };
            events.extend(poisoned.map(revived));
        }
        self.record(events)?;
        Ok((job, before))
    }

    /// Drains a worker: it gets no more work until it restarts, even if the coordinator restarts
    /// meanwhile. Returns false if the worker is not known.
    pub(in super::super) fn drain(&mut self, worker: String) -> Result<bool, Unavailable> {
        let found = self.campaign.workers().find(|(name, _)| **name == worker);
        let Some((boot, draining)) = found.map(|(_, state)| (state.boot, state.draining)) else {
            return Ok(false);
        };
        if !draining {
            self.record(vec![CampaignEvent::WorkerDrained { worker, boot }])?;
        }
        Ok(true)
    }

    /// Releases a worker from quarantine. Returns false if it is not in quarantine.
    pub(in super::super) fn release(&mut self, worker: String) -> Result<bool, Unavailable> {
        let is_quarantined = self.campaign.quarantined().contains_key(&worker);
        if is_quarantined {
            self.record(vec![CampaignEvent::WorkerReleased { worker }])?;
        }
        Ok(is_quarantined)
    }
}
