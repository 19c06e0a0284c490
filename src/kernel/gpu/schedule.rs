//! The CPU mirror of `shaders/schedule.wgsl`: chooses the states that the next expansion takes.

use super::layout::{LAST_LEVEL, LEVELS, Params};
use super::mirror::Memory;

/// Runs the shader once.
pub fn schedule(memory: &mut Memory, params: &Params) {
    let counters = &mut memory.counters;
    counters.stamp = params.stamp;
    counters.busy = 0;
    counters.source_count = 0;

    if (counters.ring_write.wrapping_sub(counters.ring_read)).cast_signed() < 0 {
        counters.ring_read = counters.ring_write;
    }
    counters.ring_write = counters.ring_write.wrapping_add(counters.ring_returned);
    counters.returned_total = counters.returned_total.wrapping_add(counters.ring_returned);
    counters.ring_returned = 0;

    let full = (1..LEVELS).find(|&level| counters.level_count[level] >= params.chunk);
    let prefixes = || (counters.level_count[0] > 0).then_some(0);
    let shallowest = || (1..LEVELS).rev().find(|&level| counters.level_count[level] > 0);
    let Some(source) = full.or_else(prefixes).or_else(shallowest) else { return };
    let mut taken = counters.level_count[source].min(params.chunk);
    if source <= LAST_LEVEL {
        let filled = counters.ring_write.wrapping_sub(counters.ring_read) + params.ring_reserve;
        let room = (params.ring_mask + 1).saturating_sub(filled);
        taken = taken.min(room / params.most_emitted);
    }
    if taken == 0 {
        return;
    }
    counters.level_count[source] -= taken;
    counters.source_first = counters.level_first[source] + counters.level_count[source];
    counters.source_count = taken;
    counters.expansions = counters.expansions.wrapping_add(1);
}
