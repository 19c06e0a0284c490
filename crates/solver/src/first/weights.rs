//! Failure weights of rows and columns: lines that ran out of cells in earlier searches are
//! branched on sooner.
//!
//! Each time a line runs out of cells its weight grows, and the search branches on the line with
//! the fewest cells per weight (dom/wdeg: Boussemart, Hemery, Lecoutre and Saïs, 2004). Weights for
//! rows and columns, measured on n = 58, 64, 66 and 70 against rows alone, take a fifth to two
//! fifths of the time.

use super::components::Components;
use super::params;
use super::residual::{Branch, Residual};
use super::width::Width;
use crate::bitset::BitSet;

/// A weight of at least 1 for each row and column. The reciprocals are stored, as factors for the
/// sizes.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    rows: Vec<f64>,
    columns: Vec<f64>,
    failures: u32,
}

impl Weights {
    /// Creates equal weights for a board of size `n`.
    pub(super) fn new(n: usize) -> Self {
        Self { rows: vec![1.0; n], columns: vec![1.0; n], failures: 0 }
    }

    /// Adds 1 to the weight of the row or column that ran out of cells on a refuted board, if any.
    pub(super) fn learn<W: Width>(&mut self, refuted: &Residual<'_, W>) {
        let share = match refuted.exhausted() {
            Some(Branch::Row(row)) => &mut self.rows[row],
            Some(Branch::Column(column)) => &mut self.columns[column],
            _ => return,
        };
        *share /= 1.0 + *share;
        self.failures += 1;
        if self.failures == params::FAILURES_PER_HALVING {
            self.failures = 0;
            // The weight w becomes (w + 1) / 2.
            self.rows
                .iter_mut()
                .chain(&mut self.columns)
                .for_each(|share| *share *= 2.0 / (1.0 + *share));
        }
    }

    /// Returns the weights of the rows, then those of the columns, rounded.
    pub(super) fn rounded(&self) -> Vec<u32> {
        self.rows.iter().chain(&self.columns).map(|share| (1.0 / share).round() as u32).collect()
    }

    /// Selects the line to branch on, given the smallest line `branch`. A row is replaced by the
    /// row or column with the fewest cells per weight in the first open block. `noise` multiplies
    /// each number of cells.
    pub(super) fn choose<W: Width>(
        &self,
        board: &Residual<'_, W>,
        branch: Branch,
        components: &Components,
        mut noise: impl FnMut() -> f64,
    ) -> Branch {
        if !matches!(branch, Branch::Row(_)) {
            return branch;
        }
        let corner = board.corner();
        let (mut least, mut line) = (f64::INFINITY, branch);
        let mut offer = |size: usize, share: f64, offered: Branch| {
            let size = size as f64 * noise() * share;
            if size < least {
                (least, line) = (size, offered);
            }
        };
        let rows = components.first(board);
        for row in rows.iter() {
            offer(board.remaining(row).len(), self.rows[corner.row + row], Branch::Row(row));
        }
        let sizes = board.column_sizes();
        for column in board.columns_within(rows).iter() {
            offer(sizes.of(column), self.columns[corner.col + column], Branch::Column(column));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::first::residual::State;
    use crate::first::width::Width64x64;
    use nqueens_proof::board::Square;

    #[test]
    fn the_line_that_ran_out_of_cells_is_branched_over_first() {
        let queens = |squares: &[(usize, usize)]| {
            let squares: Vec<Square> =
                squares.iter().map(|&(row, column)| Square::new(row, column)).collect();
            Residual::<Width64x64>::new(4, &squares)
        };
        let mut without_row = queens(&[(0, 0), (1, 2)]);
        assert_eq!(without_row.propagate(), State::Refuted);
        assert_eq!(without_row.exhausted(), Some(Branch::Row(2)));

        let board = queens(&[]);
        let mut weights = Weights::new(4);
        let choose = |weights: &Weights, branch| {
            weights.choose(&board, branch, &Components::default(), || 1.0)
        };
        assert_eq!(choose(&weights, Branch::Row(0)), Branch::Row(0));
        weights.learn(&without_row);
        assert_eq!(choose(&weights, Branch::Row(0)), Branch::Row(2));
        assert_eq!(weights.rounded(), [1, 1, 2, 1, 1, 1, 1, 1]);
        assert_eq!(
            choose(&weights, Branch::Diagonal(1)),
            Branch::Diagonal(1),
            "forced lines come first"
        );
        for _ in 0..2 * params::FAILURES_PER_HALVING {
            weights.learn(&without_row);
        }
        assert!(
            weights.rows[2] > 0.5 / f64::from(params::FAILURES_PER_HALVING),
            "old failures have little weight"
        );

        let mut without_column = Residual::<Width64x64>::new(4, &[]);
        for row in 0..4 {
            without_column.eliminate(row, 3);
        }
        assert_eq!(without_column.propagate(), State::Refuted);
        assert_eq!(without_column.exhausted(), Some(Branch::Column(3)));
        let mut weights = Weights::new(4);
        weights.learn(&without_column);
        assert_eq!(choose(&weights, Branch::Row(0)), Branch::Column(3));
    }

    #[test]
    fn columns_shared_with_other_blocks_are_not_branched_over() {
        let n = 14;
        let board = Residual::<Width64x64>::new(n, &[]);
        let mut lp_values = vec![0.0; n * n];
        for row in 0..n {
            let columns = if row < 6 { 8..n } else { 0..8 };
            columns.for_each(|column| lp_values[row * n + column] = 0.1);
        }
        let components = Components::new(&board, &lp_values);
        let mut weights = Weights::new(n);
        weights.columns = vec![0.01; n];
        assert!(matches!(
            weights.choose(&board, Branch::Row(9), &components, || 1.0),
            Branch::Row(0..6)
        ));
        let mut apart = board;
        (6..n).for_each(|row| apart.eliminate(row, 10));
        assert_eq!(weights.choose(&apart, Branch::Row(9), &components, || 1.0), Branch::Column(10));
        let all = weights.choose(&board, Branch::Row(9), &Components::default(), || 1.0);
        assert_eq!(all, Branch::Column(0));
    }
}
