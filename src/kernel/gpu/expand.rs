//! The CPU mirror of `shaders/expand.wgsl`: fills rows below the block.

use super::layout::{LAST_LEVEL, LEVELS, LowerRow, LowerState, Params, Segment, WORKGROUP, mark};
use super::mirror::Memory;
use crate::decomposition::columns_of;

/// Runs the shader once, one workgroup after the other.
pub fn expand(memory: &mut Memory, params: &Params) {
    let count = memory.counters.source_count;
    for first in (0..count).step_by(WORKGROUP as usize) {
        workgroup(memory, params, first..count.min(first + WORKGROUP));
    }
}

fn workgroup(memory: &mut Memory, params: &Params, ids: std::ops::Range<u32>) {
    let mut wanted = [0; LEVELS];
    let mut work = Vec::new();
    for id in ids.clone() {
        let state = memory.levels[(memory.counters.source_first + id) as usize];
        let segment = memory.segments[state.segment as usize];
        let level = state.free.count_ones().wrapping_sub(segment.upper_rows) as usize;
        let taken = &mut memory.counters.lower_taken;
        *taken = taken.wrapping_add(state.mark());
        if level >= LEVELS {
            continue;
        }
        let onto = if level <= LAST_LEVEL { 0 } else { level - 1 };
        let kept = fill(memory, params, state, segment, level, None);
        work.push((state, segment, level, onto, wanted[onto]));
        wanted[onto] += kept;
    }
    let mut room = [0; LEVELS];
    for level in (0..LEVELS).filter(|&level| wanted[level] != 0) {
        let counters = &mut memory.counters;
        if level == 0 {
            room[0] = counters.ring_write;
            counters.ring_write = counters.ring_write.wrapping_add(wanted[0]);
        } else {
            room[level] = counters.level_first[level] + counters.level_count[level];
            counters.level_count[level] += wanted[level];
            counters.appended = counters.appended.wrapping_add(wanted[level]);
        }
    }
    memory.counters.expanded = memory.counters.expanded.wrapping_add(ids.end - ids.start);
    for (state, segment, level, onto, at) in work {
        fill(memory, params, state, segment, level, Some(room[onto].wrapping_add(at)));
    }
}

/// Generates all children of a state or, from level 2, its grandchildren, and stores them from `at`
/// on if that is given. Returns their number.
fn fill(
    memory: &mut Memory,
    params: &Params,
    state: LowerState,
    segment: Segment,
    level: usize,
    at: Option<u32>,
) -> u32 {
    if level == 0 {
        return put(memory, params, state, segment, 0, at);
    }
    let mut kept = 0u32;
    let row = memory.lower_rows[segment.rows as usize + level];
    let last = memory.lower_rows[segment.rows as usize + 1];
    for column in columns_of(available(row, state.free, state.left, state.right)) {
        let child = child_of(state, row, 1 << column);
        if level == 2 {
            for column in columns_of(available(last, child.free, child.left, child.right)) {
                let grandchild = child_of(child, last, 1 << column);
                let at = at.map(|at| at.wrapping_add(kept));
                kept += put(memory, params, grandchild, segment, 0, at);
            }
        } else {
            kept +=
                put(memory, params, child, segment, level - 1, at.map(|at| at.wrapping_add(kept)));
        }
    }
    kept
}

/// Stores a state on its level or in the ring, if `at` is given. Returns 1, or 0 if the row after
/// it has no open square.
fn put(
    memory: &mut Memory,
    params: &Params,
    state: LowerState,
    segment: Segment,
    level: usize,
    at: Option<u32>,
) -> u32 {
    if !has_open_square(memory, state, segment, level) {
        return 0;
    }
    match at {
        Some(at) if level == 0 => {
            let words = [state.free, state.upper_left, state.upper_right, segment.label];
            memory.ring[(at & params.ring_mask) as usize] = words;
            memory.counters.ring_put = memory.counters.ring_put.wrapping_add(mark(words));
        }
        Some(at) => {
            memory.levels[at as usize] = state;
            memory.counters.lower_put = memory.counters.lower_put.wrapping_add(state.mark());
        }
        None => {}
    }
    1
}

/// Returns the open squares of a row below the block.
fn available(row: LowerRow, free: u32, left: u32, right: u32) -> u32 {
    let open = free & !(left | right) & row.allowed;
    let centre_free = free & row.centre;
    let any = row.rule == 1 && centre_free != 0;
    let both = row.rule == 2 && centre_free == row.centre;
    if any || both { open & row.centre } else { open }
}

/// Returns the state with an additional queen.
fn child_of(state: LowerState, row: LowerRow, queen: u32) -> LowerState {
    LowerState {
        free: state.free ^ queen,
        left: (state.left | queen) << row.step,
        right: (state.right | queen) >> row.step,
        upper_left: state.upper_left | queen << row.to_upper,
        upper_right: state.upper_right | queen >> row.to_upper,
        segment: state.segment,
    }
}

/// Returns whether the row after the child has an open square; `level` is that of the child.
fn has_open_square(memory: &Memory, child: LowerState, segment: Segment, level: usize) -> bool {
    if level == 0 {
        return child.free & !(child.upper_left | child.upper_right) & segment.upper_allowed != 0;
    }
    let row = memory.lower_rows[segment.rows as usize + level];
    available(row, child.free, child.left, child.right) != 0
}
