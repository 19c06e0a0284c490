//! The partial results of units: the sums of their first subproblems. Uses neither disk nor clock.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::completed_units::{EnterError, FinishedUnit};
use crate::tally::{Tally, TallyError};

/// The partial result of a unit: the sum of its first subproblems, counted by one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartialUnit {
    /// The unit's index in the job.
    pub unit: u64,
    /// The number of subproblems that are counted, from the first one of the unit.
    pub counted: u64,
    /// Their sum.
    pub tally: Tally,
    /// Counting time, in seconds.
    pub elapsed_s: f64,
    /// The kernel that counted them.
    pub kernel: String,
}

impl PartialUnit {
    /// Creates the partial result of a unit that `kernel` begins to count.
    pub fn start(unit: u64, kernel: &str) -> Self {
        let (counted, elapsed_s, kernel) = (0, 0.0, kernel.to_owned());
        Self { unit, counted, tally: Tally::default(), elapsed_s, kernel }
    }

    /// Adds the sum of the next `subproblems`.
    ///
    /// # Errors
    /// The sum exceeds 128 bits, or disagrees with its residues.
    pub fn add(
        &mut self,
        subproblems: u64,
        tally: &Tally,
        elapsed: Duration,
    ) -> Result<(), TallyError> {
        self.counted = self.counted.checked_add(subproblems).ok_or(TallyError::Overflow)?;
        self.tally.merge(tally)?;
        self.elapsed_s += elapsed.as_secs_f64();
        self.tally.verify()
    }

    /// Returns the result of the unit, once all its subproblems are counted.
    pub fn finished(self) -> FinishedUnit {
        let Self { unit, tally, elapsed_s, kernel, .. } = self;
        FinishedUnit { unit, tally, elapsed_s, kernel }
    }

    /// Returns whether this result supersedes `known`, another one of the same unit: it has more
    /// subproblems, or is by another kernel, which counts a unit from its beginning.
    pub fn supersedes(&self, known: &Self) -> bool {
        self.kernel != known.kernel || self.counted > known.counted
    }

    /// Checks the result against a job of `units` units with at most `subproblems` subproblems
    /// each.
    pub(super) fn check(&self, units: u64, subproblems: u64) -> Result<(), EnterError> {
        let Self { unit, counted, .. } = *self;
        if unit >= units {
            return Err(EnterError::NoSuchUnit { unit, units });
        }
        if counted == 0 || counted >= subproblems {
            return Err(EnterError::Subproblems { unit, counted, subproblems });
        }
        if !(self.elapsed_s.is_finite() && self.elapsed_s >= 0.0) {
            return Err(EnterError::Elapsed(unit));
        }
        self.tally.verify().map_err(|source| EnterError::Tally { unit, source })
    }
}

/// The latest partial result of each unit that has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialUnits(BTreeMap<u64, PartialUnit>);

impl PartialUnits {
    /// Enters a partial result if it supersedes the known one of its unit. Returns whether it did.
    pub fn enter(&mut self, partial: PartialUnit) -> bool {
        let new = self.get(partial.unit).is_none_or(|known| partial.supersedes(known));
        if new {
            self.0.insert(partial.unit, partial);
        }
        new
    }

    /// Removes and returns the partial result of a unit.
    pub fn remove(&mut self, unit: u64) -> Option<PartialUnit> {
        self.0.remove(&unit)
    }

    /// Returns the partial result of a unit.
    pub fn get(&self, unit: u64) -> Option<&PartialUnit> {
        self.0.get(&unit)
    }

    /// Returns all partial results, in the order of their units.
    pub fn iter(&self) -> impl Iterator<Item = &PartialUnit> {
        self.0.values()
    }

    /// Returns the partial results by one kernel.
    #[must_use]
    pub fn by_kernel(&self, kernel: &str) -> Self {
        let units = self.0.iter().filter(|(_, partial)| partial.kernel == kernel);
        Self(units.map(|(&unit, partial)| (unit, partial.clone())).collect())
    }
}
