//! The draw of the checks that a result needs.

use super::UnitId;
use super::checks::{CheckPlan, Depth};
use super::job::Job;
use super::reputation::OwnerId;
use super::settings::Settings;
use super::state::Campaign;

/// Number of pending full audits at which no more are drawn.
const MOST_FULL_AUDITS: usize = 8;

/// Number of pending audits at which no more are drawn.
const MOST_AUDITS: usize = 32;

/// The probabilities with which the checks of a result are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckProbabilities {
    /// A worker of another owner recounts the whole unit.
    pub full_check: f64,
    /// A worker of another owner recounts some sub-ranges, if none recounts the whole unit.
    pub spot_check: f64,
    /// The coordinator recounts the whole unit.
    pub full_audit: f64,
    /// The coordinator recounts some sub-ranges, if it does not recount the whole unit.
    pub spot_audit: f64,
}

impl Settings {
    /// Returns the share of the units of a job that others must confirm. `has_several_owners` tells
    /// whether more than one owner counts it, and is called only if that matters.
    pub fn target(&self, is_published: bool, has_several_owners: impl FnOnce() -> bool) -> f64 {
        match self.assurance {
            Some(target) => target.clamp(0.0, 1.0),
            // No false result survives the comparison with a published total. With a single owner
            // there is no other party to deceive.
            None if is_published || !has_several_owners() => 0.0,
            None => 1.0,
        }
    }

    /// Returns the probabilities of the checks of a result in a job with this many owners and
    /// units, of whose units the share `target` must be confirmed. `is_new` is true if the owner of
    /// the result is new.
    pub fn check_probabilities(
        &self,
        target: f64,
        is_new: bool,
        owners: usize,
        units: u64,
    ) -> CheckProbabilities {
        let some = self.owner_audits as f64;
        let while_new = if is_new { some / self.new_owner_units.max(1) as f64 } else { 0.0 };
        let spot = while_new.max(some * owners.max(1) as f64 / units.max(1) as f64);
        CheckProbabilities {
            full_check: target.max(self.full_check),
            spot_check: if is_new { 1.0 } else { self.spot_check },
            full_audit: self.audit,
            spot_audit: spot.max(self.audit),
        }
    }
}

impl Campaign {
    /// Returns the checks that a result needs. The draws are the same for the same result, but an
    /// audit is also subject to the current limits.
    pub(super) fn plan_checks(
        &self,
        unit: UnitId,
        owner: Option<OwnerId>,
        itemised: bool,
        worker: &str,
    ) -> CheckPlan {
        let Some(job) = self.jobs.get(&unit.job) else { return CheckPlan::default() };
        let few = self.settings.new_owner_units;
        let new = owner.is_none_or(|owner| self.reputation.is_new(owner, few));
        let draw = |purpose: &str| {
            let fields = [&unit.job.to_bytes()[..], &unit.unit.to_be_bytes(), worker.as_bytes()];
            self.key.draw(purpose, &fields)
        };
        let target = owner.map_or_else(|| self.target(job), |owner| self.owner_target(job, owner));
        let (owners, units) = (job.owners.len(), job.units.len());
        let chances = self.settings.check_probabilities(target, new, owners, units);
        let peer = if draw("full check") < chances.full_check {
            Some(Depth::Full)
        } else if draw("spot check") < chances.spot_check {
            Some(if itemised { Depth::Spot } else { Depth::Full })
        } else {
            None
        };
        let room_for_full = self.has_room_for_full_audits(job);
        let audit = if room_for_full && draw("audit") < chances.full_audit {
            Some(Depth::Full)
        } else if draw("spot audit") < chances.spot_audit {
            // Without sums of sub-ranges, only a full audit is possible.
            let few = job.checks.full_audits < MOST_FULL_AUDITS;
            if itemised { Some(Depth::Spot) } else { few.then_some(Depth::Full) }
        } else {
            None
        };
        let audit = audit.filter(|_| job.checks.audits.len() < MOST_AUDITS);
        CheckPlan { peer, audit }
    }

    /// Returns whether another full audit may be added. Pending full audits must not delay a job
    /// for long once everything else is done.
    fn has_room_for_full_audits(&self, job: &Job) -> bool {
        const AT_LEAST_S: f64 = 1.0;
        const OF_ELAPSED: f64 = 0.02;
        let elapsed_s = self.ticked_ms.saturating_sub(job.submitted_ms) as f64 / 1000.0;
        let (arbiter_s, arbiter_units) = job.arbiter;
        // The time of an audit is unknown until the arbiter has counted something.
        let unit_s = if arbiter_units > 0.0 { arbiter_s / arbiter_units } else { 0.0 };
        let waiting = job.checks.full_audits;
        waiting < MOST_FULL_AUDITS
            && waiting as f64 * unit_s <= AT_LEAST_S.max(OF_ELAPSED * elapsed_s)
    }
}
