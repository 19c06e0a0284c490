//! The listed sets of diagonals of a residual board (see [`DiagonalSets`]).

use nqueens_proof::first::{AssumedDiagonals, DiagonalSets, Diagonals, OpenBoard};

use super::params;
use super::residual::{Residual, State};
use super::width::Width;
use crate::bitset::BitSet;

/// The decision for which boards the sets are to be listed, which takes 4 to 13 ms: fewer and
/// fewer, as long as they are too many (exponential backoff).
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// The number of boards to skip after the last failure, and those left of them.
    skipped: u32,
    left: u32,
}

impl Backoff {
    /// Returns whether the sets of the next board are to be listed.
    pub(super) const fn is_due(&mut self) -> bool {
        let is_due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_due
    }

    /// Adds the result of a listing.
    pub(super) fn add(&mut self, success: bool) {
        self.skipped = if success { 0 } else { (2 * self.skipped + 1).min(params::MOST_SKIPPED) };
        self.left = self.skipped;
    }
}

/// Lists the sets of a board, or returns `None` if there are many.
pub(super) fn list<W: Width>(board: &Residual<'_, W>) -> Option<DiagonalSets> {
    let open = OpenBoard {
        n: board.n(),
        rows: board.rows().iter().collect(),
        columns: board.columns().iter().collect(),
        diagonals: board.diagonals().map(of_width::<W>),
    };
    let (listed, _) = DiagonalSets::list(&open, params::LISTING_ENTRIES);
    listed.ok().filter(|sets| sets.pairs() <= params::MOST_PAIRS)
}

/// Removes sets that are impossible on the board, and cells whose diagonals are in no set, and
/// propagates, until nothing changes.
pub(super) fn keep_to<W: Width>(
    sets: &mut DiagonalSets,
    assumed: &[AssumedDiagonals; 2],
    board: &mut Residual<'_, W>,
) -> State {
    let n = board.n();
    let mut branch = None;
    loop {
        let [taken, usable] =
            [board.occupied(), board.diagonals()].map(|lines| lines.map(of_width::<W>));
        *sets = sets.possible(taken, usable, assumed);
        if sets.is_empty() {
            return State::Refuted;
        }
        let union = [0, 1].map(|direction| diagonals::<W>(sets.union(direction)));
        let mut is_changed = false;
        for row in board.rows().iter() {
            for column in board.remaining(row).iter() {
                if !union[0].contains(column + n - 1 - row) || !union[1].contains(row + column) {
                    board.eliminate(row, column);
                    is_changed = true;
                }
            }
        }
        if let Some(branch) = branch
            && !is_changed
        {
            return State::Open(branch);
        }
        match board.propagate() {
            State::Open(line) => branch = Some(line),
            end => return end,
        }
    }
}

/// Converts a set of diagonals.
pub(super) fn of_width<W: Width>(set: W::Diagonals) -> Diagonals {
    Diagonals([set.bits_from(0), set.bits_from(128)])
}

/// Converts a set of diagonals.
pub(super) fn diagonals<W: Width>(set: Diagonals) -> W::Diagonals {
    set.iter().fold(W::Diagonals::EMPTY, |all, diagonal| all.or(W::Diagonals::one(diagonal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_failures_fewer_boards_are_listed() {
        let mut backoff = Backoff::default();
        let mut skipped = || {
            let skipped = (0..100).take_while(|_| !backoff.is_due()).count();
            backoff.add(false);
            skipped
        };
        assert_eq!([(); 7].map(|()| skipped()), [0, 1, 3, 7, 15, 15, 15]);
        backoff.add(true);
        assert!(backoff.is_due() && backoff.is_due());
    }
}
