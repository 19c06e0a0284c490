//! The status of every unit of a job, in a few bits each.

use super::units::UnitStatus;

/// The status of each unit, in two bits.
#[derive(Debug)]
pub(super) struct Statuses {
    /// Four units in each byte, the first one in the lowest bits.
    bytes: Vec<u8>,
    units: u64,
}

impl Statuses {
    /// Creates the statuses of open units.
    pub(super) fn new(units: u64) -> Self {
        let bytes = usize::try_from(units.div_ceil(4)).unwrap_or(usize::MAX);
        Self { bytes: vec![UnitStatus::Open as u8; bytes], units }
    }

    pub(super) const fn len(&self) -> u64 {
        self.units
    }

    /// Returns the status of a unit, or `None` if there is no such unit.
    pub(super) fn get(&self, unit: u64) -> Option<UnitStatus> {
        let byte = self.bytes.get(usize::try_from(unit / 4).ok()?)?;
        let bits = usize::from(byte >> (unit % 4 * 2) & 3);
        (unit < self.units).then_some(UnitStatus::ALL[bits])
    }

    /// Sets the status of a unit. Returns the one before.
    pub(super) fn set(&mut self, unit: u64, status: UnitStatus) -> Option<UnitStatus> {
        let before = self.get(unit)?;
        let shift = unit % 4 * 2;
        let byte = &mut self.bytes[(unit / 4) as usize];
        *byte = *byte & !(3 << shift) | (status as u8) << shift;
        Some(before)
    }
}

/// A set of units, at a bit for each unit of the job.
#[derive(Debug)]
pub(super) struct UnitSet {
    words: Vec<u64>,
}

impl UnitSet {
    /// Creates an empty set of some of this many units.
    pub(super) fn new(units: u64) -> Self {
        let words = usize::try_from(units.div_ceil(64)).unwrap_or(usize::MAX);
        Self { words: vec![0; words] }
    }

    /// Adds or removes a unit of the job.
    pub(super) fn set(&mut self, unit: u64, is_in: bool) {
        if let Some(word) = self.words.get_mut((unit / 64) as usize) {
            let bit = 1 << (unit % 64);
            *word = if is_in { *word | bit } else { *word & !bit };
        }
    }

    /// Returns the units in the set, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        let words = (0u64..).zip(&self.words).filter(|(_, word)| **word != 0);
        words.flat_map(|(at, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_of_units_behave_like_collections(
            units in 1u64..300,
            changes in prop::collection::vec((0u64..320, 0usize..4), 0..100),
        ) {
            let (mut statuses, mut all) = (Statuses::new(units), vec![UnitStatus::Open; units as usize]);
            let (mut set, mut leased) = (UnitSet::new(units), BTreeSet::new());
            for (unit, status) in changes {
                let status = UnitStatus::ALL[status];
                let known = all.get_mut(unit as usize);
                let before = known.map(|known| std::mem::replace(known, status));
                prop_assert_eq!(statuses.set(unit, status), before);
                if unit < units {
                    let is_in = status == UnitStatus::Leased;
                    set.set(unit, is_in);
                    if is_in { leased.insert(unit); } else { leased.remove(&unit); }
                }
            }
            let found: Vec<_> = (0..units + 9).filter_map(|unit| statuses.get(unit)).collect();
            prop_assert_eq!((found, statuses.len()), (all, units));
            prop_assert!(set.iter().eq(leased));
        }
    }
}
