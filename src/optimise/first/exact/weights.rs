//! Which rows run out of cells: those that did so in the searches before are branched over sooner.
//!
//! Each time a row runs out its weight grows, and the row with the fewest cells for its weight is branched over
//! (dom/wdeg: Boussemart, Hemery, Lecoutre and Saïs, 2004).

use super::blocks::Blocks;
use super::residual::{Branch, Residual};
use super::width::{Set, Width};

/// After so many failures the weights are halved, so that what was long ago counts little.
const HALVING: u32 = 20_000;

/// A weight for each row, at least 1.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    rows: Vec<f64>,
    failures: u32,
}

impl Weights {
    /// Of the rows of a board of size `n`: all the same.
    pub(super) fn new(n: usize) -> Self {
        Self { rows: vec![1.0; n], failures: 0 }
    }

    /// A board was refuted: if a row ran out of cells, it weighs more.
    pub(super) fn learn<W: Width>(&mut self, refuted: &Residual<'_, W>) {
        let Some(row) = refuted.exhausted() else { return };
        self.rows[row] += 1.0;
        self.failures += 1;
        if self.failures == HALVING {
            self.failures = 0;
            self.rows.iter_mut().for_each(|weight| *weight = (*weight + 1.0) / 2.0);
        }
    }

    /// The line to branch over, where `branch` is the smallest: instead of a row the one with the fewest cells for its
    /// weight, in the first of the blocks that is open. `noise` multiplies each number of cells.
    pub(super) fn choose<W: Width>(
        &self,
        board: &Residual<'_, W>,
        branch: Branch,
        blocks: &Blocks,
        mut noise: impl FnMut() -> f64,
    ) -> Branch {
        let Branch::Row(smallest) = branch else { return branch };
        let mut size =
            |row: usize| board.alive(row).len() as f64 * noise() / self.rows[board.corner().row + row];
        let rows = blocks.first(board).iter().map(|row| (size(row), row));
        Branch::Row(rows.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(smallest, |(_, row)| row))
    }
}

#[cfg(test)]
mod tests {
    use super::super::residual::State;
    use super::super::width::Narrow;
    use super::*;
    use crate::board::Square;

    #[test]
    fn the_row_that_ran_out_of_cells_is_branched_over_first() {
        let mut refuted = Residual::<Narrow>::new(4, &[Square::new(0, 0), Square::new(1, 2)]);
        assert_eq!(refuted.propagate(), State::Refuted);
        assert_eq!(refuted.exhausted(), Some(2));

        let board = Residual::<Narrow>::new(4, &[]);
        let mut weights = Weights::new(4);
        assert_eq!(weights.choose(&board, Branch::Row(0), &Blocks::default(), || 1.0), Branch::Row(0));
        weights.learn(&refuted);
        assert_eq!(weights.choose(&board, Branch::Row(0), &Blocks::default(), || 1.0), Branch::Row(2));
        assert_eq!(weights.choose(&board, Branch::Column(1), &Blocks::default(), || 1.0), Branch::Column(1));
        for _ in 0..2 * HALVING {
            weights.learn(&refuted);
        }
        assert!(weights.rows[2] < 2.0 * f64::from(HALVING), "what was long ago counts little");
    }
}
