//! The requests to the campaign actor, except for results.

use super::super::commands::{
    Request, StateError, SubmitReply, SyncReply, Unavailable, WorkerDetails,
};
use super::super::job_info::JobInfo;
use super::super::now_ms;
use super::super::plan::{PlanContext, Planned};
use super::{Batch, CampaignActor};
use crate::board::Problem;
use crate::cluster::campaign::{CampaignEvent, JobState, SyncRequest, UnitId};
use crate::decomposition::JobHash;

impl CampaignActor {
    pub(super) fn handle(&mut self, request: Request) {
        match request {
            Request::Complete(results, reply) => {
                let mut batch = Batch::default();
                self.complete(results, reply, &mut batch);
                self.commit(&mut batch);
            }
            Request::Sync(request, details, reply) => {
                let _ = reply.send(self.sync(&request, details));
            }
            Request::Fail { unit, attempt, worker, unsuited: true, reply, .. } => {
                self.observers.worker_unsuited(&worker, unit.job);
                self.campaign.mark_unsuited(unit, attempt, &worker);
                let _ = reply.send(Ok(()));
            }
            // Ignore a worker to which the unit was never leased.
            Request::Fail { unit, attempt, worker, reply, .. }
                if !self.campaign.was_leased_to(unit, attempt, &worker) =>
            {
                let _ = reply.send(Ok(()));
            }
            Request::Fail { unit, attempt, worker, reason, reply, .. } => {
                self.observers.unit_failed(&worker, unit, &reason);
                let events = self.campaign.fail(unit, attempt, &worker, &reason);
                let _ = reply.send(self.record(events.into_iter().collect()));
            }
            Request::PlanContext(problem, reply) => {
                let _ = reply.send(self.plan_context(&problem));
            }
            Request::Submit { planned, priority, submitter, reply } => {
                let _ = reply.send(self.submit(&planned, priority, &submitter));
            }
            Request::SetState { job, state, by, reply } => {
                let _ = reply.send(self.on_behalf_of(by, |actor| actor.set_state(&job, state)));
            }
            Request::Drain { worker, by, reply } => {
                let _ = reply.send(self.on_behalf_of(by, |actor| actor.drain(worker)));
            }
            Request::ReportMisbehaviour { worker, reason } => {
                let events = self.campaign.quarantine(&worker, &reason, true);
                // If this cannot be written, the answers of the worker are still checked.
                let _ = self.record(events);
            }
            Request::Release { worker, by, reply } => {
                let known = self.campaign.quarantined().contains_key(&worker);
                let release =
                    |actor: &mut Self| actor.record(vec![CampaignEvent::WorkerReleased { worker }]);
                let released = if known { self.on_behalf_of(by, release) } else { Ok(()) };
                let _ = reply.send(released.map(|()| known));
            }
            Request::Status(job, reply) => {
                let _ = reply.send(self.status(&job));
            }
            Request::UnitMap { job, version, reply } => {
                let _ = reply.send(self.unit_map(&job, version));
            }
            Request::History { job, after_ms, reply } => {
                let _ = reply.send(self.history(&job, after_ms));
            }
            Request::HasReservedCheck(worker, reply) => {
                let _ = reply.send(self.campaign.has_reserved_spot_check(&worker));
            }
            Request::Workers(reply) => {
                let _ = reply.send(self.workers());
            }
            Request::Ruling(answer) => self.rule(answer),
            Request::LedgerChecked(checked) => self.ledger_checked(checked),
            Request::Tick => self.tick(),
            // Handled in `work`.
            Request::Stop => {}
        }
    }

    /// Runs an operation and names the person who requested it in the event log.
    fn on_behalf_of<T>(&mut self, name: String, act: impl FnOnce(&mut Self) -> T) -> T {
        self.observers.set_requested_by(Some(name));
        let done = act(self);
        self.observers.set_requested_by(None);
        done
    }

    fn sync(&mut self, request: &SyncRequest, details: WorkerDetails) -> SyncReply {
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

    fn plan_context(&self, problem: &Problem) -> PlanContext {
        let same = self.jobs.values().filter(|info| info.job.problem() == problem);
        // A cancelled job is only resumed if there is no other.
        let is_cancelled =
            |info: &&JobInfo| self.campaign.state(&info.job.hash()) == Some(JobState::Cancelled);
        let known = same.min_by_key(is_cancelled).map(|info| info.job.clone());
        PlanContext { known, has_gpu: self.workers.have_gpu() }
    }

    fn submit(
        &mut self,
        planned: &Planned,
        priority: i32,
        submitter: &str,
    ) -> Result<SubmitReply, Unavailable> {
        let Planned { decomposition } = planned;
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

    pub(super) fn set_state(
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
    fn drain(&mut self, worker: String) -> Result<bool, Unavailable> {
        let found = self.campaign.workers().find(|(name, _)| **name == worker);
        let Some((boot, draining)) = found.map(|(_, state)| (state.boot, state.draining)) else {
            return Ok(false);
        };
        if !draining {
            self.record(vec![CampaignEvent::WorkerDrained { worker, boot }])?;
        }
        Ok(true)
    }
}
