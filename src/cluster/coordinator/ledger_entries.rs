//! Conversion between campaign events and ledger entries.

use crate::cluster::campaign::{
    CampaignEvent, CheckPlan, Depth, JobState, Source, SubRangeSet, UnitId,
};
use crate::cluster::ledger::{
    CheckDepth, DrawnChecks, Entry, JobSubmitted, Phase, PhaseChanged, Recount, SpotCheck, SubSums,
    UnitDone, UnitReason, UnitRevived, WorkerQuarantined, WorkerReleased,
};
use crate::decomposition::Job;
use crate::oeis;

/// Converts an event to a ledger entry. Returns `None` for a submission, whose entry
/// needs the text of the job: see [`submission`].
pub(super) fn entry(event: &CampaignEvent, at_ms: u64) -> Option<Entry> {
    Some(match event.clone() {
        CampaignEvent::JobSubmitted { .. } => return None,
        CampaignEvent::JobState { job, state } => {
            Entry::JobState(PhaseChanged { job, state: phase(state), at_ms })
        }
        CampaignEvent::UnitDone {
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
        CampaignEvent::SpotCheck {
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
        CampaignEvent::Recount {
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
        CampaignEvent::UnitVoided { unit: UnitId { job, unit }, reason } => {
            Entry::UnitVoided(UnitReason { job, unit, reason, at_ms })
        }
        CampaignEvent::UnitPoisoned { unit: UnitId { job, unit }, reason } => {
            Entry::UnitPoisoned(UnitReason { job, unit, reason, at_ms })
        }
        CampaignEvent::UnitRevived { unit: UnitId { job, unit } } => {
            Entry::UnitRevived(UnitRevived { job, unit, at_ms })
        }
        CampaignEvent::WorkerQuarantined { worker, reason, widen } => {
            Entry::WorkerQuarantined(WorkerQuarantined { worker, reason, widen, at_ms })
        }
        CampaignEvent::WorkerReleased { worker } => {
            Entry::WorkerReleased(WorkerReleased { worker, at_ms })
        }
    })
}

/// Converts the entry of a result.
pub(super) fn unit_done_event(done: UnitDone) -> CampaignEvent {
    let UnitDone { job, unit, tally, worker, owner, kernel, device, build, .. } = done;
    CampaignEvent::UnitDone {
        unit: UnitId { job, unit },
        attempt: done.attempt,
        tally,
        source: Source { worker, owner, kernel, device, build },
        elapsed_s: done.elapsed_s,
        checks: done.checks.map(check_plan),
        sub_sums: done.sub_sums.0,
    }
}

/// Converts the entry of a recount.
pub(super) fn recount_event(recount: Recount) -> CampaignEvent {
    let Recount { job, unit, tally, worker, owner, kernel, device, build, .. } = recount;
    CampaignEvent::Recount {
        unit: UnitId { job, unit },
        tally,
        source: Source { worker, owner, kernel, device, build },
        mirrored: recount.mirrored,
        agrees: recount.agrees,
        elapsed_s: recount.elapsed_s,
    }
}

/// Converts the entry of a spot check.
pub(super) fn spot_check_event(check: SpotCheck) -> CampaignEvent {
    let SpotCheck { job, unit, sub_ranges, sums, worker, owner, kernel, device, build, .. } = check;
    CampaignEvent::SpotCheck {
        unit: UnitId { job, unit },
        sub_ranges: SubRangeSet::from_numbers(sub_ranges).unwrap_or_default(),
        sums: sums.0,
        source: Source { worker, owner, kernel, device, build },
        agrees: check.agrees,
        elapsed_s: check.elapsed_s,
    }
}

/// Creates the ledger entry and the campaign event of a submission.
pub(super) fn submission(
    job: &Job,
    units: u64,
    priority: i32,
    submitter: &str,
    at_ms: u64,
) -> (Entry, CampaignEvent) {
    let (hash, text, submitter) = (job.hash(), job.to_string(), submitter.to_owned());
    let entry =
        Entry::JobSubmitted(JobSubmitted { job: hash, text, units, priority, submitter, at_ms });
    let published = oeis::published(job.problem());
    (entry, CampaignEvent::JobSubmitted { job: hash, units, priority, at_ms, published })
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

pub(super) const fn state(phase: Phase) -> JobState {
    match phase {
        Phase::Running => JobState::Running,
        Phase::Paused => JobState::Paused,
        Phase::Cancelled => JobState::Cancelled,
        Phase::Finished => JobState::Finished,
        Phase::Disputed => JobState::Disputed,
    }
}
