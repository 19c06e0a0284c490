//! An observer of the records that the checker repeats.

use super::board::Board;
use crate::ProofError;

/// The bound on a level that a refutation establishes.
#[derive(Clone, Copy)]
pub(crate) struct LevelBound {
    pub(crate) level: usize,
    /// The level has at least this number of queens if `at_least` is set, otherwise fewer.
    pub(crate) queens: usize,
    pub(crate) at_least: bool,
}

/// An observer of the checker. An error that it returns ends the check.
pub(crate) trait Observer {
    /// The contrary of this bound is supposed, until [`Self::refute`].
    fn suppose(&mut self, _bound: LevelBound) -> Result<(), ProofError> {
        Ok(())
    }

    /// The innermost supposition is refuted; without one, there is no solution.
    fn refute(&mut self) -> Result<(), ProofError> {
        Ok(())
    }

    /// A level was shown to have as many queens as in the given solution.
    fn next_level(&mut self, _level: usize) -> Result<(), ProofError> {
        Ok(())
    }

    /// A clique, which the next free number denotes.
    fn clique(&mut self, _squares: &[usize]) {}

    /// These numbered multipliers were evaluated on the board.
    fn multipliers(
        &mut self,
        _board: &Board,
        _multipliers: &[(usize, i64)],
    ) -> Result<(), ProofError> {
        Ok(())
    }

    /// A search begins.
    fn begin_search(&mut self) {}

    /// In a search, a queen is placed on `square`; `last` says whether it is the last choice of the
    /// line.
    fn begin_queen(&mut self, _square: usize, _last: bool) -> Result<(), ProofError> {
        Ok(())
    }

    /// The queen that was placed last is refuted.
    fn end_queen(&mut self, _last: bool) {}

    /// In a search, prices by number of line or level are about to be evaluated on the board.
    fn prices(&mut self, _board: &Board, _price: &[i128]) {}

    /// The search is complete: no solution is left, or none with a queen on `square`.
    fn end_search(&mut self, _square: Option<usize>) -> Result<(), ProofError> {
        Ok(())
    }
}

/// The observer that ignores everything.
impl Observer for () {}
