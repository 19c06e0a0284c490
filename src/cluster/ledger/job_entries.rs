//! A job of a ledger: what follows from its entries, and the rules for the next one.
//!
//! This is the ledger's own summation. It shares nothing with that of the campaign, and a
//! coordinator compares the two (`coordinator/actor/replay.rs`).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::campaign_file::JobRecord;
use super::entry::Entry;
use super::in_force::InForce;
use super::invalid_entry::InvalidEntry;
use super::ledger_state::{JobRow, JobSubmission, Undo};
use crate::cluster::campaign::{CampaignEvent, JobState, UnitId};
use crate::cluster::storage::PagedMap;
use crate::tally::Tally;

/// A job with the state of its units.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JobEntries {
    pub(super) submission: JobSubmission,
    pub(super) row: JobRow,
    /// Units with a result in force.
    pub(super) done: PagedMap<InForce>,
    pub(super) poisoned: BTreeSet<u64>,
}

impl JobEntries {
    /// Returns the current record of the job.
    pub(super) fn record(&self) -> JobRecord {
        JobRecord::new(self.submission.clone(), &self.row)
    }

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
        let mut row = self.row;
        match &entry.event {
            CampaignEvent::JobState { state, .. } => {
                if *state == JobState::Finished {
                    self.check_finishable()?;
                }
                (row.state, row.state_ms) = (*state, entry.at_ms);
            }
            CampaignEvent::UnitDone { unit, tally, elapsed_s, .. } => {
                self.apply_unit_done(number, *unit, tally, *elapsed_s, &mut row, undo)?;
            }
            CampaignEvent::Recount { unit, tally, agrees, elapsed_s, .. } => {
                let recount = (tally, *agrees, *elapsed_s);
                self.apply_recount(*unit, recount, result, &mut row, undo)?;
            }
            CampaignEvent::SpotCheck { unit, agrees, elapsed_s, .. } => {
                self.must_exist(*unit)?;
                if self.done.get(unit.unit).is_none() {
                    return Err(InvalidEntry::NotDone(*unit));
                }
                check_elapsed(*unit, *elapsed_s)?;
                row.totals.recounts += 1;
                row.totals.disagreements += u64::from(!agrees);
            }
            CampaignEvent::UnitVoided { unit, .. } => {
                let (in_force, result) = self.must_be_done(*unit, result)?;
                let wrong = |source| InvalidEntry::Tally { unit: *unit, source };
                row.totals.tally.subtract(result).map_err(wrong)?;
                row.totals.done -= 1;
                row.totals.verified -= u64::from(in_force.verified());
                row.totals.voided += 1;
                if row.state == JobState::Finished {
                    (row.state, row.state_ms) = (JobState::Running, entry.at_ms);
                }
                self.put_in_force(unit.unit, None, undo);
            }
            CampaignEvent::UnitPoisoned { unit, .. } => {
                self.must_not_be_done(*unit)?;
                row.totals.poisoned += u64::from(self.put_poisoned(unit.unit, true, undo));
            }
            CampaignEvent::UnitRevived { unit } => {
                self.must_exist(*unit)?;
                row.totals.poisoned -= u64::from(self.put_poisoned(unit.unit, false, undo));
            }
            // No other event changes the totals of a job.
            _ => {}
        }
        undo.push(Undo::Row(self.submission.job, self.row));
        self.row = row;
        Ok(())
    }

    /// Records a result. Changes `row` and the units, or nothing if it returns an error.
    fn apply_unit_done(
        &mut self,
        number: u64,
        unit: UnitId,
        tally: &Tally,
        elapsed_s: f64,
        row: &mut JobRow,
        undo: &mut Vec<Undo>,
    ) -> Result<(), InvalidEntry> {
        self.must_not_be_done(unit)?;
        check_elapsed(unit, elapsed_s)?;
        let wrong = |source| InvalidEntry::Tally { unit, source };
        tally.verify().and_then(|()| row.totals.tally.merge(tally)).map_err(wrong)?;
        row.totals.done += 1;
        row.totals.poisoned -= u64::from(self.put_poisoned(unit.unit, false, undo));
        self.put_in_force(unit.unit, Some(InForce::new(number, false)), undo);
        Ok(())
    }

    /// Records a recount: its tally, whether it agrees, and its time. Changes `row` and the units,
    /// or nothing if it returns an error.
    fn apply_recount(
        &mut self,
        unit: UnitId,
        (tally, claimed, elapsed_s): (&Tally, bool, f64),
        result: Option<&Tally>,
        row: &mut JobRow,
        undo: &mut Vec<Undo>,
    ) -> Result<(), InvalidEntry> {
        let (in_force, result) = self.must_be_done(unit, result)?;
        check_elapsed(unit, elapsed_s)?;
        tally.verify().map_err(|source| InvalidEntry::Tally { unit, source })?;
        let (recount, result) = (tally.thirds(), result.thirds());
        let agrees = recount == result;
        if agrees != claimed {
            return Err(InvalidEntry::Verdict { unit, recount, result, agrees: claimed });
        }
        row.totals.recounts += 1;
        row.totals.disagreements += u64::from(!agrees);
        if agrees && !in_force.verified() {
            row.totals.verified += 1;
            self.put_in_force(unit.unit, Some(InForce::new(in_force.entry(), true)), undo);
        }
        Ok(())
    }

    fn must_exist(&self, unit: UnitId) -> Result<(), InvalidEntry> {
        let units = self.submission.units;
        if unit.unit < units { Ok(()) } else { Err(InvalidEntry::NoSuchUnit { unit, units }) }
    }

    fn must_not_be_done(&self, unit: UnitId) -> Result<(), InvalidEntry> {
        self.must_exist(unit)?;
        if self.done.get(unit.unit).is_none() {
            Ok(())
        } else {
            Err(InvalidEntry::DuplicateUnit(unit))
        }
    }

    fn must_be_done<'a>(
        &self,
        unit: UnitId,
        result: Option<&'a Tally>,
    ) -> Result<(InForce, &'a Tally), InvalidEntry> {
        self.must_exist(unit)?;
        self.done.get(unit.unit).zip(result).ok_or(InvalidEntry::NotDone(unit))
    }

    fn check_finishable(&self) -> Result<(), InvalidEntry> {
        let JobSubmission { job, units, .. } = self.submission;
        match units - self.row.totals.done {
            0 => {
                let total = self.row.totals.tally.solutions();
                total.map(drop).map_err(|source| InvalidEntry::Total { job, source })
            }
            missing => Err(InvalidEntry::Unfinished { job, missing, units }),
        }
    }

    fn put_in_force(&mut self, unit: u64, new: Option<InForce>, undo: &mut Vec<Undo>) {
        let before = self.done.set(unit, new);
        undo.push(Undo::Done(self.submission.job, unit, before));
    }

    /// Poisons a unit, or ends that. Returns whether this is a change.
    fn put_poisoned(&mut self, unit: u64, poisoned: bool, undo: &mut Vec<Undo>) -> bool {
        let changed =
            if poisoned { self.poisoned.insert(unit) } else { self.poisoned.remove(&unit) };
        if changed {
            undo.push(Undo::Poisoned(self.submission.job, unit, !poisoned));
        }
        changed
    }
}

fn check_elapsed(unit: UnitId, elapsed_s: f64) -> Result<(), InvalidEntry> {
    let is_valid = elapsed_s.is_finite() && elapsed_s >= 0.0;
    is_valid.then_some(()).ok_or(InvalidEntry::Elapsed(unit))
}
