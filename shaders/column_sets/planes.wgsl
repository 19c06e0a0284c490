// Column sets by bit planes: the pairs of states and completions that do not meet.

// Returns the number of the first plane of the pairs of each word of the mask.
fn bases_of_pairs(mask: vec4<u32>) -> vec4<u32> {
    let counts = countOneBits(mask);
    return PAIRS + vec4<u32>(0u, counts.x, counts.x + counts.y, counts.x + counts.y + counts.z);
}

// Replaces the numbers of the pairs in a word, one in a byte, by the numbers of their planes, of
// which the last one has the highest seven bits.
fn with_planes(word: u32, mask: vec4<u32>, bases: vec4<u32>) -> u32 {
    return plane_of_pair(word & 0xffu, mask.xy, bases.xy)
        | (plane_of_pair((word >> 8u) & 0xffu, mask.zw, bases.zw) << 8u)
        | (plane_of_pair((word >> 16u) & 0xffu, mask.xy, bases.xy) << 16u)
        | (plane_of_pair(word >> 24u, mask.zw, bases.zw) << 25u);
}

fn plane_of_pair(pair: u32, mask: vec2<u32>, bases: vec2<u32>) -> u32 {
    let is_high = (pair & 32u) != 0u;
    let below = (1u << (pair & 31u)) - 1u;
    let index = select(bases.x, bases.y, is_high)
        + countOneBits(select(mask.x, mask.y, is_high) & below);
    return select(index, ZERO, pair == 0xffu);
}

// Returns the place of a plane in the column whose states this lane transposes.
fn own(index: u32) -> u32 {
    return index * COLUMNS + own_column;
}

// Two states, or two planes of left masks and of right ones.
fn two(at: u32) -> vec4<u32> {
    return vec4<u32>(planes[own(at)], planes[own(at + 1u)]);
}

fn put_two(at: u32, v: vec4<u32>) {
    planes[own(LEFT + at)][half] = v.x;
    planes[own(RIGHT + at)][half] = v.y;
    planes[own(LEFT + at + 1u)][half] = v.z;
    planes[own(RIGHT + at + 1u)][half] = v.w;
}

// Exchanges the bits of the mask in `b` with those of `a` that are `shift` higher.
fn exchange(a: ptr<function, vec4<u32>>, b: ptr<function, vec4<u32>>, shift: u32, mask: u32) {
    let differ = ((*a >> vec4<u32>(shift)) ^ *b) & vec4<u32>(mask);
    *a ^= differ << vec4<u32>(shift);
    *b ^= differ;
}

// Exchanges halves of words.
fn exchange_halves(a: ptr<function, vec4<u32>>, b: ptr<function, vec4<u32>>) {
    let x = *a;
    *a = (x & vec4<u32>(0xffffu)) | (*b << vec4<u32>(16u));
    *b = (x >> vec4<u32>(16u)) | (*b & vec4<u32>(0xffff0000u));
}

// Exchanges every second bit of the first two words and of the last two.
fn exchange_within(v: vec4<u32>) -> vec4<u32> {
    let differ = ((v.xy >> vec2<u32>(1u)) ^ v.zw) & vec2<u32>(0x55555555u);
    return vec4<u32>(v.xy ^ (differ << vec2<u32>(1u)), v.zw ^ differ);
}

// Transposes the masks of half of a column's states, 32 of each side: bit i of mask j becomes bit j
// of plane i. Each lane does it for a half. The last four planes are not written, because there are
// at most 28 columns.
fn transpose() {
    let masks = STATES + 32u * half;
    var a = two(masks);
    var b = two(masks + 2u);
    var c = two(masks + 4u);
    var d = two(masks + 6u);
    var e = two(masks + 8u);
    var f = two(masks + 10u);
    var g = two(masks + 12u);
    var h = two(masks + 14u);
    var i = two(masks + 16u);
    var j = two(masks + 18u);
    var k = two(masks + 20u);
    var l = two(masks + 22u);
    var m = two(masks + 24u);
    var n = two(masks + 26u);
    var o = two(masks + 28u);
    var p = two(masks + 30u);
    // The other lane writes where this one has read.
    workgroupBarrier();
    exchange_halves(&a, &i);
    exchange_halves(&b, &j);
    exchange_halves(&c, &k);
    exchange_halves(&d, &l);
    exchange_halves(&e, &m);
    exchange_halves(&f, &n);
    exchange_halves(&g, &o);
    exchange_halves(&h, &p);
    exchange(&a, &e, 8u, 0x00ff00ffu);
    exchange(&b, &f, 8u, 0x00ff00ffu);
    exchange(&c, &g, 8u, 0x00ff00ffu);
    exchange(&d, &h, 8u, 0x00ff00ffu);
    exchange(&i, &m, 8u, 0x00ff00ffu);
    exchange(&j, &n, 8u, 0x00ff00ffu);
    exchange(&k, &o, 8u, 0x00ff00ffu);
    exchange(&l, &p, 8u, 0x00ff00ffu);
    exchange(&a, &c, 4u, 0x0f0f0f0fu);
    exchange(&b, &d, 4u, 0x0f0f0f0fu);
    exchange(&e, &g, 4u, 0x0f0f0f0fu);
    exchange(&f, &h, 4u, 0x0f0f0f0fu);
    exchange(&i, &k, 4u, 0x0f0f0f0fu);
    exchange(&j, &l, 4u, 0x0f0f0f0fu);
    exchange(&m, &o, 4u, 0x0f0f0f0fu);
    exchange(&n, &p, 4u, 0x0f0f0f0fu);
    exchange(&a, &b, 2u, 0x33333333u);
    exchange(&c, &d, 2u, 0x33333333u);
    exchange(&e, &f, 2u, 0x33333333u);
    exchange(&g, &h, 2u, 0x33333333u);
    exchange(&i, &j, 2u, 0x33333333u);
    exchange(&k, &l, 2u, 0x33333333u);
    exchange(&m, &n, 2u, 0x33333333u);
    exchange(&o, &p, 2u, 0x33333333u);
    put_two(0u, exchange_within(a));
    put_two(2u, exchange_within(b));
    put_two(4u, exchange_within(c));
    put_two(6u, exchange_within(d));
    put_two(8u, exchange_within(e));
    put_two(10u, exchange_within(f));
    put_two(12u, exchange_within(g));
    put_two(14u, exchange_within(h));
    put_two(16u, exchange_within(i));
    put_two(18u, exchange_within(j));
    put_two(20u, exchange_within(k));
    put_two(22u, exchange_within(l));
    put_two(24u, exchange_within(m));
    put_two(26u, exchange_within(n));
}

// Finds the planes that the squares are made of. A queen beyond the board attacks nothing; there is
// always one of the two.
fn place_squares(first_row: u32) {
    for (var i = lane; i < 64u; i += LANES) {
        let row = first_row + i / 8u;
        // There may be fewer columns; then the squares are not used.
        let of_rank = countTrailingZeros(bit_of(step.free, i % 8u)) & 31u;
        let has_left = of_rank + row < params.n;
        let has_right = of_rank >= row;
        let left = LEFT + select(of_rank - row + RIGHT - LEFT, of_rank + row, has_left);
        let right = select(left, RIGHT + of_rank - row, has_right);
        square_places[i] = (left | (right << 16u)) * COLUMNS;
    }
}

// Returns a plane in both columns of this lane.
fn plane_at(at: u32) -> vec4<u32> {
    return vec4<u32>(planes[at], planes[at + WIDTH]);
}

fn put_plane(at: u32, v: vec4<u32>) {
    planes[at] = v.xy;
    planes[at + WIDTH] = v.zw;
}

// Returns the place in the first column of this lane that is in the low bits of a word. A plane has
// seven bits: with 128 planes, compilers know that the place needs no check.
fn place_of(places: u32) -> u32 {
    return (places & (127u * COLUMNS)) | column;
}

// Returns the plane of the states that do not attack a square.
fn square(number: u32) -> vec4<u32> {
    let places = square_places[number];
    return ~(plane_at(place_of(places)) | plane_at(place_of(places >> 16u)));
}

// Writes the planes of the states that do not attack the squares of a row, without those of states
// that do not count.
fn put_squares(at: u32, row: u32, valid: vec4<u32>) {
    let first = 8u * row;
    put_plane(at, square(first) & valid);
    put_plane(at + COLUMNS, square(first + 1u) & valid);
    put_plane(at + 2u * COLUMNS, square(first + 2u) & valid);
    put_plane(at + 3u * COLUMNS, square(first + 3u) & valid);
    put_plane(at + 4u * COLUMNS, square(first + 4u) & valid);
    put_plane(at + 5u * COLUMNS, square(first + 5u) & valid);
    put_plane(at + 6u * COLUMNS, square(first + 6u) & valid);
    put_plane(at + 7u * COLUMNS, square(first + 7u) & valid);
}

// Likewise for a row that there is not: every state that counts.
fn put_valid(at: u32, valid: vec4<u32>) {
    for (var i = 0u; i < 8u; i++) {
        put_plane(at + i * COLUMNS, valid);
    }
}

// The planes of the squares of an outer row.
struct Row {
    a: vec4<u32>,
    b: vec4<u32>,
    c: vec4<u32>,
    d: vec4<u32>,
    e: vec4<u32>,
    f: vec4<u32>,
    g: vec4<u32>,
    h: vec4<u32>,
}

fn outer_row(row: u32) -> Row {
    let at = plane(OUTER_SQUARES + 8u * (row - 4u));
    return Row(plane_at(at), plane_at(at + COLUMNS), plane_at(at + 2u * COLUMNS),
        plane_at(at + 3u * COLUMNS), plane_at(at + 4u * COLUMNS), plane_at(at + 5u * COLUMNS),
        plane_at(at + 6u * COLUMNS), plane_at(at + 7u * COLUMNS));
}

// Writes the planes of the used pairs of one square with each of the other row, from a plane on.
// Returns the plane behind them.
fn put_pairs(first: u32, which: u32, one: vec4<u32>, others: Row) -> u32 {
    var to = first;
    if ((which & 1u) != 0u) { put_plane(plane(to & 127u), one & others.a); to += 1u; }
    if ((which & 2u) != 0u) { put_plane(plane(to & 127u), one & others.b); to += 1u; }
    if ((which & 4u) != 0u) { put_plane(plane(to & 127u), one & others.c); to += 1u; }
    if ((which & 8u) != 0u) { put_plane(plane(to & 127u), one & others.d); to += 1u; }
    if ((which & 16u) != 0u) { put_plane(plane(to & 127u), one & others.e); to += 1u; }
    if ((which & 32u) != 0u) { put_plane(plane(to & 127u), one & others.f); to += 1u; }
    if ((which & 64u) != 0u) { put_plane(plane(to & 127u), one & others.g); to += 1u; }
    if ((which & 128u) != 0u) { put_plane(plane(to & 127u), one & others.h); to += 1u; }
    return to;
}

// Returns this team's word.
fn of_team(words: vec4<u32>) -> u32 {
    let is_odd = (team & 1u) != 0u;
    return select(select(words.x, words.y, is_odd), select(words.z, words.w, is_odd), team > 1u);
}

// Makes the planes of squares and of pairs from those of the masks.
fn make_planes(outer: u32, mask: vec4<u32>, bases: vec4<u32>, valid: vec4<u32>) {
    // Each team makes those of an inner row and of an outer one.
    if (team < outer) {
        put_squares(plane(8u * team), team, valid);
    } else {
        put_valid(plane(8u * team), valid);
    }
    let at = plane(OUTER_SQUARES + 8u * team);
    if (team + 4u < outer) {
        put_squares(at, team + 4u, valid);
    } else {
        put_valid(at, valid);
    }
    workgroupBarrier();
    // From here on the pairs replace the planes of the masks and the squares of outer rows. Each team
    // makes those of half of the squares of an outer row.
    let row = 4u + (team & 2u);
    let first = plane(OUTER_SQUARES + 8u * (row - 4u) + 4u * (team & 1u));
    let a = plane_at(first);
    let b = plane_at(first + COLUMNS);
    let c = plane_at(first + 2u * COLUMNS);
    let d = plane_at(first + 3u * COLUMNS);
    let others = outer_row(row + 1u);
    workgroupBarrier();
    if (team == 0u) {
        put_plane(plane(ZERO), vec4<u32>(0u));
    }
    let which = of_team(mask);
    var to = of_team(bases);
    to = put_pairs(to, which, a, others);
    to = put_pairs(to, which >> 8u, b, others);
    to = put_pairs(to, which >> 16u, c, others);
    put_pairs(to, which >> 24u, d, others);
}

// Returns the plane that a word of a record selects; if the round is narrow, without the second words,
// which are zero. Planes have seven bits, so that a place needs no check if there are 128.
fn selected(number: u32, is_narrow: bool) -> vec4<u32> {
    let at = plane(number & 127u);
    if (is_narrow) {
        return vec4<u32>(planes[at].x, 0u, planes[at + WIDTH].x, 0u);
    }
    return plane_at(at);
}

fn inner_of(record: u32, is_narrow: bool) -> vec4<u32> {
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
// of their bits. The next records are read before these are counted. Compilers make two functions of
// it: calls have constants for `is_narrow`.
fn add_records(is_narrow: bool) -> u32 {
    var sum = Sum(vec4<u32>(0u), 0u);
    let singles = records_of(0u);
    var at = singles.x + 2u * team;
    var a = programs[at];
    var b = programs[at + 1u];
    for (var i = 2u * team; i < singles.y; i += 2u * TEAMS) {
        at += 2u * TEAMS;
        let next_a = programs[at];
        let next_b = programs[at + 1u];
        add_planes(&sum, inner_of(a.x, is_narrow) & low_pairs(a.y, is_narrow),
            inner_of(b.x, is_narrow) & low_pairs(b.y, is_narrow));
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
        add_two(&sum, inner_of(a.x, is_narrow), inner_of(b.x, is_narrow), vec2<u32>(a.y, b.y),
            is_narrow);
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
        let inner = inner_of(a.x, is_narrow);
        let other = inner_of(b.x, is_narrow);
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
        atomicStore(&kept_count, 0u);
    }
    workgroupBarrier();
    // The next batch is read before this one is taken.
    let last = next_start(start + count) - BATCH * LANES;
    var following = eight_at(start + *next);
    while (*next < count) {
        let s = following;
        following = eight_at(min(start + *next + BATCH * LANES, last));
        let which = kept_of_eight(s, test) & *left;
        var to = STATES * COLUMNS + atomicAdd(&kept_count, countOneBits(which));
        let total = workgroupUniformLoad(&kept_count);
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
fn count_states(outer: u32, first_row: u32, mask: vec4<u32>, is_first: bool) {
    let test = test_of_step();
    let count = workgroupUniformLoad(&step.count);
    let bases = bases_of_pairs(mask);
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
        let valid = vec4<u32>(lowest_bits(of_first), lowest_bits(of_first - min(of_first, 32u)),
            lowest_bits(of_second), lowest_bits(of_second - min(of_second, 32u)));
        if (is_first && team == 0u) {
            counted_states += of_first + of_second;
        }
        transpose();
        workgroupBarrier();
        make_planes(outer, mask, bases, valid);
        workgroupBarrier();
        // If there are few states, only the first words of planes have any.
        if (filled <= 32u * COLUMNS) {
            total += add_records(true);
        } else {
            total += add_records(false);
        }
        workgroupBarrier();
    }
    if (lane == 0u) {
        seen -= mark_of_padding(count);
    }
    atomicAdd(&seen_mark, seen);
    let before = hits;
    hits += total;
    hits_high += select(0u, 1u, hits < before);
    low += total & 0xffffu;
    high += total >> 16u;
}
