//! The list of a set: all placements of the lower half in its columns.

use super::placements::{
    MOST_PLACEMENTS, MOST_ROWS, Placements, Set, Subsets, on_board, orders, subsets, windows,
};
use super::vector::{SLACK, Vector};
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
    /// The group, by the row's number in the lower half.
    groups: [u8; 32],
}

impl Decisive {
    fn new(column: usize, group: impl Fn(usize) -> u8) -> Self {
        Self { column, groups: std::array::from_fn(group) }
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

/// The lower half of a family: its first rows are filled one by one, and the last eight by joining
/// the placements of four rows each.
#[derive(Debug)]
pub(super) struct LowerHalf {
    n: usize,
    gap: usize,
    /// The rows that are filled one by one.
    first: Vec<HalfRow>,
    inner: Placements,
    outer: Placements,
    /// The positions of the outer placements' columns among those that are left.
    splits: Vec<u32>,
    /// The partial placements that are not yet completed, with the number of their rows.
    open: Vec<(usize, Partial)>,
    /// The row of each rank of a column, by the number of the order; for inner and outer rows.
    row_of_rank: [Vec<[u8; MOST_ROWS]>; 2],
}

impl LowerHalf {
    pub(super) fn new(family: &SetFamily) -> Self {
        let (n, gap, rows) = (family.n(), family.gap(), family.lower());
        // Rules depend on the first row's queen.
        let at_least = usize::from(family.rule() != SetRule::Any);
        let (first, last) = rows.split_at(rows.len().saturating_sub(2 * MOST_ROWS).max(at_least));
        let (inner, outer) = last.split_at(last.len().min(MOST_ROWS));
        let row_of_rank = |rows: usize| {
            orders(rows).into_iter().map(|order| {
                let mut row_of = [0; MOST_ROWS];
                // There are at most four rows.
                order
                    .iter()
                    .enumerate()
                    .for_each(|(row, &rank)| row_of[usize::from(rank)] = row as u8);
                row_of
            })
        };
        Self {
            n,
            gap,
            first: first.to_vec(),
            inner: Placements::new(n, inner, first.len() + gap),
            outer: Placements::new(n, outer, first.len() + inner.len() + gap),
            splits: subsets(last.len(), outer.len()),
            open: Vec::new(),
            row_of_rank: [row_of_rank(inner.len()).collect(), row_of_rank(outer.len()).collect()],
        }
    }

    /// Prepares the placements of `set`.
    pub(super) fn start(&mut self, family: &SetFamily, set: &ColumnSet) {
        let start = Partial {
            free: set.lower,
            left: 0,
            right: 0,
            reach: 0,
            side: 0,
            group: ANY_SIDE,
            decisive: None,
        };
        self.open.clear();
        if family.rule() == SetRule::Any {
            self.open.push((0, start));
            return;
        }
        for column in columns_of(set.lower & family.lower()[0].allowed) {
            if let Some(start) = self.first_queen(family, set, column, start) {
                self.open.push((1, start));
            }
        }
    }

    /// Replaces the states of `lists` by the next ones of the set: all that are left, or `most` of
    /// them and what completes the last partial placement. Returns whether there were any left.
    #[inline(always)]
    pub(super) fn next<V: Vector>(&mut self, vector: V, lists: &mut Lists, most: usize) -> bool {
        lists.clear();
        if self.open.is_empty() {
            return false;
        }
        while let Some((row, partial)) = self.open.pop() {
            let Some(of) = self.first.get(row) else {
                self.join(vector, &partial, lists);
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

    /// Returns the partial placement with the first lower row's queen, on which the rule depends.
    fn first_queen(
        &self,
        family: &SetFamily,
        set: &ColumnSet,
        column: usize,
        start: Partial,
    ) -> Option<Partial> {
        let is_right = family.is_right(column);
        if set.right_only && !is_right {
            return None;
        }
        let mut start = start;
        match family.rule() {
            SetRule::Any => {}
            SetRule::NearerColumn => {
                let centre = self.n / 2;
                let distance = column.abs_diff(centre);
                let group = |row| if row < distance { ANY_SIDE } else { NONE };
                start.decisive = Some(Decisive::new(centre, group));
            }
            SetRule::BothBelow => {
                start.side = usize::from(!is_right);
                let [left, right] = family.centre();
                let (same, other) = if is_right { (right, left) } else { (left, right) };
                let distance = family.distance(column);
                start.decisive = Some(if distance == 1 {
                    // Rows are below 32.
                    Decisive::new(other, |row| row as u8 + 1)
                } else {
                    let nearer = |row| if row + 1 < distance { ANY_SIDE } else { OTHER_SIDE };
                    Decisive::new(same, nearer)
                });
            }
            SetRule::Split => start.side = usize::from(!is_right),
        }
        self.with_queen(start, 0, column)
    }

    /// Returns the placement with a queen in the given row and column, or `None` if it does not
    /// count.
    #[inline(always)]
    fn with_queen(&self, mut partial: Partial, row: usize, column: usize) -> Option<Partial> {
        let queen = 1u32 << column;
        let (column, shift) = (column as isize, (row + self.gap) as isize);
        if let Some(decisive) = partial.decisive.filter(|of| of.column as isize == column) {
            partial.group = decisive.groups[row];
            partial.decisive = None;
            if partial.group == NONE {
                return None;
            }
        }
        partial.free &= !queen;
        partial.left = (partial.left | queen) << 1;
        partial.right = (partial.right | queen) >> 1;
        let at = |column| on_board(self.n, column);
        partial.reach |= windows(at(column - shift), at(column + shift));
        Some(partial)
    }

    /// Appends all completions of a partial placement by the last rows.
    #[inline(always)]
    fn join<V: Vector>(&self, vector: V, partial: &Partial, lists: &mut Lists) {
        let rows = self.inner.rows();
        let near = windows(partial.left, partial.right);
        // Columns that the shift moves off a board of 32 columns are lost, as they should be.
        let far = windows(partial.left << rows, partial.right >> rows);
        let columns = Subsets::new(partial.free);
        let all = (1u32 << partial.free.count_ones()) - 1;
        let lists = &mut lists.groups[partial.side];
        let (mut inner, mut outer) = (Kept::new(), Kept::new());
        for &split in &self.splits {
            let (outer_columns, inner_columns) = (columns.at(split), columns.at(all ^ split));
            let (of_inner, of_outer) = (self.inner.of(inner_columns), self.outer.of(outer_columns));
            inner.keep(vector, &of_inner, near, of_inner.beyond, partial.reach);
            outer.keep(vector, &of_outer, far, of_outer.need, 0);
            if inner.count == 0 || outer.count == 0 {
                continue;
            }
            let Some(decisive) = partial.decisive else {
                let longer_first =
                    if inner.count < outer.count { [&outer, &inner] } else { [&inner, &outer] };
                let [many, each] = longer_first;
                let list = &mut lists[usize::from(partial.group)];
                let into = list.room(many.count * each.count);
                let mut joined = 0;
                for i in 0..each.count {
                    joined += many.join(vector, each, i, &mut into[joined..]);
                }
                list.extend(joined);
                continue;
            };
            // The placements with the decisive column are taken one by one, as each has a group of
            // its own.
            let inner_decides = inner_columns >> decisive.column & 1 == 1;
            let (each, many, placements, columns, first_row) = if inner_decides {
                (&mut inner, &outer, of_inner, inner_columns, self.first.len())
            } else {
                (&mut outer, &inner, of_outer, outer_columns, self.first.len() + rows)
            };
            let window = if inner_decides { near } else { far };
            each.keep_orders(vector, &placements, window);
            let row_of_rank = &self.row_of_rank[usize::from(!inner_decides)];
            let rank = (columns & ((1 << decisive.column) - 1)).count_ones() as usize;
            for i in 0..each.count {
                let row = row_of_rank[each.orders[i] as usize][rank];
                let group = decisive.groups[first_row + usize::from(row)];
                if group != NONE {
                    let list = &mut lists[usize::from(group)];
                    let joined = many.join(vector, each, i, list.room(many.count));
                    list.extend(joined);
                }
            }
        }
    }
}

/// The placements of a set that the queens nearer to the centre leave, in parallel arrays.
struct Kept {
    count: usize,
    /// What a placement of the other rows is tested against.
    tests: [u64; MOST_PLACEMENTS + SLACK],
    reach: [u64; MOST_PLACEMENTS + SLACK],
    orders: [u32; MOST_PLACEMENTS + SLACK],
}

impl Kept {
    #[inline(always)]
    const fn new() -> Self {
        const ROOM: usize = MOST_PLACEMENTS + SLACK;
        Self { count: 0, tests: [0; ROOM], reach: [0; ROOM], orders: [0; ROOM] }
    }

    /// Keeps the placements that `window` leaves, with their `tests`; adds `reach` to theirs.
    #[inline(always)]
    fn keep<V: Vector>(&mut self, vector: V, of: &Set<'_>, window: u64, tests: &[u64], reach: u64) {
        let into = [&mut self.tests[..], &mut self.reach[..]];
        self.count = vector.join_two(of.count, of.need, window, [tests, of.reach], reach, into);
    }

    /// Keeps the orders of the same placements, too.
    #[inline(always)]
    fn keep_orders<V: Vector>(&mut self, vector: V, of: &Set<'_>, window: u64) {
        vector.join_codes(of.count, of.need, window, of.order, 0, &mut self.orders);
    }

    /// Writes the states of these placements with the i-th one of `other` to the front of `into`,
    /// and returns their number.
    #[inline(always)]
    fn join<V: Vector>(&self, vector: V, other: &Self, i: usize, into: &mut [u64]) -> usize {
        vector.join(self.count, &self.tests, other.tests[i], &self.reach, other.reach[i], into)
    }
}
