//! The books of a job: which units are finished, and their running total. No disk, no clock.

use serde::{Deserialize, Serialize};

use crate::tally::{Tally, TallyError};

/// The result of a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinishedUnit {
    /// Its index in the job.
    pub unit: u64,
    /// What it counted.
    pub tally: Tally,
    /// Seconds that it took.
    pub elapsed_s: f64,
    /// The kernel that counted it.
    pub kernel: String,
}

/// Each unit of a job is entered once. The total is kept as units come, never summed anew.
#[derive(Clone, Debug)]
pub struct UnitBook {
    tallies: Vec<Option<Tally>>,
    done: u64,
    total: Tally,
}

/// Why a unit cannot be entered, or a total cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookError {
    /// An index past the last unit.
    #[error("unit {unit} does not belong to a job of {units} units")]
    NoSuchUnit {
        /// The index.
        unit: u64,
        /// Units of the job.
        units: u64,
    },
    /// The unit was finished before with another result.
    #[error("unit {0} was counted twice with different results: one of the two is wrong")]
    Conflict(u64),
    /// The result contradicts itself, or the sum leaves 128 bits.
    #[error("unit {unit}: {source}")]
    Tally {
        /// The index.
        unit: u64,
        /// What is wrong.
        source: TallyError,
    },
    /// A total was asked for too early.
    #[error("{missing} of {units} units are missing")]
    Incomplete {
        /// Units not finished.
        missing: u64,
        /// Units of the job.
        units: u64,
    },
}

impl UnitBook {
    /// The empty books of a job of `units` units.
    pub fn new(units: u64) -> Self {
        // A job has at most some millions of units; they fit in memory long before they fit in a lifetime.
        let units = usize::try_from(units).expect("units are counted in memory");
        Self { tallies: vec![None; units], done: 0, total: Tally::default() }
    }

    /// Enters a result. True if it is new; the same result again changes nothing.
    ///
    /// # Errors
    /// No such unit, another result for a unit that is finished, or a result that contradicts itself. The
    /// books are unchanged then.
    pub fn enter(&mut self, unit: u64, tally: &Tally) -> Result<bool, BookError> {
        let units = self.units();
        let entry = usize::try_from(unit)
            .ok()
            .and_then(|i| self.tallies.get_mut(i))
            .ok_or(BookError::NoSuchUnit { unit, units })?;
        match entry {
            Some(known) if known == tally => Ok(false),
            Some(_) => Err(BookError::Conflict(unit)),
            None => {
                let wrong = |source| BookError::Tally { unit, source };
                tally.verify().map_err(wrong)?;
                self.total.merge(tally).map_err(wrong)?;
                *entry = Some(*tally);
                self.done += 1;
                Ok(true)
            }
        }
    }

    /// Units of the job.
    pub fn units(&self) -> u64 {
        self.tallies.len() as u64
    }

    /// Units that are finished.
    pub const fn done(&self) -> u64 {
        self.done
    }

    /// Whether a unit is finished.
    pub fn has(&self, unit: u64) -> bool {
        usize::try_from(unit).is_ok_and(|i| self.tallies.get(i).is_some_and(Option::is_some))
    }

    /// Units that are not finished, in order.
    pub fn missing(&self) -> impl Iterator<Item = u64> {
        self.tallies.iter().zip(0..).filter(|(tally, _)| tally.is_none()).map(|(_, unit)| unit)
    }

    /// The sum of the finished units.
    pub const fn so_far(&self) -> &Tally {
        &self.total
    }

    /// The sum of all units.
    ///
    /// # Errors
    /// Some are not finished.
    pub fn total(&self) -> Result<&Tally, BookError> {
        match self.units() - self.done {
            0 => Ok(&self.total),
            missing => Err(BookError::Incomplete { missing, units: self.units() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Residues;

    fn tally(completions: u64) -> Tally {
        let mut tally = Tally::default();
        tally.add(3, completions, Residues::of(completions.into()), 1).expect("fits");
        tally
    }

    #[test]
    fn each_unit_counts_once_and_a_total_needs_all() {
        let mut book = UnitBook::new(3);
        assert_eq!(book.enter(2, &tally(5)), Ok(true));
        assert_eq!(book.enter(2, &tally(5)), Ok(false));
        assert_eq!(book.enter(0, &tally(7)), Ok(true));
        assert_eq!((book.done(), book.has(2), book.has(1)), (2, true, false));
        assert_eq!(book.missing().collect::<Vec<_>>(), [1]);
        assert_eq!(book.total(), Err(BookError::Incomplete { missing: 1, units: 3 }));
        assert_eq!(book.enter(1, &tally(1)), Ok(true));
        assert_eq!(book.total().map(Tally::solutions), Ok(Ok(13)));
    }

    #[test]
    fn a_result_that_cannot_be_is_refused_and_changes_nothing() {
        let mut book = UnitBook::new(2);
        assert_eq!(book.enter(1, &tally(4)), Ok(true));
        let before = *book.so_far();
        assert_eq!(book.enter(2, &tally(1)), Err(BookError::NoSuchUnit { unit: 2, units: 2 }));
        assert_eq!(book.enter(1, &tally(9)), Err(BookError::Conflict(1)));
        let mut lying = Tally::default();
        lying.add(3, 92u32, Residues::of(93), 0).expect("fits");
        assert!(matches!(book.enter(0, &lying), Err(BookError::Tally { unit: 0, .. })));
        assert_eq!((*book.so_far(), book.done()), (before, 1));
    }
}
