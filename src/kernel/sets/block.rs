//! The bit-sliced kernel: many states of a list at once against all completions of the outer rows.

use super::sum::Sum;
use super::vector::{Pairs, Plane, Vector};

/// The most rows that the kernel completes.
pub(super) const MOST_OUTER_ROWS: usize = 8;

/// The planes of a block of 64 W states: a bit for each state.
#[derive(Debug)]
pub(super) struct Block<const W: usize> {
    /// The states whose left window has a column, and a plane of zeros for columns off the board.
    left: Box<[Plane<W>; 33]>,
    /// The states whose right window has a column, likewise.
    right: Box<[Plane<W>; 33]>,
    pairs: Box<Pairs<W>>,
}

/// The squares that the completions use: consecutive rows and their columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outer {
    /// The distance of the first of these rows from the first row of the half.
    pub(super) first: usize,
    /// The number of rows, which is that of the columns, at most [`MOST_OUTER_ROWS`].
    pub(super) rows: usize,
    /// The columns with their ranks among those of the joined rows.
    pub(super) columns: [(usize, usize); MOST_OUTER_ROWS],
}

impl<const W: usize> Block<W> {
    pub(super) fn new() -> Self {
        Self {
            left: Box::new([[0; W]; 33]),
            right: Box::new([[0; W]; 33]),
            pairs: Box::new([[[0; W]; 128]; 4]),
        }
    }

    /// Adds the number of pairs of a state and a completion in which the queens of the
    /// completion stand on open squares. A completion has a byte for each pair of rows, of the
    /// ranks of its columns: 10 x + y for two rows, 11 x where only the first exists, 0 where none
    /// does.
    #[inline(always)]
    pub(super) fn count<V: Vector>(
        &mut self,
        vector: V,
        n: usize,
        states: &[u64],
        outer: &Outer,
        completions: &[u32],
        sum: &mut Sum,
    ) {
        if completions.is_empty() {
            return;
        }
        // Loops, because a closure is compiled without the instructions that are enabled here.
        for states in states.chunks(64 * W) {
            self.fill(vector, n, states, outer);
            sum.add(vector.sum(&self.pairs, completions));
        }
    }

    /// Computes the planes of at most 64 W states.
    #[inline(always)]
    fn fill<V: Vector>(&mut self, vector: V, n: usize, states: &[u64], outer: &Outer) {
        // State i is bit i / W of word i mod W, so that a row of the squares to be transposed is W
        // consecutive states.
        let mut squares = [[0; W]; 64];
        let flat = squares.as_flattened_mut();
        flat[..states.len()].copy_from_slice(states);
        transpose(vector, &mut squares);
        let mut valid = [0; W];
        for (w, valid) in valid.iter_mut().enumerate() {
            let rows = (states.len() + W - 1 - w) / W;
            *valid = if rows == 0 { 0 } else { u64::MAX >> (64 - rows) };
        }
        self.left[..n].copy_from_slice(&squares[..n]);
        self.right[..n].copy_from_slice(&squares[32..32 + n]);
        for pair in 0..self.pairs.len() {
            let row = 2 * pair;
            if row >= outer.rows {
                self.pairs[pair][0] = valid;
                continue;
            }
            let columns = &outer.columns[..outer.rows];
            if row + 1 == outer.rows {
                for &(x, column) in columns {
                    self.pairs[pair][11 * x] = self.open(vector, n, outer, row, column, &valid);
                }
                continue;
            }
            let mut second = [[0; W]; MOST_OUTER_ROWS];
            for (plane, &(_, column)) in second.iter_mut().zip(columns) {
                *plane = self.open(vector, n, outer, row + 1, column, &valid);
            }
            for &(x, column) in columns {
                let first = self.open(vector, n, outer, row, column, &valid);
                for (second, &(y, _)) in second.iter().zip(columns) {
                    vector.and(&first, second, &mut self.pairs[pair][10 * x + y]);
                }
            }
        }
    }

    /// Returns the states that leave the square of an outer row and a column open.
    #[inline(always)]
    fn open<V: Vector>(
        &self,
        vector: V,
        n: usize,
        outer: &Outer,
        row: usize,
        column: usize,
        valid: &Plane<W>,
    ) -> Plane<W> {
        let distance = outer.first + row;
        // A column off the board is never attacked; plane 32 is zero.
        let left = &self.left[if column + distance < n { column + distance } else { 32 }];
        let right = &self.right[if column >= distance { column - distance } else { 32 }];
        vector.none(valid, left, right)
    }
}

/// Transposes W squares of 64 bits by 64 bits, in each word one: bit j of row i becomes bit i of
/// row j.
#[inline(always)]
fn transpose<V: Vector, const W: usize>(vector: V, squares: &mut [Plane<W>; 64]) {
    // One call for each size, because the compiler vectorises shifts by constants only, unless an
    // instruction set has others.
    exchange_quarters(vector, squares, 32, 0x0000_0000_ffff_ffff);
    exchange_quarters(vector, squares, 16, 0x0000_ffff_0000_ffff);
    exchange_quarters(vector, squares, 8, 0x00ff_00ff_00ff_00ff);
    exchange_quarters(vector, squares, 4, 0x0f0f_0f0f_0f0f_0f0f);
    exchange_quarters(vector, squares, 2, 0x3333_3333_3333_3333);
    exchange_quarters(vector, squares, 1, 0x5555_5555_5555_5555);
}

/// Exchanges the two off-diagonal quarters of each part of 2 `size` by 2 `size` bits. The mask has
/// the bits of the left halves.
#[inline(always)]
fn exchange_quarters<V: Vector, const W: usize>(
    vector: V,
    squares: &mut [Plane<W>; 64],
    size: usize,
    mask: u64,
) {
    for of in squares.chunks_exact_mut(2 * size) {
        let (upper, lower) = of.split_at_mut(size);
        vector.exchange(upper, lower, size as u32, mask);
    }
}
