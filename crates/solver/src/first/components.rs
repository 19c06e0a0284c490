//! Blocks of a board: open rows that share their columns with no others, as the plain programme sees it.
//!
//! Near the row where the greedy prefix ends, the rows at the top need the columns at the right, and those below them what
//! is left; only antidiagonals are common to both. The smaller block often has few completions (16 rows of n = 58: 7,950),
//! and a search that goes on in the other one only when it is full does not try the same of it again and again.
//! Measured on n = 58, nodes until what is open after 22 to 24 queens is refuted, with and without: 1,775,738 and more than 8 million,
//! 124,328 and 2,041,615, 128,798 and more than 8 million.

use super::bitset::{Set, Width};
use super::residual::Residual;

/// Values of cells from here on say that the programme uses them.
const USED: f64 = 1e-6;

/// Blocks of fewer rows are none: a row on which the programme has a whole queen is not a part of the board.
const SMALLEST: usize = 5;

/// Blocks of rows that are to be filled one after the other, and then the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Components(Vec<u128>);

impl Components {
    /// Those of a whole board: `liking` is the value of each cell, by row × n + column. The rest is the block with most alive
    /// cells and what is too small for a block.
    pub(super) fn new<W: Width>(board: &Residual<'_, W>, liking: &[f64]) -> Self {
        let used = |row: usize| {
            let cells = board.alive(row).iter().filter(|column| liking[row * board.n() + column] > USED);
            cells.fold(W::Columns::EMPTY, |used, column| used.or(W::Columns::one(column)))
        };
        // Rows and their columns.
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
        let mut blocks: Vec<W::Columns> =
            parts.into_iter().map(|(rows, _)| rows).filter(|rows| rows.len() >= SMALLEST).collect();
        blocks.sort_by_key(|rows| rows.iter().map(|row| board.alive(row).len()).sum::<usize>());
        blocks.pop();
        Self(blocks.into_iter().map(|rows| rows.bits_from(0)).collect())
    }

    /// The open rows of the first block that has some.
    #[inline]
    pub(super) fn first<W: Width>(&self, board: &Residual<'_, W>) -> W::Columns {
        let rows =
            self.0.iter().map(|block| board.rows().and(W::Columns::of_bits(block >> board.corner().row)));
        let mut rows = rows;
        rows.find(|rows| !rows.is_empty()).unwrap_or(board.rows())
    }

    /// The rows of each block.
    pub(super) fn rows(&self) -> Vec<Vec<usize>> {
        self.0.iter().map(|block| block.iter().collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::first::bitset::Width64x64;
    use nqueens_proof::board::Square;

    #[test]
    fn rows_that_share_columns_are_of_one_block_and_the_smaller_block_comes_first() {
        let n = 14;
        let board = Residual::<Width64x64>::new(n, &[]);
        let mut liking = vec![0.0; n * n];
        assert_eq!(Components::new(&board, &liking), Components::default(), "single rows are no blocks");
        // Rows 0 to 5 share the columns from 8 on, the others those before.
        for row in 0..n {
            let columns = if row < 6 { 8..n } else { 0..8 };
            columns.for_each(|column| liking[row * n + column] = 0.1);
        }
        let blocks = Components::new(&board, &liking);
        assert_eq!(blocks.rows(), [[0, 1, 2, 3, 4, 5]]);
        assert_eq!(blocks.first(&board).iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);

        // The same in a window that begins further down.
        let placed: Vec<Square> =
            [0, 2, 4, 1, 3].iter().enumerate().map(|(r, &c)| Square::new(r, c)).collect();
        let rest = Residual::<Width64x64>::new(n, &placed);
        let window = rest.window();
        let rest: Residual<'_, Width64x64> = rest.within(&window, &[]);
        assert_eq!(rest.corner().row, 5);
        assert_eq!(blocks.first(&rest).iter().collect::<Vec<_>>(), [0]);

        // One column in common makes one block of both.
        liking[8] = 0.1;
        liking[6 * n + 8] = 0.1;
        assert_eq!(Components::new(&board, &liking), Components::default());
    }
}
