// Counts column sets: each workgroup counts one set after another by itself.
//
// For a set a workgroup lists all placements of the lower half, as two masks each (see `state_of`);
// the first upper rows filter the list, one column after another; for the outer rows (at most 8) it
// lists their completions as a program, and counts the pairs of states and completions that do not
// meet by bit planes: a lane has 32 states in each plane. Lists stay in the workgroup's part of
// `states`, one behind the other. What is pending is in `frames`, so a submission can end between
// any two steps. The mirror of this shader is `src/kernel/gpu/sets/mirror.rs`.

// The lanes of a workgroup: a power of two, at most 32.
override LANES: u32 = 32u;

// The planes of a lane: squares of four inner rows, a plane of zeros, and pairs of outer squares.
const PLANES: u32 = 128u;
const ZERO: u32 = 32u;
const PAIRS: u32 = 33u;
const MOST_PAIRS: u32 = 95u;
// Before the pairs are there: states and then planes of their left and right masks.
const LEFT: u32 = 33u;
const RIGHT: u32 = 65u;

// The parts of a program: records with one or two completions, and with up to six.
const SHORT_RECORDS: u32 = 2048u;
const LONG_RECORDS: u32 = 2048u;
const PROGRAM: u32 = 6144u; // SHORT_RECORDS + 2 * LONG_RECORDS

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
// No state: the left mask of one that has no completion.
const PADDING: u32 = 0xffffffffu;

// What a workgroup does next.
const STOP: u32 = 0u;
const LIST: u32 = 1u;
const FILTER: u32 = 2u;
const COUNT_OUTER: u32 = 3u;
const FINISH: u32 = 4u;

struct Params {
    n: u32,
    items: u32,
    // The states of a workgroup's part of `states`.
    capacity: u32,
    // The work after which a workgroup stops: about so many iterations of loops in a lane.
    budget: u32,
    stamp: u32,
    unused_1: u32,
    unused_2: u32,
    unused_3: u32,
}

struct Item {
    upper: u32,
    lower: u32,
    first_row: u32,
    second_row: u32,
    family: u32,
    unused_1: u32,
    unused_2: u32,
    unused_3: u32,
}

struct Queue {
    next: atomic<u32>,
    finished: atomic<u32>,
    // The workgroups that ran, over all submissions.
    ran: atomic<u32>,
    stamp: u32,
    // Workgroups whose frames did not come back as they were written.
    damaged: atomic<u32>,
    // The workgroups that ended without a set, over all submissions.
    idle: atomic<u32>,
    unused_1: u32,
    unused_2: u32,
}

struct SetSlot {
    // The placements, in 64 bits.
    hits: atomic<u32>,
    hits_high: atomic<u32>,
    // The sums of the low and of the high 16 bits of what was added, in 64 bits each.
    low: atomic<u32>,
    low_high: atomic<u32>,
    high: atomic<u32>,
    high_high: atomic<u32>,
    // The states of the lists, and those that were counted by planes, in 64 bits.
    listed: atomic<u32>,
    states: atomic<u32>,
    states_high: atomic<u32>,
    // How often the set was finished.
    finished: atomic<u32>,
    // Lists that did not come back as they were written.
    damaged: atomic<u32>,
    // Lists or programs that did not fit.
    overflows: atomic<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> families: array<u32>;
@group(0) @binding(2) var<storage, read> items: array<Item>;
@group(0) @binding(3) var<storage, read_write> queue: Queue;
@group(0) @binding(4) var<storage, read_write> slots: array<SetSlot>;
@group(0) @binding(5) var<storage, read_write> frames: array<u32>;
@group(0) @binding(6) var<storage, read_write> states: array<vec2<u32>>;
@group(0) @binding(7) var<storage, read_write> programs: array<vec2<u32>>;

var<workgroup> planes: array<u32, PLANES * LANES>;

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

var<workgroup> kept_count: atomic<u32>;
var<workgroup> kept_mark: atomic<u32>;
var<workgroup> seen_mark: atomic<u32>;
var<workgroup> stopped: atomic<u32>;
var<workgroup> short_count: atomic<u32>;
var<workgroup> long_count: atomic<u32>;
var<workgroup> used: array<atomic<u32>, 4>;
var<workgroup> program_mark: atomic<u32>;
var<workgroup> program_seen: atomic<u32>;
// Whether the program fits, and has records; written by lane 0.
var<workgroup> program_fits: u32;
var<workgroup> program_counts: u32;

var<private> lane: u32;
var<private> group: u32;
// What this lane has counted and not yet added to the slot.
var<private> hits: u32;
var<private> hits_high: u32;
var<private> low: u32;
var<private> high: u32;
var<private> counted_states: u32;

fn plane(index: u32) -> u32 {
    return ((index * LANES) | lane) & (PLANES * LANES - 1u);
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

// A partial placement of the lower half.
struct Below {
    free: u32,
    from_right: u32,
    from_left: u32,
    left: u32,
    right: u32,
    // The rule after the first queen: bit 0 the side; bits 1 to 5 the decisive column, 31 for none;
    // bits 6 to 10 the first row in which its queen has group `after` (bits 11 to 15); bit 16: its
    // queen's group is its row plus one. Bits 20 to 24 are the group so far.
    rule: u32,
}

// Places a queen of the lower half. Returns false if the rule does not count the placement.
fn place_below(at: ptr<function, Below>, row: u32, queen: u32, gap: u32) -> bool {
    let column = countTrailingZeros(queen);
    var rule = (*at).rule;
    if (((rule >> 1u) & 31u) == column) {
        var group_of_rule = 0u;
        if ((rule & 0x10000u) != 0u) {
            group_of_rule = row + 1u;
        } else if (row >= ((rule >> 6u) & 31u)) {
            group_of_rule = (rule >> 11u) & 31u;
        }
        rule = (rule & 0xfffffu) | (31u << 1u) | (group_of_rule << 20u);
        (*at).rule = rule;
        if (group_of_rule == NOT_COUNTED) {
            return false;
        }
    }
    let full = (1u << params.n) - 1u;
    (*at).free &= ~queen;
    (*at).from_right = ((*at).from_right | queen) << 1u;
    (*at).from_left = ((*at).from_left | queen) >> 1u;
    (*at).left |= queen >> (row + gap);
    (*at).right |= (queen << (row + gap)) & full;
    return true;
}

// Lists the placements of the lower half of a set.
fn list_set(item: Item, family: u32, start: u32) {
    let rows = families[family + ROWS_BELOW];
    let gap = families[family + GAP];
    let first_columns = item.lower & item.first_row & families[family + ALLOWED_BELOW];
    let second_columns = item.lower & item.second_row & families[family + ALLOWED_BELOW + 1u];
    let seconds = countOneBits(second_columns);
    let thirds = countOneBits(item.lower);
    let triples = countOneBits(first_columns) * seconds * thirds;
    var listed_mark = 0u;
    // The lanes divide the columns of the first three rows between them.
    for (var triple = lane; triple < triples; triple += LANES) {
        let first = bit_of(first_columns, triple / thirds / seconds);
        let second = bit_of(second_columns, triple / thirds % seconds);
        let third = bit_of(item.lower, triple % thirds);
        var at = Below(item.lower, 0u, 0u, 0u, 0u,
            families[family + FIRST_BELOW + countTrailingZeros(first)]);
        if (!place_below(&at, 0u, first, gap)) {
            continue;
        }
        let open = at.free & ~at.from_right & ~at.from_left;
        if ((second & open) == 0u || !place_below(&at, 1u, second, gap)) {
            continue;
        }
        let open_in_third = at.free & ~at.from_right & ~at.from_left
            & families[family + ALLOWED_BELOW + 2u];
        if ((third & open_in_third) == 0u || !place_below(&at, 2u, third, gap)) {
            continue;
        }
        var row = 3u;
        var candidates = at.free & ~at.from_right & ~at.from_left
            & families[family + ALLOWED_BELOW + 3u];
        // A list that does not fit is not completed. A driver that bounds loops would lose
        // placements, too; this is noticed.
        var is_complete = false;
        loop {
            if (candidates == 0u) {
                if (row == 3u) {
                    is_complete = true;
                    break;
                }
                row -= 1u;
                let entry = (row - 3u) * 7u;
                at.free = planes[plane(entry)];
                at.from_right = planes[plane(entry + 1u)];
                at.from_left = planes[plane(entry + 2u)];
                at.left = planes[plane(entry + 3u)];
                at.right = planes[plane(entry + 4u)];
                at.rule = planes[plane(entry + 5u)];
                candidates = planes[plane(entry + 6u)];
                continue;
            }
            let queen = candidates & (~candidates + 1u);
            candidates ^= queen;
            var next = at;
            if (!place_below(&next, row, queen, gap)) {
                continue;
            }
            if (row + 1u == rows) {
                let state = state_of(next.left, next.right, next.rule >> 20u, next.rule & 1u);
                let index = atomicAdd(&kept_count, 1u);
                if (start + index >= params.capacity) {
                    break;
                }
                states[group * params.capacity + start + index] = state;
                listed_mark += mark_of(state);
                continue;
            }
            let entry = (row - 3u) * 7u;
            planes[plane(entry)] = at.free;
            planes[plane(entry + 1u)] = at.from_right;
            planes[plane(entry + 2u)] = at.from_left;
            planes[plane(entry + 3u)] = at.left;
            planes[plane(entry + 4u)] = at.right;
            planes[plane(entry + 5u)] = at.rule;
            planes[plane(entry + 6u)] = candidates;
            at = next;
            row += 1u;
            candidates = at.free & ~at.from_right & ~at.from_left
                & families[family + ALLOWED_BELOW + row];
        }
        if (!is_complete) {
            atomicStore(&stopped, 1u);
            break;
        }
    }
    atomicAdd(&kept_mark, listed_mark);
}

// Returns whether a state does not meet the step's queen.
fn is_kept(state: vec2<u32>) -> bool {
    let meets = (state.x & step.left) | (state.y & step.right);
    let refused = (state.y >> 31u) == step.side && (state.x >> 28u) >= step.limit;
    return meets == 0u && !refused && state.x != PADDING;
}

// Copies the states that do not meet the step's queen behind the list.
fn filter_list() {
    let base = group * params.capacity;
    let end = step.start + step.count;
    var seen = 0u;
    var kept = 0u;
    for (var at = step.start + lane; at < end; at += 8u * LANES) {
        var some: array<vec2<u32>, 8>;
        for (var i = 0u; i < 8u; i++) {
            some[i] = vec2<u32>(PADDING, 0u);
            if (at + i * LANES < end) {
                some[i] = states[base + at + i * LANES];
                seen += mark_of(some[i]);
            }
        }
        var count = 0u;
        for (var i = 0u; i < 8u; i++) {
            count += select(0u, 1u, is_kept(some[i]));
        }
        var to = end + atomicAdd(&kept_count, count);
        for (var i = 0u; i < 8u; i++) {
            if (is_kept(some[i])) {
                if (to < params.capacity) {
                    states[base + to] = some[i];
                }
                kept += mark_of(some[i]);
                to += 1u;
            }
        }
    }
    atomicAdd(&kept_mark, kept);
    atomicAdd(&seen_mark, seen);
}

// A record of the program under construction: the planes of the four inner squares, and up to six
// completions, two in a word, each with the number of its pair in rows 4 and 5 in the low byte, and
// of that in rows 6 and 7 in the other. The rank of a column among the free ones is its position.
struct Record {
    inner: u32,
    count: u32,
    words: vec3<u32>,
}

// The completion that is no completion.
const NO_PAIRS: u32 = 0xffffu;

fn put_record(record: Record) {
    let base = group * PROGRAM;
    if (record.count > 2u) {
        let index = atomicAdd(&long_count, 1u);
        if (index < LONG_RECORDS) {
            let to = base + SHORT_RECORDS + 2u * index;
            programs[to] = vec2<u32>(record.inner, record.words.x);
            programs[to + 1u] = record.words.yz;
        }
    } else if (record.count > 0u) {
        let index = atomicAdd(&short_count, 1u);
        if (index < SHORT_RECORDS) {
            programs[base + index] = vec2<u32>(record.inner, record.words.x);
        }
    }
}

// Returns the record with one more completion: its ranks in rows 4 to 7, four bits each.
fn with_completion(record: Record, ranks: u32) -> Record {
    var next = record;
    if (next.count == 6u) {
        put_record(next);
        next = Record(next.inner, 0u, vec3<u32>(0xffffffffu));
    }
    let inner_pair = (ranks & 15u) * 8u + ((ranks >> 4u) & 15u);
    let outer_pair = ((ranks >> 8u) & 15u) * 8u + ((ranks >> 12u) & 15u);
    atomicOr(&used[inner_pair >> 5u], 1u << (inner_pair & 31u));
    atomicOr(&used[2u + (outer_pair >> 5u)], 1u << (outer_pair & 31u));
    let pairs = inner_pair | (outer_pair << 8u);
    let shift = 16u * (next.count & 1u);
    let cleared = ~(0xffffu << shift);
    let bits = pairs << shift;
    if (next.count < 2u) {
        next.words.x = (next.words.x & cleared) | bits;
    } else if (next.count < 4u) {
        next.words.y = (next.words.y & cleared) | bits;
    } else {
        next.words.z = (next.words.z & cleared) | bits;
    }
    next.count += 1u;
    return next;
}

// Returns the ranks of a completion with values for the rows that there are not: any two different
// ones in a pair of such rows.
fn all_ranks(ranks: u32, outer: u32) -> u32 {
    var all = ranks;
    if (outer <= 5u) {
        all |= select(0u, 1u, ((all >> 16u) & 15u) == 0u) << 20u;
    }
    if (outer <= 7u) {
        all |= select(0u, 1u, ((all >> 24u) & 15u) == 0u) << 28u;
    }
    return all;
}

// Lists the completions of the outer rows. The queens of row 4 have one of the ranks `of_row_4`.
fn list_completions(outer: u32, first_row: u32, of_row_4: u32) {
    let columns = countOneBits(step.free);
    var open_in_row_4 = 0u;
    for (var rank = 0u; rank < 8u; rank++) {
        open_in_row_4 |= select(0u, bit_of(step.free, rank), ((of_row_4 >> rank) & 1u) != 0u);
    }
    for (var pair = lane; pair < 64u; pair += LANES) {
        let ranks = vec2<u32>(pair >> 3u, pair & 7u);
        let most = select(columns, 1u, outer == 1u);
        if (ranks.x >= columns || ranks.y >= most) {
            continue;
        }
        var free = step.free;
        var from_right = step.from_right;
        var from_left = step.from_left;
        var queen = bit_of(step.free, ranks.x);
        var allowed = families[step.family + ALLOWED_ABOVE + first_row];
        if ((queen & allowed & ~from_right & ~from_left) == 0u) {
            continue;
        }
        free &= ~queen;
        from_right = (from_right | queen) << 1u;
        from_left = (from_left | queen) >> 1u;
        if (outer > 1u) {
            queen = bit_of(step.free, ranks.y);
            allowed = families[step.family + ALLOWED_ABOVE + first_row + 1u];
            if ((queen & free & allowed & ~from_right & ~from_left) == 0u) {
                continue;
            }
            free &= ~queen;
            from_right = (from_right | queen) << 1u;
            from_left = (from_left | queen) >> 1u;
        }
        var code = ranks.x | (ranks.y << 4u);
        var record = Record(ranks.x | ((8u + ranks.y) << 8u) | (16u << 16u) | (24u << 24u), 0u,
            vec3<u32>(0xffffffffu));
        if (outer <= 2u) {
            put_record(with_completion(record, all_ranks(code, outer) >> 16u));
            continue;
        }
        var row = 2u;
        var candidates = free & ~from_right & ~from_left
            & families[step.family + ALLOWED_ABOVE + first_row + 2u];
        loop {
            if (candidates == 0u) {
                if (row == 2u) {
                    break;
                }
                row -= 1u;
                let entry = (row - 2u) * 5u;
                free = planes[plane(entry)];
                from_right = planes[plane(entry + 1u)];
                from_left = planes[plane(entry + 2u)];
                candidates = planes[plane(entry + 3u)];
                code = planes[plane(entry + 4u)];
                continue;
            }
            queen = candidates & (~candidates + 1u);
            candidates ^= queen;
            let rank = countOneBits(step.free & (queen - 1u));
            let next = code | (rank << (4u * row));
            if (row == min(3u, outer - 1u)) {
                put_record(record);
                let third = 16u + ((next >> 8u) & 15u);
                let fourth = 24u + ((next >> 12u) & 15u);
                let inner = ranks.x | ((8u + ranks.y) << 8u) | (third << 16u) | (fourth << 24u);
                record = Record(inner, 0u, vec3<u32>(0xffffffffu));
            }
            if (row + 1u == outer) {
                record = with_completion(record, all_ranks(next, outer) >> 16u);
                continue;
            }
            let entry = (row - 2u) * 5u;
            planes[plane(entry)] = free;
            planes[plane(entry + 1u)] = from_right;
            planes[plane(entry + 2u)] = from_left;
            planes[plane(entry + 3u)] = candidates;
            planes[plane(entry + 4u)] = code;
            free &= ~queen;
            from_right = (from_right | queen) << 1u;
            from_left = (from_left | queen) >> 1u;
            code = next;
            row += 1u;
            candidates = free & ~from_right & ~from_left
                & families[step.family + ALLOWED_ABOVE + first_row + row];
            if (row == 4u) {
                candidates &= open_in_row_4;
            }
        }
        put_record(record);
    }
}

// Replaces the numbers of pairs in the program by those of their planes.
fn finish_program(mask: vec4<u32>) {
    let shorts = group * PROGRAM;
    let longs = shorts + SHORT_RECORDS;
    var sum = 0u;
    for (var i = lane; i < atomicLoad(&short_count); i += LANES) {
        programs[shorts + i].y = with_planes(programs[shorts + i].y, mask);
        sum += mark_of(programs[shorts + i]);
    }
    for (var i = lane; i < atomicLoad(&long_count); i += LANES) {
        let at = longs + 2u * i;
        programs[at].y = with_planes(programs[at].y, mask);
        let more = programs[at + 1u];
        programs[at + 1u] = vec2<u32>(with_planes(more.x, mask), with_planes(more.y, mask));
        sum += mark_of(programs[at]) + mark_of(programs[at + 1u]);
    }
    atomicAdd(&program_mark, sum);
}

// Reads the program again, after the count, to notice damage.
fn check_program() {
    let shorts = group * PROGRAM;
    let longs = shorts + SHORT_RECORDS;
    var sum = 0u;
    for (var i = lane; i < atomicLoad(&short_count); i += LANES) {
        sum += mark_of(programs[shorts + i]);
    }
    for (var i = lane; i < 2u * atomicLoad(&long_count); i += LANES) {
        sum += mark_of(programs[longs + i]);
    }
    atomicAdd(&program_seen, sum);
}

// Replaces the numbers of the pairs in a word by the numbers of their planes.
fn with_planes(word: u32, mask: vec4<u32>) -> u32 {
    return plane_of_pair(word & 0xffu, mask)
        | (plane_of_pair(((word >> 8u) & 0xffu) | 64u, mask) << 8u)
        | (plane_of_pair((word >> 16u) & 0xffu, mask) << 16u)
        | (plane_of_pair((word >> 24u) | 64u, mask) << 24u);
}

fn plane_of_pair(pair: u32, mask: vec4<u32>) -> u32 {
    if (pair == 0xffu) {
        return ZERO;
    }
    let below = (1u << (pair & 31u)) - 1u;
    var index = PAIRS;
    switch (pair >> 5u) {
        case 0u: { index += countOneBits(mask.x & below); }
        case 1u: { index += countOneBits(mask.x) + countOneBits(mask.y & below); }
        case 2u: {
            index += countOneBits(mask.x) + countOneBits(mask.y) + countOneBits(mask.z & below);
        }
        default: {
            index += countOneBits(mask.x) + countOneBits(mask.y) + countOneBits(mask.z)
                + countOneBits(mask.w & below);
        }
    }
    return index;
}

fn exchange(a: ptr<function, vec4<u32>>, b: ptr<function, vec4<u32>>, shift: u32, mask: u32) {
    let x = *a;
    *a = (x & vec4<u32>(mask)) | ((*b << vec4<u32>(shift)) & vec4<u32>(~mask));
    *b = ((x >> vec4<u32>(shift)) & vec4<u32>(mask)) | (*b & vec4<u32>(~mask));
}

fn exchange_within(v: vec4<u32>) -> vec4<u32> {
    let two = vec2<u32>(0x33333333u);
    let outer = (v.xy & two) | ((v.zw << vec2<u32>(2u)) & ~two);
    let inner = ((v.xy >> vec2<u32>(2u)) & two) | (v.zw & ~two);
    let one = vec2<u32>(0x55555555u);
    let even = vec2<u32>(outer.x, inner.x);
    let odd = vec2<u32>(outer.y, inner.y);
    let first = (even & one) | ((odd << vec2<u32>(1u)) & ~one);
    let second = ((even >> vec2<u32>(1u)) & one) | (odd & ~one);
    return vec4<u32>(first.x, second.x, first.y, second.y);
}

fn four(at: u32) -> vec4<u32> {
    return vec4<u32>(
        planes[plane(at)], planes[plane(at + 1u)], planes[plane(at + 2u)], planes[plane(at + 3u)]);
}

fn put_four(at: u32, v: vec4<u32>) {
    planes[plane(at)] = v.x;
    planes[plane(at + 1u)] = v.y;
    planes[plane(at + 2u)] = v.z;
    planes[plane(at + 3u)] = v.w;
}

// Transposes 32 words: bit i of word j becomes bit j of word i.
fn transpose(at: u32) {
    var a = four(at);
    var b = four(at + 4u);
    var c = four(at + 8u);
    var d = four(at + 12u);
    var e = four(at + 16u);
    var f = four(at + 20u);
    var g = four(at + 24u);
    var h = four(at + 28u);
    exchange(&a, &e, 16u, 0x0000ffffu);
    exchange(&b, &f, 16u, 0x0000ffffu);
    exchange(&c, &g, 16u, 0x0000ffffu);
    exchange(&d, &h, 16u, 0x0000ffffu);
    exchange(&a, &c, 8u, 0x00ff00ffu);
    exchange(&b, &d, 8u, 0x00ff00ffu);
    exchange(&e, &g, 8u, 0x00ff00ffu);
    exchange(&f, &h, 8u, 0x00ff00ffu);
    exchange(&a, &b, 4u, 0x0f0f0f0fu);
    exchange(&c, &d, 4u, 0x0f0f0f0fu);
    exchange(&e, &f, 4u, 0x0f0f0f0fu);
    exchange(&g, &h, 4u, 0x0f0f0f0fu);
    put_four(at, exchange_within(a));
    put_four(at + 4u, exchange_within(b));
    put_four(at + 8u, exchange_within(c));
    put_four(at + 12u, exchange_within(d));
    put_four(at + 16u, exchange_within(e));
    put_four(at + 20u, exchange_within(f));
    put_four(at + 24u, exchange_within(g));
    put_four(at + 28u, exchange_within(h));
}

// Returns the plane of the states that do not attack a column of a row.
fn square(row: u32, column: u32) -> u32 {
    var attacked = 0u;
    if (column + row < params.n) {
        attacked = planes[plane(LEFT + column + row)];
    }
    if (column >= row) {
        attacked |= planes[plane(RIGHT + column - row)];
    }
    return ~attacked;
}

fn squares(row: u32, columns: vec4<u32>) -> vec4<u32> {
    return vec4<u32>(square(row, columns.x), square(row, columns.y), square(row, columns.z),
        square(row, columns.w));
}

// Writes the planes of the used pairs of one square with each of the other row, from plane `at` on.
// Returns the plane behind them.
fn put_pairs(at: u32, which: u32, one: u32, others: vec4<u32>, more: vec4<u32>) -> u32 {
    var to = at;
    if ((which & 1u) != 0u) { planes[plane(to)] = one & others.x; to += 1u; }
    if ((which & 2u) != 0u) { planes[plane(to)] = one & others.y; to += 1u; }
    if ((which & 4u) != 0u) { planes[plane(to)] = one & others.z; to += 1u; }
    if ((which & 8u) != 0u) { planes[plane(to)] = one & others.w; to += 1u; }
    if ((which & 16u) != 0u) { planes[plane(to)] = one & more.x; to += 1u; }
    if ((which & 32u) != 0u) { planes[plane(to)] = one & more.y; to += 1u; }
    if ((which & 64u) != 0u) { planes[plane(to)] = one & more.z; to += 1u; }
    if ((which & 128u) != 0u) { planes[plane(to)] = one & more.w; to += 1u; }
    return to;
}

// Likewise for all squares of a row, `a` and `b`, with those of the next row, `c` and `d`.
fn put_all_pairs(
    at: u32,
    which: vec2<u32>,
    a: vec4<u32>,
    b: vec4<u32>,
    c: vec4<u32>,
    d: vec4<u32>,
) -> u32 {
    var to = put_pairs(at, which.x, a.x, c, d);
    to = put_pairs(to, which.x >> 8u, a.y, c, d);
    to = put_pairs(to, which.x >> 16u, a.z, c, d);
    to = put_pairs(to, which.x >> 24u, a.w, c, d);
    to = put_pairs(to, which.y, b.x, c, d);
    to = put_pairs(to, which.y >> 8u, b.y, c, d);
    to = put_pairs(to, which.y >> 16u, b.z, c, d);
    return put_pairs(to, which.y >> 24u, b.w, c, d);
}

// Returns the planes of a row's squares by the rank of the column; all ones for a row that there is
// not.
fn row_squares(row: u32, outer: u32, first_row: u32, columns: vec4<u32>) -> vec4<u32> {
    if (row >= outer) {
        return vec4<u32>(0xffffffffu);
    }
    return squares(first_row + row, columns);
}

fn inner_of(word: u32) -> u32 {
    return planes[plane(word & 0xffu)] & planes[plane((word >> 8u) & 0xffu)]
        & planes[plane((word >> 16u) & 0xffu)] & planes[plane(word >> 24u)];
}

fn low_pairs(word: u32) -> u32 {
    return planes[plane(word & 0xffu)] & planes[plane((word >> 8u) & 0xffu)];
}

fn high_pairs(word: u32) -> u32 {
    return planes[plane((word >> 16u) & 0xffu)] & planes[plane(word >> 24u)];
}

// Counts the program's completions over the states of the list that do not meet the step's queen.
fn count_states(outer: u32, first_row: u32, mask: vec4<u32>, is_first: bool) {
    let base = group * params.capacity + step.start;
    var low_columns: vec4<u32>;
    var high_columns: vec4<u32>;
    for (var i = 0u; i < 4u; i++) {
        // There may be fewer columns; then the planes are not used.
        low_columns[i] = countTrailingZeros(bit_of(step.free, i)) & 31u;
        high_columns[i] = countTrailingZeros(bit_of(step.free, i + 4u)) & 31u;
    }
    let shorts = atomicLoad(&short_count);
    let longs = atomicLoad(&long_count);
    let program = group * PROGRAM;
    var next = lane;
    var seen = 0u;
    // At most 2^16 states of a lane, with at most 8! completions each.
    var total = 0u;
    while (next < step.count) {
        var count = 0u;
        while (count < 32u && next < step.count) {
            var some: array<vec2<u32>, 8>;
            for (var i = 0u; i < 8u; i++) {
                some[i] = vec2<u32>(PADDING, 0u);
                if (next + i * LANES < step.count) {
                    some[i] = states[base + next + i * LANES];
                }
            }
            var read = 0u;
            for (var i = 0u; i < 8u; i++) {
                if (count < 32u && next + i * LANES < step.count) {
                    read += LANES;
                    seen += mark_of(some[i]);
                    if (is_kept(some[i])) {
                        planes[plane(LEFT + count)] = some[i].x;
                        planes[plane(RIGHT + count)] = some[i].y;
                        count += 1u;
                    }
                }
            }
            next += read;
        }
        // The rest are states of the round before, which do not count.
        let valid = select((1u << count) - 1u, 0xffffffffu, count == 32u);
        if (is_first) {
            counted_states += count;
        }
        transpose(LEFT);
        transpose(RIGHT);
        for (var row = 0u; row < 4u; row++) {
            var a = row_squares(row, outer, first_row, low_columns);
            var b = row_squares(row, outer, first_row, high_columns);
            if (row == 0u) {
                a &= vec4<u32>(valid);
                b &= vec4<u32>(valid);
            }
            put_four(8u * row, a);
            put_four(8u * row + 4u, b);
        }
        let a = row_squares(4u, outer, first_row, low_columns);
        let b = row_squares(4u, outer, first_row, high_columns);
        let c = row_squares(5u, outer, first_row, low_columns);
        let d = row_squares(5u, outer, first_row, high_columns);
        let e = row_squares(6u, outer, first_row, low_columns);
        let f = row_squares(6u, outer, first_row, high_columns);
        let g = row_squares(7u, outer, first_row, low_columns);
        let h = row_squares(7u, outer, first_row, high_columns);
        // From here on the pairs replace the planes of the states.
        planes[plane(ZERO)] = 0u;
        let behind = put_all_pairs(PAIRS, mask.xy, a, b, c, d);
        put_all_pairs(behind, mask.zw, e, f, g, h);
        // Three planes are added at a time: their sum is in `ones`, the carries are counted.
        var ones = 0u;
        var twice = 0u;
        for (var i = 0u; i < shorts; i++) {
            let record = programs[program + i];
            let inner = inner_of(record.x);
            let x = inner & low_pairs(record.y);
            let y = inner & high_pairs(record.y);
            twice += countOneBits((ones & (x | y)) | (x & y));
            ones ^= x ^ y;
        }
        for (var i = 0u; i < longs; i++) {
            let record = programs[program + SHORT_RECORDS + 2u * i];
            let more = programs[program + SHORT_RECORDS + 2u * i + 1u];
            let inner = inner_of(record.x);
            var x = inner & low_pairs(record.y);
            var y = inner & high_pairs(record.y);
            twice += countOneBits((ones & (x | y)) | (x & y));
            ones ^= x ^ y;
            x = inner & low_pairs(more.x);
            y = inner & high_pairs(more.x);
            twice += countOneBits((ones & (x | y)) | (x & y));
            ones ^= x ^ y;
            x = inner & low_pairs(more.y);
            y = inner & high_pairs(more.y);
            twice += countOneBits((ones & (x | y)) | (x & y));
            ones ^= x ^ y;
        }
        total += 2u * twice + countOneBits(ones);
    }
    atomicAdd(&seen_mark, seen);
    let before = hits;
    hits += total;
    hits_high += select(0u, 1u, hits < before);
    low += total & 0xffffu;
    high += total >> 16u;
}

// Adds a number to one of 64 bits in a slot.
fn add_hits(slot: u32, more: u32, more_high: u32) {
    if ((more | more_high) != 0u) {
        let before = atomicAdd(&slots[slot].hits, more);
        let carry = more_high + select(0u, 1u, before > ~more);
        if (carry != 0u) {
            atomicAdd(&slots[slot].hits_high, carry);
        }
    }
}

fn add_parts(slot: u32, more_low: u32, more_high: u32) {
    if (more_low != 0u) {
        let before = atomicAdd(&slots[slot].low, more_low);
        if (before > ~more_low) {
            atomicAdd(&slots[slot].low_high, 1u);
        }
    }
    if (more_high != 0u) {
        let before = atomicAdd(&slots[slot].high, more_high);
        if (before > ~more_high) {
            atomicAdd(&slots[slot].high_high, 1u);
        }
    }
}

fn add_states(slot: u32, more: u32) {
    if (more != 0u) {
        let before = atomicAdd(&slots[slot].states, more);
        if (before > ~more) {
            atomicAdd(&slots[slot].states_high, 1u);
        }
    }
}

// Moves what this lane has counted to the slot.
fn flush(slot: u32) {
    add_hits(slot, hits, hits_high);
    add_parts(slot, low, high);
    add_states(slot, counted_states);
    hits = 0u;
    hits_high = 0u;
    low = 0u;
    high = 0u;
    counted_states = 0u;
}

// Decides on the next step. For lane 0.
fn choose_step(has_time: bool) {
    let base = group * FRAMES;
    step.what = STOP;
    loop {
        let row = frames[base + ROW];
        if (row == NO_ROW) {
            if (frames[base + ITEM] != NO_ITEM) {
                step.what = FINISH;
                step.item = frames[base + ITEM];
                return;
            }
            if (!has_time || atomicLoad(&queue.next) >= params.items) {
                return;
            }
            let item = atomicAdd(&queue.next, 1u);
            if (item >= params.items) {
                return;
            }
            frames[base + ITEM] = item;
            step.what = LIST;
            step.item = item;
            step.family = items[item].family * FAMILY;
            step.start = 0u;
            return;
        }
        let at = base + row * FRAME;
        let candidates = frames[at + CANDIDATES];
        if (candidates == 0u) {
            frames[base + ROW] = row - 1u;
            continue;
        }
        if (!has_time) {
            return;
        }
        let queen = candidates & (~candidates + 1u);
        let column = countTrailingZeros(queen);
        frames[at + CANDIDATES] = candidates ^ queen;
        step.item = frames[base + ITEM];
        step.family = items[step.item].family * FAMILY;
        step.row = row;
        step.start = frames[at + START];
        step.count = frames[at + COUNT];
        step.mark = frames[at + MARK];
        step.left = select(0u, queen << row, column + row < params.n);
        step.right = queen >> row;
        step.side = 2u;
        step.limit = 0u;
        if (row == 0u) {
            let rule = families[step.family + FIRST_ABOVE + column];
            step.side = rule & 3u;
            step.limit = rule >> 2u;
        }
        step.free = frames[at + FREE] & ~queen;
        step.from_right = (frames[at + FROM_RIGHT] | queen) << 1u;
        step.from_left = (frames[at + FROM_LEFT] | queen) >> 1u;
        let rows = families[step.family + ROWS_ABOVE];
        let outer = min(OUTER, rows - 1u);
        step.what = select(FILTER, COUNT_OUTER, row + 1u + outer == rows);
        return;
    }
}

// Begins a row of the upper half, with a list. For lane 0.
fn push(row: u32, free: u32, from_right: u32, from_left: u32, start: u32, count: u32, mark: u32) {
    let at = group * FRAMES + row * FRAME;
    frames[at + FREE] = free;
    frames[at + FROM_RIGHT] = from_right;
    frames[at + FROM_LEFT] = from_left;
    frames[at + CANDIDATES] = free & ~from_right & ~from_left
        & families[step.family + ALLOWED_ABOVE + row];
    frames[at + START] = start;
    frames[at + COUNT] = count;
    frames[at + MARK] = mark;
    frames[group * FRAMES + ROW] = row;
}

// Gives the set up: the host splits it. For lane 0.
fn give_up() {
    atomicAdd(&slots[step.item].overflows, 1u);
    frames[group * FRAMES + ROW] = NO_ROW;
}

// Returns a sum over what is pending. For lane 0.
fn check_of_frames() -> u32 {
    let base = group * FRAMES;
    let row = frames[base + ROW];
    var sum = row * 31u + frames[base + ITEM];
    if (row < MOST_ROWS) {
        for (var i = 0u; i < (row + 1u) * FRAME; i++) {
            sum = sum * 0x9e3779b1u + frames[base + i];
        }
    }
    return sum;
}

@compute @workgroup_size(LANES)
fn count_sets(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    lane = index;
    group = id.x;
    var spent = 0u;
    if (lane == 0u) {
        step.item = frames[group * FRAMES + ITEM];
        // What was written by the host has no sum.
        let check = frames[group * FRAMES + CHECK];
        if (check != 0u && check != (check_of_frames() | 1u)) {
            atomicAdd(&queue.damaged, 1u);
            frames[group * FRAMES + ROW] = NO_ROW;
            frames[group * FRAMES + ITEM] = NO_ITEM;
        }
    }
    var item = workgroupUniformLoad(&step.item);
    loop {
        if (lane == 0u) {
            choose_step(spent < params.budget);
            atomicStore(&stopped, 0u);
            atomicStore(&kept_count, 0u);
            atomicStore(&kept_mark, 0u);
            atomicStore(&seen_mark, 0u);
        }
        let what = workgroupUniformLoad(&step.what);
        item = workgroupUniformLoad(&step.item);
        if (what == STOP) {
            break;
        }
        if (what == FINISH) {
            flush(item);
            storageBarrier();
            if (lane == 0u) {
                atomicAdd(&slots[item].finished, 1u);
                atomicAdd(&queue.finished, 1u);
                frames[group * FRAMES + ITEM] = NO_ITEM;
            }
            continue;
        }
        let family = workgroupUniformLoad(&step.family);
        let start = workgroupUniformLoad(&step.start);
        if (what == LIST) {
            list_set(items[item], family, start);
            storageBarrier();
            workgroupBarrier();
            let count = atomicLoad(&kept_count);
            // About ten turns for a state, by lanes of which half are busy.
            spent += 20u * count / LANES + 512u;
            if (lane == 0u) {
                atomicAdd(&slots[item].listed, count);
                if (count > params.capacity || atomicLoad(&stopped) != 0u) {
                    give_up();
                } else if (count > 0u) {
                    push(0u, items[item].upper, 0u, 0u, 0u, count, atomicLoad(&kept_mark));
                }
            }
            workgroupBarrier();
            continue;
        }
        let count = workgroupUniformLoad(&step.count);
        if (what == FILTER) {
            filter_list();
            storageBarrier();
            workgroupBarrier();
            spent += 4u * count / LANES + 64u;
            if (lane == 0u) {
                let kept = atomicLoad(&kept_count);
                if (atomicLoad(&seen_mark) != step.mark) {
                    atomicAdd(&slots[item].damaged, 1u);
                }
                if (start + count + kept > params.capacity) {
                    give_up();
                } else if (kept > 0u) {
                    push(step.row + 1u, step.free, step.from_right, step.from_left, start + count,
                        kept, atomicLoad(&kept_mark));
                }
            }
            workgroupBarrier();
            continue;
        }
        // The outer rows; in two parts if the pairs need too many planes.
        let row = workgroupUniformLoad(&step.row);
        let outer = families[family + ROWS_ABOVE] - row - 1u;
        for (var part = 0u; part < 3u; part++) {
            if (lane < 4u) {
                atomicStore(&used[lane], 0u);
            }
            if (lane == 0u) {
                atomicStore(&short_count, 0u);
                atomicStore(&long_count, 0u);
                atomicStore(&program_mark, 0u);
                atomicStore(&program_seen, 0u);
                atomicStore(&seen_mark, 0u);
            }
            workgroupBarrier();
            var of_row_4 = 0xffu;
            if (part == 1u) {
                of_row_4 = 0x0fu;
            } else if (part == 2u) {
                of_row_4 = 0xf0u;
            }
            list_completions(outer, row + 1u, of_row_4);
            storageBarrier();
            workgroupBarrier();
            let mask = vec4<u32>(atomicLoad(&used[0]), atomicLoad(&used[1]), atomicLoad(&used[2]),
                atomicLoad(&used[3]));
            if (lane == 0u) {
                let bits = countOneBits(mask);
                let shorts = atomicLoad(&short_count);
                let longs = atomicLoad(&long_count);
                let pairs = bits.x + bits.y + bits.z + bits.w;
                let fits = pairs <= MOST_PAIRS && shorts <= SHORT_RECORDS && longs <= LONG_RECORDS;
                program_fits = select(0u, 1u, fits);
                program_counts = select(0u, 1u, shorts + longs > 0u);
            }
            let fits = workgroupUniformLoad(&program_fits) != 0u;
            let counts = workgroupUniformLoad(&program_counts) != 0u;
            if (fits && counts) {
                finish_program(mask);
                storageBarrier();
                workgroupBarrier();
                count_states(outer, row + 1u, mask, part < 2u);
                check_program();
                let records = atomicLoad(&short_count) + atomicLoad(&long_count);
                // The rounds, if every second state is kept.
                spent += (count / (64u * LANES) + 1u) * (records + 128u) + 1024u;
                workgroupBarrier();
                if (lane == 0u && (atomicLoad(&seen_mark) != step.mark
                    || atomicLoad(&program_seen) != atomicLoad(&program_mark))) {
                    atomicAdd(&slots[item].damaged, 1u);
                }
            }
            if (!fits && part > 0u) {
                if (lane == 0u) {
                    give_up();
                }
                break;
            }
            if (fits && part == 0u) {
                break;
            }
        }
        workgroupBarrier();
    }
    if (item != NO_ITEM) {
        flush(item);
    }
    if (lane == 0u) {
        frames[group * FRAMES + CHECK] = check_of_frames() | 1u;
        atomicAdd(&queue.ran, 1u);
        if (frames[group * FRAMES + ITEM] == NO_ITEM) {
            atomicAdd(&queue.idle, 1u);
        }
        if (group == 0u) {
            queue.stamp = params.stamp;
        }
    }
}
