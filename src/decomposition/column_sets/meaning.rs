//! The meaning of a set: the placements that it counts, by the plain definition and as symmetry
//! cases.

use super::{ColumnSet, HalfRow, SetFamily, SetRule};
use crate::board::Square;
use crate::decomposition::attack_state::columns_of;
use crate::decomposition::symmetry_case::SymmetryCase;

impl SetFamily {
    /// Returns whether this family counts `columns` (the column of the queen in each row) under
    /// `set`, by the plain meaning of sets and rules. `columns` must be a solution of the problem.
    /// Tests compare the kernels with this.
    pub fn counts(&self, set: &ColumnSet, columns: &[usize]) -> bool {
        let in_half = |half: &[HalfRow], set: u32| {
            half.iter().all(|row| (set & row.allowed) >> columns[row.row] & 1 == 1)
        };
        if self.centre_queen.is_some_and(|queen| columns[queen.row] != queen.col)
            || !in_half(&self.upper, set.upper)
            || !in_half(&self.lower, set.lower)
            || in_first_rows(&self.lower, set).any(|(row, open)| open >> columns[row.row] & 1 == 0)
        {
            return false;
        }
        if self.rule == SetRule::Any {
            return true;
        }
        let below = columns[self.lower[0].row];
        if set.right_only && !self.is_right(below) {
            return false;
        }
        // The distance of the queen of `column`, which is in the lower half.
        let depth = |column: usize| {
            self.lower.iter().position(|row| columns[row.row] == column).map_or(0, |row| row + 1)
        };
        match self.rule {
            SetRule::Any => true,
            // Row m is the first lower row, so the distance from it is one less.
            SetRule::NearerColumn => depth(self.n() / 2) - 1 < below.abs_diff(self.n() / 2),
            SetRule::BothBelow | SetRule::Split => {
                let above = columns[self.upper[0].row];
                let [left, right] = self.centre;
                let (same, other) =
                    if self.is_right(below) { (right, left) } else { (left, right) };
                if self.is_right(above) != self.is_right(below) {
                    true
                } else if self.rule == SetRule::Split {
                    false
                } else if self.distance(below) == 1 {
                    depth(other) < self.distance(above)
                } else {
                    depth(same) < self.distance(below)
                }
            }
        }
    }

    /// Returns symmetry cases that count the placements of `set` together, so that every kernel can
    /// count it: the queens of the centre rows that the rule refers to are fixed, and the rule
    /// becomes masks.
    pub fn cases(&self, set: &ColumnSet) -> Vec<SymmetryCase> {
        let n = self.n();
        let (upper, lower) = (&self.upper, &self.lower);
        let at = |row: &HalfRow, col: usize| Square::new(row.row, col);
        let placed_centre: Vec<Square> = self.centre_queen.into_iter().collect();
        let mut cases = Vec::new();
        // A case in which a half does not use a column from some row on.
        let mut case = |block: Vec<Square>,
                        rows: std::ops::Range<usize>,
                        hidden: Option<(usize, usize)>| {
            let block: Vec<Square> = placed_centre.iter().copied().chain(block).collect();
            let Some(mut case) = SymmetryCase::new(&self.problem, set.weight, block, rows) else {
                return;
            };
            in_first_rows(lower, set).for_each(|(row, open)| case.restrict(row.row, open));
            for (half, columns) in [(upper, set.upper), (lower, set.lower)] {
                for (distance, row) in half.iter().enumerate() {
                    let hidden = match hidden {
                        Some((column, from)) if distance >= from => columns & 1 << column,
                        _ => 0,
                    };
                    case.restrict(row.row, columns & row.allowed & !hidden);
                }
            }
            cases.push(case);
        };
        if self.rule == SetRule::Any {
            // A placed queen may stand in another part.
            if in_first_rows(lower, set).all(|(_, open)| open != 0) {
                case(Vec::new(), upper.len()..upper.len(), None);
            }
            return cases;
        }
        let first_lower = lower[0];
        for below in columns_of(set.first_rows[0] & first_lower.allowed) {
            if set.right_only && !self.is_right(below) {
                continue;
            }
            if self.rule == SetRule::NearerColumn {
                let m = n / 2;
                case(vec![at(&first_lower, below)], m..m + 1, Some((m, below.abs_diff(m))));
                continue;
            }
            let [left, right] = self.centre;
            let (same, other) = if self.is_right(below) { (right, left) } else { (left, right) };
            for above in columns_of(set.upper & upper[0].allowed) {
                let is_same_side = self.is_right(above) == self.is_right(below);
                if is_same_side && self.rule == SetRule::Split {
                    continue;
                }
                // From these rows on, the queen of the column would be too far from the centre.
                let hidden = match self.distance(below) {
                    _ if !is_same_side => None,
                    1 => Some((other, self.distance(above) - 1)),
                    distance => Some((same, distance - 1)),
                };
                let block = vec![at(&upper[0], above), at(&first_lower, below)];
                case(block, upper[0].row..first_lower.row + 1, hidden);
            }
        }
        cases
    }
}

/// Returns the first lower rows with the columns that the family and `set` allow there.
fn in_first_rows<'a>(
    lower: &'a [HalfRow],
    set: &'a ColumnSet,
) -> impl Iterator<Item = (&'a HalfRow, u32)> {
    lower.iter().zip(set.first_rows).map(|(row, open)| (row, open & row.allowed))
}
