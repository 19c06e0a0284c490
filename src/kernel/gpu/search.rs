//! The mirror of `shaders/search.wgsl`: the deep search above the block. See there for the bounds.

use super::layout::{CLASS_ROWS, Lane, MANY_FLUSHES, Params, SHADOW_LIMIT, TAKE};
use super::mirror::Memory;
use super::tables::Specialisation;

const HIT: u32 = 1;
const MISS: u32 = 1 << 16;

/// One run of the shader; lanes one after the other.
pub fn search(memory: &mut Memory, params: &Params, special: Specialisation) {
    let ring_write = memory.control.ring_write;
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
            score: 0,
            settled: 0,
        };
        lane.stack = (0..parked.height as usize).map(|i| lane.memory.stacks[lane.stacked(i)]).collect();
        lane.run();
    }
    memory.control.searches = memory.control.searches.wrapping_add(1);
}

/// A lane at work.
struct Running<'a> {
    memory: &'a mut Memory,
    params: &'a Params,
    special: Specialisation,
    /// What the ring held when the search began.
    ring_write: u32,
    index: usize,
    lane: Lane,
    stack: Vec<[u32; 4]>,
    next: u32,
    end: u32,
    score: u32,
    settled: u32,
}

impl Running<'_> {
    /// Where the entry at height `i` is parked.
    fn stacked(&self, i: usize) -> usize {
        i * self.params.lanes as usize + self.index
    }

    fn run(mut self) {
        if self.lane.open == 0 {
            self.begin(0);
        }
        let mut now = 0;
        while now < self.params.turns && self.lane.open != 0 {
            for ahead in 0..4 {
                self.turn(now + ahead);
            }
            now += 4;
        }
        if self.lane.open != 0 {
            self.settle(now, false);
            self.memory.control.busy += 1;
        }
        if self.params.flush != 0 {
            self.settle(self.settled, true);
        }
        if self.next != self.end {
            let mut to = self.ring_write.wrapping_add(self.memory.control.ring_returned);
            self.memory.control.ring_returned += self.end.wrapping_sub(self.next);
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
        self.memory.lanes[self.index] = self.lane;
    }

    /// Makes the next child of the state on top, if there is a state.
    fn turn(&mut self, now: u32) {
        if self.lane.open == 0 {
            return;
        }
        let Lane { free, left, right, open, .. } = self.lane;
        let lower = open - 1;
        let queen = open & !lower;
        let rest = open & lower;
        let child = free ^ queen;
        let row = if self.special.general { self.row(child) } else { [u32::MAX, u32::MAX, 1, 1] };
        let child_left = (left | queen) << row[2];
        let child_right = (right | queen) >> row[2];
        let child_open = child & !(child_left | child_right) & row[0];
        let after_next = if self.special.look_ahead {
            child & !(child_left << row[3] | child_right >> row[3]) & row[1]
        } else {
            1
        };
        let several = child & (child - 1);
        self.score += if several == 0 && child_open != 0 { HIT } else { MISS };
        if child_open != 0 && after_next != 0 && several != 0 {
            if rest != 0 {
                self.stack.push([free, left, right, rest]);
                assert!(self.stack.len() <= self.special.depth as usize, "the stack is deep enough");
            }
            self.lane.free = child;
            self.lane.left = child_left;
            self.lane.right = child_right;
            self.lane.open = child_open;
        } else if rest != 0 {
            self.lane.open = rest;
        } else if let Some(parent) = self.stack.pop() {
            [self.lane.free, self.lane.left, self.lane.right, self.lane.open] = parent;
        } else {
            self.lane.finished = self.lane.finished.wrapping_add(1);
            self.begin(now + 1);
            if self.lane.open == 0 {
                self.settle(now + 1, false);
            }
        }
    }

    /// The row that is current when `free` columns are free.
    fn row(&self, free: u32) -> [u32; 4] {
        let class = (self.lane.label >> 16) as usize;
        self.memory.upper_rows[class * CLASS_ROWS + free.count_ones() as usize - 1]
    }

    /// Begins the next state, at turn `now`; `open` is 0 if there is none.
    fn begin(&mut self, now: u32) {
        self.lane.open = 0;
        if self.next == self.end && !self.take() {
            return;
        }
        let [free, left, right, label] = self.memory.ring[(self.next & self.params.ring_mask) as usize];
        self.next = self.next.wrapping_add(1);
        if (label ^ self.lane.label) & 0xffff != 0 {
            self.settle(now, true);
        }
        self.lane.free = free;
        self.lane.left = left;
        self.lane.right = right;
        self.lane.label = label;
        self.lane.open = free & !(left | right);
        if self.special.general {
            self.lane.open &= self.row(free)[0];
        }
    }

    /// Takes states from the ring; false if it is dry.
    fn take(&mut self) -> bool {
        let read = &mut self.memory.control.ring_read;
        if self.ring_write.wrapping_sub(*read).cast_signed() <= 0 {
            return false;
        }
        self.next = *read;
        *read = read.wrapping_add(TAKE);
        let there = self.ring_write.wrapping_sub(self.next);
        self.end = self.next.wrapping_add(there.min(TAKE));
        true
    }

    /// Moves the score of the turns before `now` to the lane's sums, and these to the slot if asked.
    fn settle(&mut self, now: u32, and_flush: bool) {
        let (hits, misses) = (self.score & 0xffff, self.score >> 16);
        let turns = now - self.settled;
        let lane = &mut self.lane;
        add_pair(&mut lane.hits, &mut lane.hits_high, hits, 0);
        add_pair(&mut lane.turns, &mut lane.turns_high, turns, 0);
        lane.shadow += turns - misses;
        self.score = 0;
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
        for (digit, byte) in slot.shadow.iter_mut().zip(lane.shadow.to_le_bytes()) {
            *digit = digit.wrapping_add(byte.into());
        }
        slot.finished = slot.finished.wrapping_add(lane.finished);
        if slot.flushes < MANY_FLUSHES {
            slot.flushes += 1;
        }
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

/// Adds to a carried pair.
fn add_pair(low: &mut u32, high: &mut u32, more: u32, more_high: u32) {
    let carry;
    (*low, carry) = low.overflowing_add(more);
    *high = high.wrapping_add(more_high).wrapping_add(carry.into());
}
