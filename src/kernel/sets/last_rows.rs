//! The last rows of a half, whose placements are found by joining the placements of two parts.

use std::sync::Arc;

use super::placements::{MOST_ROWS, Placements, Set, Subsets, Tests, on_board, subsets, windows};
use super::vector::Choice;
use crate::decomposition::HalfRow;

/// The most rows that are joined: two parts of a leading row and a table each.
pub(super) const MOST_LAST_ROWS: usize = 2 * (MOST_ROWS + 1);

/// The last rows of a half in two parts, an inner one and an outer one.
#[derive(Debug)]
pub(super) struct LastRows {
    /// The number of the half's rows before them.
    pub(super) first: usize,
    pub(super) inner: Part,
    pub(super) outer: Part,
    /// The positions, among the columns that are left, that the inner table can have.
    pub(super) inner_tables: Vec<u32>,
    /// The positions that the outer part can have.
    pub(super) outer_sets: Vec<u32>,
}

/// Consecutive rows: perhaps a leading row, which is filled column by column, then those of a
/// table.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) leading: Option<HalfRow>,
    pub(super) table: Arc<Placements>,
}

impl LastRows {
    /// Takes the last of the `rows` of a half, with tables of at most `table_rows`, and with a
    /// leading row of the inner part if `leading`. If the reach of the queens is wanted, row 0 of
    /// the half is `gap` rows away from the first row of the other half.
    pub(super) fn new(
        n: usize,
        rows: &[HalfRow],
        gap: Option<usize>,
        table_rows: usize,
        leading: bool,
    ) -> Self {
        let count = rows.len().min(2 * table_rows + 2);
        let leads = [leading || count > 2 * table_rows, count == 2 * table_rows + 2];
        let leads = leads.map(usize::from);
        let of_tables = count - leads[0] - leads[1];
        let first = rows.len() - count;
        let outer_first = first + leads[0] + of_tables.div_ceil(2);
        let part = |from: usize, to: usize, leads: usize, tests: Tests| {
            let table = from + leads;
            let distance = gap.map(|gap| gap + table);
            Part {
                leading: (leads > 0).then(|| rows[from]),
                table: Placements::shared(n, &rows[table..to], tests, distance),
            }
        };
        Self {
            first,
            inner: part(first, outer_first, leads[0], Tests::Beyond),
            outer: part(outer_first, rows.len(), leads[1], Tests::NeedAhead(leads[1])),
            inner_tables: subsets(count, of_tables.div_ceil(2)),
            outer_sets: subsets(count, rows.len() - outer_first),
        }
    }

    /// Returns the number of these rows.
    #[inline]
    pub(super) fn rows(&self) -> usize {
        self.inner.rows() + self.outer.rows()
    }
}

impl Part {
    /// Returns the number of rows.
    #[inline]
    pub(super) fn rows(&self) -> usize {
        self.leading.is_some() as usize + self.table.rows()
    }

    /// Returns the positions, out of `positions`, at which the leading row may have its queen, if
    /// it may have it at those of `open`: one pseudo-position, 0, without a leading row.
    #[inline(always)]
    pub(super) const fn leads(&self, positions: u32, open: u32) -> u32 {
        if self.leading.is_some() { positions & open } else { 1 }
    }

    /// Returns `positions` without that of the leading row.
    #[inline(always)]
    pub(super) const fn without_lead(&self, positions: u32, lead: usize) -> u32 {
        if self.leading.is_some() { positions & !(1 << lead) } else { positions }
    }
}

/// A queen of the leading row of a part, together with the queens of the rows before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lead {
    /// The windows of the row after it.
    pub(super) left: u32,
    pub(super) right: u32,
    /// The windows of its row that would attack it.
    pub(super) need: u64,
    /// The columns of the other half's first row that it attacks, as windows.
    pub(super) reach: u64,
}

/// The queens that the leading row of a part may have, by the position of the column. Without such
/// a row, the queens of the rows before the part are at position 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leads {
    by_position: [Lead; MOST_LAST_ROWS],
    /// The mask of the positions with a queen.
    pub(super) open: u32,
}

impl Leads {
    /// Finds the queens on the free `columns`, where the windows of the part's first row are
    /// `left` and `right`, and its distance from the other half's first row is `distance`.
    #[inline(always)]
    pub(super) fn new(
        n: usize,
        part: &Part,
        columns: &Subsets,
        [left, right]: [u32; 2],
        distance: usize,
    ) -> Self {
        let mut leads = Self { by_position: [Lead::default(); MOST_LAST_ROWS], open: 0 };
        let Some(row) = part.leading else {
            leads.by_position[0] = Lead { left, right, need: 0, reach: 0 };
            return leads;
        };
        for (position, lead) in leads.by_position.iter_mut().enumerate() {
            let queen = columns.at(1 << position) & row.allowed & !left & !right;
            if queen == 0 {
                continue;
            }
            leads.open |= 1 << position;
            let (column, shift) = (queen.trailing_zeros() as isize, distance as isize);
            *lead = Lead {
                left: (left | queen) << 1,
                right: (right | queen) >> 1,
                need: windows(queen, queen),
                reach: windows(on_board(n, column - shift), on_board(n, column + shift)),
            };
        }
        leads
    }

    #[inline(always)]
    pub(super) const fn at(&self, position: usize) -> &Lead {
        &self.by_position[position]
    }
}

/// Returns the placements of a table's set that do not meet the windows of its first row.
#[inline(always)]
pub(super) fn apart<'a>(set: &Set<'a>, left: u32, right: u32) -> Choice<'a> {
    Choice { count: set.count, tests: set.need(), against: windows(left, right) }
}

/// The places in arrays of the placements of each set of columns of an outer part.
#[derive(Debug)]
pub(super) struct Ranges {
    /// By the positions of the columns: the first placement, and the number of placements.
    by_positions: Vec<(u32, u32)>,
    /// The number of all placements.
    len: usize,
}

impl Ranges {
    pub(super) fn new() -> Self {
        Self { by_positions: vec![(0, 0); 1 << MOST_LAST_ROWS], len: 0 }
    }

    #[inline]
    pub(super) const fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns the number of placements so far.
    #[inline(always)]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Ends the placements of a set of columns: those up to `end`.
    #[inline(always)]
    pub(super) fn end(&mut self, positions: u32, end: usize) {
        // There are at most 252 sets of at most 120 placements.
        self.by_positions[positions as usize] = (self.len as u32, (end - self.len) as u32);
        self.len = end;
    }

    /// Returns the first placement of a set of columns, and the number of placements.
    #[inline(always)]
    pub(super) fn of(&self, positions: u32) -> (usize, usize) {
        let (start, count) = self.by_positions[positions as usize];
        (start as usize, count as usize)
    }
}
