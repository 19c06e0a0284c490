//! An observer of the steps that the checker of refutations repeats.

use super::diagonal_sets::{DiagonalSets, TooManySets};
use super::position::Position;
use crate::ProofError;

/// An observer of the checker. An error that it returns ends the check.
///
/// Every refutation that the checker completes lies between a `begin` and the `end` of the same
/// name. Where there is a parameter `refuted`, it says whether propagation has refuted the position
/// at once; then nothing is observed between the two.
pub(crate) trait Observer {
    /// True if the observer translates the proof: it must see every queen of a search, and know the
    /// lists of a prefix before its refutation. The checker then remembers no refuted positions, is
    /// not bound by the work that the certificate states, and checks prefixes with lists twice.
    const TRANSLATES: bool = true;

    /// Returns how many listed sets of a prefix the observer accepts.
    fn most_listed_sets(&self) -> usize {
        usize::MAX
    }

    /// The refutation of the next prefix has these lists, in the order of the tree, each with the
    /// sets that have no partner. There is an error if they are more than the observer accepts.
    fn define_lists(
        &mut self,
        _lists: Result<Vec<DiagonalSets>, TooManySets>,
    ) -> Result<(), ProofError> {
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

    /// The sets of diagonals of the position were listed: these, with those that have no partner.
    /// The tree below the list begins.
    fn begin_list(
        &mut self,
        _position: &Position,
        _listed: &DiagonalSets,
    ) -> Result<(), ProofError> {
        Ok(())
    }

    /// The tree below the list is complete.
    fn end_list(&mut self) {}

    /// A case begins: the possible sets are those with a diagonal, or those without it unless
    /// `used` is set. `refuted` says whether keeping to them has refuted the position at once.
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
    const TRANSLATES: bool = false;
}

/// An observer that keeps the lists, up to a number of sets.
pub(super) struct ListCollector {
    /// The lists so far; an error if they have more sets.
    pub(super) lists: Result<Vec<DiagonalSets>, TooManySets>,
    sets_left: usize,
}

impl ListCollector {
    /// Creates a collector that keeps at most this number of sets.
    pub(super) const fn new(most_sets: usize) -> Self {
        Self { lists: Ok(Vec::new()), sets_left: most_sets }
    }
}

impl Observer for ListCollector {
    const TRANSLATES: bool = false;

    fn begin_list(&mut self, _: &Position, listed: &DiagonalSets) -> Result<(), ProofError> {
        if let Ok(lists) = &mut self.lists {
            match self.sets_left.checked_sub(listed.len(0) + listed.len(1)) {
                Some(left) => {
                    self.sets_left = left;
                    lists.push(listed.clone());
                }
                None => self.lists = Err(TooManySets),
            }
        }
        Ok(())
    }
}
