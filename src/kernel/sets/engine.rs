//! Counting the placements of a set.

use super::block::{Block, MOST_OUTER_ROWS, Outer};
use super::lists::{List, Lists, LowerHalf};
use super::placements::{
    MOST_PLACEMENTS, MOST_ROWS, Placements, Subsets, on_board, orders, subsets, windows,
};
use super::vector::{SLACK, Vector};
use crate::decomposition::{ColumnSet, MAX_COUNT_SIZE, SetFamily, SetRule, columns_of};
use crate::tally::Residues;

/// The number of states from which the upper half is counted for the list so far, which bounds the
/// memory of a thread.
pub(super) const MOST_STATES: usize = 1 << 20;

/// The work done for sets, the same on every machine and with every instruction set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetWork {
    /// The states of the lists.
    pub listed: u64,
    /// The calls of the bit-sliced kernel.
    pub calls: u64,
    /// The states of those calls.
    pub states: u64,
    /// The completions of those calls.
    pub completions: u64,
}

/// The sum of a set and, beside it, the sums of the halves of the words that were added, which share
/// no counter with it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    all: u128,
    /// The sums of the low and of the high 32 bits, which the number of blocks of a set cannot
    /// overflow: it is below 2^96.
    halves: [u128; 2],
}

impl Sum {
    #[inline(always)]
    pub(super) fn add(&mut self, word: u64) {
        self.all += u128::from(word);
        self.halves[0] += u128::from(word & 0xffff_ffff);
        self.halves[1] += u128::from(word >> 32);
    }

    /// Returns the sum and its residues.
    pub(super) fn checked(self) -> (u128, Residues) {
        let [low, high] = self.halves.map(Residues::of);
        (self.all, low.plus(high.product(Residues::of(1 << 32))))
    }
}

/// Counts the sets of a family, W words of states at a time.
#[derive(Debug)]
pub(super) struct Engine<const W: usize> {
    /// The upper half is counted whenever the lists have at least this many states.
    most_states: usize,
    lower: LowerHalf,
    upper: UpperHalf<W>,
    lists: Lists,
}

/// The upper half of a family.
#[derive(Debug)]
struct UpperHalf<const W: usize> {
    family: SetFamily,
    inner: Placements,
    outer: Placements,
    /// The positions of the outer placements' columns among those that are left, each with the
    /// codes of inner and outer placements by the number of their order.
    splits: Vec<Split>,
    /// The list of each row that filters.
    levels: Vec<List>,
    completions: Vec<u32>,
    block: Block<W>,
    counters: SetWork,
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

/// The codes of placements by the number of their order; a power of two of them, so that no index
/// is out of bounds.
type Codes = [u32; 32];

#[derive(Debug)]
struct Split {
    outer: u32,
    inner_codes: Codes,
    outer_codes: Codes,
}

impl<const W: usize> Engine<W> {
    /// Creates the engine of a family, with its tables.
    pub(super) fn new(family: &SetFamily, most_states: usize) -> Self {
        let (lower, upper) = (LowerHalf::new(family), UpperHalf::new(family));
        Self { most_states, lower, upper, lists: Lists::new() }
    }

    /// Returns the number of placements that `set` counts, without its weight.
    #[inline(always)]
    pub(super) fn count<V: Vector>(&mut self, vector: V, set: &ColumnSet) -> Sum {
        let Self { most_states, lower, upper, lists } = self;
        let mut sum = Sum::default();
        lower.start(&upper.family, set);
        while lower.next(vector, lists, *most_states) {
            upper.counters.listed += lists.len() as u64;
            upper.count(vector, set, lists, &mut sum);
        }
        sum
    }

    /// Returns what was done since the engine was created.
    pub(super) const fn counters(&self) -> SetWork {
        self.upper.counters
    }
}

impl<const W: usize> UpperHalf<W> {
    fn new(family: &SetFamily) -> Self {
        let (n, rows) = (family.n(), family.upper());
        // The rule compares the queen of the first row with each state.
        let compared = matches!(family.rule(), SetRule::BothBelow | SetRule::Split);
        let filters = rows.len().saturating_sub(MOST_OUTER_ROWS).max(usize::from(compared));
        let (inner, outer) = rows[filters..].split_at((rows.len() - filters).min(MOST_ROWS));
        let last = inner.len() + outer.len();
        Self {
            family: family.clone(),
            // The queens of a half do not meet the other half's windows.
            inner: Placements::new(n, inner, n),
            outer: Placements::new(n, outer, n),
            splits: subsets(last, outer.len())
                .into_iter()
                .map(|split| Split {
                    outer: split,
                    inner_codes: codes(inner.len(), last, !split, 0),
                    outer_codes: codes(outer.len(), last, split, 16),
                })
                .collect(),
            levels: (0..=filters).map(|_| List::new()).collect(),
            completions: Vec::new(),
            block: Block::new(),
            counters: SetWork::default(),
        }
    }

    /// Adds the placements of the upper half with the states of `lists`.
    #[inline(always)]
    fn count<V: Vector>(&mut self, vector: V, set: &ColumnSet, lists: &Lists, sum: &mut Sum) {
        let compared = match self.family.rule() {
            SetRule::Any | SetRule::NearerColumn => {
                self.levels[0].clear();
                for group in lists.side(0) {
                    keep(vector, group, 0, &mut self.levels[0]);
                }
                let start = Frame { free: set.upper, left: 0, right: 0, candidates: 0 };
                return self.descend(vector, 0, start, sum);
            }
            SetRule::BothBelow => true,
            SetRule::Split => false,
        };
        for column in columns_of(set.upper & self.family.upper()[0].allowed) {
            let queen = 1 << column;
            let side = usize::from(!self.family.is_right(column));
            // The groups of states with a queen on the same side that this queen may be used with.
            let same_side = if compared { self.family.distance(column) } else { 0 };
            self.levels[1].clear();
            for group in lists.side(1 - side).iter().chain(&lists.side(side)[..same_side]) {
                keep(vector, group, windows(queen, queen), &mut self.levels[1]);
            }
            let free = set.upper & !queen;
            let start = Frame { free, left: queen << 1, right: queen >> 1, candidates: 0 };
            self.descend(vector, 1, start, sum);
        }
    }

    /// Adds the placements of the rows from `first` on.
    #[inline(always)]
    fn descend<V: Vector>(&mut self, vector: V, first: usize, start: Frame, sum: &mut Sum) {
        let n = self.family.n();
        let last = self.family.upper().len() - self.inner.rows() - self.outer.rows();
        let mut frames = [start; MAX_COUNT_SIZE];
        let mut row = first;
        // Enters the row unless nothing is left to do there.
        let mut enter = true;
        loop {
            let frame = &mut frames[row];
            if std::mem::take(&mut enter) {
                let states = self.levels[row].len();
                if row == last && states > 0 {
                    let frame = *frame;
                    self.complete(vector, row, &frame, sum);
                } else if states > 0 {
                    let allowed = self.family.upper()[row].allowed;
                    frame.candidates = frame.free & allowed & !frame.left & !frame.right;
                }
            }
            let frame = &mut frames[row];
            if frame.candidates == 0 {
                if row == first {
                    return;
                }
                row -= 1;
                continue;
            }
            let column = frame.candidates.trailing_zeros() as isize;
            let queen = 1 << column;
            frame.candidates &= !queen;
            frames[row + 1] = Frame {
                free: frame.free & !queen,
                left: (frame.left | queen) << 1,
                right: (frame.right | queen) >> 1,
                candidates: 0,
            };
            let shift = row as isize;
            let mask = windows(on_board(n, column + shift), on_board(n, column - shift));
            let (lists, filtered) = self.levels.split_at_mut(row + 1);
            filtered[0].clear();
            keep(vector, &lists[row], mask, &mut filtered[0]);
            row += 1;
            enter = true;
        }
    }

    /// Adds the placements of the last rows.
    #[inline(always)]
    fn complete<V: Vector>(&mut self, vector: V, row: usize, frame: &Frame, sum: &mut Sum) {
        let completions = self.list_completions(vector, frame);
        let mut outer = Outer {
            first: row,
            rows: self.inner.rows() + self.outer.rows(),
            columns: [0; MOST_OUTER_ROWS],
        };
        columns_of(frame.free).zip(&mut outer.columns).for_each(|(column, at)| *at = column);
        let states = self.levels[row].states();
        self.counters.calls += 1;
        self.counters.states += states.len() as u64;
        self.counters.completions += completions as u64;
        let completions = &self.completions[..completions];
        self.block.count(vector, self.family.n(), states, &outer, completions, sum);
    }

    /// Lists the legal placements of the last rows and returns their number.
    #[inline(always)]
    fn list_completions<V: Vector>(&mut self, vector: V, frame: &Frame) -> usize {
        let Frame { free, left, right, .. } = *frame;
        let rows = self.inner.rows();
        let near = windows(left, right);
        let far = windows(left << rows, right >> rows);
        let columns = Subsets::new(free);
        let all = (1u32 << free.count_ones()) - 1;
        let mut listed = 0;
        let mut beyond = [0; MOST_PLACEMENTS + SLACK];
        let mut needs = [0; MOST_PLACEMENTS + SLACK];
        let mut orders = [[0; MOST_PLACEMENTS + SLACK]; 2];
        let mut codes = [0; MOST_PLACEMENTS + SLACK];
        for split in &self.splits {
            let outer = self.outer.of(columns.at(split.outer));
            let inner = self.inner.of(columns.at(all ^ split.outer));
            let [inner_orders, outer_orders] = &mut orders;
            let kept = vector.join(inner.count, inner.need, near, inner.beyond, 0, &mut beyond);
            let kept_outer = vector.join(outer.count, outer.need, far, outer.need, 0, &mut needs);
            if kept == 0 || kept_outer == 0 {
                continue;
            }
            vector.join_codes(inner.count, inner.need, near, inner.order, 0, inner_orders);
            vector.join_codes(outer.count, outer.need, far, outer.order, 0, outer_orders);
            for i in 0..kept {
                codes[i] = split.inner_codes[(inner_orders[i] & 31) as usize];
            }
            let most = listed + kept_outer * kept + SLACK;
            if self.completions.len() < most {
                self.completions.resize(most.next_power_of_two(), 0);
            }
            for i in 0..kept_outer {
                let code = split.outer_codes[(outer_orders[i] & 31) as usize];
                let into = &mut self.completions[listed..];
                listed += vector.join_codes(kept, &beyond, needs[i], &codes, code, into);
            }
        }
        listed
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

/// Returns the codes of the orders of the columns at `positions` (of `of` positions) in `rows` rows:
/// a byte for each pair of rows, shifted left by `shift`. See [`Block::count`].
fn codes(rows: usize, of: usize, positions: u32, shift: u32) -> Codes {
    let ranks: Vec<u32> = (0..of as u32).filter(|rank| positions >> rank & 1 == 1).collect();
    let mut codes = [0; 32];
    for (order, code) in orders(rows).iter().zip(&mut codes) {
        for (pair, of_pair) in order.chunks(2).enumerate() {
            let x = ranks[usize::from(of_pair[0])];
            let y = of_pair.get(1).map_or(x, |&y| ranks[usize::from(y)]);
            *code |= (8 * x + y) << (shift + 8 * pair as u32);
        }
    }
    codes
}
