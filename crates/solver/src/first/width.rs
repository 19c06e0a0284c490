//! Word widths: sets of columns and of diagonals in words as wide as the board needs.

use std::fmt::Debug;

use crate::bitset::{BitSet, Words};

/// Word widths for a board.
pub(super) trait Width: Copy + Debug + Send + Sync + 'static {
    /// Maximum number of rows.
    const ROWS: usize;
    /// Maximum number of columns.
    const COLUMNS: usize;
    /// Maximum number of diagonals of one direction.
    const DIAGONALS: usize;
    /// A set of columns.
    type Columns: BitSet;
    /// A set of diagonals of one direction.
    type Diagonals: BitSet;
    /// A set of columns for each row.
    type Rows: Copy + Debug + Send + Sync + AsRef<[Self::Columns]> + AsMut<[Self::Columns]>;
    /// The empty set of columns for every row.
    const NO_ROWS: Self::Rows;
    /// `queen` contains one column. Returns that column and those that its queen attacks
    /// diagonally in a row at this distance, which must be less than the number of rows. The
    /// result may contain columns beyond the board.
    fn attacked(queen: Self::Columns, distance: usize) -> Self::Columns;
    /// Shifts each column up by `by`, as a diagonal.
    fn shifted(columns: Self::Columns, by: usize) -> Self::Diagonals;
}

/// Defines a width by its maximum numbers of rows, columns and diagonals, with the types of the
/// sets, and the shift from columns to diagonals.
macro_rules! width {
    (
        $(#[$doc:meta])*
        $name:ident: $rows:literal,
        $columns:literal of $columns_set:ty,
        $diagonals:literal of $diagonals_set:ty,
        |$set:ident, $by:ident| $shifted:expr
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $name;

        impl Width for $name {
            const ROWS: usize = $rows;
            const COLUMNS: usize = $columns;
            const DIAGONALS: usize = $diagonals;
            type Columns = $columns_set;
            type Diagonals = $diagonals_set;
            type Rows = [$columns_set; $rows];
            const NO_ROWS: Self::Rows = [<$columns_set>::EMPTY; $rows];

            #[inline]
            fn attacked(queen: $columns_set, distance: usize) -> $columns_set {
                queen | queen << distance | queen >> distance
            }

            #[inline]
            fn shifted($set: $columns_set, $by: usize) -> $diagonals_set {
                $shifted
            }
        }
    };
}

width! {
    /// Boards with up to 32 rows and 64 diagonals.
    Width32x64: 32, 64 of u64, 64 of u64, |columns, by| columns << by
}
width! {
    /// Boards up to n = 64.
    Width64x64: 64, 64 of u64, 127 of u128, |columns, by| u128::from(columns) << by
}
width! {
    /// Boards with up to 64 rows and 128 diagonals.
    Width64x128: 64, 128 of u128, 128 of u128, |columns, by| columns << by
}
width! {
    /// Boards up to n = 128.
    Width128x128: 128, 128 of u128, 255 of Words<4>,
    |columns, by| Words::from_bits_shifted_up(columns, by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attacked_columns_are_those_at_the_distance_of_the_row() {
        fn compare<W: Width>() {
            for column in 0..W::COLUMNS {
                for distance in 0..W::ROWS {
                    let attacked = W::attacked(W::Columns::one(column), distance);
                    let naive =
                        |other: usize| other == column || other.abs_diff(column) == distance;
                    let expected: Vec<usize> = (0..W::COLUMNS).filter(|&c| naive(c)).collect();
                    assert_eq!(
                        attacked.iter().collect::<Vec<_>>(),
                        expected,
                        "{column} {distance}"
                    );
                }
            }
        }
        compare::<Width32x64>();
        compare::<Width64x64>();
        compare::<Width64x128>();
        compare::<Width128x128>();
    }
}
