//! A level: the states with a given number of open rows left, and how its lanes process them.

use super::group::{CAPACITY, FULL, Group, Parked, Row, Stack, WORDS};
use super::lanes::{Lanes, MOST_LANES};
use crate::tally::Residues;

/// The maximum number of solutions that a lane counter sees between two resets.
const MOST_PER_VISIT: usize = 6 * (CAPACITY + 2 * MOST_LANES);
const _: () = assert!(MOST_PER_VISIT < 1 << 13);

/// The level that is closed in registers.
pub(super) const CLOSING: usize = 3;

/// The results since they were last added to the tally.
#[derive(Default)]
pub(super) struct Found {
    /// Solutions, from population counts.
    pub(super) solutions: u64,
    /// The same solutions, from lane counters.
    pub(super) shadow: Residues,
    /// The number of states put on stacks.
    pub(super) nodes: u64,
}

impl Found {
    /// Adds the solutions of one visit to the last level, counted both ways.
    fn add(&mut self, solutions: usize, counters: &[u32; MOST_LANES]) {
        assert!(solutions <= MOST_PER_VISIT, "more solutions than a visit can find");
        self.solutions = self.solutions.checked_add(solutions as u64).expect("7 years of counting");
        let by_lanes: u64 = counters.iter().map(|&c| u64::from(c)).sum();
        self.shadow = self.shadow.plus(Residues::of(by_lanes.into()));
    }
}

/// The states with a given number of open rows left.
#[repr(align(64))]
pub(super) struct Level {
    /// The words free, left, right, and below the block the two diagonals for the first row above
    /// it.
    stack: Stack,
    /// The states of the stack not yet taken: `stack[..][start..end]`.
    start: usize,
    end: usize,
    groups: [Parked; 2],
    /// True if the groups hold parents.
    live: bool,
}

/// The reason why a level stopped.
pub(super) enum Outcome {
    /// The level below must run first.
    ChildFull,
    /// Too few states are left to keep the lanes full (none, when flushing).
    Dry,
}

/// The operation of a level on the next child of each lane of a group.
trait Step<L: Lanes> {
    /// Processes the lanes of `active`; returns whether the level below must run soon.
    fn step(&mut self, lanes: L, group: &mut Group<L>, active: L::Mask) -> bool;
}

/// Pushes the children onto the stack of the level below.
struct Emit<'a, L: Lanes, const LOWER: bool, const AHEAD: bool> {
    stack: &'a mut Stack,
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
    /// Creates a level without states.
    pub(super) fn new() -> Self {
        let groups = [Parked::EMPTY; 2];
        Self { stack: [[0; CAPACITY]; WORDS], start: 0, end: 0, groups, live: false }
    }

    /// Pushes a state onto the stack; returns whether the stack is now full.
    pub(super) fn push(&mut self, state: [u32; WORDS]) -> bool {
        for (stack, word) in self.stack.iter_mut().zip(state) {
            stack[self.end] = word;
        }
        self.end += 1;
        self.end >= FULL
    }

    /// Expands states onto the stack of `child` until that is full or too few are left.
    #[inline(always)]
    pub(super) fn expand<L: Lanes, const LOWER: bool, const AHEAD: bool>(
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
    pub(super) fn close<L: Lanes>(
        &mut self,
        lanes: L,
        row: &Row<L>,
        flushing: bool,
        found: &mut Found,
    ) -> Outcome {
        let mut close = Close { solutions: 0, counter: lanes.splat(0), row };
        let outcome = self.run::<L, false>(lanes, row, flushing, &mut close);
        let mut counters = [0; MOST_LANES];
        lanes.store(&mut counters, 0, close.counter);
        found.add(close.solutions, &counters);
        outcome
    }

    /// Takes states into the lanes and steps while there are enough to refill both groups or, when
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
        let (mut a, mut b) =
            (Group::unpark(lanes, &self.groups[0]), Group::unpark(lanes, &self.groups[1]));
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
            // Fewer than two groups are left: move them to the front.
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
