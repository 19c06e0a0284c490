//! The CPU mirror of `shaders/schedule.wgsl`: chooses the states that the next expansion takes.

use super::layout::{LAST_LEVEL, LEVELS, Params};
use super::mirror::Memory;

/// Runs the shader once.
pub fn schedule(memory: &mut Memory, params: &Params) {
    let control = &mut memory.control;
    control.stamp = params.stamp;
    control.busy = 0;
    control.source_count = 0;

    if (control.ring_write.wrapping_sub(control.ring_read)).cast_signed() < 0 {
        control.ring_read = control.ring_write;
    }
    control.ring_write = control.ring_write.wrapping_add(control.ring_returned);
    control.returned_total = control.returned_total.wrapping_add(control.ring_returned);
    control.ring_returned = 0;

    let full = (1..LEVELS).find(|&level| control.level_count[level] >= params.chunk);
    let prefixes = || (control.level_count[0] > 0).then_some(0);
    let shallowest = || (1..LEVELS).rev().find(|&level| control.level_count[level] > 0);
    let Some(source) = full.or_else(prefixes).or_else(shallowest) else { return };
    let mut taken = control.level_count[source].min(params.chunk);
    if source <= LAST_LEVEL {
        let filled = control.ring_write.wrapping_sub(control.ring_read) + params.ring_reserve;
        let room = (params.ring_mask + 1).saturating_sub(filled);
        taken = taken.min(room / params.most_emitted);
    }
    if taken == 0 {
        return;
    }
    control.level_count[source] -= taken;
    control.source_first = control.level_first[source] + control.level_count[source];
    control.source_count = taken;
    control.expansions = control.expansions.wrapping_add(1);
}
