//! The shader of column sets in host memory, for one workgroup of one lane: it lists, filters and
//! counts in the same way, but the order of a list differs.

use std::collections::VecDeque;

use super::backend::{SetBackend, SetShape, empty_frames};
use super::layout::{
    ALLOWED_ABOVE, ALLOWED_BELOW, FAMILY, FIRST_ABOVE, FIRST_BELOW, GAP, ITEM, MOST_OUTER_ROWS,
    NONE, NOT_COUNTED, ROW, ROWS_ABOVE, ROWS_BELOW, SetItem, SetParams, SetQueue, SetSlot,
    mark_of_set,
};
use crate::decomposition::columns_of;
use crate::kernel::gpu::fault::Fault;

/// The words of a frame.
const FRAME: usize = 8;
/// The position of the sum over the frames in use.
const CHECK: usize = 130;
/// The most pairs that have planes.
const MOST_PAIRS: u32 = 87;

/// A state: see the shader.
pub(super) type State = [u32; 2];

/// The memory of the device.
#[derive(Clone, Debug, Default)]
pub struct SetMemory {
    /// The words of the families.
    pub families: Vec<u32>,
    /// The sets of the batch.
    pub items: Vec<SetItem>,
    /// The state of the batch.
    pub queue: SetQueue,
    /// The slots of the sets.
    pub slots: Vec<SetSlot>,
    /// The pending work of the workgroup.
    pub frames: Vec<u32>,
    /// Its lists.
    pub states: Vec<[u32; 2]>,
}

/// A backend without a device.
#[derive(Clone, Debug, Default)]
pub struct SetMirror {
    /// The memory, which tests damage.
    pub memory: SetMemory,
    /// The workgroups of the shape, of which the first one does all the work.
    groups: u32,
    finished: VecDeque<SetQueue>,
}

/// The placements of the lower half of a set that are listed, and those that were tried.
#[derive(Default)]
struct Listing {
    states: Vec<State>,
    iterations: u32,
}

/// A partial placement of the lower half.
#[derive(Clone, Copy)]
struct Below {
    free: u32,
    from_right: u32,
    from_left: u32,
    left: u32,
    right: u32,
    rule: u32,
}

/// The upper queens placed so far: the columns that are left, and those of the next row that are
/// attacked from the right and from the left.
#[derive(Clone, Copy)]
struct Above {
    free: u32,
    from_right: u32,
    from_left: u32,
}

impl Above {
    const fn with_queen(self, queen: u32) -> Self {
        Self {
            free: self.free & !queen,
            from_right: (self.from_right | queen) << 1,
            from_left: (self.from_left | queen) >> 1,
        }
    }

    const fn open(self) -> u32 {
        self.free & !self.from_right & !self.from_left
    }
}

/// The effect on a list of a queen in a row that filters.
#[derive(Clone, Copy)]
struct Test {
    left: u32,
    right: u32,
    side: u32,
    limit: u32,
}

impl Test {
    const fn keeps(self, state: State) -> bool {
        let meets = (state[0] & self.left) | (state[1] & self.right);
        meets == 0 && !(state[1] >> 31 == self.side && state[0] >> 28 >= self.limit)
    }
}

/// A list in the workgroup's part of the states.
#[derive(Clone, Copy)]
struct List {
    start: usize,
    count: usize,
    mark: u32,
}

fn mark_of(state: State) -> u32 {
    state[0].wrapping_mul(0x9e37_79b1).wrapping_add(state[1].wrapping_mul(0x85eb_ca77))
}

fn sum_of_marks(states: &[State]) -> u32 {
    states.iter().fold(0, |sum, state| sum.wrapping_add(mark_of(*state)))
}

impl SetBackend for SetMirror {
    fn open_sets(&mut self, _columns: u32, shape: SetShape, families: &[u32]) -> Result<(), Fault> {
        let states = vec![[0; 2]; shape.capacity as usize];
        self.memory = SetMemory { families: families.to_vec(), states, ..SetMemory::default() };
        self.groups = shape.groups;
        self.finished.clear();
        Ok(())
    }

    fn load_sets(&mut self, items: &[SetItem]) -> Result<(), Fault> {
        self.memory.items = items.to_vec();
        self.memory.queue = SetQueue::default();
        self.memory.slots = vec![SetSlot::default(); items.len()];
        self.memory.frames = empty_frames(1);
        Ok(())
    }

    fn submit_sets(&mut self, params: &SetParams) -> Result<(), Fault> {
        Workgroup { memory: &mut self.memory, params: *params }.run();
        self.memory.queue.ran += self.groups - 1;
        self.memory.queue.idle += self.groups - 1;
        self.finished.push_back(self.memory.queue);
        Ok(())
    }

    fn wait_sets(&mut self) -> Result<SetQueue, Fault> {
        self.finished.pop_front().ok_or_else(|| Fault::Refused("nothing was submitted".into()))
    }

    fn set_slots(&mut self) -> Result<Vec<SetSlot>, Fault> {
        Ok(self.memory.slots.clone())
    }
}

struct Workgroup<'a> {
    memory: &'a mut SetMemory,
    params: SetParams,
}

impl Workgroup<'_> {
    fn run(&mut self) {
        let check = self.memory.frames[CHECK];
        if check != 0 && check != self.check_of_frames() | 1 {
            self.memory.queue.damaged += 1;
            self.memory.frames[ROW] = NONE;
            self.memory.frames[ITEM] = NONE;
        }
        let mut spent = 0;
        while self.step(&mut spent) {}
        self.memory.frames[CHECK] = self.check_of_frames() | 1;
        self.memory.queue.ran += 1;
        self.memory.queue.idle += u32::from(self.memory.frames[ITEM] == NONE);
        self.memory.queue.stamp = self.params.stamp;
    }

    /// Takes the next step. Returns false if there is none, or no time for it.
    fn step(&mut self, spent: &mut u32) -> bool {
        let has_time = *spent < self.params.budget;
        let (row, number) = (self.memory.frames[ROW], self.memory.frames[ITEM]);
        if row == NONE && number == NONE {
            return has_time && self.take(spent);
        }
        let item = number as usize;
        if row == NONE {
            self.memory.slots[item].finished += 1;
            self.memory.queue.finished += 1;
            self.memory.frames[ITEM] = NONE;
            return true;
        }
        let at = row as usize * FRAME;
        let [free, from_right, from_left, candidates, start, count, mark] =
            std::array::from_fn(|word| self.memory.frames[at + word]);
        if candidates == 0 {
            self.memory.frames[ROW] = row.wrapping_sub(1);
            return true;
        }
        if !has_time {
            return false;
        }
        let queen = candidates & candidates.wrapping_neg();
        self.memory.frames[at + 3] = candidates ^ queen;
        let column = queen.trailing_zeros();
        let family = self.memory.items[item].family as usize * FAMILY;
        let rule = self.memory.families[family + FIRST_ABOVE + column as usize];
        let [side, limit] = if row == 0 { [rule & 3, rule >> 2] } else { [2, 0] };
        let left = if column + row < self.params.n { queen << row } else { 0 };
        let test = Test { left, right: queen >> row, side, limit };
        let list = List { start: start as usize, count: count as usize, mark };
        let above = Above { free, from_right, from_left }.with_queen(queen);
        let rows = self.memory.families[family + ROWS_ABOVE] as usize;
        let outer = MOST_OUTER_ROWS.min(rows - 1);
        if row as usize + 1 + outer == rows {
            *spent += self.count_outer(item, family, rows - outer, outer, above, test, list);
        } else {
            *spent += 4 * count + 64;
            self.filter(item, row, above, test, list);
        }
        true
    }

    fn check_of_frames(&self) -> u32 {
        let frames = &self.memory.frames;
        let row = frames[ROW];
        let in_use = if row < 16 { (row as usize + 1) * FRAME } else { 0 };
        let start = row.wrapping_mul(31).wrapping_add(frames[ITEM]);
        frames[..in_use]
            .iter()
            .fold(start, |sum, word| sum.wrapping_mul(0x9e37_79b1).wrapping_add(*word))
    }

    fn push(&mut self, row: usize, family: usize, above: Above, list: List) {
        let allowed = self.memory.families[family + ALLOWED_ABOVE + row];
        let frame = [
            above.free,
            above.from_right,
            above.from_left,
            above.open() & allowed,
            list.start as u32,
            list.count as u32,
            list.mark,
        ];
        self.memory.frames[row * FRAME..][..frame.len()].copy_from_slice(&frame);
        self.memory.frames[ROW] = row as u32;
    }

    fn give_up(&mut self, item: usize) {
        self.memory.slots[item].overflows += 1;
        self.memory.frames[ROW] = NONE;
    }

    /// Takes the next set and lists its lower half. Returns false if there is none.
    fn take(&mut self, spent: &mut u32) -> bool {
        let item = self.memory.queue.next as usize;
        let Some(&set) = self.memory.items.get(item) else { return false };
        self.memory.queue.next += 1;
        self.memory.frames[ITEM] = item as u32;
        let family = set.family as usize * FAMILY;
        let words = &self.memory.families[family..][..FAMILY];
        let mark = mark_of_set(item as u32, &set, words);
        let slot = &mut self.memory.slots[item];
        slot.set_mark = slot.set_mark.wrapping_add(mark);
        let start = Below {
            free: set.lower,
            from_right: 0,
            from_left: 0,
            left: 0,
            right: 0,
            rule: 31 << 1,
        };
        let mut listing = Listing::default();
        self.list(&set, family, 0, start, &mut listing);
        let Listing { states, iterations } = listing;
        *spent += iterations + 512;
        self.memory.slots[item].listed += states.len() as u32;
        let is_complete = iterations < self.params.list_iterations;
        if states.len() > self.memory.states.len() || !is_complete {
            self.give_up(item);
        } else if !states.is_empty() {
            self.memory.states[..states.len()].copy_from_slice(&states);
            let list = List { start: 0, count: states.len(), mark: sum_of_marks(&states) };
            let above = Above { free: set.upper, from_right: 0, from_left: 0 };
            self.push(0, family, above, list);
        }
        true
    }

    fn list(&self, set: &SetItem, family: usize, row: usize, at: Below, listing: &mut Listing) {
        let families = &self.memory.families;
        if row == families[family + ROWS_BELOW] as usize {
            let state = [at.left | (at.rule >> 20) << 28, at.right | (at.rule & 1) << 31];
            listing.states.push(state);
            return;
        }
        let allowed = families[family + ALLOWED_BELOW + row];
        let open = at.free & !at.from_right & !at.from_left & allowed;
        let open = set.first_rows.get(row).map_or(open, |columns| open & columns);
        for column in columns_of(open) {
            if listing.iterations >= self.params.list_iterations {
                return;
            }
            listing.iterations += 1;
            let mut next = at;
            if row == 0 {
                next.rule = families[family + FIRST_BELOW + column];
            }
            let gap = families[family + GAP] as usize;
            if self.place(&mut next, row, 1 << column, gap) {
                self.list(set, family, row + 1, next, listing);
            }
        }
    }

    /// Places a queen of the lower half. Returns false if the rule does not count the placement.
    fn place(&self, at: &mut Below, row: usize, queen: u32, gap: usize) -> bool {
        if at.rule >> 1 & 31 == queen.trailing_zeros() {
            let group = if at.rule & 1 << 16 != 0 {
                row as u32 + 1
            } else if row as u32 >= at.rule >> 6 & 31 {
                at.rule >> 11 & 31
            } else {
                0
            };
            at.rule = at.rule & 0xf_ffff | 31 << 1 | group << 20;
            if group == NOT_COUNTED {
                return false;
            }
        }
        at.free &= !queen;
        at.from_right = (at.from_right | queen) << 1;
        at.from_left = (at.from_left | queen) >> 1;
        at.left |= queen >> (row + gap);
        at.right |= queen << (row + gap) & ((1 << self.params.n) - 1);
        true
    }

    fn filter(&mut self, item: usize, row: u32, above: Above, test: Test, list: List) {
        let SetMemory { states, slots, .. } = &mut *self.memory;
        let (before, after) = states.split_at_mut(list.start + list.count);
        let list_of_row = &before[list.start..];
        if sum_of_marks(list_of_row) != list.mark {
            slots[item].damaged += 1;
        }
        let kept: Vec<State> = list_of_row.iter().copied().filter(|s| test.keeps(*s)).collect();
        let Some(room) = after.get_mut(..kept.len()) else { return self.give_up(item) };
        if kept.is_empty() {
            return;
        }
        room.copy_from_slice(&kept);
        let mark = sum_of_marks(&kept);
        let family = self.memory.items[item].family as usize * FAMILY;
        let list = List { start: list.start + list.count, count: kept.len(), mark };
        self.push(row as usize + 1, family, above, list);
    }

    /// Counts the completions of the outer rows, from `first` on. Returns what it took.
    #[expect(clippy::too_many_arguments, reason = "they are the fields of a step")]
    fn count_outer(
        &mut self,
        item: usize,
        family: usize,
        first: usize,
        outer: usize,
        above: Above,
        test: Test,
        list: List,
    ) -> u32 {
        let columns: Vec<usize> = columns_of(above.free).collect();
        let mut completions = Vec::new();
        let allowed = &self.memory.families[family + ALLOWED_ABOVE + first..][..outer];
        complete(allowed, &columns, above, &mut Vec::new(), &mut completions);
        let mut spent = 0;
        // The ranks of row 4 in each part of the program.
        let whole = vec![completions];
        let parts = if pairs(&whole[0]) <= MOST_PAIRS { whole } else { halves(&whole[0]) };
        for (number, completions) in parts.iter().enumerate() {
            if completions.is_empty() {
                continue;
            }
            if pairs(completions) > MOST_PAIRS {
                self.give_up(item);
                break;
            }
            self.count_states(item, first, &columns, completions, test, list, number == 0);
            spent += (list.count as u32 / 128 + 1) * (completions.len() as u32 + 256) + 1024;
        }
        spent
    }

    /// Counts completions over the states of the list that the test keeps.
    #[expect(clippy::too_many_arguments, reason = "they are the fields of a step")]
    fn count_states(
        &mut self,
        item: usize,
        first: usize,
        columns: &[usize],
        completions: &[Vec<u8>],
        test: Test,
        list: List,
        is_first: bool,
    ) {
        let n = self.params.n as usize;
        let SetMemory { states, slots, .. } = &mut *self.memory;
        let states = &states[list.start..][..list.count];
        let slot = &mut slots[item];
        if sum_of_marks(states) != list.mark {
            slot.damaged += 1;
        }
        let kept: Vec<State> = states.iter().copied().filter(|state| test.keeps(*state)).collect();
        if is_first {
            add(&mut slot.states, kept.len() as u64);
        }
        let mut total = 0u32;
        for round in kept.chunks(32) {
            let plane = |word: usize, bit: usize| {
                round.iter().enumerate().fold(0, |p, (i, s)| p | (s[word] >> bit & 1) << i)
            };
            let square = |row: usize, rank: u8| {
                let column = columns[usize::from(rank)];
                let (row, mut attacked) = (first + row, 0u32);
                if column + row < n {
                    attacked = plane(0, column + row);
                }
                if column >= row {
                    attacked |= plane(1, column - row);
                }
                !attacked
            };
            let rows = completions.first().map_or(0, Vec::len);
            let squares: Vec<Vec<u32>> = (0..rows)
                .map(|row| (0..columns.len() as u8).map(|rank| square(row, rank)).collect())
                .collect();
            let valid = u32::MAX >> (32 - round.len());
            for completion in completions {
                let of_rows = squares.iter().zip(completion);
                let free = of_rows.fold(valid, |all, (row, &rank)| all & row[usize::from(rank)]);
                total += free.count_ones();
            }
        }
        add(&mut slot.hits, total.into());
        add(&mut slot.low, (total & 0xffff).into());
        add(&mut slot.high, (total >> 16).into());
    }
}

/// Adds to a number of 64 bits.
fn add(words: &mut [u32; 2], more: u64) {
    let sum = (u64::from(words[1]) << 32 | u64::from(words[0])) + more;
    *words = [sum as u32, (sum >> 32) as u32];
}

/// Finds the placements of the outer rows, as the rank of each row's column.
fn complete(
    allowed: &[u32],
    columns: &[usize],
    above: Above,
    ranks: &mut Vec<u8>,
    found: &mut Vec<Vec<u8>>,
) {
    let Some((row, rest)) = allowed.split_first() else { return found.push(ranks.clone()) };
    for (rank, column) in columns.iter().enumerate() {
        let queen = 1 << column;
        if above.open() & row & queen != 0 {
            ranks.push(rank as u8);
            complete(rest, columns, above.with_queen(queen), ranks, found);
            ranks.pop();
        }
    }
}

/// Returns the completions with one of the ranks 0 to 3 in row 4, and those with others.
fn halves(completions: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
    let (low, high) = completions.iter().cloned().partition(|ranks: &Vec<u8>| ranks[4] < 4);
    vec![low, high]
}

/// Returns the number of pairs of squares in rows 4 and 5, and in rows 6 and 7, that completions
/// use.
fn pairs(completions: &[Vec<u8>]) -> u32 {
    let mut used = [0u64; 2];
    for ranks in completions {
        for (used, row) in used.iter_mut().zip([4, 6]) {
            // A row that there is not has any other rank than its neighbour.
            let one = ranks.get(row).copied().unwrap_or(0);
            let other = ranks.get(row + 1).copied().unwrap_or(u8::from(one == 0));
            *used |= 1 << (8 * one + other);
        }
    }
    used.iter().map(|used| used.count_ones()).sum()
}
