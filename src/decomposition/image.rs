//! A decomposition and its mirror image: the same units and the same results, represented by
//! different bits.
//!
//! A program that counts a unit twice reproduces its own systematic errors. In the mirror image
//! every column c becomes column n − 1 − c, and antidiagonals and diagonals exchange their roles,
//! so an error in one bit of a mask, or in a shift in one direction, affects other queens. All
//! pieces attack alike in the mirror image, and the centre columns are each other's images, so
//! rules and weights are unchanged. An error that affects the middle column, or left and right
//! symmetrically, is not detected. A prefix may attack the same columns and diagonals as its image
//! does (queens in the pattern 2-4-1-3 around the centre); no prefix of the centre cross does for n
//! up to 12.
//!
//! There is no third image. In an upside-down image, a case would fill its rows upward first, and
//! its rules would apply above the block; the windows of the kernels go down first. A quarter turn
//! turns the rows of a prefix into columns.

use super::attack_state::full_row;

/// The image in which the subproblems of a job are presented to a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Image {
    /// Unchanged.
    #[default]
    Itself,
    /// With left and right exchanged.
    Mirrored,
}

impl Image {
    /// Returns the other image.
    pub(super) const fn mirrored(self) -> Self {
        match self {
            Self::Itself => Self::Mirrored,
            Self::Mirrored => Self::Itself,
        }
    }

    /// Returns the image of `col` on a board of size n.
    pub(super) const fn column(self, n: usize, col: usize) -> usize {
        match self {
            Self::Itself => col,
            Self::Mirrored => n - 1 - col,
        }
    }

    /// Returns the image of a set of columns on a board of size n ≤ 32.
    pub(super) const fn row(self, n: usize, columns: u32) -> u32 {
        match self {
            Self::Itself => columns,
            Self::Mirrored => mirrored_row(n, columns),
        }
    }
}

/// Returns the columns n − 1 − c for all c of `columns`, n ≤ 32.
pub(super) const fn mirrored_row(n: usize, columns: u32) -> u32 {
    // A board of size 0 has no columns, and shifting a word by its full width overflows.
    if n == 0 { 0 } else { (columns & full_row(n)).reverse_bits() >> (32 - n) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decomposition::columns_of;

    #[test]
    fn a_mirrored_row_holds_the_mirrored_columns() {
        for n in 0..=32 {
            for columns in
                [0, 1, 0b1101, 0x8000_0001, 0x1234_5678, u32::MAX].map(|row| row & full_row(n))
            {
                let expected = columns_of(columns).fold(0, |row, col| row | 1 << (n - 1 - col));
                assert_eq!(mirrored_row(n, columns), expected, "n = {n}");
                assert_eq!(mirrored_row(n, expected), columns, "n = {n}");
                assert_eq!(Image::Itself.row(n, columns), columns);
            }
        }
    }
}
