//! A decomposition and its mirror image: the same units, the same answers, in other bits.
//!
//! A program that counts a unit twice agrees with its own systematic faults. In the mirror image every column c is
//! column n − 1 − c, and antidiagonals and diagonals exchange their roles, so that a fault of one bit of a mask, or
//! of a shift to one side, meets other queens. All pieces attack alike in the mirror, and the centre columns are
//! each other's images, so rules and weights stay. What is blind to the middle column, or to left and right at once,
//! is blind to it in both images. A prefix may attack the same lines as its image does (queens in the pattern
//! 2-4-1-3 around the centre); none of the centre cross does for n up to 12.
//!
//! There is no third image. Upside down, a plan would fill its rows upward first, and its rules would hold above
//! the block; the windows of the kernels go down first. A quarter turn makes columns of the rows of a prefix.

use super::state::full_row;

/// How the subproblems of a job are put to a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Image {
    /// As they are.
    #[default]
    Itself,
    /// With left and right exchanged.
    Mirrored,
}

impl Image {
    /// The other one.
    pub(super) const fn mirrored(self) -> Self {
        match self {
            Self::Itself => Self::Mirrored,
            Self::Mirrored => Self::Itself,
        }
    }

    /// The image of `col` on a board of size n.
    pub(super) const fn column(self, n: usize, col: usize) -> usize {
        match self {
            Self::Itself => col,
            Self::Mirrored => n - 1 - col,
        }
    }

    /// The image of a set of columns on a board of size n ≤ 32.
    pub(super) const fn row(self, n: usize, columns: u32) -> u32 {
        match self {
            Self::Itself => columns,
            Self::Mirrored => mirrored_row(n, columns),
        }
    }
}

/// The columns n − 1 − c for all c of `columns`, n ≤ 32.
pub(super) const fn mirrored_row(n: usize, columns: u32) -> u32 {
    // The board of size 0 has no columns, and a word cannot be shifted by all its bits.
    if n == 0 { 0 } else { (columns & full_row(n)).reverse_bits() >> (32 - n) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decomposition::columns_of;

    #[test]
    fn a_mirrored_row_holds_the_mirrored_columns() {
        for n in 0..=32 {
            for columns in [0, 1, 0b1101, 0x8000_0001, 0x1234_5678, u32::MAX].map(|row| row & full_row(n)) {
                let expected = columns_of(columns).fold(0, |row, col| row | 1 << (n - 1 - col));
                assert_eq!(mirrored_row(n, columns), expected, "n = {n}");
                assert_eq!(mirrored_row(n, expected), columns, "n = {n}");
                assert_eq!(Image::Itself.row(n, columns), columns);
            }
        }
    }
}
