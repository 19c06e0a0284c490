// Counts column sets: each workgroup counts one set after another by itself.
//
// For a set a workgroup lists all placements of the lower half, as two masks each (see `state_of`);
// the first upper rows filter the list, one column after another; for the outer rows (at most 8) it
// lists their completions as a program, and counts the pairs of states and completions that do not
// meet by bit planes: a lane has 128 states in each plane. Lists stay in the workgroup's part of
// `states`, one behind the other. What is pending is in `frames`, so a submission can end between
// any two steps. The mirror of this shader is `src/kernel/gpu/sets/mirror.rs`.
//
// This file has the memory; the others of this folder follow it in one module.

// The lanes of a workgroup: 32 or 64. A column of planes has 64 states. Two lanes transpose the masks
// of a column's states; then four lanes, one of each team, share two columns, make their planes of
// squares and pairs, and count different completions of the same states.
override LANES: u32 = 64u;
override COLUMNS: u32 = LANES / 2u;
const TEAMS: u32 = 4u;
override WIDTH: u32 = LANES / TEAMS;

// The planes: of the squares of inner rows, of pairs of squares, and at the end of zeros. At least 120,
// as many as there is memory for up to 128; then no index needs a check. Of rows 4 to 7 there are only
// pairs; if there is room, also of rows 0 and 1 instead of their squares, so that a completion has a
// plane less. For each lane of a team, a plane has a pair of words with the states 0 to 31 of its two
// columns, and WIDTH places behind it another one with the states 32 to 63.
override PLANES: u32 = 120u;
override ZERO: u32 = PLANES - 1u;
const SQUARES_OF_ROW_2: u32 = 0u;
const SQUARES_OF_ROW_0: u32 = 16u;
const PAIRS: u32 = 32u;
// Before the pairs are there, their memory has states, then the planes of their masks (one for each
// column of the board), and the squares of the outer rows. What is overwritten is read before.
// `MASK_PLANES` is 20, 24 or 28, at least the number of columns.
override MASK_PLANES: u32 = 28u;
const AT_ONCE: u32 = 64u;
const STATES: u32 = 56u;
const LEFT: u32 = 32u;
const RIGHT: u32 = 60u;
const OUTER_SQUARES: u32 = 88u;

// The states of a lane that are read at once. Lists begin at a multiple of a workgroup's, and are
// filled up to one by states that every test refuses.
const BATCH: u32 = 8u;
// The states of an element of `states`: a batch of 64 lanes. Then compilers find the addresses of
// the others from that of the first one.
const PART: u32 = 512u;

// The parts of a program: records with one completion, with two, and with up to four.
const SINGLE_RECORDS: u32 = 2048u;
const DOUBLE_RECORDS: u32 = 2048u;
const LONG_RECORDS: u32 = 1024u;
// Behind them are pairs of words that may be read, but are not used.
const PROGRAM: u32 = 6160u;

// Words of a frame, and of a workgroup's frames.
const FREE: u32 = 0u;
const FROM_RIGHT: u32 = 1u;
const FROM_LEFT: u32 = 2u;
const CANDIDATES: u32 = 3u;
const START: u32 = 4u;
const COUNT: u32 = 5u;
const MARK: u32 = 6u;
const FRAME: u32 = 8u;
const MOST_ROWS: u32 = 16u;
const ROW: u32 = 128u;
const ITEM: u32 = 129u;
// A sum over the frames in use, which is compared when a submission continues.
const CHECK: u32 = 130u;
const FRAMES: u32 = 136u;
const NO_ROW: u32 = 0xffffffffu;
const NO_ITEM: u32 = 0xffffffffu;

// Words of a family.
const ROWS_BELOW: u32 = 0u;
const ROWS_ABOVE: u32 = 1u;
const GAP: u32 = 2u;
const ALLOWED_BELOW: u32 = 4u;
const ALLOWED_ABOVE: u32 = 20u;
const FIRST_BELOW: u32 = 36u;
const FIRST_ABOVE: u32 = 68u;
const FAMILY: u32 = 100u;

// The most rows that are counted by planes.
const OUTER: u32 = 8u;
// The group of states that do not count.
const NOT_COUNTED: u32 = 16u;
// The listing of a set that does not fit ends at this many times the room.
const LISTED: u32 = 4u;
// A lane that lists placements writes those that it has found after so many iterations, or when
// there is no room among the planes for more. Their place is behind the stack, of ten levels at
// most, three pairs of words each: of 14 rows, the first three and the last one have no level.
const LIST_TURNS: u32 = 128u;
const FOUND: u32 = 30u;
const MOST_FOUND: u32 = 30u;
// A bit of right masks that no state has, and that every test refuses. Where there is no state, it is
// the only one.
const REFUSED: u32 = 0x40000000u;

// The kinds of a workgroup's next step.
const STOP: u32 = 0u;
const LIST: u32 = 1u;
const FILTER: u32 = 2u;
const COUNT_OUTER: u32 = 3u;
const FINISH: u32 = 4u;

struct SetParams {
    n: u32,
    items: u32,
    // The states of a workgroup's part of `states`.
    capacity: u32,
    // The work after which a workgroup stops: about so many iterations of loops in a lane.
    budget: u32,
    stamp: u32,
    // The iterations of a lane after which the listing of a set is given up.
    list_iterations: u32,
}

struct SetItem {
    upper: u32,
    lower: u32,
    first_rows: array<u32, 2>,
    family: u32,
}

struct SetQueue {
    next: atomic<u32>,
    finished: atomic<u32>,
    // The workgroups that ran, over all submissions.
    ran: atomic<u32>,
    stamp: u32,
    // Workgroups whose frames did not come back as they were written.
    damaged: atomic<u32>,
    // The workgroups that ended without a set, over all submissions.
    idle: atomic<u32>,
}

struct SetSlot {
    // The placements, in 64 bits.
    hits: array<atomic<u32>, 2>,
    // The sums of the low and of the high 16 bits of what was added, in 64 bits each.
    low: array<atomic<u32>, 2>,
    high: array<atomic<u32>, 2>,
    // The states of the lists, and those that were counted by planes, in 64 bits.
    listed: atomic<u32>,
    states: array<atomic<u32>, 2>,
    // The mark of the set and of its family, as they were read.
    set_mark: atomic<u32>,
    // How often the set was finished.
    finished: atomic<u32>,
    // Lists that did not come back as they were written.
    damaged: atomic<u32>,
    // Lists or programs that did not fit.
    overflows: atomic<u32>,
}

@group(0) @binding(0) var<uniform> params: SetParams;
@group(0) @binding(1) var<storage, read> families: array<u32>;
@group(0) @binding(2) var<storage, read> items: array<SetItem>;
@group(0) @binding(3) var<storage, read_write> queue: SetQueue;
@group(0) @binding(4) var<storage, read_write> slots: array<SetSlot>;
@group(0) @binding(5) var<storage, read_write> frames: array<u32>;
@group(0) @binding(6) var<storage, read_write> states: array<array<vec2<u32>, PART>>;
@group(0) @binding(7) var<storage, read_write> programs: array<vec2<u32>>;

var<workgroup> planes: array<vec2<u32>, PLANES * COLUMNS>;

// Memory for two uses. While completions are joined: in words 0 to 31 the number of lower quadruples
// of each set of ranks, a byte each; then, for each number of lower quadruples, how many upper ones are
// compared with so many, and later the place of the next of these. While states are counted: for each
// square of the outer rows, eight a row, the two planes of masks that it is made of: the places of their
// first pairs of words, the left one in the low half.
var<workgroup> scratch: array<atomic<u32>, 64>;

// The next step, and what it needs; written by lane 0.
struct Step {
    what: u32,
    item: u32,
    family: u32,
    row: u32,
    start: u32,
    count: u32,
    mark: u32,
    // The masks that states must not meet, and the rule of the first row.
    left: u32,
    right: u32,
    side: u32,
    limit: u32,
    // The frame behind the queen.
    free: u32,
    from_right: u32,
    from_left: u32,
}
var<workgroup> step: Step;

// The columns where a queen may stand in each row of the lower half; written when a set is begun.
var<workgroup> allowed_below: array<u32, MOST_ROWS>;

// Numbers that the lanes share. They are in one structure, because each variable may take a multiple
// of 16 bytes.
struct Numbers {
    // Of a list: the states, and marks of what is written and of what is read.
    kept_count: atomic<u32>,
    kept_mark: atomic<u32>,
    seen_mark: atomic<u32>,
    // 1 if a list is not complete.
    stopped: atomic<u32>,
    next_triple: atomic<u32>,
    // The most iterations of a lane that lists placements.
    most_iterations: atomic<u32>,
    // Of a program: the records of each kind, and marks of what is written and of what is read.
    single_count: atomic<u32>,
    double_count: atomic<u32>,
    long_count: atomic<u32>,
    program_mark: atomic<u32>,
    program_seen: atomic<u32>,
    upper_count: atomic<u32>,
    lower_count: atomic<u32>,
    // 1 if the program fits, 1 if the pairs of rows 0 and 1 do, and 1 if it has records; written by
    // lane 0.
    program_fits: u32,
    upper_pairs_fit: u32,
    program_counts: u32,
}
var<workgroup> numbers: Numbers;

// The pairs of rows 4 and 5, of rows 6 and 7, and of rows 0 and 1 that the program uses, in 64 bits
// each.
var<workgroup> used: array<atomic<u32>, 6>;

var<private> lane: u32;
// The column of planes whose states this lane transposes, and the half of them; the place of their
// words in a plane, and the word of the pair.
var<private> own_column: u32;
var<private> half: u32;
var<private> own_place: u32;
var<private> own_word: u32;
// The first of its columns when it counts, and its team.
var<private> column: u32;
var<private> team: u32;
var<private> group: u32;
// The counts of this lane that are not yet added to the slot.
var<private> hits: u32;
var<private> hits_high: u32;
var<private> low: u32;
var<private> high: u32;
var<private> counted_states: u32;

// Returns the place of this lane's first pair of words in a plane.
fn plane(index: u32) -> u32 {
    return index * COLUMNS + column;
}

// Returns the place behind a list that ends there, where the next one may begin.
fn next_start(end: u32) -> u32 {
    return (end + BATCH * LANES - 1u) / (BATCH * LANES) * (BATCH * LANES);
}

// Writes a state of the workgroup's lists.
fn put_state(at: u32, state: vec2<u32>) {
    states[group * (params.capacity / PART) + at / PART][at % PART] = state;
}

// A sum of these over a list tells whether it is complete.
fn mark_of(state: vec2<u32>) -> u32 {
    return state.x * 0x9e3779b1u + state.y * 0x85ebca77u;
}

// Packs a state: the columns of the first upper row that are attacked along either diagonal, in
// bits 0 to 27; the group of the family's rule in bits 28 to 31 of the first word; and the side of
// the first lower queen in bit 31 of the second one.
fn state_of(left: u32, right: u32, group_of_rule: u32, side: u32) -> vec2<u32> {
    return vec2<u32>(left | (group_of_rule << 28u), right | (side << 31u));
}

// Returns the bit of rank `rank` of `mask`.
fn bit_of(mask: u32, rank: u32) -> u32 {
    var rest = mask;
    for (var i = 0u; i < rank; i++) {
        rest &= rest - 1u;
    }
    return rest & (~rest + 1u);
}
