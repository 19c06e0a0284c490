//! The state that follows from the entries of a ledger, and the rules for the next entry. Uses
//! neither disk nor clock.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::entry::{Entry, JobSubmitted, Phase, UnitReason};
use super::invalid_entry::InvalidEntry;
use super::job_entries::{InForce, JobEntries};
use crate::decomposition::{Job, JobHash};
use crate::tally::Tally;

/// The running totals of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobTotals {
    /// The sum of the results in force.
    pub tally: Tally,
    /// Units that have a result in force.
    pub done: u64,
    /// Units among them whose result in force was confirmed by a recount.
    pub verified: u64,
    /// Poisoned units.
    pub poisoned: u64,
    /// Recounts and spot checks of any result, voided ones included.
    pub recounts: u64,
    /// Recounts and spot checks that disagreed.
    pub disagreements: u64,
    /// Voided results.
    pub voided: u64,
}

/// The mutable part of a job, as stored in a row of totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobRow {
    /// The number of the entry that submitted the job.
    pub(super) submitted_by: u64,
    pub(super) phase: Phase,
    pub(super) phase_ms: u64,
    pub(super) totals: JobTotals,
}

/// A worker as recorded in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerRecord {
    /// Its name.
    pub worker: String,
    /// Its owner; `None` if no call of it was recorded.
    pub owner: Option<String>,
    /// Time of its last recorded call, in milliseconds since the Unix epoch.
    pub seen_ms: Option<u64>,
    /// The reason and the time of its quarantine, in milliseconds since the Unix epoch; `None` if
    /// it is not quarantined.
    pub quarantined: Option<(String, u64)>,
    /// Identifier of the start at which it was last drained; `None` if it never was.
    pub drained: Option<u64>,
}

/// The inverse of one change.
#[derive(Debug)]
pub(super) enum Undo {
    Submitted(JobHash),
    Row(JobHash, JobRow),
    Done(JobHash, u64, Option<InForce>),
    Poisoned(JobHash, u64, Option<UnitReason>),
    Worker(String, Option<WorkerRecord>),
}

/// The state of a campaign's ledger.
#[derive(Debug, Default)]
pub(super) struct LedgerState {
    jobs: HashMap<JobHash, JobEntries>,
    /// The jobs in the order of submission.
    order: Vec<JobHash>,
    workers: BTreeMap<String, WorkerRecord>,
}

impl LedgerState {
    /// Returns the number of the entry with the result that `entry` refers to, if one is in force.
    /// The tally of that result must be passed to [`Self::apply`].
    pub(super) fn result_of(&self, entry: &Entry) -> Option<u64> {
        let (job, unit) = match entry {
            Entry::Recount(recount) => (&recount.job, &recount.unit),
            Entry::UnitVoided(voided) => (&voided.job, &voided.unit),
            _ => return None,
        };
        Some(self.jobs.get(job)?.done.get(unit)?.entry())
    }

    /// Applies entry number `number`, counted from 1. `result` is the tally of the entry that
    /// [`Self::result_of`] returns. The inverse of each change is added to `undo`.
    ///
    /// # Errors
    /// Returns an error if the entry is not valid after its predecessors; nothing has changed then.
    pub(super) fn apply(
        &mut self,
        number: u64,
        entry: &Entry,
        result: Option<&Tally>,
        undo: &mut Vec<Undo>,
    ) -> Result<(), InvalidEntry> {
        match entry {
            Entry::JobSubmitted(submitted) => return self.submit(number, submitted, undo),
            Entry::WorkerSeen(seen) => self.change_worker(&seen.worker, undo, |worker| {
                worker.owner = Some(seen.owner.clone());
                worker.seen_ms = Some(seen.at_ms);
            }),
            Entry::WorkerQuarantined(quarantined) => {
                self.change_worker(&quarantined.worker, undo, |worker| {
                    worker.quarantined = Some((quarantined.reason.clone(), quarantined.at_ms));
                });
            }
            Entry::WorkerReleased(released) => {
                self.change_worker(&released.worker, undo, |worker| worker.quarantined = None);
            }
            Entry::WorkerDrained(drained) => {
                self.change_worker(&drained.worker, undo, |worker| {
                    worker.drained = Some(drained.boot)
                });
            }
            Entry::Note(_) => {}
            _ => {
                if let Some(hash) = entry.job() {
                    let job = self.jobs.get_mut(&hash).ok_or(InvalidEntry::NoSuchJob(hash))?;
                    return job.apply(number, entry, result, undo);
                }
            }
        }
        Ok(())
    }

    fn submit(
        &mut self,
        number: u64,
        submitted: &JobSubmitted,
        undo: &mut Vec<Undo>,
    ) -> Result<(), InvalidEntry> {
        let hash = submitted.job;
        if submitted.text.parse::<Job>().map(|job| job.hash()) != Ok(hash) {
            return Err(InvalidEntry::JobText(hash));
        }
        if self.jobs.contains_key(&hash) {
            return Err(InvalidEntry::DuplicateJob(hash));
        }
        let totals = JobTotals::default();
        let row = JobRow {
            submitted_by: number,
            phase: Phase::Running,
            phase_ms: submitted.at_ms,
            totals,
        };
        let job = JobEntries {
            submitted: submitted.clone(),
            row,
            done: HashMap::new(),
            poisoned: BTreeMap::new(),
        };
        self.jobs.insert(hash, job);
        self.order.push(hash);
        undo.push(Undo::Submitted(hash));
        Ok(())
    }

    fn change_worker(
        &mut self,
        name: &str,
        undo: &mut Vec<Undo>,
        change: impl FnOnce(&mut WorkerRecord),
    ) {
        undo.push(Undo::Worker(name.to_owned(), self.workers.get(name).cloned()));
        let new = || WorkerRecord { worker: name.to_owned(), ..WorkerRecord::default() };
        change(self.workers.entry(name.to_owned()).or_insert_with(new));
    }

    /// Reverts the changes recorded in `undo`.
    pub(super) fn revert(&mut self, undo: Vec<Undo>) {
        for step in undo.into_iter().rev() {
            match step {
                Undo::Submitted(hash) => {
                    self.jobs.remove(&hash);
                    self.order.pop();
                }
                Undo::Row(hash, row) => self.with_job(hash, |job| job.row = row),
                Undo::Done(hash, unit, before) => self.with_job(hash, |job| match before {
                    Some(before) => drop(job.done.insert(unit, before)),
                    None => drop(job.done.remove(&unit)),
                }),
                Undo::Poisoned(hash, unit, before) => self.with_job(hash, |job| match before {
                    Some(before) => drop(job.poisoned.insert(unit, before)),
                    None => drop(job.poisoned.remove(&unit)),
                }),
                Undo::Worker(name, Some(before)) => drop(self.workers.insert(name, before)),
                Undo::Worker(name, None) => drop(self.workers.remove(&name)),
            }
        }
    }

    fn with_job(&mut self, hash: JobHash, change: impl FnOnce(&mut JobEntries)) {
        if let Some(job) = self.jobs.get_mut(&hash) {
            change(job);
        }
    }

    /// Returns the jobs in the order of submission.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &JobEntries> {
        self.order.iter().filter_map(|hash| self.jobs.get(hash))
    }

    /// Returns a job.
    pub(super) fn job(&self, hash: &JobHash) -> Option<&JobEntries> {
        self.jobs.get(hash)
    }

    /// Returns the workers by name.
    pub(super) fn workers(&self) -> impl Iterator<Item = &WorkerRecord> {
        self.workers.values()
    }
}
