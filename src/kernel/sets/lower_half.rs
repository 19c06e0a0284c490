//! The lower half of a family: its placements in the columns of a set, as lists of states.

use super::buffers::LowerBuffers;
use super::last_rows::{LastRows, Leads, MOST_LAST_ROWS, apart};
use super::lists::{ANY_SIDE, Lists, OTHER_SIDE};
use super::part_rows::PartRows;
use super::placements::{Subsets, on_board, windows};
use super::vector::{Each, Vector};
use crate::decomposition::{ColumnSet, HalfRow, SetFamily, SetRule, columns_of};

/// The group of states that do not count.
const NONE: u8 = u8::MAX;

/// A column whose queen's row decides the group of a state.
#[derive(Clone, Copy, Debug)]
struct Decisive {
    column: usize,
    /// The index of the column in [`LowerHalf::decisive`].
    index: usize,
    /// The group, by the row's number in the lower half.
    groups: [u8; 32],
}

impl Decisive {
    fn new(column: usize, index: usize, group: impl Fn(usize) -> u8) -> Self {
        Self { column, index, groups: std::array::from_fn(group) }
    }
}

/// A partial placement of the lower half.
#[derive(Clone, Copy, Debug)]
struct Partial {
    /// The columns that are left.
    free: u32,
    /// The windows of the next row.
    left: u32,
    right: u32,
    /// The columns of the first upper row that the queens attack, as windows.
    reach: u64,
    side: usize,
    /// The group, unless `decisive` is still free.
    group: u8,
    decisive: Option<Decisive>,
}

/// The lower half of a family: its first rows are filled one by one, and the last ones joined.
#[derive(Debug)]
pub(super) struct LowerHalf {
    family: SetFamily,
    /// The rows that are filled one by one.
    first: Vec<HalfRow>,
    last: LastRows,
    /// The columns whose queens can decide on the group of a state, one bit each, or 0.
    decisive: [u32; 2],
    /// The columns that the queens of the first two rows may have.
    first_rows: [u32; 2],
    /// True if it must stand on the right.
    right_only: bool,
    /// The partial placements that are not yet completed, with the number of their rows.
    open: Vec<(usize, Partial)>,
    inner_rows: PartRows,
    outer_rows: PartRows,
}

impl LowerHalf {
    /// Prepares the lower half of a family, with tables of at most `table_rows`.
    pub(super) fn new(family: &SetFamily, table_rows: usize) -> Self {
        let rows = family.lower();
        // Rules and parts of sets depend on the queen of the first row.
        let leading = !rows.is_empty();
        let last = LastRows::new(family.n(), rows, Some(family.gap()), table_rows, leading);
        Self {
            first: rows[..last.first].to_vec(),
            decisive: match family.rule() {
                SetRule::Any | SetRule::Split => [0; 2],
                SetRule::NearerColumn => [1 << (family.n() / 2), 0],
                SetRule::BothBelow => family.centre().map(|column| 1 << column),
            },
            first_rows: [0; 2],
            right_only: false,
            open: Vec::new(),
            inner_rows: PartRows::new(&last.inner),
            outer_rows: PartRows::new(&last.outer),
            last,
            family: family.clone(),
        }
    }

    /// Prepares the placements of `set`.
    pub(super) fn start(&mut self, set: &ColumnSet) {
        let start = Partial {
            free: set.lower,
            left: 0,
            right: 0,
            reach: 0,
            side: 0,
            group: ANY_SIDE,
            decisive: None,
        };
        // In the other rows, the placements of tables do not depend on the set.
        let is_alone = |row: usize| {
            row < self.last.first || row == self.last.first && self.last.inner.leading.is_some()
        };
        assert!(
            set.first_rows[1] == set.lower || is_alone(1),
            "this family has no parts with two queens"
        );
        self.first_rows = set.first_rows;
        self.right_only = set.right_only;
        self.open.clear();
        self.open.push((0, start));
    }

    /// Replaces the states of `lists` by the next ones of the set: all that are left, or `most` of
    /// them and what completes the last partial placement. Returns whether there were any left.
    #[inline(always)]
    pub(super) fn next<V: Vector>(
        &mut self,
        vector: V,
        buffers: &mut LowerBuffers,
        lists: &mut Lists,
        most: usize,
    ) -> bool {
        lists.clear();
        if self.open.is_empty() {
            return false;
        }
        while let Some((row, partial)) = self.open.pop() {
            let Some(of) = self.first.get(row) else {
                self.join(vector, buffers, &partial, lists);
                if lists.len() >= most {
                    break;
                }
                continue;
            };
            for column in columns_of(partial.free & of.allowed & !partial.left & !partial.right) {
                if let Some(next) = self.with_queen(partial, row, column) {
                    self.open.push((row + 1, next));
                }
            }
        }
        true
    }

    /// Returns the placement with a queen in the given row and column, or `None` if it does not
    /// count.
    #[inline(always)]
    fn with_queen(&self, mut partial: Partial, row: usize, column: usize) -> Option<Partial> {
        if self.first_rows.get(row).is_some_and(|open| open >> column & 1 == 0) {
            return None;
        }
        if row == 0 {
            partial = self.ruled(partial, column)?;
        }
        let queen = 1u32 << column;
        if let Some(decisive) = partial.decisive.filter(|of| of.column == column) {
            partial.group = decisive.groups[row];
            partial.decisive = None;
            if partial.group == NONE {
                return None;
            }
        }
        partial.free &= !queen;
        partial.left = (partial.left | queen) << 1;
        partial.right = (partial.right | queen) >> 1;
        let (column, shift) = (column as isize, (row + self.family.gap()) as isize);
        let at = |column| on_board(self.family.n(), column);
        partial.reach |= windows(at(column - shift), at(column + shift));
        Some(partial)
    }

    /// Returns the empty placement with what the family's rule says of a queen of the first row, or
    /// `None` if placements with this queen do not count.
    fn ruled(&self, mut start: Partial, column: usize) -> Option<Partial> {
        let family = &self.family;
        let is_right = family.is_right(column);
        if self.right_only && !is_right {
            return None;
        }
        match family.rule() {
            SetRule::Any => {}
            SetRule::NearerColumn => {
                let centre = family.n() / 2;
                let distance = column.abs_diff(centre);
                let group = |row| if row < distance { ANY_SIDE } else { NONE };
                start.decisive = Some(Decisive::new(centre, 0, group));
            }
            SetRule::BothBelow => {
                start.side = usize::from(!is_right);
                // The index of the centre column on the same side.
                let same = usize::from(is_right);
                let distance = family.distance(column);
                start.decisive = Some(if distance == 1 {
                    // Rows are below 32.
                    Decisive::new(family.centre()[1 - same], 1 - same, |row| row as u8 + 1)
                } else {
                    let nearer = |row| if row + 1 < distance { ANY_SIDE } else { OTHER_SIDE };
                    Decisive::new(family.centre()[same], same, nearer)
                });
            }
            SetRule::Split => start.side = usize::from(!is_right),
        }
        Some(start)
    }

    /// Returns the partial placements with a queen in the leading row of the last rows, by the
    /// position of its column, and the mask of those that there are. Without such a row, the
    /// placement itself is at position 0.
    #[inline(always)]
    fn heads(&self, partial: &Partial, columns: &Subsets) -> ([Partial; MOST_LAST_ROWS], u32) {
        let mut heads = [*partial; MOST_LAST_ROWS];
        let mut open = 0;
        if let Some(row) = self.last.inner.leading {
            for (position, head) in heads.iter_mut().enumerate() {
                let queen =
                    columns.at(1 << position) & row.allowed & !partial.left & !partial.right;
                if queen == 0 {
                    continue;
                }
                let column = queen.trailing_zeros() as usize;
                if let Some(next) = self.with_queen(*partial, self.last.first, column) {
                    *head = next;
                    open |= 1 << position;
                }
            }
        }
        (heads, open)
    }

    /// Appends all completions of a partial placement by the last rows.
    #[inline(always)]
    fn join<V: Vector>(
        &self,
        vector: V,
        buffers: &mut LowerBuffers,
        partial: &Partial,
        lists: &mut Lists,
    ) {
        let columns = Subsets::new(partial.free);
        let all = (1u32 << partial.free.count_ones()) - 1;
        let (heads, open) = self.heads(partial, &columns);
        self.find_outer(vector, buffers, partial, &columns);
        let LowerBuffers { outer: found, ranges } = &*buffers;
        let LastRows { inner, first, inner_tables, .. } = &self.last;
        let (first_outer, rows) = (first + inner.rows(), inner.table.rows());
        let first_of_table = first_outer - rows;
        for &of_table in inner_tables {
            let set = inner.table.of(columns.at(of_table));
            let [one, other] = self.decisive;
            let rows_of = &self.inner_rows;
            let by_row = [rows_of.masks(&set, one), rows_of.masks(&set, other)];
            for position in columns_of(inner.leads(all ^ of_table, open)) {
                let outer_positions = inner.without_lead(all ^ of_table, position);
                let (start, count) = ranges.of(outer_positions);
                let head = &heads[position];
                let mask = vector.chosen(apart(&set, head.left, head.right));
                if count == 0 || mask == 0 {
                    continue;
                }
                let many = found.words(start..start + count);
                let test = windows(head.left << rows, head.right >> rows);
                let each = Each { mask, tests: set.tests(), test };
                let states = (set.reach(), head.reach);
                let lists = lists.side_mut(head.side);
                let Some(Decisive { column, index, groups }) = &head.decisive else {
                    lists[usize::from(head.group)].join(vector, many, each, states);
                    continue;
                };
                if set.columns >> column & 1 == 1 {
                    for (row, of_row) in by_row[*index].iter().enumerate() {
                        let each = Each { mask: mask & of_row, ..each };
                        let group = groups[first_of_table + row];
                        if group != NONE && each.mask != 0 {
                            lists[usize::from(group)].join(vector, many, each, states);
                        }
                    }
                    continue;
                }
                // The outer part has the column.
                let outer_rows = &found.rows[*index][start..start + count];
                let mut from = 0;
                while from < count {
                    // Neighbours often have the same group.
                    let group = groups[first_outer + usize::from(outer_rows[from])];
                    let same = |row: &&u8| groups[first_outer + usize::from(**row)] == group;
                    let to = from + outer_rows[from..].iter().take_while(same).count();
                    if group != NONE {
                        let many = found.words(start + from..start + to);
                        lists[usize::from(group)].join(vector, many, each, states);
                    }
                    from = to;
                }
            }
        }
    }

    /// Finds the placements of the outer part behind a partial placement, in every set of columns.
    #[inline(always)]
    fn find_outer<V: Vector>(
        &self,
        vector: V,
        buffers: &mut LowerBuffers,
        partial: &Partial,
        columns: &Subsets,
    ) {
        let LastRows { inner, outer, first, outer_sets, .. } = &self.last;
        // Columns that the shift moves off a board of 32 columns are lost, as they should be.
        let far = [partial.left << inner.rows(), partial.right >> inner.rows()];
        let distance = first + inner.rows() + self.family.gap();
        let leads = Leads::new(self.family.n(), outer, columns, far, distance);
        let LowerBuffers { outer: found, ranges } = buffers;
        found.count = 0;
        ranges.clear();
        for &positions in outer_sets {
            let [one, other] = self.decisive;
            let of_set = columns.at(positions);
            let decisive = [one & of_set, other & of_set];
            for position in columns_of(outer.leads(positions, leads.open)) {
                let lead = leads.at(position);
                let set = outer.table.of(columns.at(outer.without_lead(positions, position)));
                let choice = apart(&set, lead.left, lead.right);
                let new = found.count;
                found.reserve();
                let all = [lead.need, lead.reach];
                found.append(vector, choice, [set.tests(), set.reach()], all);
                if decisive != [0; 2] {
                    found.find_rows(vector, new, choice, &set, decisive, &self.outer_rows);
                }
            }
            ranges.end(positions, found.count);
        }
    }
}
