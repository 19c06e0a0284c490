//! What the entries of a campaign add up to, and which entry may follow. No disk, no clock.

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
    /// Those of them that a recount of the result in force agreed with.
    pub verified: u64,
    /// Units that are set aside.
    pub poisoned: u64,
    /// Recounts of any result, those taken back included.
    pub recounts: u64,
    /// Recounts that did not agree.
    pub disagreements: u64,
    /// Results that were taken back.
    pub voided: u64,
}

/// What changes in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobRow {
    /// The number of the entry that submitted it.
    pub(super) submitted_by: u64,
    pub(super) phase: Phase,
    pub(super) phase_ms: u64,
    pub(super) totals: JobTotals,
}

/// A worker as far as the ledger knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerRecord {
    /// Its name.
    pub worker: String,
    /// Its owner; none if it was quarantined or released without ever being seen.
    pub owner: Option<String>,
    /// When it was last entered as seen, in milliseconds since the Unix epoch.
    pub seen_ms: Option<u64>,
    /// Why it is not believed, and since when; none if it is.
    pub quarantined: Option<(String, u64)>,
    /// Which of its starts was told last to take nothing more; none if none ever was.
    pub drained: Option<u64>,
}

/// Why an entry may not follow those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEntry {
    /// The text is no job, or that of another hash.
    #[error("job {0}: the text is not that of a job with this hash; submit the job's own text")]
    JobText(JobHash),
    /// The job is there already.
    #[error("job {0} was submitted before; a job is submitted once")]
    DuplicateJob(JobHash),
    /// The job was never submitted.
    #[error("job {0} was never submitted; submit it first")]
    NoSuchJob(JobHash),
    /// An index past the last unit.
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
    #[error("unit {unit} of job {job} is done already; its result must be voided first")]
    DuplicateUnit {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
    },
    /// The unit has no result in force.
    #[error("unit {unit} of job {job} is not done; there is no result to recount or to void")]
    NotDone {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
    },
    /// The result contradicts itself, or the sum leaves 128 bits.
    #[error("unit {unit} of job {job}: {source}")]
    Tally {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
        /// What is wrong.
        source: TallyError,
    },
    /// A recount that says it agrees and does not, or the other way round.
    #[error(
        "unit {unit} of job {job}: the recount has {recount} thirds, the result {result}, but agrees = {agrees}"
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
        /// What the recount says.
        agrees: bool,
    },
    /// A time that is no number; JSON could not hold it.
    #[error("unit {unit} of job {job} took a time that is no number of seconds from 0 on")]
    Elapsed {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
    },
    /// A job that is to be finished too early.
    #[error("job {job} cannot be finished: {missing} of {units} units are missing")]
    Unfinished {
        /// The job.
        job: JobHash,
        /// Units without a result in force.
        missing: u64,
        /// Units of the job.
        units: u64,
    },
    /// A job that is to be finished with a total that cannot be.
    #[error("job {job} cannot be finished: {source}")]
    Total {
        /// The job.
        job: JobHash,
        /// What is wrong.
        source: TallyError,
    },
}

/// The number of the entry whose result is in force, and whether a recount agreed with it; in one word, since
/// there are millions.
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

/// A job with its units.
#[derive(Debug)]
pub(super) struct JobBook {
    pub(super) submitted: JobSubmitted,
    pub(super) row: JobRow,
    /// Units with a result in force. Nothing is laid out for the others: their number comes from a file.
    done: HashMap<u64, InForce>,
    poisoned: BTreeMap<u64, UnitReason>,
}

/// One step back.
#[derive(Debug)]
pub(super) enum Undo {
    Submitted(JobHash),
    Row(JobHash, JobRow),
    Done(JobHash, u64, Option<InForceBefore>),
    Poisoned(JobHash, u64, Option<UnitReason>),
    Worker(String, Option<WorkerRecord>),
}

/// What was in force before.
#[derive(Clone, Copy, Debug)]
pub(super) struct InForceBefore(InForce);

/// The books of a campaign.
#[derive(Debug, Default)]
pub(super) struct LedgerState {
    jobs: HashMap<JobHash, JobBook>,
    /// In the order of submission.
    order: Vec<JobHash>,
    workers: BTreeMap<String, WorkerRecord>,
}

impl LedgerState {
    /// The number of the entry that holds the result which `entry` is about, if there is one in force: its tally
    /// is to be handed to [`Self::enter`].
    pub(super) fn result_of(&self, entry: &Entry) -> Option<u64> {
        let (job, unit) = match entry {
            Entry::Recount(recount) => (&recount.job, &recount.unit),
            Entry::UnitVoided(voided) => (&voided.job, &voided.unit),
            _ => return None,
        };
        Some(self.jobs.get(job)?.done.get(unit)?.entry())
    }

    /// Enters entry number `number`, from 1. `result` is the tally that [`Self::result_of`] asks for. What must be
    /// done to forget it again is added to `undo`.
    ///
    /// # Errors
    /// The entry may not follow those before it; nothing has changed then.
    pub(super) fn enter(
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
                self.change_worker(&drained.worker, undo, |worker| worker.drained = Some(drained.boot));
            }
            Entry::Note(_) => {}
            _ => {
                if let Some(hash) = entry.job() {
                    let book = self.jobs.get_mut(&hash).ok_or(InvalidEntry::NoSuchJob(hash))?;
                    return book.enter(number, entry, result, undo);
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
        let row = JobRow { submitted_by: number, phase: Phase::Running, phase_ms: submitted.at_ms, totals };
        let book =
            JobBook { submitted: submitted.clone(), row, done: HashMap::new(), poisoned: BTreeMap::new() };
        self.jobs.insert(hash, book);
        self.order.push(hash);
        undo.push(Undo::Submitted(hash));
        Ok(())
    }

    fn change_worker(&mut self, name: &str, undo: &mut Vec<Undo>, change: impl FnOnce(&mut WorkerRecord)) {
        undo.push(Undo::Worker(name.to_owned(), self.workers.get(name).cloned()));
        let new = || WorkerRecord { worker: name.to_owned(), ..WorkerRecord::default() };
        change(self.workers.entry(name.to_owned()).or_insert_with(new));
    }

    /// Forgets what was entered since `undo` was empty.
    pub(super) fn go_back(&mut self, undo: Vec<Undo>) {
        for step in undo.into_iter().rev() {
            match step {
                Undo::Submitted(hash) => {
                    self.jobs.remove(&hash);
                    self.order.pop();
                }
                Undo::Row(hash, row) => self.with_job(hash, |book| book.row = row),
                Undo::Done(hash, unit, before) => self.with_job(hash, |book| match before {
                    Some(InForceBefore(before)) => drop(book.done.insert(unit, before)),
                    None => drop(book.done.remove(&unit)),
                }),
                Undo::Poisoned(hash, unit, before) => self.with_job(hash, |book| match before {
                    Some(before) => drop(book.poisoned.insert(unit, before)),
                    None => drop(book.poisoned.remove(&unit)),
                }),
                Undo::Worker(name, Some(before)) => drop(self.workers.insert(name, before)),
                Undo::Worker(name, None) => drop(self.workers.remove(&name)),
            }
        }
    }

    fn with_job(&mut self, hash: JobHash, change: impl FnOnce(&mut JobBook)) {
        if let Some(book) = self.jobs.get_mut(&hash) {
            change(book);
        }
    }

    /// The jobs in the order of submission.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &JobBook> {
        self.order.iter().filter_map(|hash| self.jobs.get(hash))
    }

    /// A job.
    pub(super) fn job(&self, hash: &JobHash) -> Option<&JobBook> {
        self.jobs.get(hash)
    }

    /// The workers by name.
    pub(super) fn workers(&self) -> impl Iterator<Item = &WorkerRecord> {
        self.workers.values()
    }
}

impl JobBook {
    fn enter(
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
                    self.may_finish()?;
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
                done.tally.verify().and_then(|()| row.totals.tally.merge(&done.tally)).map_err(wrong)?;
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
                recount.tally.verify().map_err(|source| InvalidEntry::Tally { job, unit, source })?;
                let agrees = recount.tally.thirds() == result.thirds();
                if agrees != recount.agrees {
                    let (recount, result) = (recount.tally.thirds(), result.thirds());
                    return Err(InvalidEntry::Verdict { job, unit, recount, result, agrees: !agrees });
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
            // Not about a job that is there.
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

    fn may_finish(&self) -> Result<(), InvalidEntry> {
        let JobSubmitted { job, units, .. } = self.submitted;
        match units - self.row.totals.done {
            0 => {
                self.row.totals.tally.solutions().map_err(|source| InvalidEntry::Total { job, source })?;
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
        undo.push(Undo::Done(self.submitted.job, unit, before.map(InForceBefore)));
    }

    /// Whether entry number `number` holds the result of `unit` that is in force.
    pub(super) fn is_in_force(&self, unit: u64, number: u64) -> bool {
        self.done.get(&unit).is_some_and(|in_force| in_force.entry() == number)
    }

    /// Whether entry number `number` came after the result of `unit` that is in force.
    pub(super) fn is_after_result(&self, unit: u64, number: u64) -> bool {
        self.done.get(&unit).is_some_and(|in_force| in_force.entry() < number)
    }

    /// The units that are set aside.
    pub(super) fn poisoned(&self) -> impl Iterator<Item = &UnitReason> {
        self.poisoned.values()
    }
}
