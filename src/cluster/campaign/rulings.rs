//! The arbiter: the units that the coordinator counts itself, and the consequences.

use std::collections::{BTreeMap, BTreeSet};

use super::UnitId;
use super::checks::Depth;
use super::lease::SubRangeSet;
use super::state::{Campaign, Claim, Event, Job, JobState};
use super::unit_result::Source;
use crate::tally::Tally;

/// A unit that the arbiter is to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArbiterTask {
    /// The unit.
    pub unit: UnitId,
    /// The sub-ranges to count; empty for the whole unit.
    pub sub_ranges: SubRangeSet,
    /// Whether two results differ; the unit must then be counted twice.
    pub dispute: bool,
}

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
    /// Returns the arbiter's next task: disputes first, then audits, then checks that no worker can
    /// make, then reserved checks without a lease that may be made early. `skip` returns true for
    /// units that the arbiter cannot decide.
    pub fn next_for_arbiter(
        &mut self,
        now_ms: u64,
        skip: impl Fn(UnitId) -> bool,
    ) -> Option<ArbiterTask> {
        let task = self.task_for_arbiter(now_ms, skip);
        self.at_arbiter = task.map(|task| task.unit);
        task
    }

    fn task_for_arbiter(
        &mut self,
        now_ms: u64,
        skip: impl Fn(UnitId) -> bool,
    ) -> Option<ArbiterTask> {
        let mut jobs: Vec<_> = self.jobs.iter().filter(|(_, job)| job.state.is_counted()).collect();
        jobs.sort_by_key(|(_, job)| (std::cmp::Reverse(job.priority), job.submitted_ms));
        let dispute = jobs.iter().find_map(|&(&hash, job)| {
            let units = job.disputes.keys().map(|&unit| UnitId { job: hash, unit });
            units.into_iter().find(|unit| !skip(*unit))
        });
        if let Some(unit) = dispute {
            return Some(ArbiterTask { unit, sub_ranges: SubRangeSet::default(), dispute: true });
        }
        let mut looked_at = Vec::new();
        let found = jobs.iter().find_map(|&(&hash, job)| {
            let unit = |unit| UnitId { job: hash, unit };
            let audit = job.checks.first_audit(|u| skip(unit(u)));
            let found = audit.or_else(|| {
                let (found, next) = self.orphan(job, now_ms, |u| skip(unit(u)));
                looked_at.push((hash, next));
                found
            });
            found.map(|(u, depth)| (unit(u), depth))
        });
        for (hash, next) in looked_at {
            if let Some(job) = self.jobs.get_mut(&hash) {
                job.checks.orphans_from = next;
            }
        }
        let (unit, depth) = found.or_else(|| self.next_reserved_for_arbiter(&skip))?;
        let outcome = self.jobs.get(&unit.job)?.units.outcome(unit.unit)?;
        let sub_ranges = match depth {
            Depth::Spot => self.random.some_of(
                &self.key,
                u32::from(outcome.sub_ranges),
                self.settings.spot_sub_ranges,
            ),
            Depth::Full => SubRangeSet::default(),
        };
        Some(ArbiterTask { unit, sub_ranges, dispute: false })
    }

    /// Returns a check to be made by the coordinator, and the unit at which the next scan begins.
    /// This is a check that no worker can make or, once the job waits only for its checks, any
    /// check. The latter applies when no unit of the job is open or, if all units are recounted,
    /// when all are done.
    fn orphan(
        &self,
        job: &Job,
        now_ms: u64,
        skip: impl Fn(u64) -> bool,
    ) -> (Option<(u64, Depth)>, u64) {
        /// Scanning more in one call would be slow.
        const LOOK_AT: usize = 64;
        let all_done = job.units.done() == job.units.len();
        if all_done && let Some(check) = job.checks.shallowest(&skip) {
            // The job waits only for its checks.
            return (Some(check), job.checks.orphans_from);
        }
        let mut next = 0;
        for (looked_at, (unit, check)) in
            job.checks.undrawn_from(job.checks.orphans_from).enumerate()
        {
            if looked_at == LOOK_AT {
                next = unit;
                break;
            }
            if !skip(unit) && self.is_orphan(job, unit, check, now_ms) {
                return (Some((unit, check.depth)), unit);
            }
        }
        // All remaining units are leased, and the workers with the checks may be slow.
        let ends = job.units.open() == 0 && self.target(job) < 1.0;
        (if ends { job.checks.shallowest(&skip) } else { None }, next)
    }

    /// Returns the events that follow from a ruling: the sources of wrong results are quarantined,
    /// and the correct result is recorded.
    pub fn ruled(&self, ruling: &Ruling, arbiter: &Source) -> Vec<Event> {
        let Ruling { task: ArbiterTask { unit, sub_ranges, dispute }, tally, sub_sums, elapsed_s } =
            ruling;
        let (unit, elapsed_s) = (*unit, *elapsed_s);
        let Some(job) = self.jobs.get(&unit.job) else { return Vec::new() };
        let Some(outcome) = job.units.outcome(unit.unit) else { return Vec::new() };
        if !sub_ranges.is_empty() {
            let agrees = job.agrees_with(unit.unit, *sub_ranges, sub_sums);
            let source = arbiter.clone();
            return match agrees {
                Some(agrees) => {
                    let (sub_ranges, sums) = (*sub_ranges, sub_sums.clone());
                    vec![Event::SpotCheck { unit, sub_ranges, sums, source, agrees, elapsed_s }]
                }
                None => Vec::new(),
            };
        }
        let first = self.reputation.source(outcome.source);
        let every = |sums: &[u128]| sums.is_empty() || sub_sums.is_empty() || sums == &sub_sums[..];
        let wrong_sums = job.sub_sums.get(&unit.unit).is_some_and(|sums| !every(sums));
        let differs = outcome.tally.thirds() != tally.thirds();
        let wrong = differs || wrong_sums;
        if wrong && !dispute {
            // One count stands against another, so the unit is counted twice before a worker is
            // convicted.
            let (tally, source, agrees) = (*tally, arbiter.clone(), false);
            return vec![if differs {
                Event::Recount { unit, tally, source, mirrored: true, agrees, elapsed_s }
            } else {
                let sub_ranges = SubRangeSet::first(sub_sums.len());
                let sums = sub_sums.clone();
                Event::SpotCheck { unit, sub_ranges, sums, source, agrees, elapsed_s }
            }];
        }
        let mut convicted: Vec<(&str, String)> = Vec::new();
        let reason = format!("its result for {unit} is wrong");
        if let Some((second, claim)) = job.disputes.get(&unit.unit)
            && !claim.agrees_with(tally, sub_sums)
            && !second.worker.starts_with('(')
        {
            convicted.push((&second.worker, format!("its recount of {unit} is wrong")));
        }
        if wrong && !self.is_own(unit) {
            convicted.push((&first.worker, reason.clone()));
            // The confirming source is wrong as well, unless only the sums of sub-ranges differ,
            // which it did not see.
            let vouched = job.checks.get(unit.unit).and_then(|check| check.vouched);
            for checker in outcome.checker.into_iter().chain(vouched).filter(|_| differs) {
                let checker = &self.reputation.source(checker).worker;
                convicted.push((checker, format!("it confirmed a wrong result for {unit}")));
            }
        }
        let mut events = self.convict(&convicted, true);
        let (tally, source) = (*tally, arbiter.clone());
        if wrong {
            let voids =
                |event: &Event| matches!(event, Event::UnitVoided { unit: u, .. } if *u == unit);
            if !events.iter().any(voids) {
                events.push(Event::UnitVoided { unit, reason });
            }
            events.push(Event::UnitDone {
                unit,
                attempt: 0,
                tally,
                source,
                elapsed_s,
                checks: Some(Default::default()),
                sub_sums: Vec::new(),
            });
        } else {
            events.push(Event::Recount {
                unit,
                tally,
                source,
                mirrored: true,
                agrees: true,
                elapsed_s,
            });
        }
        events
    }

    /// Returns the events that quarantine a worker and void its results that others have not
    /// confirmed. `widen` says whether it reported a false result, so that all unconfirmed units
    /// must be recounted.
    pub fn quarantine(&self, worker: &str, reason: &str, widen: bool) -> Vec<Event> {
        self.convict(&[(worker, reason.to_owned())], widen)
    }

    /// Returns the events that quarantine workers, each for its reason, and void the results of all
    /// quarantined workers that no other worker confirmed, each once.
    fn convict(&self, convicted: &[(&str, String)], widen: bool) -> Vec<Event> {
        let mut events = Vec::new();
        let mut new: BTreeMap<&str, &str> = BTreeMap::new();
        for (worker, reason) in convicted {
            let known = self.reputation.quarantined().contains_key(*worker);
            if !known && new.insert(worker, reason).is_none() {
                let (worker, reason) = ((*worker).to_owned(), reason.clone());
                events.push(Event::WorkerQuarantined { worker, reason, widen });
            }
        }
        if new.is_empty() {
            return events;
        }
        let before = self.reputation.quarantined().keys().map(String::as_str);
        let numbers: BTreeSet<u32> = before
            .chain(new.keys().copied())
            .flat_map(|worker| self.reputation.of_worker(worker).iter().copied())
            .collect();
        // Cancelled jobs are irrelevant, and a published total is right.
        let is_settled = |job: &Job| match job.state {
            JobState::Cancelled => true,
            JobState::Finished => job.published.is_some(),
            JobState::Running | JobState::Paused | JobState::Disputed => false,
        };
        for (&job, state) in self.jobs.iter().filter(|(_, job)| !is_settled(job)) {
            for (unit, outcome) in state.units.outcomes() {
                // Quarantined workers cannot confirm each other's results.
                let confirmed = outcome.checker.is_some_and(|checker| !numbers.contains(&checker));
                if numbers.contains(&outcome.source) && !confirmed {
                    let worker = &self.reputation.source(outcome.source).worker;
                    let reason = format!("{worker} is in quarantine and nobody confirmed it");
                    events.push(Event::UnitVoided { unit: UnitId { job, unit }, reason });
                }
            }
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
