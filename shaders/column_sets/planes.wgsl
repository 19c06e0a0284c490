// Column sets by bit planes: the pairs of states and completions that do not meet.

// Replaces the numbers of the pairs in a word, one in a byte, by the numbers of their planes, of
// which the last one has the highest seven bits.
fn with_planes(word: u32, mask: vec4<u32>) -> u32 {
    return plane_of_pair(word & 0xffu, mask)
        | (plane_of_pair(((word >> 8u) & 0xffu) | 64u, mask) << 8u)
        | (plane_of_pair((word >> 16u) & 0xffu, mask) << 16u)
        | (plane_of_pair((word >> 24u) | 64u, mask) << 25u);
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

// Two states, or two planes of left masks and of right ones.
fn two(at: u32) -> vec4<u32> {
    return vec4<u32>(planes[plane(at)], planes[plane(at + 1u)]);
}

fn put_two(at: u32, v: vec4<u32>) {
    planes[plane(LEFT + at)][team] = v.x;
    planes[plane(RIGHT + at)][team] = v.y;
    planes[plane(LEFT + at + 1u)][team] = v.z;
    planes[plane(RIGHT + at + 1u)][team] = v.w;
}

fn exchange(a: ptr<function, vec4<u32>>, b: ptr<function, vec4<u32>>, shift: u32, mask: u32) {
    let x = *a;
    *a = (x & vec4<u32>(mask)) | ((*b << vec4<u32>(shift)) & vec4<u32>(~mask));
    *b = ((x >> vec4<u32>(shift)) & vec4<u32>(mask)) | (*b & vec4<u32>(~mask));
}

fn exchange_within(v: vec4<u32>) -> vec4<u32> {
    let one = vec2<u32>(0x55555555u);
    return vec4<u32>((v.xy & one) | ((v.zw << vec2<u32>(1u)) & ~one),
        ((v.xy >> vec2<u32>(1u)) & one) | (v.zw & ~one));
}

// Transposes the masks of half of a column's states, 32 of each side: bit i of mask j becomes bit j
// of plane i. Each team does it for a half. The last four planes are not written, because there are
// at most 28 columns.
fn transpose() {
    let masks = STATES + 32u * team;
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
    // The other team writes where this one has read.
    workgroupBarrier();
    exchange(&a, &i, 16u, 0x0000ffffu);
    exchange(&b, &j, 16u, 0x0000ffffu);
    exchange(&c, &k, 16u, 0x0000ffffu);
    exchange(&d, &l, 16u, 0x0000ffffu);
    exchange(&e, &m, 16u, 0x0000ffffu);
    exchange(&f, &n, 16u, 0x0000ffffu);
    exchange(&g, &o, 16u, 0x0000ffffu);
    exchange(&h, &p, 16u, 0x0000ffffu);
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
        square_places[i] = (left * COLUMNS) | ((right * COLUMNS) << 16u);
    }
}

// Returns the plane of the states that do not attack a square.
fn square(number: u32) -> vec2<u32> {
    let places = square_places[number];
    return ~(planes[(places & 0xffffu) + column] | planes[(places >> 16u) + column]);
}

// The planes of eight squares.
struct Row {
    a: vec2<u32>,
    b: vec2<u32>,
    c: vec2<u32>,
    d: vec2<u32>,
    e: vec2<u32>,
    f: vec2<u32>,
    g: vec2<u32>,
    h: vec2<u32>,
}

// Returns the planes of a row's squares by the rank of the column.
fn squares_of_row(row: u32) -> Row {
    let first = 8u * row;
    return Row(square(first), square(first + 1u), square(first + 2u), square(first + 3u),
        square(first + 4u), square(first + 5u), square(first + 6u), square(first + 7u));
}

// Writes the planes of an inner row's squares of states that count.
fn put_inner(row: u32, s: Row, valid: vec2<u32>) {
    let at = plane(8u * row);
    planes[at] = s.a & valid;
    planes[at + COLUMNS] = s.b & valid;
    planes[at + 2u * COLUMNS] = s.c & valid;
    planes[at + 3u * COLUMNS] = s.d & valid;
    planes[at + 4u * COLUMNS] = s.e & valid;
    planes[at + 5u * COLUMNS] = s.f & valid;
    planes[at + 6u * COLUMNS] = s.g & valid;
    planes[at + 7u * COLUMNS] = s.h & valid;
}

// Writes the planes of the squares of an outer row from 4 on, and reads them again.
fn put_outer(row: u32, s: Row) {
    let at = plane(OUTER_SQUARES + 8u * (row - 4u));
    planes[at] = s.a;
    planes[at + COLUMNS] = s.b;
    planes[at + 2u * COLUMNS] = s.c;
    planes[at + 3u * COLUMNS] = s.d;
    planes[at + 4u * COLUMNS] = s.e;
    planes[at + 5u * COLUMNS] = s.f;
    planes[at + 6u * COLUMNS] = s.g;
    planes[at + 7u * COLUMNS] = s.h;
}

fn outer_row(row: u32) -> Row {
    let at = plane(OUTER_SQUARES + 8u * (row - 4u));
    return Row(planes[at], planes[at + COLUMNS], planes[at + 2u * COLUMNS], planes[at + 3u * COLUMNS],
        planes[at + 4u * COLUMNS], planes[at + 5u * COLUMNS], planes[at + 6u * COLUMNS],
        planes[at + 7u * COLUMNS]);
}

// Writes the planes of the used pairs of one square with each of the other row, from place `at` on.
// Returns the place behind them.
fn put_pairs(at: u32, which: u32, one: vec2<u32>, others: Row) -> u32 {
    var to = at;
    if ((which & 1u) != 0u) { planes[to] = one & others.a; to += COLUMNS; }
    if ((which & 2u) != 0u) { planes[to] = one & others.b; to += COLUMNS; }
    if ((which & 4u) != 0u) { planes[to] = one & others.c; to += COLUMNS; }
    if ((which & 8u) != 0u) { planes[to] = one & others.d; to += COLUMNS; }
    if ((which & 16u) != 0u) { planes[to] = one & others.e; to += COLUMNS; }
    if ((which & 32u) != 0u) { planes[to] = one & others.f; to += COLUMNS; }
    if ((which & 64u) != 0u) { planes[to] = one & others.g; to += COLUMNS; }
    if ((which & 128u) != 0u) { planes[to] = one & others.h; to += COLUMNS; }
    return to;
}

// Likewise for all squares of a row with those of the next row.
fn put_all_pairs(at: u32, which: vec2<u32>, s: Row, others: Row) {
    var to = put_pairs(at, which.x, s.a, others);
    to = put_pairs(to, which.x >> 8u, s.b, others);
    to = put_pairs(to, which.x >> 16u, s.c, others);
    to = put_pairs(to, which.x >> 24u, s.d, others);
    to = put_pairs(to, which.y, s.e, others);
    to = put_pairs(to, which.y >> 8u, s.f, others);
    to = put_pairs(to, which.y >> 16u, s.g, others);
    put_pairs(to, which.y >> 24u, s.h, others);
}

// Makes the planes of squares and of pairs from those of the masks.
fn make_planes(outer: u32, mask: vec4<u32>, valid: vec2<u32>) {
    for (var row = team; row < OUTER; row += 2u) {
        // All ones for a row that there is not.
        var s: Row;
        if (row < outer) {
            s = squares_of_row(row);
        } else {
            let all = vec2<u32>(0xffffffffu);
            s = Row(all, all, all, all, all, all, all, all);
        }
        if (row < 4u) {
            put_inner(row, s, valid);
        } else {
            put_outer(row, s);
        }
    }
    workgroupBarrier();
    // From here on the pairs replace the planes of the masks and the squares of outer rows. Each team
    // makes those of two rows.
    let s = outer_row(4u + 2u * team);
    let others = outer_row(5u + 2u * team);
    workgroupBarrier();
    if (team == 0u) {
        planes[plane(ZERO)] = vec2<u32>(0u);
    }
    let which = select(mask.zw, mask.xy, team == 0u);
    let before = select(countOneBits(mask.x) + countOneBits(mask.y), 0u, team == 0u);
    put_all_pairs(plane(PAIRS + before), which, s, others);
}

// Returns the plane that a word of a record selects. Planes have seven bits, so that a place needs no
// check if there are 128.
fn selected(number: u32) -> vec2<u32> {
    return planes[plane(number & 127u)];
}

fn inner_of(record: u32) -> vec2<u32> {
    return low_pairs(record) & high_pairs(record);
}

fn low_pairs(record: u32) -> vec2<u32> {
    return selected(record) & selected(record >> 8u);
}

fn high_pairs(record: u32) -> vec2<u32> {
    return selected(record >> 16u) & selected(record >> 25u);
}

// A sum of planes: the number of bits is the number in `ones`, and twice `twice`.
struct Sum {
    ones: vec2<u32>,
    twice: u32,
}

// Adds two planes.
fn add_planes(sum: ptr<function, Sum>, x: vec2<u32>, y: vec2<u32>) {
    let ones = (*sum).ones;
    let carries = countOneBits((ones & (x | y)) | (x & y));
    (*sum).twice += carries.x + carries.y;
    (*sum).ones = ones ^ x ^ y;
}

// Adds the completions of a word of two records. Those that are added at once have different inner
// squares: otherwise compilers take the same ones out of the sum, which needs more operations.
fn add_two(sum: ptr<function, Sum>, inner: vec2<u32>, other: vec2<u32>, words: vec2<u32>) {
    add_planes(sum, inner & low_pairs(words.x), other & low_pairs(words.y));
    add_planes(sum, inner & high_pairs(words.x), other & high_pairs(words.y));
}

// Adds the planes of the program's completions, of which each team has half. Returns the number of
// their bits. The next records are read before these are counted.
fn add_records() -> u32 {
    var sum = Sum(vec2<u32>(0u), 0u);
    let singles = records_of(0u);
    var at = singles.x + 2u * team;
    var a = programs[at];
    var b = programs[at + 1u];
    for (var i = 2u * team; i < singles.y; i += 4u) {
        at += 4u;
        let next_a = programs[at];
        let next_b = programs[at + 1u];
        add_planes(&sum, inner_of(a.x) & low_pairs(a.y), inner_of(b.x) & low_pairs(b.y));
        a = next_a;
        b = next_b;
    }
    let doubles = records_of(1u);
    at = doubles.x + 2u * team;
    a = programs[at];
    b = programs[at + 1u];
    for (var i = 2u * team; i < doubles.y; i += 4u) {
        at += 4u;
        let next_a = programs[at];
        let next_b = programs[at + 1u];
        add_two(&sum, inner_of(a.x), inner_of(b.x), vec2<u32>(a.y, b.y));
        a = next_a;
        b = next_b;
    }
    let longs = records_of(2u);
    at = longs.x + 4u * team;
    a = programs[at];
    b = programs[at + 1u];
    var more = vec2<u32>(programs[at + 2u].y, programs[at + 3u].y);
    for (var i = 4u * team; i < longs.y; i += 8u) {
        at += 8u;
        let next_a = programs[at];
        let next_b = programs[at + 1u];
        let next_more = vec2<u32>(programs[at + 2u].y, programs[at + 3u].y);
        let inner = inner_of(a.x);
        let other = inner_of(b.x);
        add_two(&sum, inner, other, vec2<u32>(a.y, b.y));
        add_two(&sum, inner, other, more);
        a = next_a;
        b = next_b;
        more = next_more;
    }
    let rest = countOneBits(sum.ones);
    return 2u * sum.twice + rest.x + rest.y;
}

// Writes a state to a place among the planes if it is kept. Returns the place behind it.
fn take_state(state: vec2<u32>, is_kept: bool, to: u32) -> u32 {
    if (!is_kept) {
        return to;
    }
    planes[to] = state;
    return to + 1u;
}

// Takes states of the list that the test keeps, from place `next` of the list on, as many as are
// counted at once. All lanes read in step. Returns the number of states.
fn take_states(test: Test, next: ptr<function, u32>, seen: ptr<function, u32>) -> u32 {
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
        let which = kept_of_eight(s, test);
        var to = STATES * COLUMNS + atomicAdd(&kept_count, countOneBits(which));
        let total = workgroupUniformLoad(&kept_count);
        if (total > AT_ONCE * COLUMNS) {
            // The next ones begin with this batch.
            break;
        }
        filled = total;
        *next += BATCH * LANES;
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

// Returns a word with its lowest bits set, at most 32.
fn lowest_bits(count: u32) -> u32 {
    return select((1u << count) - 1u, 0xffffffffu, count == 32u);
}

// Counts the program's completions over the states of the list that do not meet the step's queen.
fn count_states(outer: u32, first_row: u32, mask: vec4<u32>, is_first: bool) {
    let test = test_of_step();
    let count = workgroupUniformLoad(&step.count);
    place_squares(first_row);
    var next = 0u;
    var seen = 0u;
    // At most 75,000 states of a lane, with at most 8! completions each.
    var total = 0u;
    while (next < count) {
        // The states behind these are of the round before, and do not count.
        let filled = take_states(test, &next, &seen);
        // The states of a column are COLUMNS places apart.
        let states_here = (filled + COLUMNS - 1u - column) / COLUMNS;
        let counts = vec2<u32>(min(states_here, 32u), states_here - min(states_here, 32u));
        let valid = vec2<u32>(lowest_bits(counts.x), lowest_bits(counts.y));
        if (is_first && team == 0u) {
            counted_states += states_here;
        }
        transpose();
        workgroupBarrier();
        make_planes(outer, mask, valid);
        workgroupBarrier();
        total += add_records();
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
