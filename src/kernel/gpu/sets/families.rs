//! The data of a family that the shader reads.

use super::layout::{
    ALLOWED_ABOVE, ALLOWED_BELOW, FAMILY, FIRST_ABOVE, FIRST_BELOW, GAP, MOST_COLUMNS, MOST_ROWS,
    NOT_COUNTED, OTHER_SIDE, ROWS_ABOVE, ROWS_BELOW, SetItem,
};
use crate::decomposition::{ColumnSet, HalfRow, SetFamily, SetRule, columns_of};

/// No column decides on the group of a placement.
const NO_COLUMN: u32 = 31;
/// The side of a queen of the first upper row that no rule compares with states.
const NO_SIDE: u32 = 2;

/// Returns whether the shader counts the sets of a family: the rows of a half are between four and
/// [`MOST_ROWS`], and the board has at most [`MOST_COLUMNS`] columns.
pub(super) fn suits(family: &SetFamily) -> bool {
    let rows = 4..=MOST_ROWS - 2;
    family.n() <= MOST_COLUMNS
        && rows.contains(&family.lower().len())
        && rows.contains(&family.upper().len())
}

/// Returns the words of a family that the shader counts.
pub(super) fn words(family: &SetFamily) -> [u32; FAMILY] {
    let mut words = [0; FAMILY];
    let (lower, upper) = (family.lower(), family.upper());
    words[ROWS_BELOW] = lower.len() as u32;
    words[ROWS_ABOVE] = upper.len() as u32;
    words[GAP] = family.gap() as u32;
    let mut put = |at: usize, rows: &[HalfRow]| {
        for (word, row) in words[at..].iter_mut().zip(rows) {
            *word = row.allowed;
        }
    };
    put(ALLOWED_BELOW, lower);
    put(ALLOWED_ABOVE, upper);
    for column in 0..family.n() {
        words[FIRST_BELOW + column] = first_below(family, column);
        words[FIRST_ABOVE + column] = first_above(family, column);
    }
    words
}

/// Returns what the rule says of a placement whose first lower queen is in `column`.
fn first_below(family: &SetFamily, column: usize) -> u32 {
    let side = u32::from(!family.is_right(column));
    // The decisive column; the row from which on its queen has the group `after`, before which it
    // has group 0; or, if `row_plus_one`, the group that is its row plus one.
    let word = |side: u32, decisive: u32, limit: usize, after: u32, row_plus_one: bool| {
        side | decisive << 1 | (limit as u32) << 6 | after << 11 | u32::from(row_plus_one) << 16
    };
    match family.rule() {
        SetRule::Any => word(0, NO_COLUMN, 0, 0, false),
        SetRule::NearerColumn => {
            let centre = family.n() / 2;
            word(0, centre as u32, column.abs_diff(centre), NOT_COUNTED, false)
        }
        SetRule::BothBelow => {
            // The index of the centre column on the same side.
            let same = usize::from(family.is_right(column));
            let [same, other] = [same, 1 - same].map(|index| family.centre()[index] as u32);
            match family.distance(column) {
                1 => word(side, other, 0, 0, true),
                distance => word(side, same, distance - 1, OTHER_SIDE, false),
            }
        }
        SetRule::Split => word(side, NO_COLUMN, 0, 0, false),
    }
}

/// Returns the states that a queen of the first upper row in `column` may not be used with: those
/// of its side (bits 0 and 1) whose group is at least the limit (the other bits).
fn first_above(family: &SetFamily, column: usize) -> u32 {
    let side = u32::from(!family.is_right(column));
    match family.rule() {
        SetRule::Any | SetRule::NearerColumn => NO_SIDE,
        SetRule::BothBelow => side | (family.distance(column) as u32) << 2,
        SetRule::Split => side,
    }
}

/// Returns a set for the shader.
pub(super) fn item(number: usize, family: &SetFamily, set: &ColumnSet) -> SetItem {
    let mut first_rows = set.first_rows;
    if set.right_only {
        first_rows[0] = columns_of(first_rows[0])
            .filter(|&column| family.is_right(column))
            .fold(0, |columns, column| columns | 1 << column);
    }
    let ColumnSet { upper, lower, .. } = *set;
    SetItem { upper, lower, first_rows, family: number as u32 }
}
