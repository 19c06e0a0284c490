// Counts the completions of states above the block: the deep search, which takes nearly all of the
// time.
//
// Mirror: src/kernel/gpu/search.rs. Layouts: src/kernel/gpu/layout.rs.
//
// Each lane searches one state at a time and creates one child per turn. The top of its stack is in
// registers; workgroup memory is accessed only to push a parent that has untried squares, or to pop
// one when a branch ends. Entries have 16 bytes and are ordered [depth][lane], so that neighbouring
// lanes never share a bank. A child is entered only if its row and the row after it have an open
// square. A lane that finishes its state takes the next one from the ring.
//
// The lowest entry of each stack is zero and stays there. A lane whose last branch has ended pops it,
// and then has no open square: so a turn does not test whether there is a parent, or a state. Turns
// are made in groups, and a lane begins a state only at the start of a group. If a state ends
// within a group, the rest of the group are misses of that state.
//
// A dispatch is bounded by `params.turns`. A lane that has not finished by then is parked in
// `lanes` and `stacks`, and continues in the next dispatch.
//
// Bounds. `counted` is 0 at the start of a dispatch. A turn adds 2^16 to it, for a hit, or 1, for a
// miss. A dispatch has fewer than 2^16 turns, so the misses do not carry into the hits, and the hits
// do not overflow. Hits and turns are added to pairs of 32-bit words with carries. `shadow`, the
// hits computed as turns less misses, is flushed whenever it reaches 2^31, and grows by less than
// 2^16 in between. Slots store it as two sums of 16-bit digits, so that it carries at other points
// than the hits.

override DEPTH: u32 = 14u;
// Whether rows above the block have any masks, or gaps between them.
override GENERAL: bool = false;
// Whether all masks of rows above the block close the same columns, of which a state has at most one
// free. GATED is cheaper than GENERAL, which it excludes.
override GATED: bool = false;
// Whether a child must have an open square in the row after the next, too.
override LOOK_AHEAD: bool = true;

const LANES: u32 = 64u;
// The number of turns in a group.
const GROUP: u32 = 4u;
// The number of states that a lane takes from the ring at once.
const TAKE: u32 = 8u;
const SLOT_WORDS: u32 = 12u;
const CLASS_ROWS: u32 = 17u;
const SHADOW_LIMIT: u32 = 0x80000000u;

struct Counters {
    stamp: u32,
    ring_write: u32,
    ring_read: atomic<u32>,
    ring_returned: atomic<u32>,
    returned_total: u32,
    source_first: u32,
    source_count: u32,
    busy: atomic<u32>,
    expansions: u32,
    expanded: u32,
    appended: u32,
    searches: atomic<u32>,
    lower_put: u32,
    lower_taken: u32,
    ring_put: u32,
    ring_taken: atomic<u32>,
    faults: atomic<u32>,
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

// A parked lane: its state (none if `open` is 0), and its counts for the slot of `label` since the
// last flush.
struct Lane {
    free: u32,
    left: u32,
    right: u32,
    open: u32,
    label: u32,
    height: u32,
    hits: u32,
    hits_high: u32,
    turns: u32,
    turns_high: u32,
    shadow: u32,
    finished: u32,
    check: u32,
}

@group(0) @binding(0) var<storage, read_write> counters: Counters;
@group(0) @binding(1) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read_write> ring: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> lanes: array<Lane>;
@group(0) @binding(4) var<storage, read_write> stacks: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> slots: array<atomic<u32>>;
// Indexed by the class, then by the number of rows left, from 1: the columns allowed in the row and
// in the next row, the distance from the previous row to it, and from it to the next row. The entry
// of 0 rows has the rows (as bits, by the number of rows left) whose masks close columns, and these
// columns, if GATED searches the class.
@group(0) @binding(6) var<storage, read> upper_rows: array<vec4<u32>>;

var<workgroup> stack: array<vec4<u32>, LANES * (DEPTH + 1u)>;
var<workgroup> busy: atomic<u32>;
var<workgroup> taken: atomic<u32>;

// The index of the lane, and that of the lowest entry of its stack.
var<private> this_lane: u32;
var<private> base: u32;
// The state at the top of the stack, and the index of its parent's entry.
var<private> free: u32;
var<private> left: u32;
var<private> right: u32;
var<private> open: u32;
var<private> top: u32;
// The label of the state: the class in the high half, the slot of its completions in the low half.
var<private> label: u32;
// The states taken from the ring and not begun.
var<private> next: u32;
var<private> end: u32;
// The counts since the last `settle`, at turn `settled`: hits in the high half, misses in the low
// half.
var<private> counted: u32;
var<private> settled: u32;
// The one column that the masks close while it is free, as a bit, and whether they close it: bit
// k + c if the row with k rows left is closed, where c is the position of the column. The host uses
// GATED only where k + c is below 32.
var<private> column: u32;
var<private> gate: u32;
// The number of states finished since the last flush.
var<private> finished: u32;
// The sum of the marks of the states that the lane began in this dispatch.
var<private> begun: u32;

// Returns a number that depends on every bit of a state. The sums over the states written and over
// the states read differ if memory has changed one. The constants are odd and otherwise arbitrary.
fn mark(w: vec4<u32>) -> u32 {
    var h = w.x * 0x9e3779b1u + w.y * 0x85ebca77u + 0x7feb352du;
    h = (h ^ (h >> 16u)) + w.z * 0xc2b2ae3du + w.w * 0x27d4eb2fu;
    h = (h ^ (h >> 15u)) * 0x165667b1u;
    return h ^ (h >> 13u);
}

// Returns the same for the whole of a parked lane.
fn lane_mark(open_now: u32, height: u32) -> u32 {
    var sum = mark(vec4<u32>(free, left, right, open_now)) + mark(vec4<u32>(label, height, finished, 2u));
    sum += mark(vec4<u32>(lanes[this_lane].hits, lanes[this_lane].turns, lanes[this_lane].shadow, 3u));
    for (var i = 0u; i < height; i++) {
        sum = sum * 3u + mark(stack[base + (i + 1u) * LANES]);
    }
    return sum;
}

// Adds to a pair of words of a slot. All lanes may add to the same words at once, so an atomic
// operation that would add 0 is left out.
fn add_pair(at: u32, low: u32, high: u32) {
    var carried = high;
    if (low != 0u) {
        let old = atomicAdd(&slots[at], low);
        carried += u32(old > ~low);
    }
    if (carried != 0u) {
        atomicAdd(&slots[at + 1u], carried);
    }
}

// Moves the counts for the slot of `label` from the lane to the slot.
fn flush() {
    let at = (label & 0xffffu) * SLOT_WORDS;
    add_pair(at, lanes[this_lane].hits, lanes[this_lane].hits_high);
    add_pair(at + 2u, lanes[this_lane].turns, lanes[this_lane].turns_high);
    let shadow = lanes[this_lane].shadow;
    add_pair(at + 4u, shadow & 0xffffu, 0u);
    add_pair(at + 6u, shadow >> 16u, 0u);
    if (finished != 0u) {
        atomicAdd(&slots[at + 8u], finished);
    }
    lanes[this_lane].hits = 0u;
    lanes[this_lane].hits_high = 0u;
    lanes[this_lane].turns = 0u;
    lanes[this_lane].turns_high = 0u;
    lanes[this_lane].shadow = 0u;
    finished = 0u;
}

// Moves the hits and misses of the turns before `now` to the lane's sums, and these to the slot if
// `and_flush`.
fn settle(now: u32, and_flush: bool) {
    let turns = now - settled;
    let hits = counted >> 16u;
    let misses = counted & 0xffffu;
    let old_hits = lanes[this_lane].hits;
    let old_turns = lanes[this_lane].turns;
    lanes[this_lane].hits = old_hits + hits;
    lanes[this_lane].hits_high += u32(old_hits > ~hits);
    lanes[this_lane].turns = old_turns + turns;
    lanes[this_lane].turns_high += u32(old_turns > ~turns);
    lanes[this_lane].shadow += turns - misses;
    counted = 0u;
    settled = now;
    if (and_flush || lanes[this_lane].shadow >= SHADOW_LIMIT) {
        flush();
    }
}

// Takes states from the ring. Returns false if it is empty.
fn take() -> bool {
    if (i32(counters.ring_write - atomicLoad(&counters.ring_read)) <= 0) {
        return false;
    }
    next = atomicAdd(&counters.ring_read, TAKE);
    let there = i32(counters.ring_write - next);
    end = next + u32(clamp(there, 0, i32(TAKE)));
    return there > 0;
}

// Sets the gate from the class and the columns that are free in the lowest state of the stack. All
// states above it are its descendants, which have no other free columns.
fn set_gate(bottom: u32) {
    let entry = upper_rows[(label >> 16u) * CLASS_ROWS];
    column = bottom & entry.y;
    gate = entry.x << (firstTrailingBit(column) & 31u);
}

// Begins the next state, at turn `now`; `open` is 0 if there is none.
fn begin(now: u32) {
    if (next == end) {
        if (!take()) {
            return;
        }
    }
    let state = ring[next & params.ring_mask];
    next += 1u;
    begun += mark(state);
    if (((state.w ^ label) & 0xffffu) != 0u) {
        settle(now, true);
    }
    free = state.x;
    left = state.y;
    right = state.z;
    label = state.w;
    open = free & ~(left | right);
    if (GATED) {
        set_gate(free);
        open &= ~((gate >> countOneBits(free)) & column);
    }
    if (GENERAL) {
        open &= upper_rows[(label >> 16u) * CLASS_ROWS + countOneBits(free)].x;
    }
}

// Creates the next child of the state at the top. If there is none, it only counts a miss.
fn turn() {
    let rest = open & (open - 1u);
    let queen = open ^ rest;
    let child = free ^ queen;
    let lefts = left | queen;
    let rights = right | queen;
    var child_left = lefts << 1u;
    var child_right = rights >> 1u;
    var child_open = child & ~(child_left | child_right);
    // The masks of GATED are left out here: few children more are entered.
    var after_next = child & ~((lefts << 2u) | (rights >> 2u));
    if (GATED) {
        child_open &= ~((gate >> countOneBits(child)) & column);
    }
    if (GENERAL) {
        let row = upper_rows[(label >> 16u) * CLASS_ROWS + countOneBits(child)];
        child_left = lefts << row.z;
        child_right = rights >> row.z;
        child_open = child & ~(child_left | child_right) & row.x;
        after_next = child & ~((child_left << row.w) | (child_right >> row.w)) & row.y;
    }
    if (!LOOK_AHEAD) {
        after_next = 1u;
    }
    let several = child & (child - 1u); // 0: one row is left
    counted += select(1u, 0x10000u, several == 0u && child_open != 0u);
    let enters = child_open != 0u && after_next != 0u && several != 0u;
    if (enters && rest != 0u) {
        top += LANES;
        stack[top] = vec4<u32>(free, left, right, rest);
    }
    open = rest;
    if (enters) {
        free = child;
        left = child_left;
        right = child_right;
        open = child_open;
    } else if (rest == 0u) {
        let parent = stack[top];
        top = max(top, base + LANES) - LANES;
        free = parent.x;
        left = parent.y;
        right = parent.z;
        open = parent.w;
    }
}

@compute @workgroup_size(64)
fn search(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    // The host requests workgroup memory that is not initialised, because most of the stack need
    // not be.
    if (local == 0u) {
        atomicStore(&busy, 0u);
        atomicStore(&taken, 0u);
    }
    workgroupBarrier();
    this_lane = id.x;
    base = local;
    stack[base] = vec4<u32>();
    let parked = lanes[this_lane];
    free = parked.free;
    left = parked.left;
    right = parked.right;
    open = parked.open;
    label = parked.label;
    finished = parked.finished;
    top = base + min(parked.height, DEPTH) * LANES;
    for (var i = 0u; i < min(parked.height, DEPTH); i++) {
        stack[base + (i + 1u) * LANES] = stacks[i * params.lanes + this_lane];
    }
    // A lane that was never parked has nothing to check.
    if ((open | parked.height | finished) != 0u && lane_mark(open, parked.height) != parked.check) {
        atomicAdd(&counters.faults, 1u);
    }

    if (GATED) {
        var bottom = free;
        if (top != base) {
            bottom = stack[base + LANES].x;
        }
        set_gate(bottom);
    }

    var now = 0u;
    while (now < params.turns) {
        if (open == 0u) {
            if (now != 0u) {
                finished += 1u;
            }
            begin(now);
            if (open == 0u) {
                break;
            }
        }
        turn();
        turn();
        turn();
        turn();
        now += GROUP;
    }
    if (now != 0u && now >= params.turns && open == 0u) {
        finished += 1u;
    }
    settle(now, params.flush != 0u);
    if (open != 0u) {
        atomicAdd(&busy, 1u);
    }

    // Return the states that were taken and not begun, after the states in the ring.
    if (next != end) {
        var to = counters.ring_write + atomicAdd(&counters.ring_returned, end - next);
        for (; next != end; next++) {
            ring[to & params.ring_mask] = ring[next & params.ring_mask];
            to += 1u;
        }
    }
    let height = (top - base) / LANES;
    for (var i = 0u; i < height; i++) {
        stacks[i * params.lanes + this_lane] = stack[base + (i + 1u) * LANES];
    }
    lanes[this_lane].free = free;
    lanes[this_lane].left = left;
    lanes[this_lane].right = right;
    lanes[this_lane].open = open;
    lanes[this_lane].label = label;
    lanes[this_lane].height = height;
    lanes[this_lane].finished = finished;
    lanes[this_lane].check = lane_mark(open, height);
    if (begun != 0u) {
        atomicAdd(&taken, begun);
    }
    workgroupBarrier();
    if (local == 0u) {
        let working = atomicLoad(&busy);
        if (working != 0u) {
            atomicAdd(&counters.busy, working);
        }
        atomicAdd(&counters.ring_taken, atomicLoad(&taken));
    }
    if (id.x == 0u) {
        atomicAdd(&counters.searches, 1u);
    }
}
