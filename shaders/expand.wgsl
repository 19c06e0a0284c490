// Fills rows below the block: each invocation takes one state. From level 3 up it fills one row and
// writes the children to the level below; from level 2 or 1 it fills all remaining rows and emits
// the states above the block to the ring, from which `search` takes them.
//
// Mirror: src/kernel/gpu/expand.rs. Layouts: src/kernel/gpu/layout.rs.
//
// A child is kept only if the row after it has an open square. The work is done twice, the first
// time only to count the children, so that a workgroup reserves space once. Going down, attacks
// along antidiagonals move right and those along diagonals left; `upper_left` and `upper_right` are
// the columns of the first row above the block that the queens so far attack, where attacks move in
// the other direction.

const LEVELS: u32 = 17u;
const TAKE_IF_ANY_FREE: u32 = 1u;
const TAKE_IF_BOTH_FREE: u32 = 2u;

struct Counters {
    stamp: u32,
    ring_write: atomic<u32>,
    ring_read: u32,
    ring_returned: u32,
    returned_total: u32,
    source_first: u32,
    source_count: u32,
    busy: u32,
    expansions: u32,
    expanded: atomic<u32>,
    appended: atomic<u32>,
    searches: u32,
    lower_put: atomic<u32>,
    lower_taken: atomic<u32>,
    ring_put: atomic<u32>,
    ring_taken: u32,
    faults: u32,
    level_first: array<u32, 17>,
    level_count: array<atomic<u32>, 17>,
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

// A state below the block.
struct LowerState {
    free: u32,
    left: u32,
    right: u32,
    upper_left: u32,
    upper_right: u32,
    segment: u32,
}

// The data shared by all states of one symmetry case and one unit.
struct Segment {
    rows: u32,
    upper_rows: u32,
    label: u32,
    upper_allowed: u32,
}

// A row below the block. Its index is `Segment.rows` plus the number of open rows left there,
// including this one.
struct LowerRow {
    allowed: u32,
    centre: u32,
    rule: u32,
    step: u32,
    to_upper: u32,
    pad: u32,
}

@group(0) @binding(0) var<storage, read_write> counters: Counters;
@group(0) @binding(1) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read_write> levels: array<LowerState>;
@group(0) @binding(3) var<storage, read_write> ring: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> segments: array<Segment>;
@group(0) @binding(5) var<storage, read> lower_rows: array<LowerRow>;

// The number of states that the workgroup writes to each level (0: the ring), and where its space
// begins.
var<workgroup> wanted: array<atomic<u32>, 17>;
var<workgroup> room: array<u32, 17>;
// Sums of marks: of states taken, of states written to levels, of states written to the ring.
var<workgroup> marks: array<atomic<u32>, 3>;
var<private> lower_put: u32;
var<private> ring_put: u32;

// Returns a number that depends on every bit of a state. The sums over the states written and over
// the states read differ if memory has changed one. The constants are odd and otherwise arbitrary.
fn mark(w: vec4<u32>) -> u32 {
    var h = w.x * 0x9e3779b1u + w.y * 0x85ebca77u + 0x7feb352du;
    h = (h ^ (h >> 16u)) + w.z * 0xc2b2ae3du + w.w * 0x27d4eb2fu;
    h = (h ^ (h >> 15u)) * 0x165667b1u;
    return h ^ (h >> 13u);
}

fn lower_mark(state: LowerState) -> u32 {
    let half = mark(vec4<u32>(state.free, state.left, state.right, state.segment));
    return mark(vec4<u32>(half, state.upper_left, state.upper_right, 1u));
}

// Returns the open squares of a row below the block.
fn available(row: LowerRow, free: u32, left: u32, right: u32) -> u32 {
    let open = free & ~(left | right) & row.allowed;
    let centre_free = free & row.centre;
    let any = row.rule == TAKE_IF_ANY_FREE && centre_free != 0u;
    let both = row.rule == TAKE_IF_BOTH_FREE && centre_free == row.centre;
    return select(open, open & row.centre, any || both);
}

// Returns the state with one more queen.
fn child_of(state: LowerState, row: LowerRow, queen: u32) -> LowerState {
    var child: LowerState;
    child.free = state.free ^ queen;
    child.left = (state.left | queen) << row.step;
    child.right = (state.right | queen) >> row.step;
    child.upper_left = state.upper_left | (queen << row.to_upper);
    child.upper_right = state.upper_right | (queen >> row.to_upper);
    child.segment = state.segment;
    return child;
}

// Returns whether the row after the child has an open square; `level` is that of the child.
fn has_open_square(child: LowerState, segment: Segment, level: u32) -> bool {
    if (level == 0u) {
        return (child.free & ~(child.upper_left | child.upper_right) & segment.upper_allowed) != 0u;
    }
    return available(lower_rows[segment.rows + level], child.free, child.left, child.right) != 0u;
}

// Writes a state to its level or to the ring, if `emitting`. Returns 1, or 0 if the row after it
// has no open square.
fn put(state: LowerState, segment: Segment, level: u32, emitting: bool, at: u32) -> u32 {
    if (!has_open_square(state, segment, level)) {
        return 0u;
    }
    if (emitting && level == 0u) {
        let words = vec4<u32>(state.free, state.upper_left, state.upper_right, segment.label);
        ring[at & params.ring_mask] = words;
        ring_put += mark(words);
    } else if (emitting) {
        levels[at] = state;
        lower_put += lower_mark(state);
    }
    return 1u;
}

// Creates all children of a state or, from level 2, the children of its children, and writes them
// from `at` on if `emitting`. Returns their number.
fn fill(state: LowerState, segment: Segment, level: u32, emitting: bool, at: u32) -> u32 {
    if (level == 0u) {
        // The prefix leaves no row below the block open.
        return put(state, segment, 0u, emitting, at);
    }
    var kept = 0u;
    let row = lower_rows[segment.rows + level];
    let last = lower_rows[segment.rows + 1u];
    for (var rest = available(row, state.free, state.left, state.right); rest != 0u; rest &= rest - 1u) {
        let child = child_of(state, row, rest & (~rest + 1u));
        if (level == 2u) {
            var below = available(last, child.free, child.left, child.right);
            for (; below != 0u; below &= below - 1u) {
                let grandchild = child_of(child, last, below & (~below + 1u));
                kept += put(grandchild, segment, 0u, emitting, at + kept);
            }
        } else {
            kept += put(child, segment, level - 1u, emitting, at + kept);
        }
    }
    return kept;
}

@compute @workgroup_size(64)
fn expand(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    // The host requests workgroup memory that is not initialised: a driver that zeroes it without a
    // barrier lets a lane add to a word before another lane zeroes it.
    if (lane < LEVELS) {
        atomicStore(&wanted[lane], 0u);
    }
    if (lane < 3u) {
        atomicStore(&marks[lane], 0u);
    }
    workgroupBarrier();
    let works = id.x < counters.source_count;
    var state: LowerState;
    var segment: Segment;
    var level = 0u;
    var onto = 0u; // the level of the written states; 0: the ring
    var kept = 0u;
    var at = 0u;
    if (works) {
        state = levels[counters.source_first + id.x];
        segment = segments[state.segment];
        level = countOneBits(state.free) - segment.upper_rows;
        atomicAdd(&marks[0], lower_mark(state));
        // A state that memory has changed may have any level; its mark reveals this.
        if (level < LEVELS) {
            onto = select(level - 1u, 0u, level <= 2u);
            kept = fill(state, segment, level, false, 0u);
            at = atomicAdd(&wanted[onto], kept);
        }
    }
    workgroupBarrier();
    if (lane < LEVELS) {
        let count = atomicLoad(&wanted[lane]);
        if (count != 0u && lane == 0u) {
            room[0] = atomicAdd(&counters.ring_write, count);
        } else if (count != 0u) {
            room[lane] = counters.level_first[lane] + atomicAdd(&counters.level_count[lane], count);
            atomicAdd(&counters.appended, count);
        }
    }
    if (lane == 0u && works) {
        atomicAdd(&counters.expanded, min(counters.source_count - id.x, 64u));
    }
    workgroupBarrier();
    if (kept != 0u) {
        fill(state, segment, level, true, room[onto] + at);
        atomicAdd(&marks[1], lower_put);
        atomicAdd(&marks[2], ring_put);
    }
    workgroupBarrier();
    if (lane == 0u) {
        atomicAdd(&counters.lower_taken, atomicLoad(&marks[0]));
        atomicAdd(&counters.lower_put, atomicLoad(&marks[1]));
        atomicAdd(&counters.ring_put, atomicLoad(&marks[2]));
    }
}
