//! The conditions for finishing a job: its checks are made, and its total is possible and does not
//! contradict a published value.

use std::collections::BTreeMap;

use super::UnitId;
use super::checks::{Check, Depth};
use super::event::{CampaignEvent, JobState};
use super::job::Job;
use super::reputation::{OwnerId, Reputation};
use super::state::Campaign;
use super::sync::MOST_GRANTED;
use super::unit_outcome::{UnitOutcome, WHOLE};
use super::units::Stratum;
use crate::decomposition::JobHash;

/// The stage of a dispute about an inconsistent total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum DisputeStage {
    /// Unconfirmed units are recounted.
    Unconfirmed,
    /// The coordinator recounts the units that only workers have confirmed.
    Confirmed,
    /// The coordinator has confirmed every unit: either the published value or every kernel is
    /// wrong.
    Exhausted,
}

impl Campaign {
    /// Returns the share of each owner's units of a job that others must confirm.
    pub(super) fn target(&self, job: &Job) -> f64 {
        self.settings.target(job.published.is_some(), || self.has_several_owners(job))
    }

    /// Returns the share of an owner's units of a job that others must confirm: all units of guests
    /// if the total is not published.
    pub(super) fn owner_target(&self, job: &Job, owner: OwnerId) -> f64 {
        let is_strange = job.published.is_none() && self.reputation.is_guest(owner);
        if is_strange { 1.0 } else { self.target(job) }
    }

    /// Returns whether more than one owner counts a job. Excludes guests, and owners with a
    /// convicted worker and no result in force.
    fn has_several_owners(&self, job: &Job) -> bool {
        let counts = |owner: &&OwnerId| {
            !self.reputation.is_convicted(**owner) || job.units.has_units_of(**owner)
        };
        job.owners.iter().filter(counts).nth(1).is_some()
    }

    /// Returns the probability with which the checks made so far would have detected an owner that
    /// falsified at least one unit, whichever owner it is and however it chose the unit. This is
    /// the smallest confirmed share over all strata of units.
    pub fn assurance(&self, job: &JobHash) -> f64 {
        let Some(job) = self.jobs.get(job) else { return 0.0 };
        let share = |(_, Stratum { units, credit }): ((OwnerId, bool), Stratum)| {
            credit as f64 / (units * WHOLE) as f64
        };
        let of_workers = |((owner, _), _): &((OwnerId, bool), Stratum)| {
            !self.reputation.is_coordinator_owner(*owner)
        };
        job.units.strata().filter(of_workers).map(share).fold(1.0, f64::min)
    }

    /// Returns whether a job's total is possible and equals the published value, if there is one.
    fn is_consistent(job: &Job) -> bool {
        let solutions = job.units.total().solutions();
        solutions
            .is_ok_and(|solutions| job.published.is_none_or(|published| published == solutions))
    }

    /// Advances the jobs whose units are all done. Returns the events for those that are now
    /// finished or disputed.
    pub fn conclude(&mut self) -> Vec<CampaignEvent> {
        let mut events = Vec::new();
        let done: Vec<JobHash> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.state.is_counted() && job.units.done() == job.units.len())
            .map(|(&hash, _)| hash)
            .collect();
        for hash in done {
            let Some(job) = self.jobs.get(&hash).filter(|job| job.disputes.is_empty()) else {
                continue;
            };
            // Reads all units, so it waits for the checks that are pending.
            let due = if job.has_pending_checks() { Vec::new() } else { self.to_confirm(job) };
            let Some(job) = self.jobs.get_mut(&hash) else { continue };
            let state = match (Self::is_consistent(job), job.state) {
                // A published total is right, so the remaining recounts are unnecessary. A total
                // that is merely possible may be wrong.
                (true, JobState::Disputed) if job.published.is_some() => Some(JobState::Finished),
                (true, _) if job.has_pending_checks() => None,
                (true, _) => {
                    due.iter()
                        .for_each(|&unit| job.checks.insert(unit, Check::new(Depth::Full, None)));
                    due.is_empty().then_some(JobState::Finished)
                }
                (false, JobState::Disputed) => {
                    Self::advance_dispute(job, &self.reputation);
                    None
                }
                (false, _) => Some(JobState::Disputed),
            };
            events.extend(state.map(|state| CampaignEvent::JobState { job: hash, state }));
        }
        events
    }

    /// Returns further units to confirm, so that the target share of each stratum of units (owner,
    /// new or not) is confirmed, and some part of each unit of a guest. The units are chosen at
    /// random, seeded by the total.
    fn to_confirm(&self, job: &Job) -> Vec<u64> {
        let has_guests = job.units.strata().any(|((owner, _), _)| self.reputation.is_guest(owner));
        if self.target(job) <= 0.0 && !has_guests {
            return Vec::new();
        }
        let wanted = |target: f64, Stratum { units, credit }: Stratum| {
            ((target * (units * WHOLE) as f64).ceil() as u64).saturating_sub(credit).div_ceil(WHOLE)
        };
        let mut missing: BTreeMap<(OwnerId, bool), u64> = job
            .units
            .strata()
            .map(|(of, stratum)| (of, wanted(self.owner_target(job, of.0), stratum)))
            .collect();
        if !has_guests && missing.values().all(|left| *left == 0) {
            return Vec::new();
        }
        let unproven_guest = |(_, outcome): &(u64, UnitOutcome)| {
            !outcome.is_proven() && self.reputation.is_guest(outcome.owner)
        };
        let mut due: Vec<u64> =
            job.units.unconfirmed_outcomes().filter(unproven_guest).map(|(unit, _)| unit).collect();
        let mut unconfirmed: Vec<(u64, (OwnerId, bool))> = job
            .units
            .unconfirmed_outcomes()
            .filter(|(unit, _)| due.binary_search(unit).is_err())
            .map(|(unit, outcome)| (unit, (outcome.owner, outcome.owner_was_new)))
            .collect();
        // No worker can predict the total of all units.
        let mut random = fastrand::Rng::with_seed(job.units.total().thirds() as u64);
        random.shuffle(&mut unconfirmed);
        for (unit, of) in unconfirmed {
            if let Some(left) = missing.get_mut(&of).filter(|left| **left > 0) {
                *left -= 1;
                due.push(unit);
            }
        }
        due
    }

    /// Advances the dispute about a job's total once its pending recounts are made: recounts the
    /// unconfirmed units, then has the coordinator audit those that only workers confirmed.
    fn advance_dispute(job: &mut Job, reputation: &Reputation) {
        if job.stage == DisputeStage::Exhausted || job.has_pending_checks() {
            return;
        }
        if Self::recheck_guests_first(job, reputation) {
            return;
        }
        job.stage = DisputeStage::Confirmed;
        let by_workers =
            |outcome: &UnitOutcome| !outcome.audited && !reputation.is_coordinator(outcome.source);
        let next: Vec<u64> = job
            .units
            .outcomes()
            .filter(|(_, outcome)| by_workers(outcome))
            .map(|(unit, _)| unit)
            .take(MOST_GRANTED as usize)
            .collect();
        if next.is_empty() {
            job.stage = DisputeStage::Exhausted;
        }
        next.into_iter().for_each(|unit| job.checks.insert_audit(unit, Depth::Full));
    }

    /// Schedules a full check of every unit that is not fully confirmed. Returns whether there are
    /// any.
    pub(super) fn recheck_unconfirmed(job: &mut Job) -> bool {
        let unconfirmed = job.units.unconfirmed().collect();
        Self::recheck(job, unconfirmed)
    }

    /// Schedules a full check of every unit of a guest that is not fully confirmed or, if there is
    /// none, of every such unit. Returns whether there are any.
    pub(super) fn recheck_guests_first(job: &mut Job, reputation: &Reputation) -> bool {
        let of_guests = job.units.unconfirmed_outcomes();
        let of_guests = of_guests.filter(|(_, outcome)| reputation.is_guest(outcome.owner));
        let of_guests = of_guests.map(|(unit, _)| unit).collect();
        Self::recheck(job, of_guests) || Self::recheck_unconfirmed(job)
    }

    /// Schedules a full check of these units, except those in a dispute. Returns whether there are
    /// any.
    fn recheck(job: &mut Job, mut units: Vec<u64>) -> bool {
        units.retain(|unit| !job.disputes.contains_key(unit));
        for &unit in &units {
            job.checks.insert(unit, Check::new(Depth::Full, None));
        }
        !units.is_empty()
    }

    /// Schedules a recount of every unconfirmed unit of a job that has a wrong result.
    pub fn recount_all(&mut self, job: JobHash) {
        if let Some(job) = self.jobs.get_mut(&job) {
            Self::recheck_unconfirmed(job);
        }
    }

    /// Returns whether a unit's result was counted by the coordinator.
    pub(super) fn is_by_coordinator(&self, unit: UnitId) -> bool {
        let outcome = self.jobs.get(&unit.job).and_then(|job| job.units.outcome(unit.unit));
        outcome.is_some_and(|outcome| self.reputation.is_coordinator(outcome.source))
    }
}
