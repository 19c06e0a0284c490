//! The state that follows from the entries of a ledger, and the rules for the next entry. Uses
//! neither disk nor clock.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::entry::{Entry, JobSubmitted, Phase, UnitReason};
use crate::decomposition::{Job, JobHash};
use crate::tally::{Tally, TallyError};

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

/// The reason that an entry is not valid after its predecessors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEntry {
    /// The text is not that of a job with this hash.
    #[error("job {0}: the text does not have this hash; submit the canonical text of the job")]
    JobText(JobHash),
    /// The job was submitted before.
    #[error("job {0} was already submitted")]
    DuplicateJob(JobHash),
    /// The job was never submitted.
    #[error("job {0} was never submitted; submit it first")]
    NoSuchJob(JobHash),
    /// A unit index beyond the last unit.
    #[error("unit {unit} does not belong to job {job} of {units} units")]
    NoSuchUnit {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
        /// Units of the job.
        units: u64,
    },
    /// The unit has a result in force.
    #[error("unit {unit} of job {job} already has a result, which must be voided first")]
    DuplicateUnit {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
    },
    /// The unit has no result in force.
    #[error("unit {unit} of job {job} has no result that could be recounted or voided")]
    NotDone {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
    },
    /// The result is inconsistent, or the sum would exceed 128 bits.
    #[error("unit {unit} of job {job}: {source}")]
    Tally {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
        /// The error of the tally.
        source: TallyError,
    },
    /// The recount's `agrees` contradicts its sum.
    #[error(
        "unit {unit} of job {job}: the recount has {recount} thirds, the result {result}, \
         but agrees = {agrees}"
    )]
    Verdict {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
        /// The sum of the recount.
        recount: u128,
        /// The sum of the result in force.
        result: u128,
        /// The value of `agrees` in the recount.
        agrees: bool,
    },
    /// A time that is negative or not finite; JSON cannot represent the latter.
    #[error(
        "unit {unit} of job {job} has an invalid counting time; it must be a finite number of \
         seconds, at least 0"
    )]
    Elapsed {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
    },
    /// The job cannot be finished because units are missing.
    #[error("job {job} cannot be finished: {missing} of {units} units are missing")]
    Unfinished {
        /// The job.
        job: JobHash,
        /// Units without a result in force.
        missing: u64,
        /// Units of the job.
        units: u64,
    },
    /// The job cannot be finished because its total is impossible.
    #[error("job {job} cannot be finished: {source}")]
    Total {
        /// The job.
        job: JobHash,
        /// The error of the total.
        source: TallyError,
    },
}

/// The number of the entry with the result in force, and whether a recount confirmed it. Packed
/// into one word, since there are millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InForce(u64);

impl InForce {
    const fn new(entry: u64, verified: bool) -> Self {
        Self(entry << 1 | verified as u64)
    }

    const fn entry(self) -> u64 {
        self.0 >> 1
    }

    const fn verified(self) -> bool {
        self.0 & 1 == 1
    }
}

/// A job with the state of its units.
#[derive(Debug)]
pub(super) struct JobEntries {
    pub(super) submitted: JobSubmitted,
    pub(super) row: JobRow,
    /// Units with a result in force. Not preallocated, since the number of units comes from a file.
    done: HashMap<u64, InForce>,
    poisoned: BTreeMap<u64, UnitReason>,
}

/// The inverse of one change.
#[derive(Debug)]
pub(super) enum Undo {
    Submitted(JobHash),
    Row(JobHash, JobRow),
    Done(JobHash, u64, Option<EarlierResult>),
    Poisoned(JobHash, u64, Option<UnitReason>),
    Worker(String, Option<WorkerRecord>),
}

/// The result in force before the change.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlierResult(InForce);

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
                    Some(EarlierResult(before)) => drop(job.done.insert(unit, before)),
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

impl JobEntries {
    fn apply(
        &mut self,
        number: u64,
        entry: &Entry,
        result: Option<&Tally>,
        undo: &mut Vec<Undo>,
    ) -> Result<(), InvalidEntry> {
        let job = self.submitted.job;
        let mut row = self.row;
        match entry {
            Entry::JobState(change) => {
                if change.state == Phase::Finished {
                    self.check_finishable()?;
                }
                row.phase = change.state;
                row.phase_ms = change.at_ms;
            }
            Entry::UnitDone(done) => {
                let unit = done.unit;
                self.must_exist(unit)?;
                if self.done.contains_key(&unit) {
                    return Err(InvalidEntry::DuplicateUnit { job, unit });
                }
                if !(done.elapsed_s.is_finite() && done.elapsed_s >= 0.0) {
                    return Err(InvalidEntry::Elapsed { job, unit });
                }
                let wrong = |source| InvalidEntry::Tally { job, unit, source };
                done.tally
                    .verify()
                    .and_then(|()| row.totals.tally.merge(&done.tally))
                    .map_err(wrong)?;
                row.totals.done += 1;
                if let Some(before) = self.poisoned.remove(&unit) {
                    row.totals.poisoned -= 1;
                    undo.push(Undo::Poisoned(job, unit, Some(before)));
                }
                self.put_in_force(unit, Some(InForce::new(number, false)), undo);
            }
            Entry::Recount(recount) => {
                let unit = recount.unit;
                let (in_force, result) = self.must_be_done(unit, result)?;
                if !(recount.elapsed_s.is_finite() && recount.elapsed_s >= 0.0) {
                    return Err(InvalidEntry::Elapsed { job, unit });
                }
                recount.tally.verify().map_err(|source| InvalidEntry::Tally {
                    job,
                    unit,
                    source,
                })?;
                let agrees = recount.tally.thirds() == result.thirds();
                if agrees != recount.agrees {
                    let (recount, result) = (recount.tally.thirds(), result.thirds());
                    return Err(InvalidEntry::Verdict {
                        job,
                        unit,
                        recount,
                        result,
                        agrees: !agrees,
                    });
                }
                row.totals.recounts += 1;
                row.totals.disagreements += u64::from(!agrees);
                if agrees && !in_force.verified() {
                    row.totals.verified += 1;
                    self.put_in_force(unit, Some(InForce::new(in_force.entry(), true)), undo);
                }
            }
            Entry::SpotCheck(check) => {
                let unit = check.unit;
                let known = self.done.contains_key(&unit);
                self.must_exist(unit)?;
                if !known {
                    return Err(InvalidEntry::NotDone { job, unit });
                }
                if !(check.elapsed_s.is_finite() && check.elapsed_s >= 0.0) {
                    return Err(InvalidEntry::Elapsed { job, unit });
                }
                row.totals.recounts += 1;
                row.totals.disagreements += u64::from(!check.agrees);
            }
            Entry::UnitVoided(UnitReason { unit, at_ms, .. }) => {
                let (in_force, result) = self.must_be_done(*unit, result)?;
                let wrong = |source| InvalidEntry::Tally { job, unit: *unit, source };
                row.totals.tally.take_back(result).map_err(wrong)?;
                row.totals.done -= 1;
                row.totals.verified -= u64::from(in_force.verified());
                row.totals.voided += 1;
                if row.phase == Phase::Finished {
                    row.phase = Phase::Running;
                    row.phase_ms = *at_ms;
                }
                self.put_in_force(*unit, None, undo);
            }
            Entry::UnitPoisoned(poisoned) => {
                let unit = poisoned.unit;
                self.must_exist(unit)?;
                if self.done.contains_key(&unit) {
                    return Err(InvalidEntry::DuplicateUnit { job, unit });
                }
                let before = self.poisoned.insert(unit, poisoned.clone());
                row.totals.poisoned += u64::from(before.is_none());
                undo.push(Undo::Poisoned(job, unit, before));
            }
            Entry::UnitRevived(revived) => {
                self.must_exist(revived.unit)?;
                if let Some(before) = self.poisoned.remove(&revived.unit) {
                    row.totals.poisoned -= 1;
                    undo.push(Undo::Poisoned(job, revived.unit, Some(before)));
                }
            }
            // These do not change an existing job.
            Entry::JobSubmitted(_)
            | Entry::WorkerSeen(_)
            | Entry::WorkerQuarantined(_)
            | Entry::WorkerReleased(_)
            | Entry::WorkerDrained(_)
            | Entry::Note(_) => {}
        }
        undo.push(Undo::Row(job, self.row));
        self.row = row;
        Ok(())
    }

    fn must_exist(&self, unit: u64) -> Result<(), InvalidEntry> {
        let JobSubmitted { job, units, .. } = self.submitted;
        if unit < units { Ok(()) } else { Err(InvalidEntry::NoSuchUnit { job, unit, units }) }
    }

    fn must_be_done<'a>(
        &self,
        unit: u64,
        result: Option<&'a Tally>,
    ) -> Result<(InForce, &'a Tally), InvalidEntry> {
        self.must_exist(unit)?;
        let in_force = self.done.get(&unit).copied();
        in_force.zip(result).ok_or(InvalidEntry::NotDone { job: self.submitted.job, unit })
    }

    fn check_finishable(&self) -> Result<(), InvalidEntry> {
        let JobSubmitted { job, units, .. } = self.submitted;
        match units - self.row.totals.done {
            0 => {
                self.row
                    .totals
                    .tally
                    .solutions()
                    .map_err(|source| InvalidEntry::Total { job, source })?;
                Ok(())
            }
            missing => Err(InvalidEntry::Unfinished { job, missing, units }),
        }
    }

    fn put_in_force(&mut self, unit: u64, new: Option<InForce>, undo: &mut Vec<Undo>) {
        let before = match new {
            Some(new) => self.done.insert(unit, new),
            None => self.done.remove(&unit),
        };
        undo.push(Undo::Done(self.submitted.job, unit, before.map(EarlierResult)));
    }

    /// Returns whether entry number `number` holds the result of `unit` in force.
    pub(super) fn is_in_force(&self, unit: u64, number: u64) -> bool {
        self.done.get(&unit).is_some_and(|in_force| in_force.entry() == number)
    }

    /// Returns whether entry number `number` follows the result of `unit` in force.
    pub(super) fn is_after_result(&self, unit: u64, number: u64) -> bool {
        self.done.get(&unit).is_some_and(|in_force| in_force.entry() < number)
    }

    /// Returns the poisoned units.
    pub(super) fn poisoned(&self) -> impl Iterator<Item = &UnitReason> {
        self.poisoned.values()
    }
}
