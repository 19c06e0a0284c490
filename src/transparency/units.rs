//! The results of units that are in force.

use std::collections::HashMap;

/// A result in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Its entry in the log, counted from 0.
    pub entry: u64,
    /// Its sum, in thirds of a solution.
    pub thirds: u128,
}

/// The results in force of all units, in 16 bytes for each.
#[derive(Debug)]
pub struct UnitResults {
    /// For each unit the number of the entry plus 1, or 0 if it has no result.
    entries: Vec<u64>,
    /// For each unit the sum, or the largest number if the sum is in `large`.
    sums: Vec<u64>,
    large: HashMap<u64, u128>,
    counted: u64,
    total: u128,
}

/// The largest number of units of a log: 2^30, which take 16 GiB.
pub const MOST_UNITS: u64 = 1 << 30;

impl UnitResults {
    /// Creates the record of `units` units without results, or returns `None` if there are more
    /// than [`MOST_UNITS`].
    pub fn new(units: u64) -> Option<Self> {
        let units = usize::try_from(units).ok().filter(|_| units <= MOST_UNITS)?;
        // Memory that is zero is not touched before it is used.
        let (entries, sums) = (vec![0; units], vec![0; units]);
        Some(Self { entries, sums, large: HashMap::new(), counted: 0, total: 0 })
    }

    /// Returns the number of units.
    pub const fn units(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Returns the number of units with a result.
    pub const fn counted(&self) -> u64 {
        self.counted
    }

    /// Returns the sum of all results, in thirds of a solution.
    pub const fn total(&self) -> u128 {
        self.total
    }

    fn place(unit: u64) -> usize {
        usize::try_from(unit).unwrap_or(usize::MAX)
    }

    /// Returns the result of a unit.
    pub fn get(&self, unit: u64) -> Option<InForce> {
        let place = Self::place(unit);
        let entry = self.entries.get(place)?.checked_sub(1)?;
        let thirds = match self.sums[place] {
            u64::MAX => self.large.get(&unit).copied()?,
            sum => sum.into(),
        };
        Some(InForce { entry, thirds })
    }

    /// Returns the first unit without a result.
    pub fn first_open(&self) -> Option<u64> {
        self.entries.iter().position(|entry| *entry == 0).map(|place| place as u64)
    }

    /// Sets the result of a unit that has none. Returns false, and changes nothing, if there is no
    /// such unit, if it has a result, or if the sum of all results would overflow.
    pub fn set(&mut self, unit: u64, result: InForce) -> bool {
        let place = Self::place(unit);
        let Some(total) = self.total.checked_add(result.thirds) else { return false };
        match self.entries.get_mut(place) {
            Some(entry) if *entry == 0 => *entry = result.entry + 1,
            _ => return false,
        }
        self.sums[place] = u64::try_from(result.thirds).unwrap_or(u64::MAX);
        if self.sums[place] == u64::MAX {
            self.large.insert(unit, result.thirds);
        }
        self.counted += 1;
        self.total = total;
        true
    }

    /// Removes and returns the result of a unit.
    pub fn remove(&mut self, unit: u64) -> Option<InForce> {
        let result = self.get(unit)?;
        self.entries[Self::place(unit)] = 0;
        self.large.remove(&unit);
        self.counted -= 1;
        self.total -= result.thirds;
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_at_most_one_result_and_the_total_is_the_sum() {
        let mut results = UnitResults::new(3).expect("few");
        let sums = [7, u128::from(u64::MAX), 1 << 100];
        for (unit, thirds) in (0..).zip(sums) {
            let result = InForce { entry: unit + 10, thirds };
            assert!(results.set(unit, result));
            assert!(!results.set(unit, result), "counted twice");
            assert_eq!(results.get(unit), Some(result));
        }
        assert!(!results.set(3, InForce { entry: 0, thirds: 0 }), "there is no such unit");
        assert_eq!((results.counted(), results.total()), (3, sums.iter().sum()));
        assert_eq!(results.first_open(), None);
        for (unit, thirds) in (0..).zip(sums).skip(1) {
            assert_eq!(results.remove(unit), Some(InForce { entry: unit + 10, thirds }));
            assert_eq!(results.remove(unit), None);
        }
        assert_eq!((results.counted(), results.total(), results.first_open()), (1, 7, Some(1)));
        assert!(!results.set(1, InForce { entry: 0, thirds: u128::MAX }), "the sum overflows");
        assert!(results.set(1, InForce { entry: 0, thirds: 1 }));
        assert!(UnitResults::new(u64::MAX).is_none());
    }
}
