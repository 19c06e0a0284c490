//! Replay of a ledger into a campaign.

use std::collections::HashMap;

use super::contributions::Contributions;
use super::event_log::OperatorEvent;
use super::history::History;
use super::job_info::{JobInfo, Jobs};
use super::ledger_entries::{recount_event, spot_check_event, state, unit_done_event};
use super::observers::outcome;
use crate::cluster::campaign::{Campaign, CampaignEvent, JobState, UnitId};
use crate::cluster::ledger::{
    CampaignFile, JobRecord, JobSubmitted, LedgerError, Loaded, UnitReason, WorkerDrained,
    WorkerQuarantined, WorkerRecord, WorkerReleased,
};
use crate::decomposition::{Job, JobHash};
use crate::oeis;
use crate::report::count_title;

/// The content of a ledger besides the campaign.
#[derive(Default)]
pub(super) struct LoadedLedger {
    pub(super) jobs: Jobs,
    pub(super) histories: HashMap<JobHash, History>,
    pub(super) contributions: Contributions,
    /// Operator events with their times, in ms since 1970, in chronological order.
    pub(super) operator_events: Vec<(u64, OperatorEvent)>,
}

/// The times at which units of a job were counted and confirmed, in ms since 1970.
#[derive(Default)]
struct Times {
    submitted_ms: u64,
    done: Vec<u64>,
    verified: Vec<u64>,
}

/// Replays a ledger into a new campaign.
pub(super) fn load(
    file: &mut CampaignFile,
    campaign: &mut Campaign,
) -> Result<LoadedLedger, LedgerError> {
    let (loaded, times, states) = (LoadedLedger::default(), HashMap::new(), Vec::new());
    let mut replay = Replay { campaign, loaded, times, states };
    file.load(&mut |record| replay.record(record))?;
    Ok(replay.finish())
}

/// A replay in progress.
struct Replay<'a> {
    campaign: &'a mut Campaign,
    loaded: LoadedLedger,
    times: HashMap<JobHash, Times>,
    /// The final states of the jobs, with their times in ms since 1970 and the titles of the jobs.
    states: Vec<(JobHash, JobState, u64, String)>,
}

impl Replay<'_> {
    fn add_event(&mut self, at_ms: u64, event: OperatorEvent) {
        self.loaded.operator_events.push((at_ms, event));
    }

    fn record(&mut self, record: Loaded) {
        match record {
            Loaded::Job(record) => self.job(record),
            Loaded::Unit(done) => {
                if let Some(times) = self.times.get_mut(&done.job) {
                    times.done.push(done.at_ms);
                }
                let at_ms = done.at_ms;
                let event = unit_done_event(done);
                self.loaded.contributions.record(&event, at_ms);
                self.campaign.apply(&event);
            }
            Loaded::Recount(recount) => {
                if let Some(times) = self.times.get_mut(&recount.job).filter(|_| recount.agrees) {
                    times.verified.push(recount.at_ms);
                }
                self.campaign.apply(&recount_event(recount));
            }
            Loaded::SpotCheck(check) => self.campaign.apply(&spot_check_event(check)),
            Loaded::Poisoned(UnitReason { job, unit, reason, at_ms }) => {
                if let Some(info) = self.loaded.jobs.get_mut(&job) {
                    info.poison.insert(unit, reason.clone());
                }
                let unit = UnitId { job, unit };
                self.add_event(at_ms, OperatorEvent::unit_poisoned(unit, &reason));
                self.campaign.apply(&CampaignEvent::UnitPoisoned { unit, reason });
            }
            Loaded::Quarantined(WorkerQuarantined { worker, reason, widen, at_ms }) => {
                self.add_event(at_ms, OperatorEvent::worker_quarantined(&worker, &reason));
                self.campaign.apply(&CampaignEvent::WorkerQuarantined { worker, reason, widen });
            }
            Loaded::Drained(WorkerDrained { worker, boot, at_ms }) => {
                self.add_event(at_ms, OperatorEvent::worker_drained(&worker, ""));
                self.campaign.restore_draining(&worker, boot);
            }
            Loaded::Released(WorkerReleased { worker, at_ms }) => {
                self.add_event(at_ms, OperatorEvent::worker_released(&worker, ""));
                self.campaign.apply(&CampaignEvent::WorkerReleased { worker });
            }
            // Everything else about the worker comes in later entries.
            Loaded::Worker(WorkerRecord { worker, owner, .. }) => {
                if let Some(owner) = owner {
                    self.campaign.register_owner(&worker, &owner);
                }
            }
        }
    }

    fn job(&mut self, record: JobRecord) {
        let JobSubmitted { job: hash, text, units, priority, submitter, at_ms } = record.submitted;
        // The ledger accepts no text but the job's own.
        let job: Option<Job> = text.parse().ok();
        let published = job.as_ref().and_then(|job| oeis::published(job.problem()));
        let submitted =
            CampaignEvent::JobSubmitted { job: hash, units, priority, at_ms, published };
        self.campaign.apply(&submitted);
        let title = job.as_ref().map_or_else(|| text.clone(), |job| count_title(job.problem()));
        let state = state(record.phase);
        self.times.insert(hash, Times { submitted_ms: at_ms, ..Times::default() });
        self.add_event(at_ms, OperatorEvent::job_submitted(hash, &title, &submitter, Some(units)));
        // A finished job loses no results to quarantines that come later, so finish it first.
        if state == JobState::Finished {
            self.campaign.apply(&CampaignEvent::JobState { job: hash, state });
        }
        self.states.push((hash, state, record.phase_ms, title));
        if let Some(job) = job {
            self.loaded.jobs.insert(hash, JobInfo::new(job, submitter, record.phase_ms));
        }
    }

    fn finish(mut self) -> LoadedLedger {
        for (job, state, at_ms, title) in std::mem::take(&mut self.states) {
            self.campaign.apply(&CampaignEvent::JobState { job, state });
            if state != JobState::Running {
                let entered = OperatorEvent::job_state(job, &title, state, "");
                let outcome = outcome(self.campaign, &job, state);
                self.add_event(
                    at_ms,
                    match outcome {
                        Some(outcome) => entered.with_outcome(&outcome),
                        None => entered,
                    },
                );
            }
        }
        let history = |(job, times): (JobHash, Times)| {
            (job, History::from_ledger(times.submitted_ms, times.done, times.verified))
        };
        self.loaded.histories = self.times.into_iter().map(history).collect();
        self.loaded.operator_events.sort_by_key(|&(at_ms, _)| at_ms);
        self.loaded
    }
}
