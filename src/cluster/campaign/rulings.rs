//! The arbiter: the units that the coordinator counts itself, and the consequences.

use std::collections::{BTreeMap, BTreeSet};

use super::UnitId;
use super::arbiter_tasks::ArbiterTask;
use super::assignment::SubRangeSet;
use super::event::{CampaignEvent, JobState};
use super::guests::is_guest;
use super::job::{Claim, Job};
use super::state::Campaign;
use super::unit_outcome::UnitOutcome;
use super::unit_result::Source;
use crate::tally::Tally;

/// The arbiter's result.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    /// The task.
    pub task: ArbiterTask,
    /// The tally of the unit, or of the requested sub-ranges.
    pub tally: Tally,
    /// The sums of the requested sub-ranges, in thirds; those of all sub-ranges if the whole unit
    /// was counted.
    pub sub_sums: Vec<u128>,
    /// Counting time, in seconds.
    pub elapsed_s: f64,
}

impl Campaign {
    /// Returns the events that follow from a ruling: the sources of wrong results are quarantined,
    /// and the correct result is recorded.
    pub fn ruling_events(&self, ruling: &Ruling, arbiter: &Source) -> Vec<CampaignEvent> {
        let Ruling { task: ArbiterTask { unit, sub_ranges, dispute }, tally, sub_sums, elapsed_s } =
            ruling;
        let (unit, elapsed_s) = (*unit, *elapsed_s);
        let Some(job) = self.jobs.get(&unit.job) else { return Vec::new() };
        let Some(outcome) = job.units.outcome(unit.unit) else { return Vec::new() };
        let recount = |claim: Claim, agrees| {
            CampaignEvent::recount(unit, claim, (true, agrees), (arbiter.clone(), None), elapsed_s)
        };
        if !sub_ranges.is_empty() {
            let agrees = job.agrees_with(unit.unit, *sub_ranges, sub_sums);
            let spot_check = |agrees| recount(Claim::Spot(*sub_ranges, sub_sums.clone()), agrees);
            return agrees.map(spot_check).into_iter().collect();
        }
        let first = self.reputation.source(outcome.source);
        let every = |sums: &[u128]| sums.is_empty() || sub_sums.is_empty() || sums == &sub_sums[..];
        let wrong_sums = job.sub_sums.get(&unit.unit).is_some_and(|sums| !every(sums));
        let differs = outcome.tally.thirds() != tally.thirds();
        let wrong = differs || wrong_sums;
        if wrong && !dispute {
            // One count stands against another, so the unit is counted twice before a worker is
            // convicted.
            let claim = if differs {
                Claim::Whole(*tally)
            } else {
                Claim::Spot(SubRangeSet::first(sub_sums.len()), sub_sums.clone())
            };
            return vec![recount(claim, false)];
        }
        let mut convicted: Vec<(&str, String)> = Vec::new();
        let reason = format!("its result for {unit} is wrong");
        if let Some((second, claim)) = job.disputes.get(&unit.unit)
            && !claim.agrees_with(tally, sub_sums)
            && !second.worker.starts_with('(')
        {
            convicted.push((&second.worker, format!("its recount of {unit} is wrong")));
        }
        if wrong && !self.is_by_coordinator(unit) {
            convicted.push((&first.worker, reason.clone()));
            // The confirming source is wrong as well, unless only the sums of sub-ranges differ,
            // which it did not see.
            let earlier_checker = job.checks.get(unit.unit).and_then(|check| check.earlier_checker);
            for checker in outcome.checker.into_iter().chain(earlier_checker).filter(|_| differs) {
                let checker = &self.reputation.source(checker).worker;
                convicted.push((checker, format!("it confirmed a wrong result for {unit}")));
            }
        }
        let mut events = self.convict(&convicted, true);
        if wrong {
            let voids = |event: &CampaignEvent| match event {
                CampaignEvent::UnitVoided { unit: voided, .. } => *voided == unit,
                _ => false,
            };
            if !events.iter().any(voids) {
                events.push(CampaignEvent::UnitVoided { unit, reason });
            }
            events.push(CampaignEvent::UnitDone {
                unit,
                attempt: 0,
                tally: *tally,
                source: arbiter.clone(),
                elapsed_s,
                checks: Some(Default::default()),
                sub_sums: Vec::new(),
                signature: None,
            });
        } else {
            events.push(recount(Claim::Whole(*tally), true));
        }
        events
    }

    /// Returns the events that quarantine a worker and void its results that others have not
    /// confirmed. `widen` says whether it reported a false result, so that all unconfirmed units
    /// must be recounted.
    pub fn quarantine(&self, worker: &str, reason: &str, widen: bool) -> Vec<CampaignEvent> {
        self.convict(&[(worker, reason.to_owned())], widen)
    }

    /// Returns the events that quarantine workers, each for its reason, and void the results of all
    /// quarantined workers that no other worker confirmed, each once.
    fn convict(&self, convicted: &[(&str, String)], widen: bool) -> Vec<CampaignEvent> {
        let mut events = Vec::new();
        let mut new: BTreeMap<&str, &str> = BTreeMap::new();
        for (worker, reason) in convicted {
            let known = self.reputation.quarantined().contains_key(*worker);
            if !known && new.insert(worker, reason).is_none() {
                // A stranger must not cause recounts of others' units.
                let widen = widen && !is_guest(worker);
                let (worker, reason) = ((*worker).to_owned(), reason.clone());
                events.push(CampaignEvent::WorkerQuarantined { worker, reason, widen });
            }
        }
        if new.is_empty() {
            return events;
        }
        let before = self.reputation.quarantined().keys().map(String::as_str);
        let numbers: BTreeSet<u32> = before
            .chain(new.keys().copied())
            .flat_map(|worker| self.reputation.voided_with(worker))
            .collect();
        // Cancelled jobs are irrelevant, and a published total is right.
        let is_settled = |job: &Job| match job.state {
            JobState::Cancelled => true,
            JobState::Finished => job.published.is_some(),
            JobState::Running | JobState::Paused | JobState::Disputed => false,
        };
        for (&job, state) in self.jobs.iter().filter(|(_, job)| !is_settled(job)) {
            // Quarantined workers cannot confirm each other's results.
            let confirmers: BTreeSet<u32> = numbers
                .iter()
                .copied()
                .filter(|number| state.units.has_confirmed(*number))
                .collect();
            let owners =
                confirmers.iter().map(|number| self.reputation.owner_of(*number)).collect();
            let is_by_them = |outcome: &UnitOutcome| numbers.contains(&outcome.source);
            let confirmed_by_them = state.units.outcomes_of(&owners, |outcome| {
                outcome.checker.is_some_and(|by| confirmers.contains(&by)) && is_by_them(outcome)
            });
            let unconfirmed = state.units.unconfirmed_outcomes();
            let void: BTreeMap<u64, u32> = unconfirmed
                .filter(|(_, outcome)| is_by_them(outcome))
                .chain(confirmed_by_them)
                .map(|(unit, outcome)| (unit, outcome.source))
                .collect();
            events.extend(void.into_iter().map(|(unit, source)| {
                let worker = &self.reputation.source(source).worker;
                let reason = format!("{worker} is in quarantine and no other worker confirmed it");
                CampaignEvent::UnitVoided { unit: UnitId { job, unit }, reason }
            }));
        }
        events
    }
}

impl Claim {
    /// Returns whether the claim equals the arbiter's result.
    fn agrees_with(&self, truth: &Tally, sub_sums: &[u128]) -> bool {
        match self {
            Self::Whole(tally) => tally.thirds() == truth.thirds(),
            Self::Spot(sub_ranges, sums) => {
                let found = sub_ranges.numbers().map(|number| sub_sums.get(number as usize));
                found.zip(sums).all(|(found, sum)| found.is_none_or(|found| found == sum))
            }
        }
    }
}
