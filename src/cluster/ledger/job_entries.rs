//! A job of a ledger: what follows from its entries, and the rules for the next one.

use std::collections::{BTreeMap, HashMap};

use super::entry::{Entry, JobSubmitted, Phase, Recount, UnitDone, UnitReason};
use super::invalid_entry::InvalidEntry;
use super::ledger_state::{JobRow, Undo};
use crate::tally::Tally;

/// The number of the entry with the result in force, and whether a recount confirmed it. Packed
/// into one word, since there are millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InForce(u64);

impl InForce {
    const fn new(entry: u64, verified: bool) -> Self {
        Self(entry << 1 | verified as u64)
    }

    pub(super) const fn entry(self) -> u64 {
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
    pub(super) done: HashMap<u64, InForce>,
    pub(super) poisoned: BTreeMap<u64, UnitReason>,
}

impl JobEntries {
    /// Applies entry number `number`. `result` is the tally of the result that it refers to. The
    /// inverse of each change is added to `undo`.
    ///
    /// # Errors
    /// Returns an error if the entry is not valid after its predecessors; the job is then
    /// unchanged.
    pub(super) fn apply(
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
            Entry::UnitDone(done) => self.apply_unit_done(number, done, &mut row, undo)?,
            Entry::Recount(recount) => self.apply_recount(recount, result, &mut row, undo)?,
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
                row.totals.tally.subtract(result).map_err(wrong)?;
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

    /// Records a result. Changes `row` and the units, or nothing if it returns an error.
    fn apply_unit_done(
        &mut self,
        number: u64,
        done: &UnitDone,
        row: &mut JobRow,
        undo: &mut Vec<Undo>,
    ) -> Result<(), InvalidEntry> {
        let job = self.submitted.job;
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
        Ok(())
    }

    /// Records a recount. Changes `row` and the units, or nothing if it returns an error.
    fn apply_recount(
        &mut self,
        recount: &Recount,
        result: Option<&Tally>,
        row: &mut JobRow,
        undo: &mut Vec<Undo>,
    ) -> Result<(), InvalidEntry> {
        let job = self.submitted.job;
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
        undo.push(Undo::Done(self.submitted.job, unit, before));
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
