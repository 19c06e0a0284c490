//! The columns and diagonals used by the queens placed so far, as bit masks.

use crate::board::Square;

/// The used columns and diagonals of a partial placement on a board of size n ≤ 32.
///
/// Bit c of a row mask is column c. Diagonals are numbered so that a right shift by a row-dependent
/// amount gives the attacked columns of that row: antidiagonal `row + col`, diagonal
/// `col + (n − 1 − row)`, both at most 2n − 2 ≤ 62.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttackState {
    /// Columns that hold a queen.
    pub columns: u32,
    /// Antidiagonals that hold a queen.
    pub antidiagonals: u64,
    /// Diagonals that hold a queen.
    pub diagonals: u64,
}

impl AttackState {
    /// Returns this state with an additional queen in `row`, in the column of the single bit
    /// `queen`.
    #[inline]
    #[must_use]
    pub const fn with_queen(self, n: usize, row: usize, queen: u32) -> Self {
        Self {
            columns: self.columns | queen,
            antidiagonals: self.antidiagonals | (queen as u64) << row,
            diagonals: self.diagonals | (queen as u64) << (n - 1 - row),
        }
    }

    /// Returns whether the two states have a column or a diagonal in common.
    pub(crate) const fn meets(self, other: Self) -> bool {
        self.columns & other.columns != 0
            || self.antidiagonals & other.antidiagonals != 0
            || self.diagonals & other.diagonals != 0
    }

    /// Returns the state with the queens of both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            columns: self.columns | other.columns,
            antidiagonals: self.antidiagonals | other.antidiagonals,
            diagonals: self.diagonals | other.diagonals,
        }
    }

    /// Returns the columns of `row` attacked along an antidiagonal. Bits from n on are meaningless.
    #[inline]
    pub const fn antidiagonal_window(self, row: usize) -> u32 {
        (self.antidiagonals >> row) as u32
    }

    /// Returns the columns of `row` attacked along a diagonal. Bits from n on are meaningless.
    #[inline]
    pub const fn diagonal_window(self, n: usize, row: usize) -> u32 {
        (self.diagonals >> (n - 1 - row)) as u32
    }

    /// Returns the columns of `row` that no queen attacks.
    #[inline]
    pub const fn free(self, n: usize, row: usize) -> u32 {
        full_row(n) & !(self.columns | self.antidiagonal_window(row) | self.diagonal_window(n, row))
    }
}

/// Returns all columns of a board of size n ≤ 32.
#[inline]
pub const fn full_row(n: usize) -> u32 {
    if n == 0 { 0 } else { u32::MAX >> (32 - n) }
}

/// Returns the columns of the set bits, in ascending order.
#[inline]
pub fn columns_of(mut row: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let col = row.trailing_zeros() as usize;
        (row != 0).then(|| {
            row &= row - 1;
            col
        })
    })
}

/// Returns the state after placing queens on `squares`.
pub(crate) fn state_of(n: usize, squares: &[Square]) -> AttackState {
    squares.iter().fold(AttackState::default(), |s, q| s.with_queen(n, q.row, 1 << q.col))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Piece;

    #[test]
    fn the_masks_agree_with_the_plain_definition() {
        for n in [1, 4, 7, 32] {
            for (i, j) in [(0, 0), (0, n - 1), (n - 1, 0), (n / 2, n / 3), (n - 1, n - 1)] {
                let queen = Square::new(i, j);
                let state = state_of(n, &[queen]);
                for row in (0..n).filter(|&row| row != i) {
                    let free: Vec<usize> = columns_of(state.free(n, row)).collect();
                    let expected: Vec<usize> = (0..n)
                        .filter(|&c| !Piece::Queen.attacks(n, queen, Square::new(row, c)))
                        .collect();
                    assert_eq!(free, expected, "n = {n}, queen {queen}, row {row}");
                }
            }
        }
    }
}
