//! The open units of a job, as ranges.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A set of units, of which most are next to each other.
#[derive(Debug, Default)]
pub(super) struct OpenUnits {
    /// The first unit and the length of each range; no two ranges touch.
    ranges: BTreeMap<u64, u64>,
    units: u64,
}

impl OpenUnits {
    /// Creates the set of the units from 0 to `units` - 1.
    pub(super) fn new(units: u64) -> Self {
        let all = (units > 0).then_some((0, units));
        Self { ranges: all.into_iter().collect(), units }
    }

    /// Creates the set of these units, which are in order.
    pub(super) fn of(units: impl Iterator<Item = u64>) -> Self {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for unit in units {
            match ranges.last_mut() {
                Some((first, length)) if *first + *length == unit => *length += 1,
                _ => ranges.push((unit, 1)),
            }
        }
        let units = ranges.iter().map(|(_, length)| length).sum();
        Self { ranges: ranges.into_iter().collect(), units }
    }

    /// Returns the number of units.
    pub(super) const fn len(&self) -> u64 {
        self.units
    }

    /// Returns the first consecutive units: at most `most`, but at least one, and none of those in
    /// `avoid`.
    pub(super) fn first(&self, most: u64, avoid: &BTreeSet<u64>) -> Option<Range<u64>> {
        let first_in = |(&first, &length): (&u64, &u64)| {
            (first..first + length)
                .find(|unit| !avoid.contains(unit))
                .map(|unit| (unit, first + length))
        };
        let (first, end) = self.ranges.iter().find_map(first_in)?;
        let end = avoid.range(first..end).next().copied().unwrap_or(end);
        Some(first..end.min(first.saturating_add(most.max(1))))
    }

    /// Removes a unit of the set.
    pub(super) fn remove(&mut self, unit: u64) {
        let range = self.ranges.range(..=unit).next_back().map(|(&first, &length)| (first, length));
        let Some((first, length)) = range.filter(|(first, length)| unit < first + length) else {
            return;
        };
        self.units -= 1;
        self.ranges.remove(&first);
        if unit > first {
            self.ranges.insert(first, unit - first);
        }
        if unit + 1 < first + length {
            self.ranges.insert(unit + 1, first + length - unit - 1);
        }
    }

    /// Adds a unit that is not in the set.
    pub(super) fn insert(&mut self, unit: u64) {
        self.units += 1;
        let mut first = unit;
        let mut length = 1;
        let before = self.ranges.range(..unit).next_back().map(|(&first, &length)| (first, length));
        if let Some((before, size)) = before
            && before + size == unit
        {
            self.ranges.remove(&before);
            first = before;
            length += size;
        }
        if let Some(size) = self.ranges.remove(&(unit + 1)) {
            length += size;
        }
        self.ranges.insert(first, length);
    }
}

#[cfg(test)]
impl OpenUnits {
    /// Returns the first unit and the length of each range.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|(&first, &length)| (first, length))
    }
}
