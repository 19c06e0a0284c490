//! The batch engine: a search whose lanes are always full.
//!
//! A *level* is the number of open rows left. Each level has a stack of states (structure of arrays), and two
//! groups of lanes that hold the parents being expanded. One step gives every lane its next child: children
//! that pass the look-ahead are compressed onto the stack of the level below; lanes that ran out of children
//! are refilled from their own level's stack. There is no branch on data but "the stack below is full", which
//! hands over to that level until it has fewer states than two groups of lanes. Two groups hide the latency
//! of the refill.
//!
//! A state is three words while the rows go upward: `free` columns, and the columns of the current row
//! attacked along lines that move `left` or `right` as rows are filled. Below the block it has two more:
//! what the queens so far attack in the first row above the block.
//!
//! **Pooling.** Lanes drain only at the end of a range and where the rows above the block change: a plan
//! whose upper rows and weight are those of the plan before it joins the states of that plan there.
//!
//! **The last three rows** are closed in registers. A queen goes to the first of them; of the two columns
//! left, both attack as if they were occupied, which removes just the pairs that attack each other; two mask
//! tests then count 0, 1 or 2 solutions.
//!
//! **Bounds.** Solutions are counted twice. The sum adds population counts of masks to a u64. The residues
//! come from u32 counters, one a lane, which are folded and reset after every visit to the last level: a visit
//! expands at most `CAPACITY` states from the stack and 2 × [`MOST_LANES`] from the lanes, each with at most 3
//! children of at most 2 solutions, so a lane counts to at most 6 × 1,120 < 2^13 before it is reset. A u64
//! that grows by less than 2^13 a visit, at no more than 10^7 visits a second, cannot wrap in 7 years; the
//! addition is checked all the same.
//!
//! Cost with AVX-512, read from the machine code: 82 instructions for 32 children, 89 where it looks two rows
//! ahead, 107 in the last level.

use super::lanes::{Lanes, MOST_LANES};
use crate::kernel::Kernel;
use crate::kernel::scalar::Scalar;
use crate::preplacement::{CentreRule, Plan, Prefix};
use crate::tally::{Residues, Tally, TallyError};

/// A level's stack is handed over when it holds this many states.
const FULL: usize = 1024;
/// Room for what two groups of lanes add before the stack is looked at again, and for one vector beyond.
const CAPACITY: usize = FULL + 4 * MOST_LANES;
/// The most solutions that a lane counter sees between two resets.
const MOST_PER_VISIT: usize = 6 * (CAPACITY + 2 * MOST_LANES);
const _: () = assert!(MOST_PER_VISIT < 1 << 13);

/// The level that is closed in registers.
const CLOSING: usize = 3;
/// Words of a state below the block.
const LOWER_WORDS: usize = 5;

/// How far [`Engine::drain`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flush {
    /// Leave what does not fill the lanes.
    Nothing,
    /// Leave nothing on the levels that still have rows below the block.
    Lower,
    /// Leave nothing.
    Everything,
}

/// The kernel: an engine, and the function that runs it with the right instructions enabled.
pub(super) struct Batch<D> {
    engine: Engine,
    drain: D,
}

impl<D: FnMut(&mut Engine, Flush) + Send> Batch<D> {
    pub(super) fn new(drain: D) -> Self {
        Self { engine: Engine::new(), drain }
    }

    /// Runs the engine and moves what it found to `tally`.
    fn drain(&mut self, flush: Flush, tally: &mut Tally) -> Result<(), TallyError> {
        let Some(weight) = self.engine.plan.as_ref().map(Plan::weight) else { return Ok(()) };
        (self.drain)(&mut self.engine, flush);
        let Found { solutions, shadow, nodes } = std::mem::take(&mut self.engine.found);
        tally.add(weight, solutions, shadow, nodes)
    }
}

impl<D: FnMut(&mut Engine, Flush) + Send> Kernel for Batch<D> {
    fn count(&mut self, plan: &Plan, prefixes: &[Prefix], tally: &mut Tally) -> Result<(), TallyError> {
        let Some(filled) = prefixes.first().map(Prefix::filled) else { return Ok(()) };
        if plan.rows().len() - plan.below() < CLOSING || plan.rows().len() - filled <= CLOSING {
            return Scalar.count(plan, prefixes, tally);
        }
        let top = plan.rows().len() - filled;
        if self.engine.plan.as_ref() != Some(plan) || self.engine.top != top {
            let pools =
                self.engine.plan.as_ref().is_some_and(|old| pool(old, plan)) && self.engine.top == top;
            self.drain(if pools { Flush::Lower } else { Flush::Everything }, tally)?;
            self.engine.plan = Some(plan.clone());
            self.engine.top = top;
        }
        for prefix in prefixes {
            if self.engine.push(prefix) {
                self.drain(Flush::Nothing, tally)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, tally: &mut Tally) -> Result<(), TallyError> {
        self.drain(Flush::Everything, tally)?;
        self.engine.plan = None;
        Ok(())
    }
}

/// Whether states of the two plans mean the same once the rows below the block are filled.
fn pool(a: &Plan, b: &Plan) -> bool {
    a.weight() == b.weight()
        && a.below() == b.below()
        && a.rows() == b.rows()
        && a.allowed()[a.below()..] == b.allowed()[b.below()..]
}

/// What was counted since the tally was last told.
#[derive(Default)]
struct Found {
    solutions: u64,
    shadow: Residues,
    nodes: u64,
}

/// The stacks and lanes of every level, and the plan that the states belong to.
pub(super) struct Engine {
    levels: Vec<Level>,
    plan: Option<Plan>,
    /// The level of the prefixes.
    top: usize,
    found: Found,
}

/// The states with a given number of open rows left.
#[repr(align(64))]
struct Level {
    /// free, left, right, and below the block the two diagonals for the first row above it.
    stack: [[u32; CAPACITY]; LOWER_WORDS],
    /// The states of the stack that are still to be taken: `stack[..][start..end]`.
    start: usize,
    end: usize,
    groups: [Parked; 2],
    /// Whether the groups hold parents.
    live: bool,
}

/// A group of lanes in memory: the words of a state, and the columns still to be tried.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Parked {
    words: [[u32; MOST_LANES]; LOWER_WORDS],
    open: [u32; MOST_LANES],
}

impl Engine {
    /// An engine without states: 0.7 MB.
    fn new() -> Self {
        let parked = Parked { words: [[0; MOST_LANES]; LOWER_WORDS], open: [0; MOST_LANES] };
        let level = || Level {
            stack: [[0; CAPACITY]; LOWER_WORDS],
            start: 0,
            end: 0,
            groups: [parked; 2],
            live: false,
        };
        let levels = (0..=crate::preplacement::MAX_COUNT_SIZE).map(|_| level()).collect();
        Self { levels, plan: None, top: 0, found: Found::default() }
    }

    /// Puts a prefix on the top level; true if that is full now.
    fn push(&mut self, prefix: &Prefix) -> bool {
        let Some(plan) = &self.plan else { return false };
        let (k, state, n) = (prefix.filled(), prefix.state(), plan.n());
        if plan.available(k, state) == 0 {
            return false;
        }
        let row = plan.rows()[k];
        let first_upper = plan.rows()[plan.below()];
        // Going up, antidiagonals move left; going down they move right.
        let upper = [state.antidiagonal_window(first_upper), state.diagonal_window(n, first_upper)];
        let [left, right] = if k < plan.below() {
            [state.diagonal_window(n, row), state.antidiagonal_window(row)]
        } else {
            upper
        };
        let words = [crate::preplacement::full_row(n) & !state.columns, left, right, upper[0], upper[1]];
        let level = &mut self.levels[self.top];
        for (stack, word) in level.stack.iter_mut().zip(words) {
            stack[level.end] = word;
        }
        level.end += 1;
        level.end >= FULL
    }

    /// Expands states until every level holds less than its lanes take, and none where `flush` says so.
    #[inline(always)]
    pub(super) fn drain<L: Lanes>(&mut self, lanes: L, flush: Flush) {
        let Self { levels, plan, top, found } = self;
        let Some(plan) = plan else { return };
        let upper_rows = plan.rows().len() - plan.below();
        let flush_to = match flush {
            Flush::Nothing => usize::MAX,
            Flush::Lower => upper_rows + 1,
            Flush::Everything => CLOSING,
        };
        // The highest level that may hold states; the levels above it have been flushed.
        let mut base = *top;
        let mut left = base;
        loop {
            let (below, from) = levels.split_at_mut(left);
            let (level, child) = (&mut from[0], &mut below[left - 1]);
            let flushing = left == base && base >= flush_to;
            let row = &Row::new(lanes, plan, plan.rows().len() - left);
            let outcome = if left == CLOSING {
                level.close(lanes, row, flushing, found)
            } else if left > upper_rows {
                level.expand::<L, true, false>(lanes, row, child, flushing, found)
            } else if left <= L::LOOK_AHEAD_ROWS {
                level.expand::<L, false, true>(lanes, row, child, flushing, found)
            } else {
                level.expand::<L, false, false>(lanes, row, child, flushing, found)
            };
            match outcome {
                Outcome::ChildFull => left -= 1,
                Outcome::Dry if left < base => left += 1,
                Outcome::Dry if base > flush_to => {
                    base -= 1;
                    left = base;
                }
                Outcome::Dry => break,
            }
        }
    }
}

/// Why a level stopped.
enum Outcome {
    /// The level below must run first.
    ChildFull,
    /// Too few states are left to keep the lanes full (none, when flushing).
    Dry,
}

/// A group of lanes in registers.
#[derive(Clone, Copy)]
struct Group<L: Lanes> {
    free: L::Word,
    left: L::Word,
    right: L::Word,
    upper_left: L::Word,
    upper_right: L::Word,
    open: L::Word,
}

/// What is the same for all states of a level.
#[derive(Clone, Copy)]
struct Row<L: Lanes> {
    /// Columns allowed in this row, the next and the one after.
    allowed: [L::Word; 3],
    /// Rows from this one to the next, and from that to the one after.
    step: [L::Word; 2],
    /// Rows from this one (below the block) to the first above the block.
    to_upper: L::Word,
    /// The next row is the first above the block.
    turns: bool,
    centre: L::Word,
    /// The rules of this row and the next.
    rules: [CentreRule; 2],
}

impl<L: Lanes> Row<L> {
    /// The open row at position k; at least two more follow it.
    #[inline(always)]
    fn new(lanes: L, plan: &Plan, k: usize) -> Self {
        let (rows, allowed, rules) = (plan.rows(), plan.allowed(), plan.rules());
        // Differences of rows are below 32. Above the block `to_upper` is not used.
        let to_upper = rows[k].abs_diff(rows[plan.below()]) as u32;
        Self {
            allowed: [lanes.splat(allowed[k]), lanes.splat(allowed[k + 1]), lanes.splat(allowed[k + 2])],
            step: [
                lanes.splat(rows[k].abs_diff(rows[k + 1]) as u32),
                lanes.splat(rows[k + 1].abs_diff(rows[k + 2]) as u32),
            ],
            to_upper: lanes.splat(to_upper),
            turns: k + 1 == plan.below(),
            centre: lanes.splat(plan.centre_columns()),
            rules: [rules[k], rules[k + 1]],
        }
    }

    /// What `rule` leaves of the columns `open`, where `free` columns are free.
    #[inline(always)]
    fn obey(&self, lanes: L, rule: CentreRule, free: L::Word, open: L::Word) -> L::Word {
        let centre_free = lanes.and(free, self.centre);
        let taken = lanes.and(open, self.centre);
        match rule {
            CentreRule::None => open,
            CentreRule::TakeIfAnyFree => lanes.select(lanes.zero(centre_free), open, taken),
            CentreRule::TakeIfBothFree => lanes.select(lanes.equal(centre_free, self.centre), taken, open),
        }
    }
}

impl<L: Lanes> Group<L> {
    #[inline(always)]
    fn unpark(lanes: L, parked: &Parked) -> Self {
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
    fn park(&self, lanes: L, parked: &mut Parked) {
        let words = [self.free, self.left, self.right, self.upper_left, self.upper_right];
        for (memory, word) in parked.words.iter_mut().zip(words) {
            lanes.store(memory, 0, word);
        }
        lanes.store(&mut parked.open, 0, self.open);
    }

    /// Takes states from `stack[..][at..]` into the lanes of `which`; returns how many.
    #[inline(always)]
    fn refill<const LOWER: bool>(
        &mut self,
        lanes: L,
        which: L::Mask,
        stack: &[[u32; CAPACITY]; LOWER_WORDS],
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

    /// Splits off the lowest open column of each lane.
    #[inline(always)]
    fn next_queen(&mut self, lanes: L) -> L::Word {
        let less = lanes.decrement(self.open);
        let queen = lanes.and_not(self.open, less);
        self.open = lanes.and(self.open, less);
        queen
    }

    /// Makes the next child of each lane of `active` and puts those with a future on `stack[..][at..]`;
    /// returns how many.
    #[inline(always)]
    fn emit<const LOWER: bool, const AHEAD: bool>(
        &mut self,
        lanes: L,
        active: L::Mask,
        stack: &mut [[u32; CAPACITY]; LOWER_WORDS],
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

    /// Makes the next child of each lane of `active` and counts its completions over the last two rows:
    /// how many, and the same added to `counter` lane by lane.
    #[inline(always)]
    fn complete(&mut self, lanes: L, active: L::Mask, row: &Row<L>, counter: &mut L::Word) -> usize {
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

/// `old`, with words from `stack[at..]` in the lanes of `which`, in order.
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

/// What a level does with the next child of each lane of a group.
trait Step<L: Lanes> {
    /// Does it for the lanes of `active`; true if the level below must run before much more is done.
    fn step(&mut self, lanes: L, group: &mut Group<L>, active: L::Mask) -> bool;
}

/// Puts the children on the stack of the level below.
struct Emit<'a, L: Lanes, const LOWER: bool, const AHEAD: bool> {
    stack: &'a mut [[u32; CAPACITY]; LOWER_WORDS],
    end: usize,
    row: &'a Row<L>,
}

impl<L: Lanes, const LOWER: bool, const AHEAD: bool> Step<L> for Emit<'_, L, LOWER, AHEAD> {
    #[inline(always)]
    fn step(&mut self, lanes: L, group: &mut Group<L>, active: L::Mask) -> bool {
        self.end += group.emit::<LOWER, AHEAD>(lanes, active, self.stack, self.end, self.row);
        self.end >= FULL
    }
}

/// Counts the completions of the children.
struct Close<'a, L: Lanes> {
    solutions: usize,
    counter: L::Word,
    row: &'a Row<L>,
}

impl<L: Lanes> Step<L> for Close<'_, L> {
    #[inline(always)]
    fn step(&mut self, lanes: L, group: &mut Group<L>, active: L::Mask) -> bool {
        self.solutions += group.complete(lanes, active, self.row, &mut self.counter);
        false
    }
}

impl Level {
    /// Expands states onto the stack of `child` until that is full or too few are left.
    #[inline(always)]
    fn expand<L: Lanes, const LOWER: bool, const AHEAD: bool>(
        &mut self,
        lanes: L,
        row: &Row<L>,
        child: &mut Self,
        flushing: bool,
        found: &mut Found,
    ) -> Outcome {
        debug_assert_eq!(child.start, 0);
        let before = child.end;
        let mut emit = Emit::<L, LOWER, AHEAD> { stack: &mut child.stack, end: before, row };
        let outcome = self.run::<L, LOWER>(lanes, row, flushing, &mut emit);
        child.end = emit.end;
        found.nodes += (child.end - before) as u64;
        outcome
    }

    /// Counts the completions of the states until too few are left.
    #[inline(always)]
    fn close<L: Lanes>(&mut self, lanes: L, row: &Row<L>, flushing: bool, found: &mut Found) -> Outcome {
        let mut close = Close { solutions: 0, counter: lanes.splat(0), row };
        let outcome = self.run::<L, false>(lanes, row, flushing, &mut close);
        let mut counters = [0; MOST_LANES];
        lanes.store(&mut counters, 0, close.counter);
        found.add(close.solutions, &counters);
        outcome
    }

    /// Takes states into the lanes and steps, as long as there are enough to refill both groups; when
    /// flushing, until there are none.
    #[inline(always)]
    fn run<L: Lanes, const LOWER: bool>(
        &mut self,
        lanes: L,
        row: &Row<L>,
        flushing: bool,
        work: &mut impl Step<L>,
    ) -> Outcome {
        let both_groups = 2 * L::COUNT;
        let (mut a, mut b) = (Group::unpark(lanes, &self.groups[0]), Group::unpark(lanes, &self.groups[1]));
        let (mut start, end) = (self.start, self.end);
        let mut outcome = Outcome::Dry;
        if !self.live && end - start >= both_groups {
            start += a.refill::<LOWER>(lanes, lanes.all(), &self.stack, start, row);
            start += b.refill::<LOWER>(lanes, lanes.all(), &self.stack, start, row);
            self.live = true;
        }
        if self.live {
            while start + both_groups <= end {
                let full_a = work.step(lanes, &mut a, lanes.all());
                start += a.refill::<LOWER>(lanes, lanes.zero(a.open), &self.stack, start, row);
                let full_b = work.step(lanes, &mut b, lanes.all());
                start += b.refill::<LOWER>(lanes, lanes.zero(b.open), &self.stack, start, row);
                if full_a | full_b {
                    outcome = Outcome::ChildFull;
                    break;
                }
            }
        }
        if flushing && matches!(outcome, Outcome::Dry) {
            // Lanes that are not live have nothing open.
            outcome = 'dry: loop {
                for group in [&mut a, &mut b] {
                    loop {
                        let active = lanes.meet(group.open, group.open);
                        if lanes.count(active) == 0 {
                            break;
                        }
                        if work.step(lanes, group, active) {
                            break 'dry Outcome::ChildFull;
                        }
                    }
                }
                if start == end {
                    self.live = false;
                    break Outcome::Dry;
                }
                let some = lanes.first(L::COUNT.min(end - start));
                start += a.refill::<LOWER>(lanes, some, &self.stack, start, row);
            };
        }
        if matches!(outcome, Outcome::Dry) {
            // Fewer than two groups are left: to the front with them.
            for words in &mut self.stack {
                words.copy_within(start..end, 0);
            }
            self.end = end - start;
            start = 0;
        }
        self.start = start;
        a.park(lanes, &mut self.groups[0]);
        b.park(lanes, &mut self.groups[1]);
        outcome
    }
}

impl Found {
    /// Adds the solutions of one visit to the last level, counted both ways.
    fn add(&mut self, solutions: usize, counters: &[u32; MOST_LANES]) {
        debug_assert!(solutions <= MOST_PER_VISIT);
        self.solutions = self.solutions.checked_add(solutions as u64).expect("7 years of counting");
        let by_lanes: u64 = counters.iter().map(|&c| u64::from(c)).sum();
        self.shadow = self.shadow.plus(Residues::of(by_lanes.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Problem};
    use crate::kernel::simd::lanes::assert_keeps_the_promises;
    use crate::kernel::simd::portable::{Portable, kernel};
    use crate::kernel::{KernelKind, count_range};
    use crate::preplacement::{Decomposition, Job};

    fn decomposition(n: usize) -> Decomposition {
        let problem = Problem::empty(Piece::Queen, n);
        let scheme = KernelKind::Avx512.scheme(&problem);
        Decomposition::new(Job::new(problem, scheme, Some(3), 1).expect("a small board"))
    }

    fn count(kernel: &mut dyn Kernel, n: usize) -> Result<u128, TallyError> {
        let decomposition = decomposition(n);
        count_range(kernel, &decomposition, 0..decomposition.prefixes())?.solutions()
    }

    #[test]
    fn the_engine_counts_right_over_plain_loops_of_any_width() {
        for (n, solutions) in [(8, 92), (9, 352), (10, 724), (11, 2680), (12, 14200), (13, 73712)] {
            assert_eq!(count(&mut *kernel::<16, 32>(), n), Ok(solutions), "16 lanes, n = {n}");
            assert_eq!(count(&mut *kernel::<8, 32>(), n), Ok(solutions), "8 lanes, n = {n}");
            assert_eq!(count(&mut *kernel::<1, 32>(), n), Ok(solutions), "1 lane, n = {n}");
        }
    }

    #[test]
    fn lane_counters_of_the_proven_width_never_wrap() {
        // 13 bits hold MOST_PER_VISIT even if one lane were to find everything.
        assert_eq!(count(&mut *kernel::<1, 13>(), 14), Ok(365_596));
        assert_eq!(count(&mut *kernel::<16, 13>(), 14), Ok(365_596));
    }

    #[test]
    fn a_lane_counter_that_wraps_is_caught_by_the_residues() {
        let outcome = count(&mut *kernel::<16, 2>(), 13);
        assert!(matches!(outcome, Err(TallyError::Residues { .. })), "{outcome:?}");
    }

    #[test]
    fn the_plain_loops_keep_the_promises_of_lanes() {
        let words = [[0b1011; 16], std::array::from_fn(|i| i as u32), [4; 16]];
        assert_keeps_the_promises(Portable::<16, 32>, &words, 3, 0b1010_1100_0101_1010);
        assert_keeps_the_promises(Portable::<8, 32>, &words, 33, 0b1010_1100);
    }
}
