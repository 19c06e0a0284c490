//! The draw of the checks that a result needs.

use super::UnitId;
use super::checks::{CheckPlan, Depth};
use super::job::Job;
use super::reputation::OwnerId;
use super::state::Campaign;

/// Number of pending full audits at which no more are drawn.
const MOST_FULL_AUDITS: usize = 8;

/// Number of pending audits at which no more are drawn.
const MOST_AUDITS: usize = 32;

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
        let settings = &self.settings;
        let new = owner.is_none_or(|owner| self.reputation.is_new(owner, settings.new_owner_units));
        let draw = |purpose: &str| {
            let fields = [&unit.job.to_bytes()[..], &unit.unit.to_be_bytes(), worker.as_bytes()];
            self.key.draw(purpose, &fields)
        };
        let target = owner.map_or_else(|| self.target(job), |owner| self.owner_target(job, owner));
        let full = target.max(settings.full_check);
        let peer = if draw("full check") < full {
            Some(Depth::Full)
        } else if new || draw("spot check") < settings.spot_check {
            Some(if itemised { Depth::Spot } else { Depth::Full })
        } else {
            None
        };
        let owners = job.owners.len().max(1) as f64;
        let some = settings.owner_audits as f64;
        let while_new = if new { some / settings.new_owner_units.max(1) as f64 } else { 0.0 };
        let spot = while_new.max(some * owners / job.units.len().max(1) as f64);
        let room_for_full = self.has_room_for_full_audits(job);
        let audit = if room_for_full && draw("audit") < settings.audit {
            Some(Depth::Full)
        } else if draw("spot audit") < spot.max(settings.audit) {
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
