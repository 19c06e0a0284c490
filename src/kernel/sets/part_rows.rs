//! The rows of columns in the placements of a table, by the number of their order.

use super::last_rows::Part;
use super::placements::{MOST_ROWS, Set, orders};
use super::vector::FewCodes;

/// The codes that are the numbers of the orders themselves.
pub(super) const SAME: FewCodes = {
    let mut codes = [0; 32];
    let mut order = 0;
    while order < codes.len() {
        codes[order] = order as u32;
        order += 1;
    }
    codes
};

/// The rows of a part, by its columns.
#[derive(Debug)]
pub(super) struct PartRows {
    /// The first row of its table in the part: 1 after a leading row, otherwise 0.
    pub(super) of_table: u8,
    /// The row in the table, by the number of the order of the columns and the rank of the column.
    of_rank: [[u8; MOST_ROWS]; 32],
}

impl PartRows {
    pub(super) fn new(part: &Part) -> Self {
        let mut of_rank = [[0; MOST_ROWS]; 32];
        for (order, row_of) in orders(part.table.rows()).iter().zip(&mut of_rank) {
            // There are at most four rows.
            let ranks = order.iter().enumerate();
            ranks.for_each(|(row, &rank)| row_of[usize::from(rank)] = row as u8);
        }
        Self { of_table: u8::from(part.leading.is_some()), of_rank }
    }

    /// Returns the row in the table of one of the columns of a set in a placement with an order.
    #[inline(always)]
    pub(super) const fn row(&self, set: u32, column: u32, order: u32) -> u8 {
        let rank = (set & (column - 1)).count_ones() as usize % MOST_ROWS;
        self.of_rank[(order & 31) as usize][rank]
    }

    /// Returns, by the row of the table, the masks of the placements of a set with `column` in it:
    /// none if the set does not have the column.
    #[inline(always)]
    pub(super) fn masks(&self, set: &Set<'_>, column: u32) -> [u32; MOST_ROWS] {
        let mut masks = [0; MOST_ROWS];
        if set.columns & column != 0 {
            for (i, &order) in set.orders().iter().enumerate().take(set.count) {
                masks[usize::from(self.row(set.columns, column, order))] |= 1 << i;
            }
        }
        masks
    }
}
