//! The bit-sliced kernel: many states of a list at once against all completions of the outer rows.

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
    /// The columns in ascending order.
    pub(super) columns: [usize; MOST_OUTER_ROWS],
}

impl<const W: usize> Block<W> {
    pub(super) fn new() -> Self {
        Self {
            left: Box::new([[0; W]; 33]),
            right: Box::new([[0; W]; 33]),
            pairs: Box::new([[[0; W]; 64]; 4]),
        }
    }

    /// Returns the number of pairs of a state and a completion in which the queens of the
    /// completion stand on open squares. A completion has a byte for each pair of rows, of the
    /// ranks of its columns: 8 x + y for two rows, 9 x where only the first exists, 0 where none
    /// does.
    #[inline(always)]
    pub(super) fn count<V: Vector>(
        &mut self,
        vector: V,
        n: usize,
        states: &[u64],
        outer: &Outer,
        completions: &[u32],
    ) -> u128 {
        if completions.is_empty() {
            return 0;
        }
        let mut sum = 0;
        // Loops, because a closure is compiled without the instructions that are enabled here.
        for states in states.chunks(64 * W) {
            self.fill(n, states, outer);
            sum += u128::from(vector.sum(&self.pairs, completions));
        }
        sum
    }

    /// Computes the planes of at most 64 W states.
    #[inline(always)]
    fn fill(&mut self, n: usize, states: &[u64], outer: &Outer) {
        let mut valid = [0; W];
        for (w, states) in states.chunks(64).enumerate() {
            let mut square = [0; 64];
            square[..states.len()].copy_from_slice(states);
            valid[w] = u64::MAX >> (64 - states.len());
            transpose(&mut square);
            for column in 0..n {
                self.left[column][w] = square[column];
                self.right[column][w] = square[32 + column];
            }
        }
        let open = |row: usize, rank: usize| {
            let (column, distance) = (outer.columns[rank], outer.first + row);
            // A column off the board is never attacked; plane 32 is zero.
            let left = &self.left[if column + distance < n { column + distance } else { 32 }];
            let right = &self.right[column.checked_sub(distance).unwrap_or(32)];
            std::array::from_fn::<u64, W, _>(|w| valid[w] & !(left[w] | right[w]))
        };
        for (pair, planes) in self.pairs.iter_mut().enumerate() {
            let row = 2 * pair;
            if row >= outer.rows {
                planes[0] = valid;
            } else if row + 1 == outer.rows {
                for x in 0..outer.rows {
                    planes[9 * x] = open(row, x);
                }
            } else {
                let mut second = [[0; W]; MOST_OUTER_ROWS];
                for (y, square) in second[..outer.rows].iter_mut().enumerate() {
                    *square = open(row + 1, y);
                }
                for x in 0..outer.rows {
                    let first = open(row, x);
                    for y in 0..outer.rows {
                        planes[8 * x + y] = std::array::from_fn(|w| first[w] & second[y][w]);
                    }
                }
            }
        }
    }
}

/// Transposes a square of 64 bits by 64 bits: bit j of word i becomes bit i of word j.
#[inline(always)]
fn transpose(square: &mut [u64; 64]) {
    exchange::<32>(square, 0x0000_0000_ffff_ffff);
    exchange::<16>(square, 0x0000_ffff_0000_ffff);
    exchange::<8>(square, 0x00ff_00ff_00ff_00ff);
    exchange::<4>(square, 0x0f0f_0f0f_0f0f_0f0f);
    exchange::<2>(square, 0x3333_3333_3333_3333);
    exchange::<1>(square, 0x5555_5555_5555_5555);
}

/// Exchanges the two off-diagonal quarters of each square of 2 S by 2 S bits. `mask` has the bits
/// of the left halves.
#[inline(always)]
fn exchange<const S: usize>(square: &mut [u64; 64], mask: u64) {
    for of in square.chunks_exact_mut(2 * S) {
        let (upper, lower) = of.split_at_mut(S);
        for (a, b) in upper.iter_mut().zip(lower) {
            let differ = (*a >> S ^ *b) & mask;
            *b ^= differ;
            *a ^= differ << S;
        }
    }
}
