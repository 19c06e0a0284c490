//! Components of a board: blocks of open rows that share no columns with other rows, according to
//! the solution of the assignment relaxation.
//!
//! Near the row where the greedy prefix ends, the rows at the top need the columns at the right,
//! and the rows below need the others; only antidiagonals connect the two. The smaller block often
//! has few completions (16 rows of n = 58: 7,950). A search that enters the other block only when
//! the first is full does not repeat the same work in it. Measured on n = 58, nodes until the
//! boards after 22 to 24 queens are refuted, with and without components: 1,775,738 and more than 8
//! million, 124,328 and 2,041,615, 128,798 and more than 8 million.

use super::params;
use super::residual::Residual;
use super::width::Width;
use crate::bitset::BitSet;

/// Cells with a greater LP value count as used.
const USED: f64 = 1e-6;

/// Blocks of rows that are to be filled one after the other, followed by the remaining rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Components(Vec<u128>);

impl Components {
    /// Finds the blocks of a whole board. `lp_values` is the LP value of each cell, by row × n +
    /// column. The remaining rows are the block with the most remaining cells and the rows that are
    /// in no block.
    pub(super) fn new<W: Width>(board: &Residual<'_, W>, lp_values: &[f64]) -> Self {
        let used = |row: usize| {
            let cells = board
                .remaining(row)
                .iter()
                .filter(|column| lp_values[row * board.n() + column] > USED);
            cells.fold(W::Columns::EMPTY, |used, column| used.or(W::Columns::one(column)))
        };
        // Sets of rows with their columns.
        let mut parts: Vec<(W::Columns, W::Columns)> = Vec::new();
        for row in board.rows().iter() {
            let mut part = (W::Columns::one(row), used(row));
            parts.retain(|&(rows, columns)| {
                let apart = columns.and(part.1).is_empty();
                if !apart {
                    part = (part.0.or(rows), part.1.or(columns));
                }
                apart
            });
            parts.push(part);
        }
        let mut components: Vec<W::Columns> = parts
            .into_iter()
            .map(|(rows, _)| rows)
            .filter(|rows| rows.len() >= params::SMALLEST_COMPONENT_ROWS)
            .collect();
        components
            .sort_by_key(|rows| rows.iter().map(|row| board.remaining(row).len()).sum::<usize>());
        components.pop();
        Self(components.into_iter().map(|rows| rows.bits_from(0)).collect())
    }

    /// Returns the open rows of the first block that has any, or all open rows.
    #[inline]
    pub(super) fn first<W: Width>(&self, board: &Residual<'_, W>) -> W::Columns {
        let rows = self
            .0
            .iter()
            .map(|block| board.rows().and(W::Columns::from_bits(block >> board.corner().row)));
        let mut rows = rows;
        rows.find(|rows| !rows.is_empty()).unwrap_or(board.rows())
    }

    /// Returns the number of blocks without open rows.
    #[inline]
    pub(super) fn complete<W: Width>(&self, board: &Residual<'_, W>) -> usize {
        let row = board.corner().row;
        let is_complete =
            |block: &&u128| board.rows().and(W::Columns::from_bits(**block >> row)).is_empty();
        self.0.iter().filter(is_complete).count()
    }

    /// Returns the number of blocks.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the rows of each block.
    pub(super) fn rows(&self) -> Vec<Vec<usize>> {
        self.0.iter().map(|block| block.iter().collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::first::tests::squares;
    use crate::first::width::Width64x64;

    #[test]
    fn rows_that_share_columns_form_a_block_and_the_smaller_block_comes_first() {
        let n = 14;
        let board = Residual::<Width64x64>::new(n, &[]);
        let mut lp_values = vec![0.0; n * n];
        assert_eq!(
            Components::new(&board, &lp_values),
            Components::default(),
            "single rows are no blocks"
        );
        // Rows 0 to 5 share the columns from 8 on, the others the columns below 8.
        for row in 0..n {
            let columns = if row < 6 { 8..n } else { 0..8 };
            columns.for_each(|column| lp_values[row * n + column] = 0.1);
        }
        let components = Components::new(&board, &lp_values);
        assert_eq!(components.rows(), [[0, 1, 2, 3, 4, 5]]);
        assert_eq!(components.first(&board).iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);

        // The same in a window that starts further down.
        let rest = Residual::<Width64x64>::new(n, &squares(&[0, 2, 4, 1, 3]));
        let window = rest.window();
        let rest: Residual<'_, Width64x64> = rest.within(&window, &[]);
        assert_eq!(rest.corner().row, 5);
        assert_eq!(components.first(&rest).iter().collect::<Vec<_>>(), [0]);

        // A common column merges the two blocks.
        lp_values[8] = 0.1;
        lp_values[6 * n + 8] = 0.1;
        assert_eq!(Components::new(&board, &lp_values), Components::default());
    }
}
