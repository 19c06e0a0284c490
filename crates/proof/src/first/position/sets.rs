//! The listed sets of diagonals of a position.

use super::super::diagonal_sets::{
    AssumedDiagonals, DiagonalSets, Diagonals, MOST_ENTRIES, OpenBoard, TooManySets,
};
use super::super::knapsack::{Heaviest, KnapsackOutcome};
use super::{Line, Position, direction};

/// The operations for a set when the sets are filtered, and when they are weighed.
const FILTER: usize = 40;
const WEIGH: usize = 400;

/// The result of keeping to the possible sets.
pub(in super::super) enum Kept {
    /// The position is refuted.
    Refuted,
    /// Squares were removed or queens placed, so other sets may be possible now.
    Changed,
    Unchanged,
}

/// Cases that were assumed before another one.
pub(in super::super) struct Assumed([AssumedDiagonals; 2]);

impl Position {
    /// Lists the sets of diagonals that the further queens of a completion can stand on. Returns
    /// them, with those that have no partner.
    ///
    /// # Errors
    /// Returns an error if there are too many.
    pub(in super::super) fn list_sets(&mut self) -> Result<DiagonalSets, TooManySets> {
        let n = self.n;
        let open = |first: usize| {
            (0..n).filter(|&i| !self.lines[first + i].is_taken()).collect::<Vec<_>>()
        };
        let (rows, columns) = (open(0), open(n));
        let diagonals = self.diagonals(Line::is_usable);
        let board = OpenBoard { n, rows, columns, diagonals };
        let (listed, operations) = DiagonalSets::list_unmatched(&board, MOST_ENTRIES);
        self.spend(operations);
        let listed = listed?;
        self.sets = Some(listed.clone().matched());
        Ok(listed)
    }

    /// Removes the listed sets.
    pub(in super::super) fn remove_sets(&mut self) {
        self.sets = None;
    }

    /// Assumes that a completion uses a listed set with a diagonal or, unless `used` is set,
    /// without it. Returns the cases that were assumed before, or `None` if no sets are listed or
    /// the line is none.
    pub(in super::super) fn assume(&mut self, line: usize, used: bool) -> Option<Assumed> {
        let n = self.n;
        if self.sets.is_none() || !(2 * n..self.lines.len()).contains(&line) {
            return None;
        }
        let before = Assumed(self.assumed);
        let direction = direction(n, line);
        self.assumed[direction].add(line - [2 * n, 4 * n - 1][direction], used);
        Some(before)
    }

    /// Assumes these cases only.
    pub(in super::super) const fn restore_assumed(&mut self, assumed: &Assumed) {
        self.assumed = assumed.0;
    }

    /// Removes squares whose diagonals are in no possible set, and propagates.
    pub(in super::super) fn keep_to_sets(&mut self) -> Kept {
        let n = self.n;
        let Some(sets) = self.current_sets() else { return Kept::Unchanged };
        if sets.is_empty() {
            return Kept::Refuted;
        }
        let union = [0, 1].map(|direction| sets.union(direction));
        let is_outside = |&square: &usize| {
            let [_, _, diagonal, antidiagonal] = self.lines_of[square].map(usize::from);
            !union[0].contains(diagonal - 2 * n) || !union[1].contains(antidiagonal - (4 * n - 1))
        };
        self.spend(n * n);
        let outside: Vec<usize> = self.candidates().filter(is_outside).collect();
        let before = self.trail.len();
        outside.into_iter().for_each(|square| self.eliminate(square));
        match (self.propagate(), self.trail.len() == before) {
            (true, _) => Kept::Refuted,
            (false, true) => Kept::Unchanged,
            (false, false) => Kept::Changed,
        }
    }

    /// Returns whether sets are listed.
    pub(in super::super) const fn has_sets(&self) -> bool {
        self.sets.is_some()
    }

    /// Returns the listed sets that are possible in the cases that are assumed.
    pub(super) fn current_sets(&self) -> Option<DiagonalSets> {
        let sets = self.sets.as_ref()?;
        self.spend(FILTER * (sets.len(0) + sets.len(1)) + 12 * self.n);
        let [taken, usable] = [Line::is_taken, Line::is_usable].map(|is_in| self.diagonals(is_in));
        Some(sets.possible(taken, usable, &self.assumed))
    }

    /// Returns the greatest weights of these sets of a direction.
    pub(super) fn heaviest_listed(
        &self,
        sets: &DiagonalSets,
        direction: usize,
        y: &[i64],
    ) -> KnapsackOutcome {
        let n = self.n;
        let first = [2 * n, 4 * n - 1][direction];
        let weight = |line: usize| if self.lines[line].is_taken() { 0 } else { y[line] };
        let weights: Vec<i64> = (first..first + 2 * n - 1).map(weight).collect();
        self.spend(WEIGH * sets.len(direction));
        match sets.greatest_weights(direction, &weights) {
            Some((any, with)) => KnapsackOutcome::Heaviest(Heaviest { any, with }),
            None => KnapsackOutcome::NoSet,
        }
    }

    /// Returns the diagonals of each direction that `is_in` selects.
    fn diagonals(&self, is_in: impl Fn(&Line) -> bool) -> [Diagonals; 2] {
        let n = self.n;
        [2 * n, 4 * n - 1].map(|first| {
            (0..2 * n - 1).filter(|&diagonal| is_in(&self.lines[first + diagonal])).collect()
        })
    }
}
