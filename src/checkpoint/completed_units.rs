//! The completed units of a job and their running total. Uses neither disk nor clock.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::tally::{Tally, TallyError};

/// A completed unit and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinishedUnit {
    /// The unit's index in the job.
    pub unit: u64,
    /// The result.
    pub tally: Tally,
    /// Counting time, in seconds.
    pub elapsed_s: f64,
    /// The kernel that counted it.
    pub kernel: String,
}

/// The completed units of a job, each entered once. The total is updated with every unit and never
/// recomputed.
#[derive(Clone, Debug)]
pub struct CompletedUnits {
    /// Number of units of the job. Nothing is preallocated for them, since the number may come from
    /// a file.
    units: u64,
    finished: HashMap<u64, Tally>,
    total: Tally,
}

/// The reason why a unit cannot be entered or a total is not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnterError {
    /// A unit index beyond the last unit.
    #[error("unit {unit} does not belong to a job of {units} units")]
    NoSuchUnit {
        /// The index.
        unit: u64,
        /// Units of the job.
        units: u64,
    },
    /// The unit was entered before with another result.
    #[error("unit {0} was counted twice with different results: one of the two is wrong")]
    Conflict(u64),
    /// The result is inconsistent, or the sum would exceed 128 bits.
    #[error("unit {unit}: {source}")]
    Tally {
        /// The index.
        unit: u64,
        /// The error of the tally.
        source: TallyError,
    },
    /// A time that is negative or not finite; JSON cannot represent the latter.
    #[error("unit {0} has an invalid time; it must be a finite number of seconds, at least 0")]
    Elapsed(u64),
    /// A partial result of no subproblem, or of at least as many as the unit has.
    #[error(
        "unit {unit}: a partial result of {counted} subproblems does not fit a unit of at most {subproblems}"
    )]
    Subproblems {
        /// The index.
        unit: u64,
        /// Subproblems of the partial result.
        counted: u64,
        /// Subproblems of the unit, or of the largest unit.
        subproblems: u64,
    },
    /// A partial result after the whole one, or after one of the same kernel with as many
    /// subproblems.
    #[error("unit {0}: a partial result follows one that has at least as many subproblems")]
    Superseded(u64),
    /// The total was requested before all units were finished.
    #[error("{missing} of {units} units are missing")]
    Incomplete {
        /// Number of units that are not finished.
        missing: u64,
        /// Number of units of the job.
        units: u64,
    },
}

impl CompletedUnits {
    /// Creates the empty state of a job of `units` units.
    pub fn new(units: u64) -> Self {
        Self { units, finished: HashMap::new(), total: Tally::default() }
    }

    /// Enters a result. Returns true if it is new; entering the same result again changes nothing.
    /// Results are the same if their sums are equal, since kernels differ in the nodes that they
    /// make.
    ///
    /// # Errors
    /// Returns an error if there is no such unit, if the unit is finished with another result, or
    /// if the result is inconsistent. Nothing has changed then.
    pub fn enter(&mut self, unit: u64, tally: &Tally) -> Result<bool, EnterError> {
        let new = self.is_new(unit, tally)?;
        if new {
            self.total.merge(tally).map_err(|source| EnterError::Tally { unit, source })?;
            self.finished.insert(unit, *tally);
        }
        Ok(new)
    }

    /// Removes the result of a unit that is no longer trusted; the unit is open again.
    pub fn reopen(&mut self, unit: u64) {
        if let Some(tally) = self.finished.get(&unit)
            && self.total.subtract(tally).is_ok()
        {
            self.finished.remove(&unit);
        }
    }

    /// Returns the results in `units` that are new, each once, so that they can be written before
    /// they are entered. Enters nothing.
    ///
    /// # Errors
    /// Returns an error if a result could not be entered after those before it, or if its time is
    /// negative or not finite.
    pub fn new_among<'a>(
        &self,
        units: &'a [FinishedUnit],
    ) -> Result<Vec<&'a FinishedUnit>, EnterError> {
        let mut ahead = Self { units: self.units, finished: HashMap::new(), total: self.total };
        let mut new = Vec::new();
        for finished in units {
            if !(finished.elapsed_s.is_finite() && finished.elapsed_s >= 0.0) {
                return Err(EnterError::Elapsed(finished.unit));
            }
            if self.is_new(finished.unit, &finished.tally)?
                && ahead.enter(finished.unit, &finished.tally)?
            {
                new.push(finished);
            }
        }
        Ok(new)
    }

    /// Returns whether the unit is not finished yet. Makes all checks of [`Self::enter`] except
    /// that of the sum.
    fn is_new(&self, unit: u64, tally: &Tally) -> Result<bool, EnterError> {
        if unit >= self.units {
            return Err(EnterError::NoSuchUnit { unit, units: self.units });
        }
        tally.verify().map_err(|source| EnterError::Tally { unit, source })?;
        match self.finished.get(&unit) {
            Some(known) if known.thirds() == tally.thirds() => Ok(false),
            Some(_) => Err(EnterError::Conflict(unit)),
            None => Ok(true),
        }
    }

    /// Returns the number of units of the job.
    pub const fn units(&self) -> u64 {
        self.units
    }

    /// Returns the number of finished units.
    pub fn done(&self) -> u64 {
        self.finished.len() as u64
    }

    /// Returns whether a unit is finished.
    pub fn has(&self, unit: u64) -> bool {
        self.finished.contains_key(&unit)
    }

    /// Returns the result of a unit, if it is finished.
    pub fn result(&self, unit: u64) -> Option<&Tally> {
        self.finished.get(&unit)
    }

    /// Returns the results of all finished units, in no particular order.
    pub fn finished(&self) -> impl Iterator<Item = (u64, &Tally)> {
        self.finished.iter().map(|(&unit, tally)| (unit, tally))
    }

    /// Returns the units that are not finished, in order.
    pub fn missing(&self) -> impl Iterator<Item = u64> {
        (0..self.units).filter(|&unit| !self.has(unit))
    }

    /// Returns the sum of the finished units.
    pub const fn so_far(&self) -> &Tally {
        &self.total
    }

    /// Returns the sum of all units.
    ///
    /// # Errors
    /// Returns an error if some units are not finished.
    pub fn total(&self) -> Result<&Tally, EnterError> {
        match self.units - self.done() {
            0 => Ok(&self.total),
            missing => Err(EnterError::Incomplete { missing, units: self.units }),
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
        let mut completed = CompletedUnits::new(3);
        assert_eq!(completed.enter(2, &tally(5)), Ok(true));
        assert_eq!(completed.enter(2, &tally(5)), Ok(false));
        let mut by_another_kernel = Tally::default();
        by_another_kernel.add(3, 5u64, Residues::of(5), 99).expect("fits");
        assert_eq!(completed.enter(2, &by_another_kernel), Ok(false));
        assert_eq!(completed.so_far().nodes(), 1);
        assert_eq!(completed.enter(0, &tally(7)), Ok(true));
        assert_eq!((completed.done(), completed.has(2), completed.has(1)), (2, true, false));
        assert_eq!(completed.missing().collect::<Vec<_>>(), [1]);
        assert_eq!(completed.total(), Err(EnterError::Incomplete { missing: 1, units: 3 }));
        assert_eq!(completed.enter(1, &tally(1)), Ok(true));
        assert_eq!(completed.total().map(Tally::solutions), Ok(Ok(13)));
    }

    #[test]
    fn an_impossible_result_is_refused_and_changes_nothing() {
        let mut completed = CompletedUnits::new(2);
        assert_eq!(completed.enter(1, &tally(4)), Ok(true));
        let before = *completed.so_far();
        assert_eq!(
            completed.enter(2, &tally(1)),
            Err(EnterError::NoSuchUnit { unit: 2, units: 2 })
        );
        assert_eq!(completed.enter(1, &tally(9)), Err(EnterError::Conflict(1)));
        let mut lying = Tally::default();
        lying.add(3, 92u32, Residues::of(93), 0).expect("fits");
        assert!(matches!(completed.enter(0, &lying), Err(EnterError::Tally { unit: 0, .. })));
        assert_eq!((*completed.so_far(), completed.done()), (before, 1));
    }

    #[test]
    fn new_units_of_a_batch_are_known_before_it_is_recorded() {
        let unit = |unit, completions| FinishedUnit {
            unit,
            tally: tally(completions),
            elapsed_s: 0.5,
            kernel: "scalar".into(),
        };
        let mut completed = CompletedUnits::new(4);
        assert_eq!(completed.enter(1, &tally(4)), Ok(true));
        let batch = [unit(0, 7), unit(1, 4), unit(3, 9), unit(0, 7)];
        let new: Vec<u64> =
            completed.new_among(&batch).expect("valid").iter().map(|f| f.unit).collect();
        assert_eq!((new, completed.done()), (vec![0, 3], 1));
        assert_eq!(completed.new_among(&[unit(1, 5)]), Err(EnterError::Conflict(1)));
        assert_eq!(completed.new_among(&[unit(0, 5), unit(0, 6)]), Err(EnterError::Conflict(0)));
        assert_eq!(
            completed.new_among(&[unit(4, 5)]),
            Err(EnterError::NoSuchUnit { unit: 4, units: 4 })
        );
        for elapsed_s in [f64::NAN, f64::INFINITY, -1.0] {
            let timed = FinishedUnit { elapsed_s, ..unit(0, 5) };
            assert_eq!(completed.new_among(&[timed]), Err(EnterError::Elapsed(0)));
        }
    }

    #[test]
    fn a_job_of_any_number_of_units_takes_only_the_memory_of_the_finished_ones() {
        let mut completed = CompletedUnits::new(u64::MAX);
        assert_eq!(completed.enter(u64::MAX - 1, &tally(4)), Ok(true));
        assert_eq!(completed.missing().next(), Some(0));
        assert!(completed.total().is_err());
    }
}
