//! The CPU mirror of `shaders/search.wgsl`: the deep search above the block. The shader documents
//! the bounds.

use super::layout::{CLASS_ROWS, GROUP, Lane, Params, SHADOW_LIMIT, TAKE, UpperRow, mark};
use super::mirror::Memory;
use super::tables::{Specialisation, Variant};

/// Runs the shader once, one lane after the other.
pub fn search(memory: &mut Memory, params: &Params, special: Specialisation) {
    let ring_write = memory.counters.ring_write;
    for index in 0..params.lanes as usize {
        let parked = memory.lanes[index];
        let mut lane = Running {
            memory,
            params,
            special,
            ring_write,
            index,
            lane: parked,
            stack: Vec::new(),
            next: 0,
            end: 0,
            counted: 0,
            settled: 0,
            column: 0,
            gate: 0,
        };
        lane.stack = (0..parked.height.min(special.depth) as usize)
            .map(|i| lane.memory.stacks[lane.stacked(i)])
            .collect();
        lane.run();
    }
    memory.counters.searches = memory.counters.searches.wrapping_add(1);
}

/// A running lane.
struct Running<'a> {
    memory: &'a mut Memory,
    params: &'a Params,
    special: Specialisation,
    /// The ring's write index when the search began.
    ring_write: u32,
    index: usize,
    lane: Lane,
    stack: Vec<[u32; 4]>,
    next: u32,
    end: u32,
    /// Hits in the high half, misses in the low half.
    counted: u32,
    settled: u32,
    column: u32,
    gate: u32,
}

impl Running<'_> {
    /// Returns the index at which the entry at height `i` is parked.
    fn stacked(&self, i: usize) -> usize {
        i * self.params.lanes as usize + self.index
    }

    /// Returns the checksum of a parked lane and its stack, without the high halves of its counts.
    fn mark(&self) -> u32 {
        let Lane { free, left, right, open, label, finished, hits, turns, shadow, .. } = self.lane;
        // A stack has at most 14 entries.
        let sum = mark([free, left, right, open]).wrapping_add(mark([
            label,
            self.stack.len() as u32,
            finished,
            2,
        ]));
        let sum = sum.wrapping_add(mark([hits, turns, shadow, 3]));
        self.stack.iter().fold(sum, |sum, &entry| sum.wrapping_mul(3).wrapping_add(mark(entry)))
    }

    fn run(mut self) {
        let parked = self.lane;
        if parked.open | parked.height | parked.finished != 0 && self.mark() != parked.check {
            self.memory.counters.faults += 1;
        }
        if self.special.variant == Variant::Gated {
            self.set_gate(self.stack.first().map_or(self.lane.free, |entry| entry[0]));
        }
        let mut now = 0;
        while now < self.params.turns {
            if self.lane.open == 0 {
                if now != 0 {
                    self.lane.finished = self.lane.finished.wrapping_add(1);
                }
                self.begin(now);
                if self.lane.open == 0 {
                    break;
                }
            }
            for _ in 0..GROUP {
                self.turn();
            }
            now += GROUP;
        }
        if now != 0 && now >= self.params.turns && self.lane.open == 0 {
            self.lane.finished = self.lane.finished.wrapping_add(1);
        }
        self.settle(now, self.params.flush != 0);
        if self.lane.open != 0 {
            self.memory.counters.busy += 1;
        }
        if self.next != self.end {
            let mut to = self.ring_write.wrapping_add(self.memory.counters.ring_returned);
            self.memory.counters.ring_returned += self.end.wrapping_sub(self.next);
            while self.next != self.end {
                let (from, onto) = (self.next & self.params.ring_mask, to & self.params.ring_mask);
                self.memory.ring[onto as usize] = self.memory.ring[from as usize];
                self.next = self.next.wrapping_add(1);
                to = to.wrapping_add(1);
            }
        }
        // A stack has at most 14 entries.
        self.lane.height = self.stack.len() as u32;
        for (i, &entry) in self.stack.iter().enumerate() {
            let at = self.stacked(i);
            self.memory.stacks[at] = entry;
        }
        self.lane.check = self.mark();
        self.memory.lanes[self.index] = self.lane;
    }

    /// Generates the next child of the state on top. If there is none, it only counts a miss.
    fn turn(&mut self) {
        let Lane { free, left, right, open, .. } = self.lane;
        let rest = open & open.wrapping_sub(1);
        let queen = open ^ rest;
        let child = free ^ queen;
        let (lefts, rights) = (left | queen, right | queen);
        let (mut child_left, mut child_right) = (lefts << 1, rights >> 1);
        let mut child_open = child & !(child_left | child_right);
        let mut after_next = child & !(lefts << 2 | rights >> 2);
        match self.special.variant {
            Variant::Plain => {}
            Variant::Gated => child_open &= !self.closed(child),
            Variant::General => {
                let [here, next, step_to, step_from] = self.row(child);
                child_left = lefts << step_to;
                child_right = rights >> step_to;
                child_open = child & !(child_left | child_right) & here;
                after_next = child & !(child_left << step_from | child_right >> step_from) & next;
            }
        }
        if !self.special.look_ahead {
            after_next = 1;
        }
        let several = child & child.wrapping_sub(1);
        self.counted += if several == 0 && child_open != 0 { 1 << 16 } else { 1 };
        let enters = child_open != 0 && after_next != 0 && several != 0;
        if enters && rest != 0 {
            self.stack.push([free, left, right, rest]);
            assert!(self.stack.len() <= self.special.depth as usize, "the stack is deep enough");
        }
        let state = if enters {
            [child, child_left, child_right, child_open]
        } else if rest == 0 {
            // The lowest entry of the shader's stack is zero.
            self.stack.pop().unwrap_or_default()
        } else {
            [free, left, right, rest]
        };
        [self.lane.free, self.lane.left, self.lane.right, self.lane.open] = state;
    }

    /// Returns the current row when `free` columns are free.
    fn row(&self, free: u32) -> UpperRow {
        let class = (self.lane.label >> 16) as usize;
        self.memory.upper_rows[class * CLASS_ROWS + free.count_ones() as usize]
    }

    /// Sets the gate of the lane's class, if the lowest state of the stack has these free columns.
    fn set_gate(&mut self, bottom: u32) {
        let [gate, columns, ..] = self.row(0);
        self.column = bottom & columns;
        self.gate = gate << (self.column.trailing_zeros() & 31);
    }

    /// Returns the column that the gate closes when `free` columns are free.
    fn closed(&self, free: u32) -> u32 {
        self.gate >> free.count_ones() & self.column
    }

    /// Begins the next state, at turn `now`; `open` stays 0 if there is none.
    fn begin(&mut self, now: u32) {
        if self.next == self.end && !self.take() {
            return;
        }
        let [free, left, right, label] =
            self.memory.ring[(self.next & self.params.ring_mask) as usize];
        self.next = self.next.wrapping_add(1);
        let taken = &mut self.memory.counters.ring_taken;
        *taken = taken.wrapping_add(mark([free, left, right, label]));
        if (label ^ self.lane.label) & 0xffff != 0 {
            self.settle(now, true);
        }
        self.lane.free = free;
        self.lane.left = left;
        self.lane.right = right;
        self.lane.label = label;
        self.lane.open = free & !(left | right);
        match self.special.variant {
            Variant::Plain => {}
            Variant::Gated => {
                self.set_gate(free);
                self.lane.open &= !self.closed(free);
            }
            Variant::General => self.lane.open &= self.row(free)[0],
        }
    }

    /// Takes states from the ring; returns false if it is empty.
    fn take(&mut self) -> bool {
        let read = &mut self.memory.counters.ring_read;
        if self.ring_write.wrapping_sub(*read).cast_signed() <= 0 {
            return false;
        }
        self.next = *read;
        *read = read.wrapping_add(TAKE);
        let there = self.ring_write.wrapping_sub(self.next);
        self.end = self.next.wrapping_add(there.min(TAKE));
        true
    }

    /// Moves the hits and misses of the turns before `now` to the lane's sums, and these to the
    /// slot if `and_flush` is set.
    fn settle(&mut self, now: u32, and_flush: bool) {
        let (hits, misses) = (self.counted >> 16, self.counted & 0xffff);
        let turns = now - self.settled;
        let lane = &mut self.lane;
        add_pair(&mut lane.hits, &mut lane.hits_high, hits, 0);
        add_pair(&mut lane.turns, &mut lane.turns_high, turns, 0);
        lane.shadow += turns - misses;
        self.counted = 0;
        self.settled = now;
        if and_flush || self.lane.shadow >= SHADOW_LIMIT {
            self.flush();
        }
    }

    /// Moves what was counted for the slot of `label` from the lane to the slot.
    fn flush(&mut self) {
        let lane = &mut self.lane;
        let slot = &mut self.memory.slots[(lane.label & 0xffff) as usize];
        add_pair(&mut slot.hits, &mut slot.hits_high, lane.hits, lane.hits_high);
        add_pair(&mut slot.turns, &mut slot.turns_high, lane.turns, lane.turns_high);
        let [low, low_high, high, high_high] = &mut slot.shadow;
        add_pair(low, low_high, lane.shadow & 0xffff, 0);
        add_pair(high, high_high, lane.shadow >> 16, 0);
        slot.finished = slot.finished.wrapping_add(lane.finished);
        *lane = Lane {
            hits: 0,
            hits_high: 0,
            turns: 0,
            turns_high: 0,
            shadow: 0,
            finished: 0,
            ..*lane
        };
    }
}

/// Adds to a 64-bit pair with carry.
fn add_pair(low: &mut u32, high: &mut u32, more: u32, more_high: u32) {
    let carry;
    (*low, carry) = low.overflowing_add(more);
    *high = high.wrapping_add(more_high).wrapping_add(carry.into());
}
