//! The list of a set: all placements of the lower half in its columns.

use std::ops::Range;

use super::last_rows::{LastRows, Leads, MOST_LAST_ROWS, Part, Ranges, apart};
use super::placements::{MOST_ROWS, Set, Subsets, on_board, orders, windows};
use super::vector::{Choice, Each, Few, FewCodes, ROOM, SLACK, Vector, Words};
use crate::decomposition::{ColumnSet, HalfRow, SetFamily, SetRule, columns_of};

/// A list of states: the columns of the first upper row that the lower queens attack, as windows.
#[derive(Debug)]
pub(super) struct List {
    /// The states, and at least [`SLACK`] more words.
    words: Vec<u64>,
    len: usize,
}

impl List {
    pub(super) fn new() -> Self {
        Self { words: vec![0; SLACK], len: 0 }
    }

    /// Returns the states.
    pub(super) fn states(&self) -> &[u64] {
        &self.words[..self.len]
    }

    /// Returns the states and at least [`SLACK`] arbitrary words.
    #[inline(always)]
    pub(super) fn padded(&self) -> &[u64] {
        &self.words
    }

    /// Returns the number of states.
    #[inline(always)]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns room for `most` more states and [`SLACK`] words behind those that there are.
    #[inline(always)]
    pub(super) fn room(&mut self, most: usize) -> &mut [u64] {
        let end = self.len + most + SLACK;
        if self.words.len() < end {
            self.words.resize(end.next_power_of_two(), 0);
        }
        &mut self.words[self.len..end]
    }

    /// Appends the state of each pair of placements that do not meet.
    #[inline(always)]
    fn join<V: Vector>(
        &mut self,
        vector: V,
        many: Words<'_>,
        each: Each<'_>,
        (words, all): (&Few, u64),
    ) {
        let into = self.room(many.count * each.mask.count_ones() as usize);
        let written = vector.join_all(many, each, words, all, into);
        self.extend(written);
    }

    /// Appends the states that were written to the front of the room.
    #[inline(always)]
    pub(super) const fn extend(&mut self, written: usize) {
        debug_assert!(self.len + written + SLACK <= self.words.len());
        self.len += written;
    }
}

/// The states of a set, grouped by the queens of the first upper row that the family's rule allows
/// with them.
#[derive(Debug)]
pub(super) struct Lists {
    /// By the side of the first lower row's queen (0 right, 1 left), and by the group: group t may
    /// be used with a queen of the first upper row on the same side if its distance exceeds t, and
    /// with any queen on the other side. [`ANY_SIDE`] and [`OTHER_SIDE`] are its extremes.
    groups: [Vec<List>; 2],
}

/// The group of states that may be used with every queen of the first upper row.
pub(super) const ANY_SIDE: u8 = 0;
/// The group of states that may only be used with a queen on the other side: no distance exceeds it.
pub(super) const OTHER_SIDE: u8 = 32;
/// The group of states that do not count.
const NONE: u8 = u8::MAX;

impl Lists {
    pub(super) fn new() -> Self {
        let groups = || (0..=OTHER_SIDE).map(|_| List::new()).collect();
        Self { groups: [groups(), groups()] }
    }

    /// Returns the lists of a side (0 right, 1 left), by group.
    pub(super) fn side(&self, side: usize) -> &[List] {
        &self.groups[side]
    }

    /// Returns the number of states.
    pub(super) fn len(&self) -> usize {
        self.groups.iter().flatten().map(|list| list.len).sum()
    }

    pub(super) fn clear(&mut self) {
        self.groups.iter_mut().flatten().for_each(List::clear);
    }
}

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

/// The placements of the outer part of a lower half, and those of each set of columns.
#[derive(Debug)]
pub(super) struct LowerBuffers {
    outer: Kept,
    ranges: Ranges,
}

impl LowerBuffers {
    pub(super) fn new() -> Self {
        Self { outer: Kept::new(), ranges: Ranges::new() }
    }
}

/// The rows of a part, by its columns.
#[derive(Debug)]
struct PartRows {
    /// The first row of its table in the part: 1 after a leading row, otherwise 0.
    of_table: u8,
    /// The row in the table, by the number of the order of the columns and the rank of the column.
    of_rank: [[u8; MOST_ROWS]; 32],
}

impl PartRows {
    fn new(part: &Part) -> Self {
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
    const fn row(&self, set: u32, column: u32, order: u32) -> u8 {
        let rank = (set & (column - 1)).count_ones() as usize % MOST_ROWS;
        self.of_rank[(order & 31) as usize][rank]
    }

    /// Returns, by the row of the table, the masks of the placements of a set with `column` in it:
    /// none if the set does not have the column.
    #[inline(always)]
    fn masks(&self, set: &Set<'_>, column: u32) -> [u32; MOST_ROWS] {
        let mut masks = [0; MOST_ROWS];
        if set.columns & column != 0 {
            for (i, &order) in set.orders().iter().enumerate().take(set.count) {
                masks[usize::from(self.row(set.columns, column, order))] |= 1 << i;
            }
        }
        masks
    }
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
            let by_row = self.decisive.map(|column| self.inner_rows.masks(&set, column));
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
                let lists = &mut lists.groups[head.side];
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
            let decisive = self.decisive.map(|column| column & columns.at(positions));
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

/// The codes that are the numbers of the orders themselves.
const SAME: FewCodes = {
    let mut codes = [0; 32];
    let mut order = 0;
    while order < codes.len() {
        codes[order] = order as u32;
        order += 1;
    }
    codes
};

/// Placements of the outer part, in parallel arrays.
#[derive(Debug)]
struct Kept {
    count: usize,
    /// What a placement of the other part is tested against.
    tests: Vec<u64>,
    reach: Vec<u64>,
    /// The row in the part of each decisive column, where the set has it.
    rows: [Vec<u8>; 2],
}

impl Kept {
    const fn new() -> Self {
        Self { count: 0, tests: Vec::new(), reach: Vec::new(), rows: [Vec::new(), Vec::new()] }
    }

    /// Makes room for the placements of a table's set, and [`SLACK`] words behind them.
    #[inline(always)]
    fn reserve(&mut self) {
        let end = self.count + ROOM + SLACK;
        if self.tests.len() < end {
            let len = end.next_power_of_two();
            self.tests.resize(len, 0);
            self.reach.resize(len, 0);
            self.rows.iter_mut().for_each(|rows| rows.resize(len, 0));
        }
    }

    /// Returns a range of the placements, and what is behind it.
    #[inline(always)]
    fn words(&self, range: Range<usize>) -> Words<'_> {
        let (tests, words) = (&self.tests[range.start..], &self.reach[range.start..]);
        Words { count: range.len(), tests, words }
    }

    /// Appends the chosen placements of a table, with their tests and their reach.
    #[inline(always)]
    fn append<V: Vector>(
        &mut self,
        vector: V,
        choice: Choice<'_>,
        words: [&Few; 2],
        all: [u64; 2],
    ) {
        let into = [&mut self.tests[self.count..], &mut self.reach[self.count..]];
        self.count += vector.select(choice, words, all, into);
    }

    /// Finds the rows of the columns `decisive`, which have one bit or none, in the placements from
    /// `new` on, which were chosen last. A column that the table does not have is that of the
    /// leading row.
    #[inline(always)]
    fn find_rows<V: Vector>(
        &mut self,
        vector: V,
        new: usize,
        choice: Choice<'_>,
        set: &Set<'_>,
        decisive: [u32; 2],
        of: &PartRows,
    ) {
        let (mut unused, mut kept) = ([0; ROOM], [0; ROOM]);
        let codes = [set.orders(), &SAME];
        vector.select_coded(choice, choice.tests, codes, (0, 0), (&mut unused, &mut kept));
        for (rows, column) in self.rows.iter_mut().zip(decisive) {
            let rows = &mut rows[new..self.count];
            if column & set.columns == 0 {
                rows.fill(0);
                continue;
            }
            for (row, order) in rows.iter_mut().zip(kept) {
                *row = of.of_table + of.row(set.columns, column, order);
            }
        }
    }
}
