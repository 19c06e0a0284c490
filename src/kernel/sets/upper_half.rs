//! The upper half of a family: its first rows filter the list, its last rows are joined, and the
//! completions are counted with the states.

use super::block::{MOST_OUTER_ROWS, Outer};
use super::buffers::{OuterPlacements, UpperBuffers};
use super::codes::{PartCodes, keyed, take_keys};
use super::last_rows::{LastRows, Leads, apart};
use super::lists::{List, Lists};
use super::placements::{Subsets, on_board, windows};
use super::sum::Sum;
use super::vector::{Coded, Each, ROOM, SLACK, Vector};
use crate::decomposition::{ColumnSet, MAX_COUNT_SIZE, SetFamily, SetRule, columns_of};

/// The upper half of a family: its first rows filter the list, and the others are counted together.
#[derive(Debug)]
pub(super) struct UpperHalf {
    family: SetFamily,
    /// The rows whose placements are joined. The first `keys` of them filter the list, too.
    last: LastRows,
    keys: usize,
    /// The codes of the placements of the inner and the outer part.
    codes: [PartCodes; 2],
}

/// The upper queens placed so far.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The columns that are left.
    free: u32,
    /// The windows of the next row.
    left: u32,
    right: u32,
    /// The columns of that row that are still to be tried.
    candidates: u32,
}

impl Frame {
    /// Returns the frame of the next row, behind a queen in this one, without candidates.
    #[inline(always)]
    const fn with_queen(&self, queen: u32) -> Self {
        Self {
            free: self.free & !queen,
            left: (self.left | queen) << 1,
            right: (self.right | queen) >> 1,
            candidates: 0,
        }
    }
}

impl UpperHalf {
    pub(super) fn new(family: &SetFamily, table_rows: usize) -> Self {
        // The rule compares the queen of the first row with each state.
        let compared = matches!(family.rule(), SetRule::BothBelow | SetRule::Split);
        let last = LastRows::new(family.n(), family.upper(), None, table_rows, compared);
        let least_keys = usize::from(compared && last.first == 0);
        let keys = last.rows().saturating_sub(2 * table_rows).max(least_keys);
        let codes = [(&last.inner, 0), (&last.outer, last.inner.rows())]
            .map(|(part, first)| PartCodes::new(part, first, last.rows(), keys));
        Self { family: family.clone(), last, keys, codes }
    }

    /// Returns the number of keys of completions.
    #[inline]
    const fn all_keys(&self) -> usize {
        10usize.pow(self.keys as u32)
    }

    /// Makes room for the lists and the completions of this family.
    pub(super) fn start<const W: usize>(&self, buffers: &mut UpperBuffers<W>) {
        let UpperBuffers { levels, completions, .. } = buffers;
        let (of_levels, of_keys) = (self.last.first + self.keys + 1, self.all_keys());
        levels.resize_with(levels.len().max(of_levels), List::new);
        completions.resize_with(completions.len().max(of_keys), List::new);
    }

    /// Adds the placements of the upper half with the states of `lists`.
    #[inline(always)]
    pub(super) fn count<V: Vector, const W: usize>(
        &self,
        vector: V,
        buffers: &mut UpperBuffers<W>,
        set: &ColumnSet,
        lists: &Lists,
        sum: &mut Sum,
    ) {
        let start = Frame { free: set.upper, left: 0, right: 0, candidates: 0 };
        let last = self.last.first;
        if last == 0 {
            return self.complete(vector, buffers, lists, &start, sum);
        }
        let mut frames = [start; MAX_COUNT_SIZE];
        frames[0].candidates = set.upper & self.family.upper()[0].allowed;
        let mut row = 0;
        loop {
            let frame = &mut frames[row];
            if frame.candidates == 0 {
                if row == 0 {
                    return;
                }
                row -= 1;
                continue;
            }
            let column = frame.candidates.trailing_zeros() as usize;
            frame.candidates &= frame.candidates - 1;
            let mut next = frame.with_queen(1 << column);
            if self.filter(vector, &mut buffers.levels, lists, (row, column)) == 0 {
                continue;
            }
            if row + 1 == last {
                self.complete(vector, buffers, lists, &next, sum);
            } else {
                row += 1;
                let allowed = self.family.upper()[row].allowed;
                next.candidates = next.free & allowed & !next.left & !next.right;
                frames[row] = next;
            }
        }
    }

    /// Computes the list behind a row with a queen in `column`, and returns the number of its
    /// states.
    #[inline(always)]
    fn filter<V: Vector>(
        &self,
        vector: V,
        levels: &mut [List],
        lists: &Lists,
        (row, column): (usize, usize),
    ) -> usize {
        let n = self.family.n();
        let (at, shift) = (column as isize, row as isize);
        let mask = windows(on_board(n, at + shift), on_board(n, at - shift));
        let (before, after) = levels.split_at_mut(row + 1);
        let kept = &mut after[0];
        kept.clear();
        if row > 0 {
            keep(vector, &before[row], mask, kept);
            return kept.len();
        }
        // The groups of states with a queen on the same side that this queen may be used with.
        let same_side = match self.family.rule() {
            SetRule::Any | SetRule::NearerColumn => {
                for group in lists.side(0) {
                    keep(vector, group, mask, kept);
                }
                return kept.len();
            }
            SetRule::BothBelow => self.family.distance(column),
            SetRule::Split => 0,
        };
        let side = usize::from(!self.family.is_right(column));
        for group in lists.side(1 - side).iter().chain(&lists.side(side)[..same_side]) {
            keep(vector, group, mask, kept);
        }
        kept.len()
    }

    /// Adds the placements of the last rows.
    #[inline(always)]
    fn complete<V: Vector, const W: usize>(
        &self,
        vector: V,
        buffers: &mut UpperBuffers<W>,
        lists: &Lists,
        frame: &Frame,
        sum: &mut Sum,
    ) {
        self.list_completions(vector, buffers, frame);
        let first = self.last.first;
        if self.keys == 0 {
            if first == 0 {
                // No row filters.
                buffers.levels[0].clear();
                for group in lists.side(0) {
                    keep(vector, group, 0, &mut buffers.levels[0]);
                }
            }
            return self.sum(vector, buffers, [frame.free; 2], 0, sum);
        }
        for (rank, column) in columns_of(frame.free).enumerate() {
            let keys = if self.keys == 1 { rank..rank + 1 } else { 10 * rank..10 * rank + 10 };
            if buffers.completions[keys].iter().all(|codes| codes.len() == 0)
                || self.filter(vector, &mut buffers.levels, lists, (first, column)) == 0
            {
                continue;
            }
            let free = frame.free & !(1 << column);
            if self.keys == 1 {
                self.sum(vector, buffers, [frame.free, free], rank, sum);
                continue;
            }
            for (second, column) in columns_of(frame.free).enumerate() {
                let key = 10 * rank + second;
                if buffers.completions[key].len() > 0
                    && self.filter(vector, &mut buffers.levels, lists, (first + 1, column)) > 0
                {
                    let free = free & !(1 << column);
                    self.sum(vector, buffers, [frame.free, free], key, sum);
                }
            }
        }
    }

    /// Adds the completions of a key, whose columns are `free`, with the states behind its rows.
    /// `all` are the columns of all joined rows.
    #[inline(always)]
    fn sum<V: Vector, const W: usize>(
        &self,
        vector: V,
        buffers: &mut UpperBuffers<W>,
        [all, free]: [u32; 2],
        key: usize,
        sum: &mut Sum,
    ) {
        let UpperBuffers { levels, completions, block, counters, .. } = buffers;
        let first = self.last.first + self.keys;
        let rows = self.last.rows() - self.keys;
        let mut outer = Outer { first, rows, columns: [(0, 0); MOST_OUTER_ROWS] };
        let ranked = columns_of(all).enumerate().filter(|(_, column)| free >> column & 1 == 1);
        ranked.zip(&mut outer.columns).for_each(|(ranked, at)| *at = ranked);
        let states = levels[first].words();
        let completions = completions[key].words();
        counters.calls += 1;
        counters.states += states.len() as u64;
        counters.completions += completions.len() as u64;
        block.count(vector, self.family.n(), states, &outer, completions, sum);
    }

    /// Lists the legal placements of the last rows by their keys.
    #[inline(always)]
    fn list_completions<V: Vector, const W: usize>(
        &self,
        vector: V,
        buffers: &mut UpperBuffers<W>,
        frame: &Frame,
    ) {
        let LastRows { inner, outer, first, inner_tables, outer_sets } = &self.last;
        let [inner_codes, outer_codes] = &self.codes;
        let columns = Subsets::new(frame.free);
        let all = (1u32 << frame.free.count_ones()) - 1;
        let n = self.family.n();
        let near = [frame.left, frame.right];
        let heads = Leads::new(n, inner, &columns, near, *first);
        let far = [frame.left << inner.rows(), frame.right >> inner.rows()];
        let leads = Leads::new(n, outer, &columns, far, first + inner.rows());
        let UpperBuffers { completions: by_key, outer_placements, .. } = buffers;
        let OuterPlacements { ranges, need, codes } = outer_placements;
        ranges.clear();
        for &positions in outer_sets {
            let mut end = ranges.len();
            for position in columns_of(outer.leads(positions, leads.open)) {
                let lead = leads.at(position);
                let of_table = outer.without_lead(positions, position);
                let set = outer.table.of(columns.at(of_table));
                let most = end + ROOM + SLACK;
                if need.len() < most {
                    need.resize(most.next_power_of_two(), 0);
                    codes.resize(most.next_power_of_two(), 0);
                }
                end += vector.select_coded(
                    apart(&set, lead.left, lead.right),
                    set.tests(),
                    [set.orders(), outer_codes.of(of_table)],
                    (lead.need, outer_codes.leading[position]),
                    (&mut need[end..], &mut codes[end..]),
                );
            }
            ranges.end(positions, end);
        }
        by_key[..self.all_keys()].iter_mut().for_each(List::clear);
        let rows = inner.table.rows();
        for &of_table in inner_tables {
            let set = inner.table.of(columns.at(of_table));
            let mut codes_of_set = vector.look_up(set.orders(), inner_codes.of(of_table));
            let keys = match self.keys {
                2 => take_keys(&mut codes_of_set, set.count),
                _ => [(0, u32::MAX), (0, 0), (0, 0), (0, 0)],
            };
            for position in columns_of(inner.leads(all ^ of_table, heads.open)) {
                let (start, count) = ranges.of(inner.without_lead(all ^ of_table, position));
                if count == 0 {
                    continue;
                }
                let many = Coded { count, tests: &need[start..], codes: &codes[start..] };
                let head = heads.at(position);
                let chosen = vector.chosen(apart(&set, head.left, head.right));
                let test = windows(head.left << rows, head.right >> rows);
                let [leading_key, leading] = keyed(inner_codes.leading[position]);
                for (key, of_key) in keys {
                    let mask = chosen & of_key;
                    if mask == 0 {
                        continue;
                    }
                    let each = Each { mask, tests: set.tests(), test };
                    let completions = &mut by_key[(leading_key + key) as usize];
                    let into = completions.room(count * mask.count_ones() as usize);
                    let written = vector.join_codes(many, each, &codes_of_set, leading, into);
                    completions.extend(written);
                }
            }
        }
    }
}

/// Appends the states of `list` that do not meet `mask` to `kept`.
#[inline(always)]
fn keep<V: Vector>(vector: V, list: &List, mask: u64, kept: &mut List) {
    let count = list.len();
    let states = list.padded();
    let written = vector.join(count, states, mask, states, 0, kept.room(count));
    kept.extend(written);
}
