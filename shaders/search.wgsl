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
// A dispatch is bounded by `params.turns`. A lane that has not finished by then is parked in
// `lanes` and `stacks`, and continues in the next dispatch.
//
// Bounds. A turn adds 1 to `hits` or to `misses`, and a dispatch has fewer than 2^16 turns, so
// neither overflows. Hits and turns are added to pairs of 32-bit words with carries. `shadow`, the
// hits computed as turns less misses, is flushed whenever it reaches 2^31, and grows by less than
// 2^16 in between. Slots store it as two sums of 16-bit digits, so that it carries at other points
// than the hits.

// Cost of a turn in RDNA 2 code (compiled by RADV of Mesa 22.3 for Navi 21; the turn is unrolled
// four times): 23 vector ALU instructions up to the choice between entering and leaving the child,
// 7 to enter it after a push, 5 to leave it after a pop: 35 for a wave that does both, and two
// accesses to local memory; every second turn has two more moves, depending on register allocation.
// A lane that enters executes 30, one that leaves 28. GENERAL adds 3 and a load of 16 bytes. The
// code outside the turn (the loop's bounds, the next state) runs once in four turns.

override DEPTH: u32 = 14u;
// Whether rows above the block have masks, or gaps between them.
override GENERAL: bool = false;
// Whether a child must have an open square in the row after the next, too.
override LOOK_AHEAD: bool = true;

const LANES: u32 = 64u;
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
// Indexed by the class, then by the number of rows left, from 0 (a lane without a state): the
// columns allowed in the row and in the next row, the distance from the previous row to it, and
// from it to the next row.
@group(0) @binding(6) var<storage, read> upper_rows: array<vec4<u32>>;

var<workgroup> stack: array<vec4<u32>, LANES * DEPTH>;
var<workgroup> busy: atomic<u32>;
var<workgroup> taken: atomic<u32>;

// The index of the lane, and of its column of the stack.
var<private> this_lane: u32;
var<private> base: u32;
// The state at the top of the stack, and the position of the next push.
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
// The counts since the last `settle`, at turn `settled`: hits, misses, and turns without a state
// among these.
var<private> hits: u32;
var<private> misses: u32;
var<private> idle: u32;
var<private> settled: u32;
// The turn at which the last state ended.
var<private> ended: u32;
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
        sum = sum * 3u + mark(stack[base + i * LANES]);
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
    let turns = now - settled - idle;
    let old_hits = lanes[this_lane].hits;
    let old_turns = lanes[this_lane].turns;
    lanes[this_lane].hits = old_hits + hits;
    lanes[this_lane].hits_high += u32(old_hits > ~hits);
    lanes[this_lane].turns = old_turns + turns;
    lanes[this_lane].turns_high += u32(old_turns > ~turns);
    lanes[this_lane].shadow += turns - (misses - idle);
    hits = 0u;
    misses = 0u;
    idle = 0u;
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
    if (GENERAL) {
        open &= upper_rows[(label >> 16u) * CLASS_ROWS + countOneBits(free)].x;
    }
}

// Creates the next child of the state at the top, at turn `now`. If there is none, it only counts a
// miss.
fn turn(now: u32) {
    let rest = open & (open - 1u);
    let queen = open ^ rest;
    let child = free ^ queen;
    var row = vec4<u32>(0xffffffffu, 0xffffffffu, 1u, 1u);
    if (GENERAL) {
        row = upper_rows[(label >> 16u) * CLASS_ROWS + countOneBits(child)];
    }
    let child_left = (left | queen) << row.z;
    let child_right = (right | queen) >> row.z;
    let child_open = child & ~(child_left | child_right) & row.x;
    var after_next = 1u;
    if (LOOK_AHEAD) {
        after_next = child & ~((child_left << row.w) | (child_right >> row.w)) & row.y;
    }
    let several = child & (child - 1u); // 0: one row is left
    let hit = several == 0u && child_open != 0u;
    hits += u32(hit);
    misses += u32(!hit);
    open = rest;
    if (child_open != 0u && after_next != 0u && several != 0u) {
        if (open != 0u) {
            stack[top] = vec4<u32>(free, left, right, open);
            top += LANES;
        }
        free = child;
        left = child_left;
        right = child_right;
        open = child_open;
    } else if (open == 0u) {
        if (top != base) {
            top -= LANES;
            let parent = stack[top];
            free = parent.x;
            left = parent.y;
            right = parent.z;
            open = parent.w;
        } else if (free != 0u) {
            free = 0u;
            ended = now + 1u;
        }
    }
}

@compute @workgroup_size(64)
fn search(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    // The host requests workgroup memory that is not initialised to zero, because the stack need
    // not be.
    if (local == 0u) {
        atomicStore(&busy, 0u);
        atomicStore(&taken, 0u);
    }
    workgroupBarrier();
    this_lane = id.x;
    base = local;
    let parked = lanes[this_lane];
    free = parked.free;
    left = parked.left;
    right = parked.right;
    open = parked.open;
    label = parked.label;
    finished = parked.finished;
    top = base + min(parked.height, DEPTH) * LANES;
    for (var i = 0u; i < min(parked.height, DEPTH); i++) {
        stack[base + i * LANES] = stacks[i * params.lanes + this_lane];
    }
    // A lane that was never parked has nothing to check.
    if ((open | parked.height | finished) != 0u && lane_mark(open, parked.height) != parked.check) {
        atomicAdd(&counters.faults, 1u);
    }

    var now = 0u;
    while (now < params.turns) {
        if (open == 0u) {
            if (now != 0u) {
                finished += 1u;
                idle += now - ended;
            }
            begin(now);
            if (open == 0u) {
                break;
            }
        }
        turn(now);
        turn(now + 1u);
        turn(now + 2u);
        turn(now + 3u);
        now += 4u;
    }
    if (now != 0u && now >= params.turns && open == 0u) {
        finished += 1u;
        idle += now - ended;
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
        stacks[i * params.lanes + this_lane] = stack[base + i * LANES];
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
