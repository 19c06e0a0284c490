//! The codes of placements: what a completion has of their rows, for the bit-sliced kernel.

use super::last_rows::{MOST_LAST_ROWS, Part};
use super::placements::{orders, subsets};
use super::vector::FewCodes;

/// The position of the key in the code of an inner placement, which has no rows there.
const KEY_SHIFT: u32 = 24;

/// The codes of the placements of a part: what a completion's code has of its rows.
#[derive(Debug)]
pub(super) struct PartCodes {
    /// By the position of the leading row's column.
    pub(super) leading: [u32; MOST_LAST_ROWS],
    /// By the positions of the table's columns, and by the number of their order.
    table: Vec<FewCodes>,
}

impl PartCodes {
    /// Computes the codes of a part of the joined rows, which begins with row `first` of them.
    /// There are `rows` joined rows, the first `keys` of them keys.
    pub(super) fn new(part: &Part, first: usize, rows: usize, keys: usize) -> Self {
        // The share of the queen of a row, by the rank of its column. See `Block::count`.
        let share = |row: usize, rank: u32| {
            let Some(of_block) = row.checked_sub(keys) else {
                return (if row + 1 == keys { rank } else { 10 * rank }) << KEY_SHIFT;
            };
            let byte = match of_block % 2 {
                1 => rank,
                _ if row + 1 == rows => 11 * rank,
                _ => 10 * rank,
            };
            byte << (8 * (of_block / 2))
        };
        let in_table = part.table.rows();
        let table_first = first + part.rows() - in_table;
        let orders = orders(in_table);
        let mut table = vec![[0; 32]; 1 << MOST_LAST_ROWS];
        for positions in subsets(rows, in_table) {
            let ranks: Vec<u32> =
                (0..rows as u32).filter(|rank| positions >> rank & 1 == 1).collect();
            for (order, code) in orders.iter().zip(&mut table[positions as usize]) {
                let queens = order.iter().enumerate();
                *code = queens
                    .map(|(row, &rank)| share(table_first + row, ranks[usize::from(rank)]))
                    .sum();
            }
        }
        let leads = part.leading.is_some();
        let leading = std::array::from_fn(|at| if leads { share(first, at as u32) } else { 0 });
        Self { leading, table }
    }

    /// Returns the codes for the positions of the table's columns.
    #[inline(always)]
    pub(super) fn of(&self, positions: u32) -> &FewCodes {
        &self.table[positions as usize]
    }
}

/// Returns the key in a code, and the rest of the code.
#[inline]
pub(super) const fn keyed(code: u32) -> [u32; 2] {
    [code >> KEY_SHIFT, code & ((1 << KEY_SHIFT) - 1)]
}

/// Removes the keys from the first `count` codes. Returns them with the masks of the codes, which
/// have at most four keys: that of the first row of the table.
#[inline(always)]
pub(super) fn take_keys(codes: &mut FewCodes, count: usize) -> [(u32, u32); 4] {
    let mut keys = [(0, 0); 4];
    let mut last = 0;
    for (i, code) in codes.iter_mut().enumerate().take(count) {
        let [key, rest] = keyed(*code);
        *code = rest;
        // Placements with the same queen in the first row are neighbours.
        if keys[last].1 != 0 && keys[last].0 != key {
            last += 1;
        }
        keys[last].0 = key;
        keys[last].1 |= 1 << i;
    }
    keys
}
