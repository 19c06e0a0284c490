//! The pricing problem of the column generation on one board: sets of diagonals that are heaviest
//! under given multipliers, or the proof that the multipliers refute the board.

use super::dual_bound::{heaviest, repaired};
use super::knapsack::Knapsack;
use super::residual::Residual;
use super::width::Width;
use crate::bitset::BitSet;
use nqueens_proof::first::Multipliers;

/// The pricing problem of one board. A set that was heaviest before mostly shows that other
/// multipliers do not refute the board, without another knapsack.
pub(super) struct Pricing<'a, W: Width> {
    board: Residual<'a, W>,
    /// The sets found so far, by direction.
    sets: [Vec<W::Diagonals>; 2],
}

impl<'a, W: Width> Pricing<'a, W> {
    pub(super) const fn new(board: &Residual<'a, W>) -> Self {
        Self { board: *board, sets: [Vec::new(), Vec::new()] }
    }

    /// Returns the heaviest sets of both directions, or `None` if the multipliers refute the board
    /// with them. The weights of the multipliers sum to less than 2^30.
    pub(super) fn price(
        &mut self,
        multipliers: &Multipliers,
        knapsack: &mut Knapsack,
    ) -> Option<[W::Diagonals; 2]> {
        self.price_lines(self.lines(multipliers), multipliers, knapsack)
    }

    /// Returns whether the multipliers refute the board. Their weights sum to less than 2^30.
    pub(super) fn is_refuted(
        &mut self,
        multipliers: &Multipliers,
        knapsack: &mut Knapsack,
    ) -> bool {
        let lines = self.lines(multipliers);
        let weights = [&multipliers.diagonals, &multipliers.antidiagonals];
        let most = |direction: usize| {
            let weight =
                |set: &W::Diagonals| set.iter().map(|d| weights[direction][d]).sum::<i64>();
            self.sets[direction].iter().map(weight).max()
        };
        let is_open = most(0).zip(most(1)).is_some_and(|(a, b)| lines + a + b >= 0);
        !is_open && self.price_lines(lines, multipliers, knapsack).is_none()
    }

    /// Returns the sum of the multipliers of the rows and columns.
    fn lines(&self, multipliers: &Multipliers) -> i64 {
        let (rows, columns) = repaired(&self.board, multipliers);
        rows.iter().chain(&columns).sum()
    }

    fn price_lines(
        &mut self,
        lines: i64,
        multipliers: &Multipliers,
        knapsack: &mut Knapsack,
    ) -> Option<[W::Diagonals; 2]> {
        let heaviest = heaviest(&self.board, multipliers, knapsack)?;
        if lines + heaviest[0].weight + heaviest[1].weight < 0 {
            return None;
        }
        let sets = heaviest.map(|set| set.diagonals);
        self.sets.iter_mut().zip(sets).for_each(|(known, set)| known.push(set));
        Some(sets)
    }
}
