//! Conversion between campaign events and ledger entries.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::actor::name;
use super::event_log::OperatorEvent;
use super::history::History;
use crate::cluster::campaign::{
    Campaign, CheckPlan, Depth, Event, JobState, Source, SubRangeSet, UnitId,
};
use crate::cluster::ledger::{
    CampaignFile, CheckDepth, DrawnChecks, Entry, JobState as Changed, JobSubmitted, LedgerError,
    Loaded, Phase, Recount, SpotCheck, SubSums, UnitDone, UnitReason, UnitRevived, WorkerDrained,
    WorkerQuarantined, WorkerRecord, WorkerReleased,
};
use crate::cluster::protocol::v1::EventKind;
use crate::decomposition::{Decomposition, Job, JobHash};
use crate::oeis;

/// Information about a job besides its units.
#[derive(Clone, Debug)]
pub(super) struct JobInfo {
    pub(super) job: Job,
    pub(super) submitter: String,
    /// The time at which the state last changed, in ms since 1970.
    pub(super) state_ms: u64,
    /// The units, planned on first use.
    pub(super) decomposition: Option<Arc<Decomposition>>,
    /// The reasons that units are set aside.
    pub(super) poison: BTreeMap<u64, String>,
}

/// Converts an event to a ledger entry. Returns `None` for a submission, which needs more than the
/// campaign knows: see [`submission`].
pub(super) fn entry(event: &Event, at_ms: u64) -> Option<Entry> {
    Some(match event.clone() {
        Event::JobSubmitted { .. } => return None,
        Event::JobState { job, state } => {
            Entry::JobState(Changed { job, state: phase(state), at_ms })
        }
        Event::UnitDone {
            unit: UnitId { job, unit },
            attempt,
            tally,
            source,
            elapsed_s,
            checks,
            sub_sums,
        } => {
            let Source { worker, owner, kernel, device, build } = source;
            Entry::UnitDone(UnitDone {
                job,
                unit,
                tally,
                worker,
                owner,
                kernel,
                device,
                build,
                attempt,
                elapsed_s,
                checks: checks.map(drawn_checks),
                sub_sums: SubSums(sub_sums),
                at_ms,
            })
        }
        Event::SpotCheck {
            unit: UnitId { job, unit },
            sub_ranges,
            sums,
            source,
            agrees,
            elapsed_s,
        } => {
            let Source { worker, owner, kernel, device, build } = source;
            Entry::SpotCheck(SpotCheck {
                job,
                unit,
                sub_ranges: sub_ranges.numbers().collect(),
                sums: SubSums(sums),
                worker,
                owner,
                kernel,
                device,
                build,
                agrees,
                elapsed_s,
                at_ms,
            })
        }
        Event::Recount {
            unit: UnitId { job, unit },
            tally,
            source,
            mirrored,
            agrees,
            elapsed_s,
        } => {
            let Source { worker, owner, kernel, device, build } = source;
            Entry::Recount(Recount {
                job,
                unit,
                tally,
                worker,
                owner,
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
        Event::WorkerQuarantined { worker, reason, widen } => {
            Entry::WorkerQuarantined(WorkerQuarantined { worker, reason, widen, at_ms })
        }
        Event::WorkerReleased { worker } => Entry::WorkerReleased(WorkerReleased { worker, at_ms }),
    })
}

/// Creates the ledger entry and the campaign event of a submission.
pub(super) fn submission(
    job: &Job,
    units: u64,
    priority: i32,
    submitter: &str,
    at_ms: u64,
) -> (Entry, Event) {
    let (hash, text, submitter) = (job.hash(), job.to_string(), submitter.to_owned());
    let entry =
        Entry::JobSubmitted(JobSubmitted { job: hash, text, units, priority, submitter, at_ms });
    let published = oeis::published(job.problem());
    (entry, Event::JobSubmitted { job: hash, units, priority, at_ms, published })
}

const fn check_depth(depth: Depth) -> CheckDepth {
    match depth {
        Depth::Spot => CheckDepth::Spot,
        Depth::Full => CheckDepth::Full,
    }
}

const fn depth(depth: CheckDepth) -> Depth {
    match depth {
        CheckDepth::Spot => Depth::Spot,
        CheckDepth::Full => Depth::Full,
    }
}

fn drawn_checks(plan: CheckPlan) -> DrawnChecks {
    DrawnChecks { peer: plan.peer.map(check_depth), audit: plan.audit.map(check_depth) }
}

fn check_plan(drawn: DrawnChecks) -> CheckPlan {
    CheckPlan { peer: drawn.peer.map(depth), audit: drawn.audit.map(depth) }
}

const fn phase(state: JobState) -> Phase {
    match state {
        JobState::Running => Phase::Running,
        JobState::Paused => Phase::Paused,
        JobState::Cancelled => Phase::Cancelled,
        JobState::Finished => Phase::Finished,
        JobState::Disputed => Phase::Disputed,
    }
}

const fn state(phase: Phase) -> JobState {
    match phase {
        Phase::Running => JobState::Running,
        Phase::Paused => JobState::Paused,
        Phase::Cancelled => JobState::Cancelled,
        Phase::Finished => JobState::Finished,
        Phase::Disputed => JobState::Disputed,
    }
}

/// The content of a ledger besides the campaign.
#[derive(Default)]
pub(super) struct LoadedLedger {
    pub(super) jobs: BTreeMap<JobHash, JobInfo>,
    pub(super) histories: HashMap<JobHash, History>,
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
    let mut told = LoadedLedger::default();
    let mut times: HashMap<JobHash, Times> = HashMap::new();
    let mut states: Vec<(JobHash, JobState)> = Vec::new();
    file.load(&mut |loaded| match loaded {
        Loaded::Job(record) => {
            let JobSubmitted { job: hash, text, units, priority, submitter, at_ms } =
                record.submitted;
            // The ledger accepts no text but the job's own.
            let job: Option<Job> = text.parse().ok();
            let published = job.as_ref().and_then(|job| oeis::published(job.problem()));
            campaign.apply(&Event::JobSubmitted { job: hash, units, priority, at_ms, published });
            let state = state(record.phase);
            states.push((hash, state));
            times.insert(hash, Times { submitted_ms: at_ms, ..Times::default() });
            told.operator_events.push((at_ms, submitted(hash, &text, &submitter)));
            // A finished job loses no results to quarantines that come later, so finish it first.
            if state == JobState::Finished {
                campaign.apply(&Event::JobState { job: hash, state });
            }
            if state != JobState::Running {
                told.operator_events.push((record.phase_ms, changed(hash, state, "")));
            }
            if let Some(job) = job {
                let info = JobInfo {
                    job,
                    submitter,
                    state_ms: record.phase_ms,
                    decomposition: None,
                    poison: BTreeMap::new(),
                };
                told.jobs.insert(hash, info);
            }
        }
        Loaded::Unit(done) => {
            let UnitDone {
                job,
                unit,
                tally,
                worker,
                owner,
                kernel,
                device,
                build,
                attempt,
                elapsed_s,
                checks,
                sub_sums,
                at_ms,
            } = done;
            if let Some(times) = times.get_mut(&job) {
                times.done.push(at_ms);
            }
            let (unit, source) =
                (UnitId { job, unit }, Source { worker, owner, kernel, device, build });
            let (checks, sub_sums) = (checks.map(check_plan), sub_sums.0);
            campaign.apply(&Event::UnitDone {
                unit,
                attempt,
                tally,
                source,
                elapsed_s,
                checks,
                sub_sums,
            });
        }
        Loaded::Recount(recount) => {
            let Recount {
                job,
                unit,
                tally,
                worker,
                owner,
                kernel,
                device,
                build,
                mirrored,
                agrees,
                elapsed_s,
                at_ms,
            } = recount;
            if let Some(times) = times.get_mut(&job).filter(|_| agrees) {
                times.verified.push(at_ms);
            }
            let (unit, source) =
                (UnitId { job, unit }, Source { worker, owner, kernel, device, build });
            campaign.apply(&Event::Recount { unit, tally, source, mirrored, agrees, elapsed_s });
        }
        Loaded::SpotCheck(check) => {
            let SpotCheck {
                job, unit, sub_ranges, sums, worker, owner, kernel, device, build, ..
            } = check;
            let (unit, source) =
                (UnitId { job, unit }, Source { worker, owner, kernel, device, build });
            let sub_ranges = SubRangeSet::from_numbers(sub_ranges).unwrap_or_default();
            let (sums, agrees, elapsed_s) = (sums.0, check.agrees, check.elapsed_s);
            campaign.apply(&Event::SpotCheck { unit, sub_ranges, sums, source, agrees, elapsed_s });
        }
        Loaded::Poisoned(UnitReason { job, unit, reason, at_ms }) => {
            if let Some(info) = told.jobs.get_mut(&job) {
                info.poison.insert(unit, reason.clone());
            }
            let unit = UnitId { job, unit };
            told.operator_events.push((at_ms, poisoned(unit, &reason)));
            campaign.apply(&Event::UnitPoisoned { unit, reason });
        }
        Loaded::Quarantined(WorkerQuarantined { worker, reason, widen, at_ms }) => {
            told.operator_events.push((at_ms, quarantined(&worker, &reason)));
            campaign.apply(&Event::WorkerQuarantined { worker, reason, widen });
        }
        Loaded::Drained(WorkerDrained { worker, boot, at_ms }) => {
            told.operator_events.push((at_ms, draining(&worker, "")));
            campaign.restore_draining(&worker, boot);
        }
        Loaded::Released(WorkerReleased { worker, at_ms }) => {
            told.operator_events.push((at_ms, released(&worker, "")));
            campaign.apply(&Event::WorkerReleased { worker });
        }
        // Everything else about the worker comes in later entries.
        Loaded::Worker(WorkerRecord { worker, owner, .. }) => {
            if let Some(owner) = owner {
                campaign.enrolled(&worker, &owner);
            }
        }
    })?;
    for (job, state) in states {
        campaign.apply(&Event::JobState { job, state });
    }
    let history = |(job, times): (JobHash, Times)| {
        (job, History::of_the_past(times.submitted_ms, times.done, times.verified))
    };
    told.histories = times.into_iter().map(history).collect();
    told.operator_events.sort_by_key(|&(at_ms, _)| at_ms);
    Ok(told)
}

/// Returns ", by anna", or an empty text if nobody is named.
fn by(who: &str) -> String {
    if who.is_empty() { String::new() } else { format!(", by {who}") }
}

pub(super) fn submitted(job: JobHash, text: &str, submitter: &str) -> OperatorEvent {
    let text = format!("job {job} is submitted{}: {text}", by(submitter));
    OperatorEvent::info(EventKind::Submitted, text).of_job(job)
}

pub(super) fn changed(job: JobHash, state: JobState, who: &str) -> OperatorEvent {
    let text = format!("job {job} is {}{}", name(state), by(who));
    let operator_event = match state {
        JobState::Finished => OperatorEvent::info(EventKind::Finished, text),
        JobState::Disputed => OperatorEvent::error(EventKind::Disputed, text),
        JobState::Running | JobState::Paused | JobState::Cancelled => {
            OperatorEvent::info(EventKind::State, text)
        }
    };
    operator_event.of_job(job)
}

pub(super) fn poisoned(unit: UnitId, reason: &str) -> OperatorEvent {
    OperatorEvent::error(EventKind::Poisoned, format!("{unit} is set aside: {reason}"))
        .of_job(unit.job)
}

pub(super) fn quarantined(worker: &str, reason: &str) -> OperatorEvent {
    let text = format!("worker {worker} is in quarantine: {reason}");
    OperatorEvent::error(EventKind::Quarantined, text).of_worker(worker)
}

pub(super) fn released(worker: &str, who: &str) -> OperatorEvent {
    let text = format!("worker {worker} is let out of quarantine{}", by(who));
    OperatorEvent::info(EventKind::Released, text).of_worker(worker)
}

pub(super) fn draining(worker: &str, who: &str) -> OperatorEvent {
    let text = format!("worker {worker} is to take nothing more{}", by(who));
    OperatorEvent::info(EventKind::Draining, text).of_worker(worker)
}
