//! The results of a session: the units of each kernel, and the partial results of others.

use std::collections::{BTreeMap, BTreeSet};

use crate::checkpoint::{FinishedUnit, PartialUnit, PartialUnits};
use crate::executor::KernelFailure;

/// The time between two records of a unit's partial result: a kill loses little more. Units that
/// take less time have no such record.
const RECORD_EVERY_S: f64 = 10.0;
/// The time that is worth a record when the count stops.
const RECORD_AT_STOP_S: f64 = 1.0;

/// The results of a session.
#[derive(Debug)]
pub(super) struct SessionResults {
    finished: BTreeMap<String, BTreeSet<u64>>,
    /// The latest partial results of units that are not finished.
    partial: PartialUnits,
    /// Kernels that failed a test with known answers.
    distrusted: BTreeSet<String>,
    /// True if every partial result is recorded.
    record_all: bool,
}

impl SessionResults {
    /// Creates the results of a session that continues `partial` results.
    pub(super) fn new(partial: PartialUnits, record_all: bool) -> Self {
        let (finished, distrusted) = (BTreeMap::new(), BTreeSet::new());
        Self { finished, partial, distrusted, record_all }
    }

    /// Returns whether the results of a kernel are trusted.
    pub(super) fn trusts(&self, kernel: &str) -> bool {
        !self.distrusted.contains(kernel)
    }

    /// Enters a finished unit.
    pub(super) fn finish(&mut self, finished: FinishedUnit) {
        self.partial.remove(finished.unit);
        self.finished.entry(finished.kernel).or_default().insert(finished.unit);
    }

    /// Enters a partial result of a unit that is not finished, unless another thread has counted
    /// more of the unit.
    pub(super) fn enter(&mut self, partial: PartialUnit) {
        if self.trusts(&partial.kernel) {
            self.partial.enter(partial);
        }
    }

    /// Returns the latest partial results.
    pub(super) const fn partial(&self) -> &PartialUnits {
        &self.partial
    }

    /// Discards the partial result of the unit that a kernel failed on, if any, which is counted
    /// again from its beginning; and all results of the kernel if it is no longer trusted. Returns
    /// the units that were finished.
    pub(super) fn discard(&mut self, failure: &KernelFailure) -> BTreeSet<u64> {
        if let Some(unit) = failure.unit {
            self.partial.remove(unit);
        }
        if failure.wrong.is_none() {
            return BTreeSet::new();
        }
        let name = failure.kernel.name();
        self.distrusted.insert(name.to_owned());
        for partial in self.partial.by_kernel(name).iter() {
            self.partial.remove(partial.unit);
        }
        self.finished.remove(name).unwrap_or_default()
    }

    /// Returns the partial results to be recorded, where `recorded` ones are in the checkpoint.
    pub(super) fn due(&self, recorded: &PartialUnits, stopping: bool) -> Vec<PartialUnit> {
        let least_s = match (self.record_all, stopping) {
            (true, _) => 0.0,
            (false, true) => RECORD_AT_STOP_S,
            (false, false) => RECORD_EVERY_S,
        };
        let is_due = |partial: &&PartialUnit| {
            let known = recorded.get(partial.unit);
            let same_kernel = known.filter(|known| known.kernel == partial.kernel);
            known.is_none_or(|known| partial.supersedes(known))
                && partial.elapsed_s - same_kernel.map_or(0.0, |known| known.elapsed_s) >= least_s
        };
        self.partial.iter().filter(is_due).cloned().collect()
    }

    /// Returns the kernels of the finished units.
    pub(super) fn kernels(self) -> BTreeSet<String> {
        self.finished.into_keys().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::KernelKind;

    fn partial(unit: u64, counted: u64, elapsed_s: f64, kernel: &str) -> PartialUnit {
        PartialUnit { counted, elapsed_s, ..PartialUnit::start(unit, kernel) }
    }

    fn results(partial: impl IntoIterator<Item = PartialUnit>) -> SessionResults {
        let mut results = SessionResults::new(PartialUnits::default(), false);
        partial.into_iter().for_each(|partial| results.enter(partial));
        results
    }

    fn recorded(partial: impl IntoIterator<Item = PartialUnit>) -> PartialUnits {
        results(partial).partial
    }

    fn units(due: &[PartialUnit]) -> Vec<u64> {
        due.iter().map(|partial| partial.unit).collect()
    }

    #[test]
    fn a_partial_result_is_due_after_ten_seconds_of_counting() {
        let results = results([
            partial(0, 5, 9.9, "scalar"),
            partial(1, 5, 10.0, "scalar"),
            partial(2, 5, 29.9, "scalar"),
            partial(3, 5, 30.0, "scalar"),
            partial(4, 5, 10.5, "scalar"),
        ]);
        // Unit 4 was begun by another kernel, so nothing of it is recorded yet.
        let recorded = recorded([
            partial(2, 4, 20.0, "scalar"),
            partial(3, 4, 20.0, "scalar"),
            partial(4, 9, 20.0, "generic"),
        ]);
        assert_eq!(units(&results.due(&recorded, false)), [1, 3, 4]);
        assert_eq!(units(&results.due(&recorded, true)), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn no_result_is_due_twice() {
        let results = SessionResults::new(recorded([partial(0, 5, 99.0, "scalar")]), true);
        assert_eq!(units(&results.due(&PartialUnits::default(), false)), [0]);
        for stopping in [false, true] {
            assert_eq!(results.due(results.partial(), stopping), []);
        }
    }

    #[test]
    fn less_than_a_second_is_not_recorded_when_the_count_stops() {
        let results = results([partial(0, 5, 0.9, "scalar"), partial(1, 5, 1.0, "scalar")]);
        assert_eq!(units(&results.due(&PartialUnits::default(), true)), [1]);
    }

    #[test]
    fn of_two_threads_on_one_unit_the_one_that_counted_more_is_kept() {
        let results = results([
            partial(0, 5, 9.0, "scalar"),
            partial(0, 2, 1.0, "scalar"),
            partial(0, 6, 10.0, "scalar"),
            partial(0, 6, 3.0, "scalar"),
        ]);
        assert_eq!(results.partial().get(0), Some(&partial(0, 6, 10.0, "scalar")));
    }

    #[test]
    fn a_failed_kernel_loses_its_unit_and_a_miscounting_one_everything() {
        let finished = |unit, kernel| partial(unit, 7, 1.0, kernel).finished();
        let mut results = results([
            partial(0, 5, 1.0, "scalar"),
            partial(1, 5, 1.0, "scalar"),
            partial(2, 5, 1.0, "generic"),
        ]);
        results.finish(finished(3, "scalar"));
        results.finish(finished(4, "generic"));
        let mut failure =
            KernelFailure { kernel: KernelKind::Scalar, unit: Some(0), wrong: None, note: None };
        assert!(results.discard(&failure).is_empty());
        assert_eq!(results.partial().iter().map(|p| p.unit).collect::<Vec<_>>(), [1, 2]);
        failure.wrong = Some("it counts 3".into());
        assert_eq!(results.discard(&failure), [3].into());
        // A thread that still counts by the kernel does not bring its results back.
        results.enter(partial(1, 6, 2.0, "scalar"));
        assert_eq!(results.partial().iter().map(|p| p.unit).collect::<Vec<_>>(), [2]);
        assert!(!results.trusts("scalar") && results.trusts("generic"));
        assert_eq!(results.kernels(), ["generic".to_owned()].into());
    }
}
