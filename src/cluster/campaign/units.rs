//! The units of a job: three bits each in memory, and the results of those that are done, of which
//! the latest are in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::assignment::SubRangeSet;
use super::cells::{Cell, UnitMap};
use super::open_units::OpenUnits;
use super::owner_units::OwnerUnits;
use super::reputation::OwnerId;
use super::unit_bits::{Statuses, UnitSet};
use super::unit_outcome::UnitOutcome;
use crate::cluster::storage::{PagedMap, SnapshotError, SnapshotFile, SnapshotWriter};
use crate::decomposition::JobHash;
use crate::tally::Tally;

/// The state of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitStatus {
    /// Not leased, done or poisoned.
    Open,
    /// In at least one lease.
    Leased,
    /// Counted.
    Done,
    /// Excluded because it failed too often.
    Poisoned,
}

impl UnitStatus {
    /// All statuses, each at the index of its number.
    pub(super) const ALL: [Self; 4] = [Self::Open, Self::Leased, Self::Done, Self::Poisoned];
}

/// The units that an owner counted while it was new, or while it was not, and the confirmed share
/// of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stratum {
    pub(super) units: u64,
    /// In multiples of 1/[`WHOLE`] of a unit.
    pub(super) credit: u64,
}

/// The change of a unit's confirmation, for its owner's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConfirmationChange {
    pub(super) owner: OwnerId,
    pub(super) before: bool,
    pub(super) after: bool,
}

/// A source's contribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SourceCounts {
    /// Units in force that it counted first.
    pub(super) units: u64,
    /// Units among them that another source confirmed in full.
    pub(super) confirmed: u64,
    /// Units in force of other sources that it confirmed in full.
    pub(super) confirmations: u64,
    /// Units in force that it counted first and of which others confirmed any part.
    pub(super) proven: u64,
}

/// Returns the counter of a cell for this status; open units have none.
const fn counter(cell: &mut Cell, status: UnitStatus) -> Option<&mut u32> {
    match status {
        UnitStatus::Open => None,
        UnitStatus::Leased => Some(&mut cell.leased),
        UnitStatus::Done => Some(&mut cell.done),
        UnitStatus::Poisoned => Some(&mut cell.poisoned),
    }
}

/// The units of a job.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Units {
    status: Statuses,
    outcomes: PagedMap<UnitOutcome>,
    /// Units that are done and that no other source has confirmed in full.
    unconfirmed: UnitSet,
    units_of: HashMap<OwnerId, OwnerUnits>,
    /// Follows from `status`.
    #[serde(skip)]
    open: OpenUnits,
    done: u64,
    poisoned: u64,
    checked: u64,
    audited: u64,
    spot_checked: u64,
    self_checked: u64,
    total: Tally,
    /// By number of the source.
    shares: BTreeMap<u32, SourceCounts>,
    /// By owner and whether it was new.
    strata: BTreeMap<(OwnerId, bool), Stratum>,
    map: UnitMap,
}

impl Units {
    /// Creates the open units of a job. The results of those that are done need not all be in
    /// memory if there is a folder.
    pub(super) fn new(job: JobHash, units: u64, folder: Option<PathBuf>) -> Self {
        Self {
            status: Statuses::new(units),
            outcomes: PagedMap::new(format!("results of {job}"), folder),
            unconfirmed: UnitSet::new(units),
            units_of: HashMap::new(),
            open: OpenUnits::new(units),
            done: 0,
            poisoned: 0,
            checked: 0,
            audited: 0,
            spot_checked: 0,
            self_checked: 0,
            total: Tally::default(),
            shares: BTreeMap::new(),
            strata: BTreeMap::new(),
            map: UnitMap::new(units),
        }
    }

    /// Completes units that were read from a snapshot.
    pub(super) fn complete(&mut self, folder: Option<PathBuf>, snapshot: &Arc<SnapshotFile>) {
        self.open = OpenUnits::of(self.status.open());
        self.outcomes.set_folder(folder);
        self.outcomes.continue_with(snapshot);
    }

    /// Writes the results that were changed since the last snapshot.
    pub(super) fn write_changed(
        &mut self,
        snapshot: &mut SnapshotWriter<'_>,
    ) -> Result<(), SnapshotError> {
        self.outcomes.write_changed(snapshot)
    }

    /// Continues with a snapshot in which all results are now.
    pub(super) fn continue_with(&mut self, snapshot: &Arc<SnapshotFile>) {
        self.outcomes.continue_with(snapshot);
    }

    /// Returns the map of the units.
    pub(super) const fn map(&self) -> &UnitMap {
        &self.map
    }

    /// Returns each source's contribution.
    pub(super) fn shares(&self) -> impl Iterator<Item = (&u32, &SourceCounts)> {
        self.shares.iter()
    }

    /// Returns the poisoned units.
    pub(super) fn poisoned_units(&self) -> impl Iterator<Item = u64> {
        (0..self.len())
            .filter(|unit| self.status(*unit) == Some(UnitStatus::Poisoned))
            // They are few, or none: do not read all units.
            .take(self.poisoned as usize)
    }

    pub(super) const fn len(&self) -> u64 {
        self.status.len()
    }

    pub(super) const fn done(&self) -> u64 {
        self.done
    }

    pub(super) const fn poisoned(&self) -> u64 {
        self.poisoned
    }

    pub(super) const fn checked(&self) -> u64 {
        self.checked
    }

    /// Returns the number of units that the coordinator confirmed in full.
    pub(super) const fn audited(&self) -> u64 {
        self.audited
    }

    /// Returns the number of units with sub-ranges that others confirmed.
    pub(super) const fn spot_checked(&self) -> u64 {
        self.spot_checked
    }

    /// Returns the number of units confirmed only by their own owner.
    pub(super) const fn self_checked(&self) -> u64 {
        self.self_checked
    }

    /// Returns the strata that have units, by owner and whether it was new.
    pub(super) fn strata(&self) -> impl Iterator<Item = ((OwnerId, bool), Stratum)> {
        self.strata
            .iter()
            .map(|(&of, &stratum)| (of, stratum))
            .filter(|(_, stratum)| stratum.units > 0)
    }

    /// Returns whether an owner has counted any unit whose result is in force.
    pub(super) fn has_units_of(&self, owner: OwnerId) -> bool {
        let strata = [false, true].map(|new| self.strata.get(&(owner, new)));
        strata.into_iter().flatten().any(|stratum| stratum.units > 0)
    }

    /// Returns the sum of the units that are done.
    pub(super) const fn total(&self) -> &Tally {
        &self.total
    }

    /// Returns the number of open units.
    pub(super) const fn open(&self) -> u64 {
        self.open.len()
    }

    /// Returns the status of a unit, or `None` if there is no such unit.
    pub(super) fn status(&self, unit: u64) -> Option<UnitStatus> {
        self.status.get(unit)
    }

    pub(super) fn outcome(&self, unit: u64) -> Option<UnitOutcome> {
        self.outcomes.get(unit)
    }

    /// Returns the units that are done, with their results. Reads all of them.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = (u64, UnitOutcome)> {
        self.outcomes.iter()
    }

    /// Returns the units that are done and that no other source has confirmed in full.
    pub(super) fn unconfirmed(&self) -> impl Iterator<Item = u64> {
        self.unconfirmed.iter()
    }

    /// Returns the same with their results.
    pub(super) fn unconfirmed_outcomes(&self) -> impl Iterator<Item = (u64, UnitOutcome)> {
        self.outcomes.get_each(self.unconfirmed.iter())
    }

    /// Returns, in order, units with results for which `wanted` returns true: all that any of these
    /// owners counted or confirmed, and perhaps others.
    pub(super) fn outcomes_of<'a>(
        &'a self,
        owners: &BTreeSet<OwnerId>,
        wanted: impl Fn(&UnitOutcome) -> bool + 'a,
    ) -> Box<dyn Iterator<Item = (u64, UnitOutcome)> + 'a> {
        let of_owners = || owners.iter().filter_map(|owner| self.units_of.get(owner));
        let listed: Option<Vec<&[u64]>> = of_owners().map(OwnerUnits::listed).collect();
        let Some(listed) = listed else { return Box::new(self.outcomes.filtered(wanted)) };
        let units: BTreeSet<u64> = listed.into_iter().flatten().copied().collect();
        let outcomes = self.outcomes.get_each(units.into_iter());
        Box::new(outcomes.filter(move |(_, outcome)| wanted(outcome)))
    }

    /// Returns whether a source has confirmed any unit in full whose result is in force.
    pub(super) fn has_confirmed(&self, source: u32) -> bool {
        self.shares.get(&source).is_some_and(|share| share.confirmations > 0)
    }

    fn list(&mut self, owner: OwnerId, unit: u64) {
        self.units_of.entry(owner).or_default().add(unit);
    }

    fn set(&mut self, unit: u64, status: UnitStatus) {
        let Some(old) = self.status.set(unit, status).filter(|old| *old != status) else { return };
        match old {
            UnitStatus::Open => self.open.remove(unit),
            UnitStatus::Done => self.done -= 1,
            UnitStatus::Poisoned => self.poisoned -= 1,
            UnitStatus::Leased => {}
        }
        match status {
            UnitStatus::Open => self.open.insert(unit),
            UnitStatus::Done => self.done += 1,
            UnitStatus::Poisoned => self.poisoned += 1,
            UnitStatus::Leased => {}
        }
        self.map.change(unit, |cell| {
            if let Some(units) = counter(cell, old) {
                *units -= 1;
            }
            if let Some(units) = counter(cell, status) {
                *units += 1;
            }
        });
    }

    /// Leases the first consecutive open units: at most `most`, and none of those in `avoid`.
    pub(super) fn lease(&mut self, most: u64, avoid: &BTreeSet<u64>) -> Option<Range<u64>> {
        let range = self.open.first(most, avoid)?;
        range.clone().for_each(|unit| self.set(unit, UnitStatus::Leased));
        Some(range)
    }

    /// Leases the open units of a range. Returns their number.
    pub(super) fn adopt(&mut self, range: Range<u64>) -> u64 {
        let mut adopted = 0;
        for unit in range {
            if self.status(unit) == Some(UnitStatus::Open) {
                self.set(unit, UnitStatus::Leased);
                adopted += 1;
            }
        }
        adopted
    }

    /// Opens the leased units of a range again, except those for which `keep` returns true because
    /// another lease contains them.
    pub(super) fn release(&mut self, range: Range<u64>, keep: impl Fn(u64) -> bool) {
        for unit in range {
            if self.status(unit) == Some(UnitStatus::Leased) && !keep(unit) {
                self.set(unit, UnitStatus::Open);
            }
        }
    }

    /// Records a result. Returns false if the unit does not exist or is done, or if the sum would
    /// exceed 128 bits.
    pub(super) fn finish(
        &mut self,
        unit: u64,
        tally: &Tally,
        (source, owner): (u32, OwnerId),
        (sub_ranges, owner_was_new): (u8, bool),
    ) -> bool {
        if !matches!(self.status(unit), Some(status) if status != UnitStatus::Done) {
            return false;
        }
        if self.total.merge(tally).is_err() {
            return false;
        }
        self.set(unit, UnitStatus::Done);
        self.shares.entry(source).or_default().units += 1;
        self.strata.entry((owner, owner_was_new)).or_default().units += 1;
        let outcome = UnitOutcome {
            tally: *tally,
            source,
            owner,
            checker: None,
            spots: SubRangeSet::default(),
            spot_owner: owner,
            sub_ranges,
            owner_was_new,
            audited: false,
            self_checked: false,
        };
        self.outcomes.set(unit, Some(outcome));
        self.unconfirmed.set(unit, true);
        self.list(owner, unit);
        true
    }

    /// Removes a result and opens the unit again. Returns the result.
    pub(super) fn void(&mut self, unit: u64) -> Option<UnitOutcome> {
        let result = self.outcomes.get(unit)?;
        // A tally that was added can be subtracted.
        self.total.subtract(&result.tally).ok()?;
        self.unconfirm(unit);
        self.change(unit, |outcome| outcome.self_checked = false);
        let outcome = self.outcomes.set(unit, None)?;
        self.unconfirmed.set(unit, false);
        if let Some(share) = self.shares.get_mut(&outcome.source) {
            share.units -= 1;
        }
        if let Some(stratum) = self.strata.get_mut(&(outcome.owner, outcome.owner_was_new)) {
            stratum.units -= 1;
        }
        self.set(unit, UnitStatus::Open);
        Some(result)
    }

    /// Changes a result's confirmations, and all counters derived from them.
    fn change(
        &mut self,
        unit: u64,
        act: impl FnOnce(&mut UnitOutcome),
    ) -> Option<ConfirmationChange> {
        let before = self.outcomes.get(unit)?;
        let mut after = before;
        act(&mut after);
        if after != before {
            self.outcomes.set(unit, Some(after));
        }
        self.unconfirmed.set(unit, after.checker.is_none());
        let adjust = |count: &mut u64, was: bool, is: bool| {
            *count = *count + u64::from(is) - u64::from(was);
        };
        adjust(&mut self.checked, before.checker.is_some(), after.checker.is_some());
        adjust(&mut self.audited, before.audited, after.audited);
        adjust(&mut self.spot_checked, !before.spots.is_empty(), !after.spots.is_empty());
        let only_self = |outcome: &UnitOutcome| outcome.self_checked && !outcome.is_proven();
        adjust(&mut self.self_checked, only_self(&before), only_self(&after));
        let stratum = self.strata.entry((after.owner, after.owner_was_new)).or_default();
        stratum.credit = stratum.credit + after.credit() - before.credit();
        if before.is_proven() != after.is_proven() {
            let proven = &mut self.shares.entry(after.source).or_default().proven;
            *proven = proven.saturating_add_signed(if after.is_proven() { 1 } else { -1 });
        }
        if before.checker != after.checker {
            let mut share = |checker: u32, by: i64| {
                let confirmed = &mut self.shares.entry(after.source).or_default().confirmed;
                *confirmed = confirmed.saturating_add_signed(by);
                let confirmations = &mut self.shares.entry(checker).or_default().confirmations;
                *confirmations = confirmations.saturating_add_signed(by);
            };
            before.checker.into_iter().for_each(|checker| share(checker, -1));
            after.checker.into_iter().for_each(|checker| share(checker, 1));
        }
        if before.checker.is_some() != after.checker.is_some() {
            self.map.change(unit, |cell| match after.checker {
                Some(_) => cell.verified += 1,
                None => cell.verified -= 1,
            });
        }
        Some(ConfirmationChange {
            owner: after.owner,
            before: before.is_proven(),
            after: after.is_proven(),
        })
    }

    /// Records that a source, given with its owner, confirmed the whole unit, and whether it is the
    /// coordinator.
    pub(super) fn confirm(
        &mut self,
        unit: u64,
        (checker, owner): (u32, OwnerId),
        coordinator: bool,
    ) -> Option<ConfirmationChange> {
        self.list(owner, unit);
        self.change(unit, |outcome| {
            outcome.checker = Some(checker);
            outcome.audited = coordinator;
        })
    }

    /// Records that another owner confirmed some sub-ranges of a unit.
    pub(super) fn confirm_spots(
        &mut self,
        unit: u64,
        sub_ranges: SubRangeSet,
        owner: OwnerId,
    ) -> Option<ConfirmationChange> {
        self.list(owner, unit);
        self.change(unit, |outcome| {
            outcome.spots = outcome.spots.union(sub_ranges);
            outcome.spot_owner = owner;
        })
    }

    /// Records that a unit's own owner confirmed it.
    pub(super) fn confirm_by_owner(&mut self, unit: u64) -> Option<ConfirmationChange> {
        self.change(unit, |outcome| outcome.self_checked = true)
    }

    /// Removes all confirmations of a unit by others.
    pub(super) fn unconfirm(&mut self, unit: u64) -> Option<ConfirmationChange> {
        self.change(unit, |outcome| {
            outcome.checker = None;
            outcome.audited = false;
            outcome.spots = SubRangeSet::default();
        })
    }

    /// Poisons a unit that is not done.
    pub(super) fn poison(&mut self, unit: u64) {
        if matches!(self.status(unit), Some(UnitStatus::Open | UnitStatus::Leased)) {
            self.set(unit, UnitStatus::Poisoned);
        }
    }

    /// Opens a poisoned unit.
    pub(super) fn revive(&mut self, unit: u64) {
        if self.status(unit) == Some(UnitStatus::Poisoned) {
            self.set(unit, UnitStatus::Open);
        }
    }
}

#[cfg(test)]
mod tests;
