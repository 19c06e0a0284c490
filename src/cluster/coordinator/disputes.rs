//! Disputes: the units that the arbiter is to count, and the totals that contradict a published
//! value.

use std::collections::{BTreeMap, HashSet};
use std::sync::mpsc;

use super::arbiter::Assigned;
use super::job_info::{JobInfo, Jobs};
use crate::cluster::campaign::{
    ArbiterTask, Campaign, CampaignEvent, DisputeStage, JobProgress, UnitId,
};
use crate::decomposition::JobHash;
use crate::oeis;

/// The channel to the arbiter, and the disputes that it cannot settle. The campaign records the
/// unit that it is counting ([`Campaign::is_arbiter_busy`]).
#[derive(Debug)]
pub(super) struct Disputes {
    arbiter: mpsc::Sender<Assigned>,
    /// Units that the arbiter could not decide, and the reasons.
    undecided: BTreeMap<UnitId, String>,
    /// Disputed jobs that were already reported as exhausted.
    reported: HashSet<JobHash>,
}

impl Disputes {
    /// Creates the state without disputes. Tasks are sent to `arbiter`.
    pub(super) fn new(arbiter: mpsc::Sender<Assigned>) -> Self {
        Self { arbiter, undecided: BTreeMap::new(), reported: HashSet::new() }
    }

    /// Lets the arbiter count again what it could not decide. Called when the ledger is read again.
    pub(super) fn reset(&mut self) {
        self.undecided.clear();
    }

    /// Updates the state after an event was applied.
    pub(super) fn update(&mut self, event: &CampaignEvent) {
        if let CampaignEvent::JobState { job, .. } = event {
            self.reported.remove(job);
        }
    }

    /// Returns the arbiter's next task. It gets one at a time, because a ruling may settle others.
    pub(super) fn next_task(&self, campaign: &mut Campaign, steady_ms: u64) -> Option<ArbiterTask> {
        campaign.next_for_arbiter(steady_ms, |unit| self.undecided.contains_key(&unit))
    }

    /// Sends a task to the arbiter. Returns false if its thread has ended.
    pub(super) fn assign(&mut self, assigned: Assigned) -> bool {
        let unit = assigned.task.unit;
        let sent = self.arbiter.send(assigned).is_ok();
        if !sent {
            let reason = "the arbiter has ended; restart the coordinator".to_owned();
            self.record_undecided(unit, reason);
        }
        sent
    }

    /// Records that the arbiter cannot decide a unit.
    pub(super) fn record_undecided(&mut self, unit: UnitId, reason: String) {
        self.undecided.insert(unit, reason);
    }

    /// Returns the units of a job that the arbiter could not decide, and the reasons.
    pub(super) fn undecided(&self, job: JobHash) -> impl Iterator<Item = (u64, &str)> {
        let of_job = self.undecided.iter().filter(move |(unit, _)| unit.job == job);
        of_job.map(|(unit, reason)| (unit.unit, &reason[..]))
    }

    /// Returns the disputed jobs for which nothing more can be recounted, each once per dispute.
    pub(super) fn newly_exhausted(&mut self, campaign: &Campaign) -> Vec<JobHash> {
        let is_exhausted =
            |job: &JobHash| dispute_stage(campaign, job) == Some(DisputeStage::Exhausted);
        campaign.jobs().filter(is_exhausted).filter(|&job| self.reported.insert(job)).collect()
    }
}

/// Returns the stage of the dispute about the total of a job. A dispute is not exhausted while
/// anything is still counted for it.
pub(super) fn dispute_stage(campaign: &Campaign, job: &JobHash) -> Option<DisputeStage> {
    let (stage, progress) = campaign.dispute_stage(job).zip(campaign.progress(job))?;
    let is_counted = progress.done < progress.units || progress.checks_due + progress.disputes > 0;
    let is_over = stage == DisputeStage::Exhausted;
    Some(if is_over && is_counted { DisputeStage::Unconfirmed } else { stage })
}

/// Describes what is wrong with the total of a job and what is being done about it. Returns an
/// empty text if the job is not disputed.
pub(super) fn describe_dispute(campaign: &Campaign, jobs: &Jobs, job: &JobHash) -> String {
    let known = dispute_stage(campaign, job).zip(jobs.get(job)).zip(campaign.progress(job));
    known.map(|((stage, info), progress)| describe(stage, info, &progress)).unwrap_or_default()
}

fn describe(stage: DisputeStage, info: &JobInfo, progress: &JobProgress) -> String {
    let wrong = match (progress.total.solutions(), oeis::published(info.job.problem())) {
        _ if progress.done < progress.units => {
            "results were found to be wrong and taken back".to_owned()
        }
        (Err(error), _) => format!("the total cannot be right: {error}"),
        (Ok(found), Some(published)) => {
            format!("the total {found} contradicts the published value {published}")
        }
        (Ok(_), None) => "the total was disputed".to_owned(),
    };
    let action = match stage {
        DisputeStage::Unconfirmed => "units that nobody has confirmed are being counted again",
        DisputeStage::Confirmed => {
            "the coordinator is counting again the units that only workers have confirmed"
        }
        DisputeStage::Exhausted => {
            "the coordinator itself has counted every unit again and confirmed it: the published \
             value or this program is wrong; please report it"
        }
    };
    format!("{wrong}; {action}")
}
