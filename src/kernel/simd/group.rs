//! A group of lanes: its registers, and the operations of one step.

use super::lanes::{Lanes, MOST_LANES};
use crate::decomposition::{CentreRule, SymmetryCase};

/// The number of states at which a level's stack counts as full.
pub(super) const FULL: usize = 1024;
/// The capacity of a stack: room for the output of two groups of lanes before the stack is checked
/// again, and for one more vector.
pub(super) const CAPACITY: usize = FULL + 4 * MOST_LANES;
/// The number of words of a state below the block. Above it the last two are unused.
pub(super) const WORDS: usize = 5;

/// States as a structure of arrays: free, left, right, and below the block the two diagonals for
/// the first row above it.
pub(super) type Stack = [[u32; CAPACITY]; WORDS];

/// A group of lanes in memory: the words of a state, and the columns not yet tried.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub(super) struct Parked {
    words: [[u32; MOST_LANES]; WORDS],
    open: [u32; MOST_LANES],
}

impl Parked {
    /// Lanes without states.
    pub(super) const EMPTY: Self = Self { words: [[0; MOST_LANES]; WORDS], open: [0; MOST_LANES] };
}

/// A group of lanes in registers.
#[derive(Clone, Copy)]
pub(super) struct Group<L: Lanes> {
    free: L::Word,
    left: L::Word,
    right: L::Word,
    upper_left: L::Word,
    upper_right: L::Word,
    pub(super) open: L::Word,
}

/// The data common to all states of a level.
#[derive(Clone, Copy)]
pub(super) struct Row<L: Lanes> {
    /// Columns allowed in this row, the next and the one after.
    allowed: [L::Word; 3],
    /// The distance from this row to the next, and from that to the one after.
    step: [L::Word; 2],
    /// The distance from this row (below the block) to the first above the block.
    to_upper: L::Word,
    /// True if the next row is the first above the block.
    turns: bool,
    centre: L::Word,
    /// The rules of this row and the next.
    rules: [CentreRule; 2],
}

impl<L: Lanes> Row<L> {
    /// Creates the data of the open row at position k; at least two more rows must follow it.
    #[inline(always)]
    pub(super) fn new(lanes: L, case: &SymmetryCase, k: usize) -> Self {
        let (rows, allowed, rules) = (case.rows(), case.allowed(), case.rules());
        // Differences of rows are below 32. Above the block `to_upper` is not used.
        let to_upper = rows[k].abs_diff(rows[case.below()]) as u32;
        Self {
            allowed: [
                lanes.splat(allowed[k]),
                lanes.splat(allowed[k + 1]),
                lanes.splat(allowed[k + 2]),
            ],
            step: [
                lanes.splat(rows[k].abs_diff(rows[k + 1]) as u32),
                lanes.splat(rows[k + 1].abs_diff(rows[k + 2]) as u32),
            ],
            to_upper: lanes.splat(to_upper),
            turns: k + 1 == case.below(),
            centre: lanes.splat(case.centre_columns()),
            rules: [rules[k], rules[k + 1]],
        }
    }

    /// Applies `rule` to the columns `open`, where `free` columns are free.
    #[inline(always)]
    fn obey(&self, lanes: L, rule: CentreRule, free: L::Word, open: L::Word) -> L::Word {
        let centre_free = lanes.and(free, self.centre);
        let taken = lanes.and(open, self.centre);
        match rule {
            CentreRule::None => open,
            CentreRule::TakeIfAnyFree => lanes.select(lanes.zero(centre_free), open, taken),
            CentreRule::TakeIfBothFree => {
                lanes.select(lanes.equal(centre_free, self.centre), taken, open)
            }
        }
    }
}

impl<L: Lanes> Group<L> {
    #[inline(always)]
    pub(super) fn unpark(lanes: L, parked: &Parked) -> Self {
        Self {
            free: lanes.load(&parked.words[0], 0),
            left: lanes.load(&parked.words[1], 0),
            right: lanes.load(&parked.words[2], 0),
            upper_left: lanes.load(&parked.words[3], 0),
            upper_right: lanes.load(&parked.words[4], 0),
            open: lanes.load(&parked.open, 0),
        }
    }

    #[inline(always)]
    pub(super) fn park(&self, lanes: L, parked: &mut Parked) {
        let words = [self.free, self.left, self.right, self.upper_left, self.upper_right];
        for (memory, word) in parked.words.iter_mut().zip(words) {
            lanes.store(memory, 0, word);
        }
        lanes.store(&mut parked.open, 0, self.open);
    }

    /// Loads states from `stack[..][at..]` into the lanes of `which`; returns their number.
    #[inline(always)]
    pub(super) fn refill<const LOWER: bool>(
        &mut self,
        lanes: L,
        which: L::Mask,
        stack: &Stack,
        at: usize,
        row: &Row<L>,
    ) -> usize {
        let index = lanes.expand(which);
        self.free = take(lanes, which, &stack[0], at, index, self.free);
        self.left = take(lanes, which, &stack[1], at, index, self.left);
        self.right = take(lanes, which, &stack[2], at, index, self.right);
        if LOWER {
            self.upper_left = take(lanes, which, &stack[3], at, index, self.upper_left);
            self.upper_right = take(lanes, which, &stack[4], at, index, self.upper_right);
        }
        let unattacked = lanes.and_neither(self.free, self.left, self.right);
        let mut open = lanes.and(unattacked, row.allowed[0]);
        if LOWER {
            open = row.obey(lanes, row.rules[0], self.free, open);
        }
        self.open = lanes.select(which, open, self.open);
        lanes.count(which)
    }

    /// Removes the lowest open column of each lane and returns it.
    #[inline(always)]
    fn next_queen(&mut self, lanes: L) -> L::Word {
        let less = lanes.decrement(self.open);
        let queen = lanes.and_not(self.open, less);
        self.open = lanes.and(self.open, less);
        queen
    }

    /// Generates the next child of each lane of `active` and stores those that pass the look-ahead
    /// in `stack[..][at..]`; returns their number.
    #[inline(always)]
    pub(super) fn emit<const LOWER: bool, const AHEAD: bool>(
        &mut self,
        lanes: L,
        active: L::Mask,
        stack: &mut Stack,
        at: usize,
        row: &Row<L>,
    ) -> usize {
        let queen = self.next_queen(lanes);
        let free = lanes.xor(self.free, queen);
        let mut left = lanes.shift_left(lanes.or(self.left, queen), row.step[0]);
        let mut right = lanes.shift_right(lanes.or(self.right, queen), row.step[0]);
        let (mut upper_left, mut upper_right) = (left, right);
        if LOWER {
            upper_left = lanes.or(self.upper_left, lanes.shift_left(queen, row.to_upper));
            upper_right = lanes.or(self.upper_right, lanes.shift_right(queen, row.to_upper));
            if row.turns {
                (left, right) = (upper_left, upper_right);
            }
        }
        let unattacked = lanes.and_neither(free, left, right);
        let mut keep = lanes.meet(unattacked, row.allowed[1]);
        if LOWER && row.rules[1] != CentreRule::None {
            let open = row.obey(lanes, row.rules[1], free, lanes.and(unattacked, row.allowed[1]));
            keep = lanes.meet(open, open);
        }
        if AHEAD {
            let left_after = lanes.shift_left(left, row.step[1]);
            let right_after = lanes.shift_right(right, row.step[1]);
            let after = lanes.and_neither(free, left_after, right_after);
            keep = lanes.both(keep, lanes.meet(after, row.allowed[2]));
        }
        let keep = lanes.both(keep, active);
        let index = lanes.compress(keep);
        lanes.store(&mut stack[0], at, lanes.permute(free, index));
        lanes.store(&mut stack[1], at, lanes.permute(left, index));
        lanes.store(&mut stack[2], at, lanes.permute(right, index));
        if LOWER && !row.turns {
            lanes.store(&mut stack[3], at, lanes.permute(upper_left, index));
            lanes.store(&mut stack[4], at, lanes.permute(upper_right, index));
        }
        lanes.count(keep)
    }

    /// Generates the next child of each lane of `active` and counts its completions over the last
    /// two rows. Returns their number, and also adds it to `counter` lane by lane.
    #[inline(always)]
    pub(super) fn complete(
        &mut self,
        lanes: L,
        active: L::Mask,
        row: &Row<L>,
        counter: &mut L::Word,
    ) -> usize {
        let queen = self.next_queen(lanes);
        let pair = lanes.xor(self.free, queen);
        let left = lanes.shift_left(lanes.or(self.left, queen), row.step[0]);
        let right = lanes.shift_right(lanes.or(self.right, queen), row.step[0]);
        let next = lanes.and(lanes.and_neither(pair, left, right), row.allowed[1]);
        let left = lanes.shift_left(lanes.or(left, pair), row.step[1]);
        let right = lanes.shift_right(lanes.or(right, pair), row.step[1]);
        let last = lanes.and(lanes.and_neither(pair, left, right), row.allowed[2]);
        let high = lanes.and(pair, lanes.decrement(pair));
        let low = lanes.xor(pair, high);
        let one = lanes.both(lanes.both(lanes.meet(next, low), lanes.meet(last, high)), active);
        let other = lanes.both(lanes.both(lanes.meet(next, high), lanes.meet(last, low)), active);
        *counter = lanes.increment(lanes.increment(*counter, one), other);
        lanes.count(one) + lanes.count(other)
    }
}

/// Returns `old`, with words from `stack[at..]` in the lanes of `which`, in order.
#[inline(always)]
fn take<L: Lanes>(
    lanes: L,
    which: L::Mask,
    stack: &[u32; CAPACITY],
    at: usize,
    index: L::Word,
    old: L::Word,
) -> L::Word {
    lanes.select(which, lanes.permute(lanes.load(stack, at), index), old)
}
