//! What the campaign calls events, the ledger keeps as entries.

use std::collections::BTreeMap;

use crate::campaign::{Campaign, Event, JobState, Source, UnitId};
use crate::ledger::{
    CampaignFile, Entry, JobState as Changed, JobSubmitted, LedgerError, Loaded, Phase, Recount, UnitDone,
    UnitReason, UnitRevived, WorkerQuarantined, WorkerReleased,
};
use crate::preplacement::{Job, JobHash};

/// What is known of a job besides its units.
#[derive(Clone, Debug)]
pub(super) struct JobInfo {
    pub(super) job: Job,
    pub(super) submitter: String,
    /// When its state changed last.
    pub(super) state_ms: u64,
    /// Why units are set aside.
    pub(super) poison: BTreeMap<u64, String>,
}

/// An event that can be kept. A submission needs more than the campaign knows: see [`submission`].
pub(super) fn entry(event: &Event, at_ms: u64) -> Option<Entry> {
    Some(match event.clone() {
        Event::JobSubmitted { .. } => return None,
        Event::JobState { job, state } => Entry::JobState(Changed { job, state: phase(state), at_ms }),
        Event::UnitDone { unit: UnitId { job, unit }, attempt, tally, source, elapsed_s } => {
            let Source { worker, kernel, device, build } = source;
            Entry::UnitDone(UnitDone {
                job,
                unit,
                tally,
                worker,
                kernel,
                device,
                build,
                attempt,
                elapsed_s,
                at_ms,
            })
        }
        Event::Recount { unit: UnitId { job, unit }, tally, source, mirrored, agrees, elapsed_s } => {
            let Source { worker, kernel, device, build } = source;
            Entry::Recount(Recount {
                job,
                unit,
                tally,
                worker,
                kernel,
                device,
                build,
                mirrored,
                agrees,
                elapsed_s,
                at_ms,
            })
        }
        Event::UnitVoided { unit: UnitId { job, unit }, reason } => {
            Entry::UnitVoided(UnitReason { job, unit, reason, at_ms })
        }
        Event::UnitPoisoned { unit: UnitId { job, unit }, reason } => {
            Entry::UnitPoisoned(UnitReason { job, unit, reason, at_ms })
        }
        Event::UnitRevived { unit: UnitId { job, unit } } => {
            Entry::UnitRevived(UnitRevived { job, unit, at_ms })
        }
        Event::WorkerQuarantined { worker, reason } => {
            Entry::WorkerQuarantined(WorkerQuarantined { worker, reason, at_ms })
        }
        Event::WorkerReleased { worker } => Entry::WorkerReleased(WorkerReleased { worker, at_ms }),
    })
}

/// A job that is submitted, for the ledger and for the campaign.
pub(super) fn submission(
    job: &Job,
    units: u64,
    priority: i32,
    submitter: &str,
    at_ms: u64,
) -> (Entry, Event) {
    let (hash, text, submitter) = (job.hash(), job.to_string(), submitter.to_owned());
    let entry = Entry::JobSubmitted(JobSubmitted { job: hash, text, units, priority, submitter, at_ms });
    (entry, Event::JobSubmitted { job: hash, units, priority, at_ms })
}

const fn phase(state: JobState) -> Phase {
    match state {
        JobState::Running => Phase::Running,
        JobState::Paused => Phase::Paused,
        JobState::Cancelled => Phase::Cancelled,
        JobState::Finished => Phase::Finished,
    }
}

const fn state(phase: Phase) -> JobState {
    match phase {
        Phase::Running => JobState::Running,
        Phase::Paused => JobState::Paused,
        Phase::Cancelled => JobState::Cancelled,
        Phase::Finished => JobState::Finished,
    }
}

/// Replays a ledger into a campaign that is new.
pub(super) fn load(
    file: &mut CampaignFile,
    campaign: &mut Campaign,
) -> Result<BTreeMap<JobHash, JobInfo>, LedgerError> {
    let mut jobs: BTreeMap<JobHash, JobInfo> = BTreeMap::new();
    let mut states: Vec<(JobHash, JobState)> = Vec::new();
    file.load(&mut |loaded| match loaded {
        Loaded::Job(record) => {
            let JobSubmitted { job: hash, text, units, priority, submitter, at_ms } = record.submitted;
            campaign.apply(&Event::JobSubmitted { job: hash, units, priority, at_ms });
            states.push((hash, state(record.phase)));
            // The ledger takes no text that is not the job's.
            if let Ok(job) = text.parse() {
                let info = JobInfo { job, submitter, state_ms: record.phase_ms, poison: BTreeMap::new() };
                jobs.insert(hash, info);
            }
        }
        Loaded::Unit(done) => {
            let UnitDone { job, unit, tally, worker, kernel, device, build, attempt, elapsed_s, .. } = done;
            let (unit, source) = (UnitId { job, unit }, Source { worker, kernel, device, build });
            campaign.apply(&Event::UnitDone { unit, attempt, tally, source, elapsed_s });
        }
        Loaded::Recount(recount) => {
            let Recount {
                job, unit, tally, worker, kernel, device, build, mirrored, agrees, elapsed_s, ..
            } = recount;
            let (unit, source) = (UnitId { job, unit }, Source { worker, kernel, device, build });
            campaign.apply(&Event::Recount { unit, tally, source, mirrored, agrees, elapsed_s });
        }
        Loaded::Poisoned(UnitReason { job, unit, reason, .. }) => {
            if let Some(info) = jobs.get_mut(&job) {
                info.poison.insert(unit, reason.clone());
            }
            campaign.apply(&Event::UnitPoisoned { unit: UnitId { job, unit }, reason });
        }
        Loaded::Quarantined(WorkerQuarantined { worker, reason, .. }) => {
            campaign.apply(&Event::WorkerQuarantined { worker, reason });
        }
        Loaded::Released(WorkerReleased { worker, .. }) => {
            campaign.apply(&Event::WorkerReleased { worker });
        }
        // What became of it came before.
        Loaded::Worker(_) => {}
    })?;
    for (job, state) in states {
        campaign.apply(&Event::JobState { job, state });
    }
    Ok(jobs)
}
