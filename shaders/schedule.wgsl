// Chooses the states that the next expansion takes. One invocation, which runs before every
// `expand`.
//
// Mirror: src/kernel/gpu/schedule.rs. Layouts: src/kernel/gpu/layout.rs.
//
// Open states below the block are on stacks, one for each level; a level is the number of open rows
// left below the block, and level 0 holds the prefixes of the batch. The deepest level with a full
// chunk is expanded first, so a stack never holds more than one chunk and the children of another,
// which is the size that the host allocates. If no level has a full chunk, new prefixes are taken;
// when there are none, the shallowest level with states, so that the deeper ones fill.

const LEVELS: u32 = 17u;
// From this level down, and from prefixes, which may have this level, an expansion emits to the
// ring.
const LAST_LEVEL: u32 = 2u;

struct Counters {
    stamp: u32,
    ring_write: u32,
    ring_read: u32,
    ring_returned: u32,
    returned_total: u32,
    source_first: u32,
    source_count: u32,
    busy: u32,
    expansions: u32,
    expanded: u32,
    appended: u32,
    searches: u32,
    lower_put: u32,
    lower_taken: u32,
    ring_put: u32,
    ring_taken: u32,
    faults: u32,
    level_first: array<u32, 17>,
    level_count: array<u32, 17>,
}

struct Params {
    stamp: u32,
    turns: u32,
    chunk: u32,
    ring_mask: u32,
    ring_reserve: u32,
    most_emitted: u32,
    flush: u32,
    lanes: u32,
}

@group(0) @binding(0) var<storage, read_write> counters: Counters;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(1)
fn schedule() {
    counters.stamp = params.stamp;
    counters.busy = 0u;
    counters.source_count = 0u;

    // Lanes that found the ring empty have moved the read index past its end. The states that they
    // had taken and not begun follow it.
    if (i32(counters.ring_write - counters.ring_read) < 0) {
        counters.ring_read = counters.ring_write;
    }
    counters.ring_write += counters.ring_returned;
    counters.returned_total += counters.ring_returned;
    counters.ring_returned = 0u;

    var source = LEVELS;
    for (var level = 1u; level < LEVELS && source == LEVELS; level++) {
        if (counters.level_count[level] >= params.chunk) {
            source = level;
        }
    }
    if (source == LEVELS && counters.level_count[0] > 0u) {
        source = 0u;
    }
    for (var level = LEVELS - 1u; level > 0u && source == LEVELS; level--) {
        if (counters.level_count[level] > 0u) {
            source = level;
        }
    }
    if (source == LEVELS) {
        return;
    }
    var taken = min(counters.level_count[source], params.chunk);
    if (source <= LAST_LEVEL) {
        // Leave space for all states that the expansion emits and that the next search returns.
        let filled = counters.ring_write - counters.ring_read + params.ring_reserve;
        let room = params.ring_mask + 1u - min(filled, params.ring_mask + 1u);
        taken = min(taken, room / params.most_emitted);
    }
    if (taken == 0u) {
        return;
    }
    counters.level_count[source] -= taken;
    counters.source_first = counters.level_first[source] + counters.level_count[source];
    counters.source_count = taken;
    counters.expansions += 1u;
}
