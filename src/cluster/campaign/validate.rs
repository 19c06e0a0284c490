//! Validation of results, which changes nothing.

use super::key::{Grant, Grantee};
use super::lease::SubRangeSet;
use super::state::{Campaign, Claim, Event, Job, JobState};
use super::unit_result::UnitResult;
use super::units::{Outcome, Status};
use crate::decomposition::{UnitLimits, sub_ranges_of};

/// The answer to a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The result was recorded.
    Accepted,
    /// The result is already recorded, or the check is no longer needed.
    Duplicate,
    /// Another result is in force; the arbiter decides.
    Conflict,
    /// The result is not considered: the job is not counted any more or has no such unit, the unit
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
    pub verdict: Verdict,
    /// The resulting events.
    pub events: Vec<Event>,
}

impl Validation {
    const fn nothing(verdict: Verdict) -> Self {
        Self { verdict, events: Vec::new() }
    }
}

/// Far above any unit of a board that is counted: 32! is below 2^118, and a worker makes fewer than
/// 2^50 nodes per second. Larger values could overflow the sums.
const MOST_THIRDS: u128 = 1 << 121;
const MOST_NODES: u128 = 1 << 96;

/// Allowance for clock differences and for the time between two ticks, in seconds.
const ABOUT_S: f64 = 60.0;

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
            return Validation::nothing(Verdict::Quarantined);
        }
        let Some(job) = self.jobs.get(&unit.job) else {
            return Validation::nothing(Verdict::StaleJob);
        };
        let Some(status) = job.units.status(unit.unit) else {
            return Validation::nothing(Verdict::StaleJob);
        };
        if job.state == JobState::Cancelled {
            return Validation::nothing(Verdict::StaleJob);
        }
        let outcome = job.units.outcome(unit.unit).filter(|_| status == Status::Done);
        // Ignore results without a lease, and those of kernels or devices that the worker never
        // named.
        let Some(grant) = self.granted(result, outcome) else {
            return Validation::nothing(Verdict::StaleJob);
        };
        if !self.is_announced(result) || self.reputation.has_too_many_sources(source) {
            return Validation::nothing(Verdict::StaleJob);
        }
        if let Err(why) = check(result, &grant, limits) {
            let reason = format!("its result for {unit} {why}");
            let events = self.quarantine(&source.worker, &reason, false);
            return Validation { verdict: Verdict::Refused, events };
        }
        match outcome {
            Some(outcome) if grant.mirrored => self.validate_recount(result, job, outcome, &grant),
            Some(outcome) => self.validate_copy(result, job, outcome),
            // The result to be checked was voided. As a first result, this one would be checked by
            // the same image.
            None if grant.mirrored => Validation::nothing(Verdict::StaleJob),
            None => self.validate_first(result),
        }
    }

    /// Returns the scope of the lease under which a result was counted, if the coordinator granted
    /// it to this worker.
    fn granted(&self, result: &UnitResult, outcome: Option<&Outcome>) -> Option<Grant> {
        let UnitResult { unit, attempt, grant, source, .. } = result;
        let known = self.leases.get(attempt).or_else(|| self.ended(*attempt));
        let thirds = outcome.map(|outcome| outcome.tally.thirds());
        if let Some(lease) = known {
            let its_own = lease.worker == source.worker && lease.job == unit.job;
            // A recount checks the result that was in force when it was leased.
            let in_force = !lease.mirrored || lease.thirds == thirds;
            if its_own && in_force && lease.units.contains(&unit.unit) {
                let (units, mirrored, sub_ranges) =
                    (lease.units.clone(), lease.mirrored, lease.sub_ranges);
                return Some(Grant { units, mirrored, sub_ranges });
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
        if self.is_of_before(*attempt) {
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
            return Validation::nothing(Verdict::StaleJob);
        }
        let checks = self.plan_checks(*unit, owner, !sub_sums.is_empty(), &source.worker);
        // Bound the time by the age of the lease or the job, since reservations of checks depend on
        // it.
        let lease = self.leases.get(attempt).or_else(|| self.ended(*attempt));
        let submitted_ms = || self.jobs.get(&unit.job).map_or(0, |job| job.submitted_ms);
        let since_ms = lease.map_or_else(submitted_ms, |lease| self.held_since(lease, unit.unit));
        let most_s = ABOUT_S + self.ticked_ms.saturating_sub(since_ms) as f64 / 1000.0;
        let event = Event::UnitDone {
            unit: *unit,
            attempt: *attempt,
            tally: *tally,
            source: source.clone(),
            elapsed_s: elapsed_s.min(most_s),
            checks: Some(checks),
            // Only a spot check needs them.
            sub_sums: if checks.has_spot() { sub_sums.clone() } else { Vec::new() },
        };
        Validation { verdict: Verdict::Accepted, events: vec![event] }
    }

    /// Validates a second first result, of an expired lease or of a copy.
    fn validate_copy(&self, result: &UnitResult, job: &Job, outcome: &Outcome) -> Validation {
        if outcome.tally.thirds() == result.tally.thirds() {
            return Validation::nothing(Verdict::Duplicate);
        }
        self.differs(result, job, outcome, Claim::Whole(result.tally))
    }

    fn validate_recount(
        &self,
        result: &UnitResult,
        job: &Job,
        outcome: &Outcome,
        grant: &Grant,
    ) -> Validation {
        let UnitResult { unit, tally, sub_sums, source, elapsed_s, .. } = result;
        let owner = self.reputation.known_owner(&source.worker, &source.owner);
        if owner == Some(outcome.owner) {
            // The result was another owner's when the recount was leased.
            return Validation::nothing(Verdict::Duplicate);
        }
        let (unit, elapsed_s, source) = (*unit, *elapsed_s, source.clone());
        // Workers of earlier versions always recount the whole unit.
        let spot = !grant.sub_ranges.is_empty() && sub_sums.len() == grant.sub_ranges.len();
        if spot {
            let (sub_ranges, sums) = (grant.sub_ranges, sub_sums.clone());
            return match job.agrees_with(unit.unit, sub_ranges, &sums) {
                // The sums are no longer stored, because the unit was confirmed in the meantime.
                None => Validation::nothing(Verdict::Duplicate),
                Some(true) if outcome.spots.union(sub_ranges) == outcome.spots => {
                    Validation::nothing(Verdict::Duplicate)
                }
                Some(true) => {
                    let agrees = true;
                    let event =
                        Event::SpotCheck { unit, sub_ranges, sums, source, agrees, elapsed_s };
                    Validation { verdict: Verdict::Accepted, events: vec![event] }
                }
                Some(false) => self.differs(result, job, outcome, Claim::Spot(sub_ranges, sums)),
            };
        }
        if outcome.tally.thirds() != tally.thirds() {
            return self.differs(result, job, outcome, Claim::Whole(*tally));
        }
        // A dispute is left to the arbiter, even if others agree in the meantime.
        if outcome.checker.is_some() || job.disputes.contains_key(&unit.unit) {
            return Validation::nothing(Verdict::Duplicate);
        }
        let event =
            Event::Recount { unit, tally: *tally, source, mirrored: true, agrees: true, elapsed_s };
        Validation { verdict: Verdict::Accepted, events: vec![event] }
    }

    /// Validates a result that differs from the recorded one.
    fn differs(
        &self,
        result: &UnitResult,
        job: &Job,
        outcome: &Outcome,
        claim: Claim,
    ) -> Validation {
        let UnitResult { unit, tally, source, elapsed_s, .. } = result;
        let first = self.reputation.source(outcome.source);
        if first.worker == source.worker {
            let reason = format!("it has counted {unit} twice, with different results");
            let events = self.quarantine(&source.worker, &reason, true);
            return Validation { verdict: Verdict::Refused, events };
        }
        // A published total is right, so contradicting one of its units changes nothing.
        let is_over = job.state == JobState::Finished;
        if is_over && job.published.is_some() {
            return Validation::nothing(Verdict::StaleJob);
        }
        // Allow one dispute per unit and a few per owner, since each costs the arbiter two counts
        // of the unit.
        let owner = |source: &crate::cluster::campaign::Source| {
            self.reputation.known_owner(&source.worker, &source.owner)
        };
        let of_owner = job.disputes.values().filter(|(second, _)| owner(second) == owner(source));
        let full = of_owner.count() >= self.settings.most_disputes;
        if full || job.disputes.contains_key(&unit.unit) {
            return Validation::nothing(Verdict::Conflict);
        }
        let (unit, source, elapsed_s, agrees) = (*unit, source.clone(), *elapsed_s, false);
        let event = match claim {
            Claim::Whole(_) => {
                Event::Recount { unit, tally: *tally, source, mirrored: true, agrees, elapsed_s }
            }
            Claim::Spot(sub_ranges, sums) => {
                Event::SpotCheck { unit, sub_ranges, sums, source, agrees, elapsed_s }
            }
        };
        // The job is not finished until the arbiter has decided.
        let again = is_over.then_some(Event::JobState { job: unit.job, state: JobState::Running });
        Validation {
            verdict: Verdict::Conflict,
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
        return Err("is larger than any can be");
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
        return Err("was counted faster than any device counts");
    }
    let Some(limits) = limits else { return Ok(()) };
    if above(limits.most_thirds, limits.most_nodes) {
        return Err("is larger than its unit allows");
    }
    if parts.iter().any(|part| part.completions > 0 && !limits.weights.contains(&part.weight)) {
        return Err("has a weight that its unit has not");
    }
    let whole = sub_sums.is_empty() || sub_sums.len() as u64 == sub_ranges_of(limits.prefixes);
    let spot = SubRangeSet::len(grant.sub_ranges) == sub_sums.len();
    if !(whole || grant.mirrored && spot) {
        return Err("has another number of sub-ranges than its unit");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::campaign::{Source, UnitId};
    use crate::decomposition::JobHash;
    use crate::tally::{Parts, Residues, Tally};

    fn result(completions: u128, nodes: u128, sub_sums: Vec<u128>) -> UnitResult {
        let mut parts = Parts::default();
        parts.add(24, completions, Residues::of(completions), nodes).expect("small");
        let source = Source {
            worker: "w".into(),
            owner: "o".into(),
            kernel: "k".into(),
            device: "d".into(),
            build: "b".into(),
        };
        let unit = UnitId { job: JobHash::from_bytes([1; 16]), unit: 0 };
        let tally = parts.total().unwrap_or_else(|_| Tally::from_parts(0, Residues::default(), 0));
        UnitResult {
            unit,
            attempt: 1,
            grant: Vec::new(),
            tally,
            parts,
            sub_sums,
            source,
            elapsed_s: 1.0,
        }
    }

    fn limits() -> UnitLimits {
        UnitLimits {
            prefixes: 2,
            weights: [24].into(),
            most_thirds: 24 * 100,
            least_nodes: 0,
            most_nodes: 1000,
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let grant = Grant { units: 0..1, mirrored: false, sub_ranges: SubRangeSet::default() };
        let verdict = |result: &UnitResult| check(result, &grant, Some(&limits()));
        assert_eq!(verdict(&result(10, 20, vec![100, 140])), Ok(()));
        assert_eq!(verdict(&result(10, 20, vec![])), Ok(()));
        // Some kernels make no nodes of a prefix.
        assert_eq!(verdict(&result(0, 0, vec![])), Ok(()));
        let wrong = [
            result(101, 20, vec![]),
            result(10, 1001, vec![]),
            result(10, 20, vec![100, 141]),
            result(10, 20, vec![100, 100, 40]),
            result(10, 20, vec![u128::MAX, 241]),
            result(1 << 118, 20, vec![]),
            UnitResult { elapsed_s: 0.0, ..result(10, 1 << 50, vec![]) },
        ];
        for result in wrong {
            assert!(verdict(&result).is_err(), "{result:?}");
        }
        let mut other = result(10, 20, vec![]);
        other.parts.add(12, 1u64, Residues::of(1), 0u64).expect("small");
        other.tally = other.parts.total().expect("agrees");
        assert_eq!(verdict(&other), Err("has a weight that its unit has not"));
        // A recount of one sub-range has fewer nodes and a single sum.
        let spot = Grant { mirrored: true, sub_ranges: SubRangeSet::from_bits(2), ..grant };
        assert_eq!(check(&result(1, 1, vec![24]), &spot, Some(&limits())), Ok(()));
        assert!(check(&result(1, 1, vec![23]), &spot, Some(&limits())).is_err());
    }
}
