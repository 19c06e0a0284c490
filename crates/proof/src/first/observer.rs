//! An observer of the steps that the checker of refutations repeats.

use super::diagonal_sets::DiagonalSets;
use super::position::Position;
use crate::ProofError;

/// An observer of the checker. An error that it returns ends the check.
///
/// Every refutation that the checker completes lies between a `begin` and the `end` of the same name.
/// `refuted` says whether propagation has refuted the position at once; then nothing is observed
/// between the two.
pub(crate) trait Observer {
    /// True if the observer must see every queen of a search. The checker then remembers no
    /// refuted positions, and is not bound by the work that the certificate states.
    const SEES_ALL_QUEENS: bool = true;

    /// True if the observer must know the lists of a refutation before it begins.
    const FORESEES_LISTS: bool = true;

    /// The refutation of the next prefix lists sets of diagonals: these, in this order, with those that
    /// have no partner.
    fn foresee_lists(&mut self, _lists: Vec<DiagonalSets>) -> Result<(), ProofError> {
        Ok(())
    }

    /// The refutation of the board with these queens on its first rows begins.
    fn begin_prefix(&mut self, _prefix: &[usize], _refuted: bool) -> Result<(), ProofError> {
        Ok(())
    }

    /// The refutation of the prefix is complete.
    fn end_prefix(&mut self, _prefix: &[usize], _refuted: bool) -> Result<(), ProofError> {
        Ok(())
    }

    /// A queen was placed on `square`, and is to be refuted.
    fn begin_queen(&mut self, _square: usize, _refuted: bool) -> Result<(), ProofError> {
        Ok(())
    }

    /// The queen on `square` is refuted.
    fn end_queen(&mut self, _square: usize, _refuted: bool) -> Result<(), ProofError> {
        Ok(())
    }

    /// A search of the position begins. All queens until its end belong to it.
    fn begin_search(&mut self) -> Result<(), ProofError> {
        Ok(())
    }

    /// The search has refuted the position.
    fn end_search(&mut self) -> Result<(), ProofError> {
        Ok(())
    }

    /// The sets of diagonals of the position are about to be listed.
    fn begin_list(&mut self, _position: &Position) -> Result<(), ProofError> {
        Ok(())
    }

    /// The tree below the list is complete.
    fn end_list(&mut self) {}

    /// The sets with a diagonal (`used`), or those without it, are the only ones that are possible
    /// from now on.
    fn begin_case(&mut self, _line: usize, _used: bool, _refuted: bool) -> Result<(), ProofError> {
        Ok(())
    }

    /// The case is refuted.
    fn end_case(&mut self, _line: usize, _used: bool, _refuted: bool) -> Result<(), ProofError> {
        Ok(())
    }

    /// A dual bound is about to be added to the position. `y` has the multipliers by line, without
    /// the rows, as they were read.
    fn dual_bound(
        &mut self,
        _position: &Position,
        _y: &[i64],
        _knapsacks: bool,
    ) -> Result<(), ProofError> {
        Ok(())
    }
}

/// The observer that ignores everything.
impl Observer for () {
    const SEES_ALL_QUEENS: bool = false;
    const FORESEES_LISTS: bool = false;
}

/// The observer that keeps all lists.
impl Observer for Vec<DiagonalSets> {
    const SEES_ALL_QUEENS: bool = false;
    const FORESEES_LISTS: bool = false;

    fn begin_list(&mut self, position: &Position) -> Result<(), ProofError> {
        // Without a list, the refutation is refused.
        self.extend(position.unmatched_sets());
        Ok(())
    }
}
