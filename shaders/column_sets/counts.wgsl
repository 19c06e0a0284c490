// Column sets by bit planes: the pairs of states and completions that do not meet are counted.

// Returns the plane that a word of a record selects; if the round is narrow, without the second pair of
// words, which are zero. Numbers of planes have seven bits, so that a place needs no check if there are
// 128.
fn selected(number: u32, is_narrow: bool) -> vec4<u32> {
    let at = plane(number & 127u);
    if (is_narrow) {
        return narrow_plane_at(at);
    }
    return plane_at(at);
}

fn narrow_plane_at(at: u32) -> vec4<u32> {
    return vec4<u32>(planes[at], 0u, 0u);
}

// Returns the plane of the states that the inner squares of a record leave: three planes, if there are
// pairs of rows 0 and 1, or four.
fn inner_of(record: u32, has_upper: bool, is_narrow: bool) -> vec4<u32> {
    if (has_upper) {
        return low_pairs(record, is_narrow) & selected(record >> 16u, is_narrow);
    }
    return low_pairs(record, is_narrow) & high_pairs(record, is_narrow);
}

fn low_pairs(record: u32, is_narrow: bool) -> vec4<u32> {
    return selected(record, is_narrow) & selected(record >> 8u, is_narrow);
}

fn high_pairs(record: u32, is_narrow: bool) -> vec4<u32> {
    return selected(record >> 16u, is_narrow) & selected(record >> 25u, is_narrow);
}

// A sum of planes: the number of bits is the number in `ones`, and twice `twice`.
struct Sum {
    ones: vec4<u32>,
    twice: u32,
}

// Adds two planes.
fn add_planes(sum: ptr<function, Sum>, x: vec4<u32>, y: vec4<u32>) {
    let ones = (*sum).ones;
    let carries = countOneBits((ones & (x | y)) | (x & y));
    (*sum).twice += carries.x + carries.y + carries.z + carries.w;
    (*sum).ones = ones ^ x ^ y;
}

// Adds the completions of a word of two records. Those that are added at once have different inner
// squares: otherwise compilers take the same ones out of the sum, which needs more operations.
fn add_two(sum: ptr<function, Sum>, inner: vec4<u32>, other: vec4<u32>, words: vec2<u32>,
    is_narrow: bool) {
    add_planes(sum, inner & low_pairs(words.x, is_narrow), other & low_pairs(words.y, is_narrow));
    add_planes(sum, inner & high_pairs(words.x, is_narrow), other & high_pairs(words.y, is_narrow));
}

// Adds the planes of the program's completions, of which each team has a quarter. Returns the number
// of their bits. The next records are read before these are counted. Compilers make four functions of
// it: calls have constants.
fn add_records(has_upper: bool, is_narrow: bool) -> u32 {
    var sum = Sum(vec4<u32>(0u), 0u);
    let singles = records_of(0u);
    var at = singles.x + 2u * team;
    var a = programs[at];
    var b = programs[at + 1u];
    for (var i = 2u * team; i < singles.y; i += 2u * TEAMS) {
        at += 2u * TEAMS;
        let next_a = programs[at];
        let next_b = programs[at + 1u];
        add_planes(&sum, inner_of(a.x, has_upper, is_narrow) & low_pairs(a.y, is_narrow),
            inner_of(b.x, has_upper, is_narrow) & low_pairs(b.y, is_narrow));
        a = next_a;
        b = next_b;
    }
    // The last teams begin, because the first ones have had more.
    let first = 2u * (TEAMS - 1u - team);
    let doubles = records_of(1u);
    at = doubles.x + first;
    a = programs[at];
    b = programs[at + 1u];
    for (var i = first; i < doubles.y; i += 2u * TEAMS) {
        at += 2u * TEAMS;
        let next_a = programs[at];
        let next_b = programs[at + 1u];
        add_two(&sum, inner_of(a.x, has_upper, is_narrow), inner_of(b.x, has_upper, is_narrow),
            vec2<u32>(a.y, b.y), is_narrow);
        a = next_a;
        b = next_b;
    }
    let longs = records_of(2u);
    at = longs.x + 4u * team;
    a = programs[at];
    b = programs[at + 1u];
    var more = vec2<u32>(programs[at + 2u].y, programs[at + 3u].y);
    for (var i = 4u * team; i < longs.y; i += 4u * TEAMS) {
        at += 4u * TEAMS;
        let next_a = programs[at];
        let next_b = programs[at + 1u];
        let next_more = vec2<u32>(programs[at + 2u].y, programs[at + 3u].y);
        let inner = inner_of(a.x, has_upper, is_narrow);
        let other = inner_of(b.x, has_upper, is_narrow);
        add_two(&sum, inner, other, vec2<u32>(a.y, b.y), is_narrow);
        add_two(&sum, inner, other, more, is_narrow);
        a = next_a;
        b = next_b;
        more = next_more;
    }
    let rest = countOneBits(sum.ones);
    return 2u * sum.twice + rest.x + rest.y + rest.z + rest.w;
}

// Writes a state to a place among the planes if it is kept. Returns the place behind it.
fn take_state(state: vec2<u32>, is_kept: bool, to: u32) -> u32 {
    if (!is_kept) {
        return to;
    }
    planes[to] = state;
    return to + 1u;
}

const ALL_EIGHT: u32 = 255u;

// Takes states of the list that the test keeps, from place `next` of the list on, as many as are
// counted at once; of this lane's states of the first batch, those of the set `left`. All lanes read
// in step. Returns the number of states.
fn take_states(test: Test, next: ptr<function, u32>, left: ptr<function, u32>,
    seen: ptr<function, u32>) -> u32 {
    let start = workgroupUniformLoad(&step.start);
    let count = workgroupUniformLoad(&step.count);
    var filled = 0u;
    if (lane == 0u) {
        atomicStore(&numbers.kept_count, 0u);
    }
    workgroupBarrier();
    // The next batch is read before this one is taken.
    let last = next_start(start + count) - BATCH * LANES;
    var following = eight_at(start + *next);
    while (*next < count) {
        let s = following;
        following = eight_at(min(start + *next + BATCH * LANES, last));
        let which = kept_of_eight(s, test) & *left;
        var to = STATES * COLUMNS + atomicAdd(&numbers.kept_count, countOneBits(which));
        let total = workgroupUniformLoad(&numbers.kept_count);
        if (total > AT_ONCE * COLUMNS) {
            // The next ones begin with the rest of this batch.
            *left = which & ~take_what_fits(s, which, to);
            filled = AT_ONCE * COLUMNS;
            break;
        }
        filled = total;
        *next += BATCH * LANES;
        *left = ALL_EIGHT;
        *seen += mark_of_eight(s);
        to = take_state(s.a, (which & 1u) != 0u, to);
        to = take_state(s.b, (which & 2u) != 0u, to);
        to = take_state(s.c, (which & 4u) != 0u, to);
        to = take_state(s.d, (which & 8u) != 0u, to);
        to = take_state(s.e, (which & 16u) != 0u, to);
        to = take_state(s.f, (which & 32u) != 0u, to);
        to = take_state(s.g, (which & 64u) != 0u, to);
        to = take_state(s.h, (which & 128u) != 0u, to);
    }
    workgroupBarrier();
    return filled;
}

// Writes those of the states for which there is a place. Returns which.
fn take_what_fits(s: Eight, which: u32, first: u32) -> u32 {
    var to = first;
    var taken = 0u;
    for (var i = 0u; i < BATCH; i++) {
        if ((which & (1u << i)) != 0u && to < (STATES + AT_ONCE) * COLUMNS) {
            planes[to] = state_of_eight(s, i);
            taken |= 1u << i;
            to += 1u;
        }
    }
    return taken;
}

fn state_of_eight(s: Eight, number: u32) -> vec2<u32> {
    switch (number) {
        case 0u: { return s.a; }
        case 1u: { return s.b; }
        case 2u: { return s.c; }
        case 3u: { return s.d; }
        case 4u: { return s.e; }
        case 5u: { return s.f; }
        case 6u: { return s.g; }
        default: { return s.h; }
    }
}

// Returns a word with its lowest bits set, all for 32 and more.
fn lowest_bits(count: u32) -> u32 {
    return select((1u << (count & 31u)) - 1u, 0xffffffffu, count >= 32u);
}

// Counts the program's completions over the states of the list that do not meet the step's queen.
fn count_states(outer: u32, first_row: u32, pairs: UsedPairs, has_upper: bool, is_first: bool) {
    let test = test_of_step();
    let count = workgroupUniformLoad(&step.count);
    place_squares(first_row);
    var next = 0u;
    var left = ALL_EIGHT;
    var seen = 0u;
    // At most 2^18 states of a lane, with at most 10,240 completions each: a program has no more.
    var total = 0u;
    while (next < count) {
        // The states behind these are of the round before, and do not count.
        let filled = take_states(test, &next, &left, &seen);
        // The states of a column are COLUMNS places apart.
        let of_first = (filled + COLUMNS - 1u - column) / COLUMNS;
        let of_second = (filled + COLUMNS - 1u - column - WIDTH) / COLUMNS;
        let valid = vec4<u32>(lowest_bits(of_first), lowest_bits(of_second),
            lowest_bits(of_first - min(of_first, 32u)), lowest_bits(of_second - min(of_second, 32u)));
        if (is_first && team == 0u) {
            counted_states += of_first + of_second;
        }
        transpose();
        make_planes(outer, pairs, has_upper, valid);
        workgroupBarrier();
        // If there are few states, only the first words of planes have any.
        let is_narrow = filled <= 32u * COLUMNS;
        if (has_upper && is_narrow) {
            total += add_records(true, true);
        } else if (has_upper) {
            total += add_records(true, false);
        } else if (is_narrow) {
            total += add_records(false, true);
        } else {
            total += add_records(false, false);
        }
        workgroupBarrier();
    }
    if (lane == 0u) {
        seen -= mark_of_padding(count);
    }
    atomicAdd(&numbers.seen_mark, seen);
    let before = hits;
    hits += total;
    hits_high += select(0u, 1u, hits < before);
    low += total & 0xffffu;
    high += total >> 16u;
}
