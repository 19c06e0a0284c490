//! Results are judged before anything changes.

use super::UnitId;
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
    /// The job is not counted any more, or has no such unit.
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
        // Added up anew, from parts each of which has residues of its own.
        if parts.total().as_ref() != Ok(tally) {
            let reason = format!("its result for {unit} disagrees with its residues or its parts");
            let events = self.quarantine(&source.worker, &reason);
            return Judgement { verdict: Verdict::Refused, events };
        }
        let Some(outcome) = job.units.outcome(unit.unit).filter(|_| status == Status::Done) else {
            let (unit, attempt, tally, elapsed_s) = (*unit, *attempt, *tally, *elapsed_s);
            let events = vec![Event::UnitDone { unit, attempt, tally, source: source.clone(), elapsed_s }];
            return Judgement { verdict: Verdict::Accepted, events };
        };
        let agrees = outcome.tally.thirds() == tally.thirds();
        let first = self.trust.source(outcome.source);
        let asked = self.leases.get(attempt).filter(|lease| {
            lease.worker == source.worker && lease.job == unit.job && lease.units.contains(&unit.unit)
        });
        let recount = || Event::Recount {
            unit: *unit,
            tally: *tally,
            source: source.clone(),
            mirrored: asked.is_some_and(|lease| lease.mirrored),
            agrees,
            elapsed_s: *elapsed_s,
        };
        if !agrees {
            return Judgement { verdict: Verdict::Conflict, events: vec![recount()] };
        }
        // Only whom the coordinator asked for a recount, of the mirror image, can confirm: so nobody confirms itself
        // or its friends unasked.
        let asked_to_check = asked.is_some_and(|lease| lease.mirrored);
        let confirms = first != source && asked_to_check && outcome.checker.is_none();
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
        if let Some((source, tally)) = second
            && wrong(tally)
        {
            let reason = format!("its recount of {unit} is wrong");
            events.extend(self.quarantine(&source.worker, &reason));
        }
        if wrong(&outcome.tally) {
            let reason = format!("its result for {unit} is wrong");
            if !self.trust.is_quarantined(&first.worker) {
                events.extend(self.quarantine(&first.worker, &reason));
            }
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
        if self.trust.is_quarantined(worker) {
            return Vec::new();
        }
        let numbers = self.trust.of_worker(worker);
        let mut events =
            vec![Event::WorkerQuarantined { worker: worker.to_owned(), reason: reason.to_owned() }];
        for (&job, state) in &self.jobs {
            for (unit, outcome) in state.units.outcomes() {
                // Its own word for its own results counts for nothing.
                let confirmed = outcome.checker.is_some_and(|checker| !numbers.contains(&checker));
                if numbers.contains(&outcome.source) && !confirmed {
                    let reason = format!("{worker} is in quarantine and nobody confirmed it");
                    events.push(Event::UnitVoided { unit: UnitId { job, unit }, reason });
                }
            }
        }
        events
    }
}
