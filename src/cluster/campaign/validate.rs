//! Validation of results, which changes nothing.

use super::assignment::SubRangeSet;
use super::event::{CampaignEvent, JobState};
use super::guests::is_guest;
use super::job::{Claim, Job};
use super::key::{Grant, Grantee};
use super::reputation::have_same_owner;
use super::signed_result::ResultSignature;
use super::state::Campaign;
use super::unit_outcome::UnitOutcome;
use super::unit_result::UnitResult;
use super::units::UnitStatus;
use crate::decomposition::{UnitLimits, sub_ranges_of};

/// The answer to a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultVerdict {
    /// The result was recorded.
    Accepted,
    /// The result is already recorded, or the check is no longer needed.
    Duplicate,
    /// Another result is in force; the arbiter decides.
    Conflict,
    /// The result is not considered: the job is no longer counted or has no such unit, the unit
    /// was not leased to the worker, its kernel or device was never named, its owner has too many
    /// unconfirmed units, the worker has too many sources, or the result to be checked was voided.
    StaleJob,
    /// The result is inconsistent or impossible. The worker is quarantined.
    Refused,
    /// The worker is quarantined.
    Quarantined,
}

/// A verdict, and the events that must be durable before it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// The verdict.
    pub verdict: ResultVerdict,
    /// The resulting events.
    pub events: Vec<CampaignEvent>,
}

impl Validation {
    const fn nothing(verdict: ResultVerdict) -> Self {
        Self { verdict, events: Vec::new() }
    }

    fn accepted(event: CampaignEvent) -> Self {
        Self { verdict: ResultVerdict::Accepted, events: vec![event] }
    }
}

/// Far above any unit of a board that is counted: 32! is below 2^118, and a worker makes fewer than
/// 2^50 nodes per second. Larger values could overflow the sums.
const MOST_THIRDS: u128 = 1 << 121;
const MOST_NODES: u128 = 1 << 96;

/// Allowance for clock differences and for the time between two ticks, in seconds.
const CLOCK_TOLERANCE_S: f64 = 60.0;

/// Upper bound of the nodes per second of any device; more than 20 times the fastest rate that was
/// measured.
const MOST_NODES_PER_S: f64 = 1e13;

impl Campaign {
    /// Validates a result without changing anything; the returned events do so when they are
    /// applied. The events of one result must be applied before another result for the same unit is
    /// validated. `limits` are those of the unit, as far as they are known.
    pub fn validate(&self, result: &UnitResult, limits: Option<&UnitLimits>) -> Validation {
        let UnitResult { unit, source, .. } = result;
        if self.reputation.is_quarantined(&source.worker, &source.owner) {
            return Validation::nothing(ResultVerdict::Quarantined);
        }
        let job = self.jobs.get(&unit.job).filter(|job| job.state != JobState::Cancelled);
        let Some((job, status)) = job.and_then(|job| Some((job, job.units.status(unit.unit)?)))
        else {
            return Validation::nothing(ResultVerdict::StaleJob);
        };
        let outcome = job.units.outcome(unit.unit).filter(|_| status == UnitStatus::Done);
        // Ignore results without a lease, and those of kernels or devices that the worker never
        // named.
        let Some(grant) = self.grant_of(result, outcome.as_ref()) else {
            return Validation::nothing(ResultVerdict::StaleJob);
        };
        if !self.is_announced(result) || self.reputation.has_too_many_sources(source) {
            return Validation::nothing(ResultVerdict::StaleJob);
        }
        let checked =
            check(result, &grant, limits).and_then(|()| self.check_signature(result, &grant));
        if let Err(why) = checked {
            let reason = format!("its result for {unit} {why}");
            let events = self.quarantine(&source.worker, &reason, false);
            return Validation { verdict: ResultVerdict::Refused, events };
        }
        match outcome {
            Some(outcome) if grant.mirrored => self.validate_recount(result, job, &outcome, &grant),
            Some(outcome) => self.validate_copy(result, job, &outcome),
            // The result to be checked was voided. As a first result, this one would be checked by
            // the same image.
            None if grant.mirrored => Validation::nothing(ResultVerdict::StaleJob),
            None => self.validate_first(result),
        }
    }

    /// Checks that a result is signed if its worker has a key.
    ///
    /// # Errors
    /// Returns a description of the problem.
    fn check_signature(&self, result: &UnitResult, grant: &Grant) -> Result<(), &'static str> {
        let Some(key) = self.result_key(&result.source.worker) else { return Ok(()) };
        let Some(signature) = &result.signature else {
            return Err("is not signed, although the worker has a key");
        };
        let statement = result.statement(grant.mirrored, grant.sub_ranges);
        if key.has_signed(&statement, signature) {
            Ok(())
        } else {
            Err("has a signature that does not match")
        }
    }

    /// Returns the signature that is recorded with a result: none if the worker has no key to
    /// verify it with.
    fn signature_of(&self, result: &UnitResult) -> Option<ResultSignature> {
        result.signature.filter(|_| self.result_key(&result.source.worker).is_some())
    }

    /// Returns the event of a recount whose result is `claim`. Its mirror image was counted if
    /// `mirrored`.
    fn recount(
        &self,
        result: &UnitResult,
        claim: Claim,
        (mirrored, agrees): (bool, bool),
    ) -> CampaignEvent {
        let by = (result.source.clone(), self.signature_of(result));
        CampaignEvent::recount(result.unit, claim, (mirrored, agrees), by, result.elapsed_s)
    }

    /// Returns the scope of the lease under which a result was counted, if the coordinator granted
    /// it to this worker.
    fn grant_of(&self, result: &UnitResult, outcome: Option<&UnitOutcome>) -> Option<Grant> {
        let UnitResult { unit, attempt, grant, source, .. } = result;
        let known = self.lease_or_ended(*attempt);
        let thirds = outcome.map(|outcome| outcome.tally.thirds());
        if let Some(lease) = known {
            let its_own = lease.worker == source.worker && lease.job == unit.job;
            // A recount checks the result that was in force when it was leased.
            let in_force = !lease.mirrored || lease.thirds == thirds;
            if its_own && in_force && lease.units.contains(&unit.unit) {
                return Some(lease.scope());
            }
        }
        // The lease is from an earlier run, or too old to be remembered.
        let grantee = Grantee {
            attempt: *attempt,
            worker: &source.worker,
            owner: &source.owner,
            job: &unit.job,
            thirds: None,
        };
        let confirms = Grantee { thirds, ..grantee };
        let of_unit = |opened: &Grant| opened.units.contains(&unit.unit);
        let first = || self.key.open(grant, &grantee).filter(|opened| !opened.mirrored);
        let recount = || self.key.open(grant, &confirms).filter(|opened| opened.mirrored);
        first().or_else(recount).filter(of_unit)
    }

    /// Returns whether a worker has named the kernel and the device of a result. This is not
    /// required for leases of an earlier run, since the worker may no longer have them.
    fn is_announced(&self, result: &UnitResult) -> bool {
        let UnitResult { source, attempt, .. } = result;
        if self.is_from_earlier_run(*attempt) {
            return true;
        }
        self.workers.get(&source.worker).is_some_and(|worker| {
            worker.announced.contains(&source.kernel) && worker.announced.contains(&source.device)
        })
    }

    fn validate_first(&self, result: &UnitResult) -> Validation {
        let UnitResult { unit, attempt, tally, sub_sums, source, elapsed_s, .. } = result;
        let owner = self.reputation.known_owner(&source.worker, &source.owner);
        // Results of expired leases are accepted, but only up to twice the limit of a new owner.
        let most = 2 * self.settings.new_owner_units;
        if owner.is_some_and(|owner| {
            self.reputation.is_new(owner, self.settings.new_owner_units)
                && self.unproven(owner) >= most
        }) {
            return Validation::nothing(ResultVerdict::StaleJob);
        }
        let checks = self.plan_checks(*unit, owner, !sub_sums.is_empty(), &source.worker);
        // Bound the time by the age of the lease or the job, since reservations of checks depend on
        // it.
        let lease = self.lease_or_ended(*attempt);
        let submitted_ms = || self.jobs.get(&unit.job).map_or(0, |job| job.submitted_ms);
        let since_ms = lease.map_or_else(submitted_ms, |lease| self.held_since(lease, unit.unit));
        let most_s = CLOCK_TOLERANCE_S + self.ticked_ms.saturating_sub(since_ms) as f64 / 1000.0;
        let event = CampaignEvent::UnitDone {
            unit: *unit,
            attempt: *attempt,
            tally: *tally,
            source: source.clone(),
            elapsed_s: elapsed_s.min(most_s),
            checks: Some(checks),
            // Only a spot check needs them.
            sub_sums: if checks.has_spot() { sub_sums.clone() } else { Vec::new() },
            signature: self.signature_of(result),
        };
        Validation::accepted(event)
    }

    /// Validates a second first result, of an expired lease or of a copy.
    fn validate_copy(&self, result: &UnitResult, job: &Job, outcome: &UnitOutcome) -> Validation {
        if outcome.tally.thirds() == result.tally.thirds() {
            return Validation::nothing(ResultVerdict::Duplicate);
        }
        self.validate_difference(result, job, outcome, (Claim::Whole(result.tally), false))
    }

    fn validate_recount(
        &self,
        result: &UnitResult,
        job: &Job,
        outcome: &UnitOutcome,
        grant: &Grant,
    ) -> Validation {
        let UnitResult { unit, tally, sub_sums, source, .. } = result;
        let owner = self.reputation.known_owner(&source.worker, &source.owner);
        if owner == Some(outcome.owner) {
            // The result was another owner's when the recount was leased.
            return Validation::nothing(ResultVerdict::Duplicate);
        }
        let sub_ranges = result.spots(grant.sub_ranges);
        if !sub_ranges.is_empty() {
            let claim = Claim::Spot(sub_ranges, sub_sums.clone());
            return match job.agrees_with(unit.unit, sub_ranges, sub_sums) {
                // The sums are no longer stored, because the unit was confirmed in the meantime.
                None => Validation::nothing(ResultVerdict::Duplicate),
                Some(true) if outcome.spots.union(sub_ranges) == outcome.spots => {
                    Validation::nothing(ResultVerdict::Duplicate)
                }
                Some(true) => Validation::accepted(self.recount(result, claim, (true, true))),
                Some(false) => self.validate_difference(result, job, outcome, (claim, true)),
            };
        }
        if outcome.tally.thirds() != tally.thirds() {
            return self.validate_difference(result, job, outcome, (Claim::Whole(*tally), true));
        }
        // A dispute is left to the arbiter, even if others agree in the meantime.
        if outcome.checker.is_some() || job.disputes.contains_key(&unit.unit) {
            return Validation::nothing(ResultVerdict::Duplicate);
        }
        Validation::accepted(self.recount(result, Claim::Whole(*tally), (true, true)))
    }

    /// Validates a result that differs from the recorded one. `mirrored` is true if it is of the
    /// mirror image.
    fn validate_difference(
        &self,
        result: &UnitResult,
        job: &Job,
        outcome: &UnitOutcome,
        (claim, mirrored): (Claim, bool),
    ) -> Validation {
        let UnitResult { unit, source, .. } = result;
        let first = self.reputation.source(outcome.source);
        if first.worker == source.worker {
            let reason = format!("it reported two different results for {unit}");
            let events = self.quarantine(&source.worker, &reason, true);
            return Validation { verdict: ResultVerdict::Refused, events };
        }
        // A published total is right, so contradicting one of its units changes nothing.
        let is_over = job.state == JobState::Finished;
        if is_over && job.published.is_some() {
            return Validation::nothing(ResultVerdict::StaleJob);
        }
        // Allow one dispute per unit, and a few per owner and for all guests together, since each
        // costs the arbiter two counts of the unit.
        let of_owner = job.disputes.values().filter(|(second, _)| match is_guest(&source.worker) {
            true => is_guest(&second.worker),
            false => have_same_owner(second, source),
        });
        let full = of_owner.count() >= self.settings.most_disputes;
        if full || job.disputes.contains_key(&unit.unit) {
            return Validation::nothing(ResultVerdict::Conflict);
        }
        let event = self.recount(result, claim, (mirrored, false));
        // The job is not finished until the arbiter has decided.
        let again =
            is_over.then_some(CampaignEvent::JobState { job: unit.job, state: JobState::Running });
        Validation {
            verdict: ResultVerdict::Conflict,
            events: std::iter::once(event).chain(again).collect(),
        }
    }
}

/// Checks that a result is consistent, and that it fits its lease and the limits of its unit.
///
/// # Errors
/// Returns a description of the problem.
fn check(
    result: &UnitResult,
    grant: &Grant,
    limits: Option<&UnitLimits>,
) -> Result<(), &'static str> {
    let UnitResult { tally, parts, sub_sums, elapsed_s, .. } = result;
    let above = |most_thirds: u128, most_nodes: u128| {
        tally.thirds() > most_thirds || tally.nodes() > most_nodes
    };
    if above(MOST_THIRDS, MOST_NODES) {
        return Err("is larger than any result can be");
    }
    // Added again, from parts that each have their own residues.
    if parts.total().as_ref() != Ok(tally) {
        return Err("disagrees with its residues or its parts");
    }
    let sum = sub_sums.iter().try_fold(0u128, |sum, part| sum.checked_add(*part));
    if !sub_sums.is_empty() && sum != Some(tally.thirds()) {
        return Err("disagrees with the sums of its sub-ranges");
    }
    if tally.nodes() as f64 > MOST_NODES_PER_S * elapsed_s.max(1e-3) {
        return Err("was counted faster than any device can count");
    }
    let Some(limits) = limits else { return Ok(()) };
    if above(limits.most_thirds, limits.most_nodes) {
        return Err("is larger than its unit allows");
    }
    if parts.iter().any(|part| part.completions > 0 && !limits.weights.contains(&part.weight)) {
        return Err("has a weight that its unit does not have");
    }
    let whole = sub_sums.is_empty() || sub_sums.len() as u64 == sub_ranges_of(limits.prefixes);
    let spot = SubRangeSet::len(grant.sub_ranges) == sub_sums.len();
    if !(whole || grant.mirrored && spot) {
        return Err("has a different number of sub-ranges than its unit");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
