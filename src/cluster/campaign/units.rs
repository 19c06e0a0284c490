//! The units of a job in memory, at a byte each, and about 100 more for those that are done.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::assignment::SubRangeSet;
use super::cells::{Cell, UnitMap};
use super::outcomes::Outcomes;
use super::reputation::OwnerId;
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

/// The result of a unit that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnitOutcome {
    pub(super) tally: Tally,
    /// Source of the result, by number.
    pub(super) source: u32,
    /// Owner of the source.
    pub(super) owner: OwnerId,
    /// Source of another owner, or the coordinator, that confirmed the whole unit, by number.
    pub(super) checker: Option<u32>,
    /// Sub-ranges that other owners confirmed.
    pub(super) spots: SubRangeSet,
    /// Owner of the last such confirmation.
    pub(super) spot_owner: OwnerId,
    /// Number of sub-ranges with sums in the result; 0 without sums.
    pub(super) sub_ranges: u8,
    /// True if the owner was new when the unit was counted; units of new owners are checked more
    /// often.
    pub(super) owner_was_new: bool,
    /// True if the coordinator confirmed the whole unit.
    pub(super) audited: bool,
    /// True if a worker of the same owner confirmed it.
    pub(super) self_checked: bool,
}

impl UnitOutcome {
    /// Returns the share of the unit that others confirmed, in multiples of 1/[`WHOLE`].
    fn credit(&self) -> u64 {
        match self.sub_ranges {
            _ if self.checker.is_some() => WHOLE,
            0 => 0,
            all => (WHOLE * self.spots.len() as u64 / u64::from(all)).min(WHOLE),
        }
    }

    /// Returns whether others confirmed any part of the unit.
    pub(super) fn is_proven(&self) -> bool {
        self.checker.is_some() || !self.spots.is_empty()
    }
}

/// The credit of a fully confirmed unit. A unit has at most 32 sub-ranges.
pub(super) const WHOLE: u64 = 32;

/// The units that an owner counted while it was new, or while it was not, and the confirmed share
/// of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Debug)]
pub(super) struct Units {
    status: Vec<UnitStatus>,
    outcomes: Outcomes,
    /// Ranges of open units: first unit and length.
    open: BTreeMap<u64, u64>,
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
    pub(super) fn new(units: u64) -> Self {
        let count = usize::try_from(units).unwrap_or(usize::MAX);
        Self {
            status: vec![UnitStatus::Open; count],
            outcomes: Outcomes::default(),
            open: if units > 0 { BTreeMap::from([(0, units)]) } else { BTreeMap::new() },
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
        (0..)
            .zip(&self.status)
            .filter(|(_, status)| **status == UnitStatus::Poisoned)
            .map(|(unit, _)| unit)
            // They are few, or none: do not read all units.
            .take(self.poisoned as usize)
    }

    pub(super) fn len(&self) -> u64 {
        self.status.len() as u64
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

    /// Returns the sum of the units that are done.
    pub(super) const fn total(&self) -> &Tally {
        &self.total
    }

    /// Returns the number of open units.
    pub(super) fn open(&self) -> u64 {
        self.open.values().sum()
    }

    /// Returns the status of a unit, or `None` if there is no such unit.
    pub(super) fn status(&self, unit: u64) -> Option<UnitStatus> {
        self.status.get(usize::try_from(unit).ok()?).copied()
    }

    pub(super) fn outcome(&self, unit: u64) -> Option<&UnitOutcome> {
        self.outcomes.get(unit)
    }

    /// Returns the units that are done, with their results.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = (u64, &UnitOutcome)> {
        self.outcomes.iter()
    }

    fn set(&mut self, unit: u64, status: UnitStatus) {
        let index = unit as usize;
        let old = std::mem::replace(&mut self.status[index], status);
        if old == status {
            return;
        }
        match old {
            UnitStatus::Open => self.remove_open(unit),
            UnitStatus::Done => self.done -= 1,
            UnitStatus::Poisoned => self.poisoned -= 1,
            UnitStatus::Leased => {}
        }
        match status {
            UnitStatus::Open => self.insert_open(unit),
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

    /// Returns the range of open units that contains `unit`, as its first unit and length.
    fn open_range(&self, unit: u64) -> Option<(u64, u64)> {
        let (&first, &length) = self.open.range(..=unit).next_back()?;
        (unit < first + length).then_some((first, length))
    }

    fn remove_open(&mut self, unit: u64) {
        if let Some((first, length)) = self.open_range(unit) {
            self.open.remove(&first);
            if unit > first {
                self.open.insert(first, unit - first);
            }
            if unit + 1 < first + length {
                self.open.insert(unit + 1, first + length - unit - 1);
            }
        }
    }

    fn insert_open(&mut self, unit: u64) {
        let mut first = unit;
        let mut length = 1;
        if let Some((before, size)) = self.open.range(..unit).next_back().map(|(&f, &l)| (f, l))
            && before + size == unit
        {
            self.open.remove(&before);
            first = before;
            length += size;
        }
        if let Some(size) = self.open.remove(&(unit + 1)) {
            length += size;
        }
        self.open.insert(first, length);
    }

    /// Leases the first consecutive open units: at most `most`, and none of those in `avoid`.
    pub(super) fn lease(&mut self, most: u64, avoid: &BTreeSet<u64>) -> Option<Range<u64>> {
        let first_in = |(&first, &length): (&u64, &u64)| {
            (first..first + length)
                .find(|unit| !avoid.contains(unit))
                .map(|unit| (unit, first + length))
        };
        let (first, end) = self.open.iter().find_map(first_in)?;
        let end = avoid.range(first..end).next().copied().unwrap_or(end);
        let range = first..end.min(first.saturating_add(most.max(1)));
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
        self.outcomes.insert(unit, outcome);
        true
    }

    /// Removes a result and opens the unit again. Returns the result.
    pub(super) fn void(&mut self, unit: u64) -> Option<UnitOutcome> {
        let slot = self.outcomes.get(unit)?;
        // A tally that was added can be subtracted.
        self.total.subtract(&slot.tally).ok()?;
        let result = *slot;
        self.unconfirm(unit);
        self.change(unit, |outcome| outcome.self_checked = false);
        let outcome = self.outcomes.remove(unit)?;
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
        let outcome = self.outcomes.get_mut(unit)?;
        let before = *outcome;
        act(outcome);
        let after = *outcome;
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

    /// Records that source `checker` confirmed the whole unit, and whether it is the coordinator.
    pub(super) fn confirm(
        &mut self,
        unit: u64,
        checker: u32,
        coordinator: bool,
    ) -> Option<ConfirmationChange> {
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
