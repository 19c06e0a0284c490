// Column sets by bit planes: one plane of states for each square and for each used pair of squares.

// The pairs that a program uses, and the numbers of the first planes of each word of their masks.
struct UsedPairs {
    // Of rows 4 and 5, and of rows 6 and 7.
    mask: vec4<u32>,
    bases: vec4<u32>,
    // Of rows 0 and 1.
    upper_mask: vec2<u32>,
    upper_bases: vec2<u32>,
}

// Returns the pairs that were collected. If those of rows 0 and 1 have planes, they are in the place of
// these rows' squares.
fn used_pairs(has_upper: bool) -> UsedPairs {
    let mask = vec4<u32>(atomicLoad(&used[0]), atomicLoad(&used[1]), atomicLoad(&used[2]),
        atomicLoad(&used[3]));
    let upper_mask = vec2<u32>(atomicLoad(&used[4]), atomicLoad(&used[5]));
    let counts = countOneBits(mask);
    let upper_counts = countOneBits(upper_mask);
    let first = select(PAIRS, SQUARES_OF_ROW_0 + upper_counts.x + upper_counts.y, has_upper);
    return UsedPairs(mask,
        first + vec4<u32>(0u, counts.x, counts.x + counts.y, counts.x + counts.y + counts.z),
        upper_mask, SQUARES_OF_ROW_0 + vec2<u32>(0u, upper_counts.x));
}

// Replaces the numbers of the pairs in a word of completions, one in a byte, by the numbers of their
// planes, of which the last one has the highest seven bits.
fn with_planes(word: u32, pairs: UsedPairs) -> u32 {
    let mask = pairs.mask;
    let bases = pairs.bases;
    return plane_of_pair(word & 0xffu, mask.xy, bases.xy)
        | (plane_of_pair((word >> 8u) & 0xffu, mask.zw, bases.zw) << 8u)
        | (plane_of_pair((word >> 16u) & 0xffu, mask.xy, bases.xy) << 16u)
        | (plane_of_pair(word >> 24u, mask.zw, bases.zw) << 25u);
}

// Returns the planes of a record's inner rows: 2 and 3; and the pair of rows 0 and 1, or their squares.
fn inner_planes(inner: u32, pairs: UsedPairs, has_upper: bool) -> u32 {
    let squares = (SQUARES_OF_ROW_2 + ((inner >> 11u) & 7u))
        | ((SQUARES_OF_ROW_2 + 8u + ((inner >> 8u) & 7u)) << 8u);
    if (has_upper) {
        return squares
            | (plane_of_pair(inner & 0xffu, pairs.upper_mask, pairs.upper_bases) << 16u);
    }
    return squares | ((SQUARES_OF_ROW_0 + ((inner >> 3u) & 7u)) << 16u)
        | ((SQUARES_OF_ROW_0 + 8u + (inner & 7u)) << 25u);
}

fn plane_of_pair(pair: u32, mask: vec2<u32>, bases: vec2<u32>) -> u32 {
    let is_high = (pair & 32u) != 0u;
    let below = (1u << (pair & 31u)) - 1u;
    let index = select(bases.x, bases.y, is_high)
        + countOneBits(select(mask.x, mask.y, is_high) & below);
    return select(index, ZERO, pair == 0xffu);
}

// Two states of the column that this lane transposes.
fn two(at: u32) -> vec4<u32> {
    let place = at * COLUMNS + own_column;
    return vec4<u32>(planes[place], planes[place + COLUMNS]);
}

// Writes this lane's words of two planes of left masks and of right ones.
fn put_two(at: u32, which: u32, v: vec4<u32>) {
    let left = (LEFT + at) * COLUMNS + own_place;
    let right = (RIGHT + at) * COLUMNS + own_place;
    planes[left][which] = v.x;
    planes[right][which] = v.y;
    planes[left + COLUMNS][which] = v.z;
    planes[right + COLUMNS][which] = v.w;
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
// of plane i. Each lane does it for a half. Planes beyond the board are not written.
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
    // Other lanes write where this one has read.
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
    // A write to one word of a pair may write both, so the lanes of two columns take turns.
    for (var turn = 0u; turn < 2u; turn++) {
        if (own_word == turn) {
            put_two(0u, turn, exchange_within(a));
            put_two(2u, turn, exchange_within(b));
            put_two(4u, turn, exchange_within(c));
            put_two(6u, turn, exchange_within(d));
            put_two(8u, turn, exchange_within(e));
            put_two(10u, turn, exchange_within(f));
            put_two(12u, turn, exchange_within(g));
            put_two(14u, turn, exchange_within(h));
            put_two(16u, turn, exchange_within(i));
            put_two(18u, turn, exchange_within(j));
            if (MASK_PLANES > 20u) {
                put_two(20u, turn, exchange_within(k));
                put_two(22u, turn, exchange_within(l));
            }
            if (MASK_PLANES > 24u) {
                put_two(24u, turn, exchange_within(m));
                put_two(26u, turn, exchange_within(n));
            }
        }
        workgroupBarrier();
    }
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
        atomicStore(&scratch[i], (left | (right << 16u)) * COLUMNS);
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

// Returns the place of this lane's first pair of words in the plane that is in the low bits of a word.
// Numbers of planes have seven bits: with 128 planes, compilers know that the place needs no check.
fn place_of(places: u32) -> u32 {
    return (places & (127u * COLUMNS)) | column;
}

// Returns the plane of the states that do not attack a square.
fn square(number: u32) -> vec4<u32> {
    let places = atomicLoad(&scratch[number]);
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

// The planes of the squares of a row.
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

// Returns the planes of a row's squares from a plane on.
fn row_at(number: u32) -> Row {
    let at = plane(number);
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
fn make_planes(outer: u32, pairs: UsedPairs, has_upper: bool, valid: vec4<u32>) {
    // Each team makes those of an inner row and of an outer one.
    let inner_at = plane((SQUARES_OF_ROW_0 + 8u * team) & 31u);
    if (team < outer) {
        put_squares(inner_at, team, valid);
    } else {
        put_valid(inner_at, valid);
    }
    let outer_at = plane(OUTER_SQUARES + 8u * team);
    if (team + 4u < outer) {
        put_squares(outer_at, team + 4u, valid);
    } else {
        put_valid(outer_at, valid);
    }
    workgroupBarrier();
    // From here on the pairs replace the planes of the masks and the squares that they are made of.
    if (has_upper) {
        // Each team makes the pairs of two squares of row 0.
        let first = plane(SQUARES_OF_ROW_0 + 2u * team);
        let a = plane_at(first);
        let b = plane_at(first + COLUMNS);
        let others = row_at(SQUARES_OF_ROW_0 + 8u);
        workgroupBarrier();
        let mask = select(pairs.upper_mask.x, pairs.upper_mask.y, team > 1u);
        let base = select(pairs.upper_bases.x, pairs.upper_bases.y, team > 1u);
        let shift = 16u * (team & 1u);
        var to = base + countOneBits(mask & ((1u << shift) - 1u));
        to = put_pairs(to, mask >> shift, a, others);
        put_pairs(to, mask >> (shift + 8u), b, others);
    }
    // Each team makes those of half of the squares of an outer row.
    let row = team & 2u;
    let first = plane(OUTER_SQUARES + 8u * row + 4u * (team & 1u));
    let a = plane_at(first);
    let b = plane_at(first + COLUMNS);
    let c = plane_at(first + 2u * COLUMNS);
    let d = plane_at(first + 3u * COLUMNS);
    let others = row_at(OUTER_SQUARES + 8u * (row + 1u));
    workgroupBarrier();
    if (team == 0u) {
        put_plane(plane(ZERO), vec4<u32>(0u));
    }
    let which = of_team(pairs.mask);
    var to = of_team(pairs.bases);
    to = put_pairs(to, which, a, others);
    to = put_pairs(to, which >> 8u, b, others);
    to = put_pairs(to, which >> 16u, c, others);
    put_pairs(to, which >> 24u, d, others);
}
