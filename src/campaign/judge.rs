//! Results are judged before anything changes.

use std::collections::{BTreeSet, HashSet};

use super::UnitId;
use super::leases::Lease;
use super::state::{Campaign, Event, JobState};
use super::trust::Source;
use super::units::Status;
use crate::tally::{Parts, Tally};

/// A result that a worker reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The unit.
    pub unit: UnitId,
    /// The lease under which it was counted.
    pub attempt: u64,
    /// What was counted.
    pub tally: Tally,
    /// The same, itemised by weight.
    pub parts: Parts,
    /// By whom.
    pub source: Source,
    /// Seconds that it took.
    pub elapsed_s: f64,
}

/// What is said to a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is in the books.
    Accepted,
    /// The same result is in the books already.
    Duplicate,
    /// Another result is in the books: the referee will decide.
    Conflict,
    /// The job is not counted any more, or has no such unit; or it was a recount, and what it was to check was taken
    /// back.
    StaleJob,
    /// It contradicts itself: its sum and its residues disagree. The worker is quarantined.
    Refused,
    /// The worker is in quarantine.
    Quarantined,
}

/// A verdict, and the events that must be durable before it is spoken.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What happens.
    pub events: Vec<Event>,
}

impl Judgement {
    const fn nothing(verdict: Verdict) -> Self {
        Self { verdict, events: Vec::new() }
    }
}

impl Campaign {
    /// Judges a result. Changes nothing: the events do, once they are applied. Two results for the same unit must not
    /// both be judged before the events of the first are applied.
    pub fn judge(&self, completion: &Completion) -> Judgement {
        let Completion { unit, attempt, tally, parts, source, elapsed_s } = completion;
        if self.trust.is_quarantined(&source.worker) {
            return Judgement::nothing(Verdict::Quarantined);
        }
        let Some(job) = self.jobs.get(&unit.job) else { return Judgement::nothing(Verdict::StaleJob) };
        let Some(status) = job.units.status(unit.unit) else { return Judgement::nothing(Verdict::StaleJob) };
        if job.state == JobState::Cancelled {
            return Judgement::nothing(Verdict::StaleJob);
        }
        /// No unit of a board that is counted comes near: 32! is below 2^118, and a worker makes fewer than 2^50
        /// nodes a second. What is larger would leave no room in the sums.
        const MOST_THIRDS: u128 = 1 << 121;
        const MOST_NODES: u128 = 1 << 96;
        if tally.thirds() > MOST_THIRDS || tally.nodes() > MOST_NODES {
            let reason = format!("its result for {unit} is larger than any can be");
            let events = self.quarantine(&source.worker, &reason);
            return Judgement { verdict: Verdict::Refused, events };
        }
        // Added up anew, from parts each of which has residues of its own.
        if parts.total().as_ref() != Ok(tally) {
            let reason = format!("its result for {unit} disagrees with its residues or its parts");
            let events = self.quarantine(&source.worker, &reason);
            return Judgement { verdict: Verdict::Refused, events };
        }
        let asked = self.leases.get(attempt).filter(|lease| {
            lease.worker == source.worker && lease.job == unit.job && lease.units.contains(&unit.unit)
        });
        let mirrored = asked.is_some_and(|lease| lease.mirrored);
        let Some(outcome) = job.units.outcome(unit.unit).filter(|_| status == Status::Done) else {
            if mirrored {
                // The result that it was to check was taken back. As a first result it would be checked by the
                // same image again.
                return Judgement::nothing(Verdict::StaleJob);
            }
            let (unit, attempt, tally, elapsed_s) = (*unit, *attempt, *tally, *elapsed_s);
            let events = vec![Event::UnitDone { unit, attempt, tally, source: source.clone(), elapsed_s }];
            return Judgement { verdict: Verdict::Accepted, events };
        };
        let agrees = outcome.tally.thirds() == tally.thirds();
        let first = self.trust.source(outcome.source);
        let recount = || Event::Recount {
            unit: *unit,
            tally: *tally,
            source: source.clone(),
            mirrored,
            agrees,
            elapsed_s: *elapsed_s,
        };
        if !agrees {
            return Judgement { verdict: Verdict::Conflict, events: vec![recount()] };
        }
        // Only whom the coordinator asked for a recount, of the mirror image, can confirm: so nobody confirms itself
        // or its friends unasked.
        // Of its own results a worker is believed a recount only by the kernel that it was asked for.
        let another = |lease: &Lease| {
            first.worker != source.worker
                || lease.not_kernel.as_ref().is_some_and(|kernel| *kernel != source.kernel)
        };
        let asked_to_check = asked.is_some_and(|lease| lease.mirrored && another(lease));
        // A dispute is the referee's, whoever agrees meanwhile.
        let disputed = job.disputes.contains_key(&unit.unit);
        let confirms = asked_to_check && outcome.checker.is_none() && !disputed;
        if confirms {
            return Judgement { verdict: Verdict::Accepted, events: vec![recount()] };
        }
        Judgement::nothing(Verdict::Duplicate)
    }

    /// What the referee found in `elapsed_s` seconds, by the unit and by its mirror image: whoever counted something
    /// else is quarantined, and the truth stands.
    pub fn referee(&self, unit: UnitId, truth: &Tally, referee: &Source, elapsed_s: f64) -> Vec<Event> {
        let Some(job) = self.jobs.get(&unit.job) else { return Vec::new() };
        let Some(outcome) = job.units.outcome(unit.unit) else { return Vec::new() };
        let mut events = Vec::new();
        let first = self.trust.source(outcome.source);
        let second = job.disputes.get(&unit.unit);
        let wrong = |tally: &Tally| tally.thirds() != truth.thirds();
        let mut convicted: Vec<(&str, String)> = Vec::new();
        if let Some((source, tally)) = second
            && wrong(tally)
        {
            convicted.push((&source.worker, format!("its recount of {unit} is wrong")));
        }
        let reason = format!("its result for {unit} is wrong");
        if wrong(&outcome.tally) {
            convicted.push((&first.worker, reason.clone()));
            // Who confirmed it is as wrong.
            let checker = outcome.checker.map(|checker| self.trust.source(checker));
            convicted
                .extend(checker.map(|c| (&c.worker[..], format!("it confirmed a wrong result for {unit}"))));
        }
        events.extend(self.convict(&convicted));
        if wrong(&outcome.tally) {
            let voids = |event: &Event| matches!(event, Event::UnitVoided { unit: u, .. } if *u == unit);
            if !events.iter().any(voids) {
                events.push(Event::UnitVoided { unit, reason });
            }
            let (tally, source) = (*truth, referee.clone());
            events.push(Event::UnitDone { unit, attempt: 0, tally, source, elapsed_s });
        } else {
            let (tally, source) = (*truth, referee.clone());
            events.push(Event::Recount { unit, tally, source, mirrored: true, agrees: true, elapsed_s });
        }
        events
    }

    /// Puts a worker in quarantine and takes back what it counted and nobody else confirmed.
    pub fn quarantine(&self, worker: &str, reason: &str) -> Vec<Event> {
        self.convict(&[(worker, reason.to_owned())])
    }

    /// Puts workers in quarantine, each for its reason. What any worker in quarantine counted and nobody outside
    /// confirmed is taken back, once.
    fn convict(&self, convicted: &[(&str, String)]) -> Vec<Event> {
        let mut events = Vec::new();
        let mut new: BTreeSet<&str> = BTreeSet::new();
        for (worker, reason) in convicted {
            if !self.trust.is_quarantined(worker) && new.insert(*worker) {
                let (worker, reason) = ((*worker).to_owned(), reason.clone());
                events.push(Event::WorkerQuarantined { worker, reason });
            }
        }
        if new.is_empty() {
            return events;
        }
        let before = self.trust.quarantined().keys().map(String::as_str);
        let numbers: HashSet<u32> =
            before.chain(new.iter().copied()).flat_map(|worker| self.trust.of_worker(worker)).collect();
        for (&job, state) in &self.jobs {
            for (unit, outcome) in state.units.outcomes() {
                // Their word for each other's results counts for nothing.
                let confirmed = outcome.checker.is_some_and(|checker| !numbers.contains(&checker));
                if numbers.contains(&outcome.source) && !confirmed {
                    let worker = &self.trust.source(outcome.source).worker;
                    let reason = format!("{worker} is in quarantine and nobody confirmed it");
                    events.push(Event::UnitVoided { unit: UnitId { job, unit }, reason });
                }
            }
        }
        events
    }
}
