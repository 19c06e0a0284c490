//! The mirror of `shaders/expand.wgsl`: fills one more row below the block.

use super::layout::{LEVELS, LowerRow, LowerState, Params, Segment, WORKGROUP};
use super::mirror::Memory;
use crate::preplacement::columns_of;

/// One run of the shader; workgroups one after the other.
pub fn expand(memory: &mut Memory, params: &Params) {
    let count = memory.control.source_count;
    for first in (0..count).step_by(WORKGROUP as usize) {
        workgroup(memory, params, first..count.min(first + WORKGROUP));
    }
}

/// What an invocation knows before the first barrier.
#[derive(Default)]
struct Invocation {
    state: LowerState,
    segment: Segment,
    row: LowerRow,
    open: u32,
    /// The level of the children.
    below: usize,
    kept: u32,
    filled: bool,
    at: u32,
}

fn workgroup(memory: &mut Memory, params: &Params, ids: std::ops::Range<u32>) {
    let mut children = [0; LEVELS];
    let mut invocations: Vec<Invocation> = ids.clone().map(|id| look(memory, id)).collect();
    for it in invocations.iter_mut().filter(|it| it.kept != 0) {
        it.at = children[it.below];
        children[it.below] += it.kept;
    }
    let mut room = [0; LEVELS];
    for level in (0..LEVELS).filter(|&level| children[level] != 0) {
        let control = &mut memory.control;
        if level == 0 {
            room[0] = control.ring_write;
            control.ring_write = control.ring_write.wrapping_add(children[0]);
        } else {
            room[level] = control.level_first[level] + control.level_count[level];
            control.level_count[level] += children[level];
            control.appended = control.appended.wrapping_add(children[level]);
        }
    }
    memory.control.expanded = memory.control.expanded.wrapping_add(ids.end - ids.start);
    for it in &invocations {
        let mut at = it.at.wrapping_add(room[it.below]);
        if it.filled {
            emit(memory, params, it.state, it.segment, 0, at);
        }
        for column in columns_of(it.open) {
            let child = child_of(it.state, it.row, 1 << column);
            if has_open_square(memory, child, it.segment, it.below) {
                emit(memory, params, child, it.segment, it.below, at);
                at = at.wrapping_add(1);
            }
        }
    }
}

/// Takes a state and counts its children.
fn look(memory: &Memory, id: u32) -> Invocation {
    let state = memory.levels[(memory.control.source_first + id) as usize];
    let segment = memory.segments[state.segment as usize];
    let level = state.free.count_ones() - segment.upper_rows;
    let mut it = Invocation { state, segment, ..Invocation::default() };
    if level == 0 {
        it.filled = has_open_square(memory, state, segment, 0);
        it.kept = u32::from(it.filled);
    } else {
        it.below = level as usize - 1;
        it.row = memory.lower_rows[(segment.rows + level) as usize];
        it.open = available(it.row, state.free, state.left, state.right);
        for column in columns_of(it.open) {
            let child = child_of(state, it.row, 1 << column);
            it.kept += u32::from(has_open_square(memory, child, segment, it.below));
        }
    }
    it
}

/// The open squares of a row below the block.
fn available(row: LowerRow, free: u32, left: u32, right: u32) -> u32 {
    let open = free & !(left | right) & row.allowed;
    let centre_free = free & row.centre;
    let any = row.rule == 1 && centre_free != 0;
    let both = row.rule == 2 && centre_free == row.centre;
    if any || both { open & row.centre } else { open }
}

/// The state with a queen more.
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

/// Whether the row after the child has an open square; `level` is that of the child.
fn has_open_square(memory: &Memory, child: LowerState, segment: Segment, level: usize) -> bool {
    if level == 0 {
        return child.free & !(child.upper_left | child.upper_right) & segment.upper_allowed != 0;
    }
    let row = memory.lower_rows[segment.rows as usize + level];
    available(row, child.free, child.left, child.right) != 0
}

fn emit(memory: &mut Memory, params: &Params, child: LowerState, segment: Segment, level: usize, at: u32) {
    if level == 0 {
        memory.ring[(at & params.ring_mask) as usize] =
            [child.free, child.upper_left, child.upper_right, segment.label];
    } else {
        memory.levels[at as usize] = child;
    }
}
