// Column sets by bit planes: the pairs of states and completions that do not meet.

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

// Takes a state of the list to the planes if there is room, and if it does not meet the step's queen.
// Returns the next place of this lane: behind the state if there was one and room for it.
fn take_state(
    state: vec2<u32>, at: u32, count: ptr<function, u32>, seen: ptr<function, u32>,
) -> u32 {
    if (*count == 32u || at >= step.count) {
        return at;
    }
    *seen += mark_of(state);
    if (is_kept(state)) {
        planes[plane(LEFT + *count)] = state.x;
        planes[plane(RIGHT + *count)] = state.y;
        *count += 1u;
    }
    return at + LANES;
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
            let end = step.count;
            let a = state_at(base, next, end);
            let b = state_at(base, next + LANES, end);
            let c = state_at(base, next + 2u * LANES, end);
            let d = state_at(base, next + 3u * LANES, end);
            let e = state_at(base, next + 4u * LANES, end);
            let f = state_at(base, next + 5u * LANES, end);
            let g = state_at(base, next + 6u * LANES, end);
            let h = state_at(base, next + 7u * LANES, end);
            next = take_state(a, next, &count, &seen);
            next = take_state(b, next, &count, &seen);
            next = take_state(c, next, &count, &seen);
            next = take_state(d, next, &count, &seen);
            next = take_state(e, next, &count, &seen);
            next = take_state(f, next, &count, &seen);
            next = take_state(g, next, &count, &seen);
            next = take_state(h, next, &count, &seen);
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
