// The lists of column sets: the placements of the lower half, and the filters of the upper rows.

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

// Adds the mark of a set and of its family to the slot.
fn mark_set(number: u32, item: SetItem, family: u32) {
    var mark = 0u;
    if (lane == 0u) {
        mark = number + 1u;
        mark = mark * 0x9e3779b1u + item.upper;
        mark = mark * 0x9e3779b1u + item.lower;
        mark = mark * 0x9e3779b1u + item.first_rows[0];
        mark = mark * 0x9e3779b1u + item.first_rows[1];
    }
    for (var i = lane; i < FAMILY; i += LANES) {
        mark += families[family + i] * ((2u * i + 1u) * 0x85ebca77u);
    }
    atomicAdd(&slots[number].set_mark, mark);
}

// Returns the columns of a row where a queen may stand.
fn open_below(at: Below, family: u32, row: u32) -> u32 {
    return at.free & ~at.from_right & ~at.from_left & families[family + ALLOWED_BELOW + row];
}

// The columns of the first two rows of the lower half, and what `place_below` needs.
struct FirstRows {
    first: u32,
    second: u32,
    family: u32,
    gap: u32,
}

// Places the queens of the first three rows, by the number of the triple. Returns the columns of the
// fourth row.
fn begin_triple(at: ptr<function, Below>, triple: u32, lower: u32, rows: FirstRows) -> u32 {
    let seconds = countOneBits(rows.second);
    let thirds = countOneBits(lower);
    let first = bit_of(rows.first, triple / thirds / seconds);
    let second = bit_of(rows.second, triple / thirds % seconds);
    let third = bit_of(lower, triple % thirds);
    *at = Below(lower, 0u, 0u, 0u, 0u,
        families[rows.family + FIRST_BELOW + countTrailingZeros(first)]);
    if (!place_below(at, 0u, first, rows.gap)) {
        return 0u;
    }
    let open_in_second = open_below(*at, rows.family, 1u);
    if ((second & open_in_second) == 0u || !place_below(at, 1u, second, rows.gap)) {
        return 0u;
    }
    let open_in_third = open_below(*at, rows.family, 2u);
    if ((third & open_in_third) == 0u || !place_below(at, 2u, third, rows.gap)) {
        return 0u;
    }
    return open_below(*at, rows.family, 3u);
}

// Lists the placements of the lower half of a set. A list that does not fit is not written any more,
// but counted, up to a few times the room. A list that takes a lane too long is given up.
fn list_set(item: SetItem, family: u32, start: u32) {
    let rows = families[family + ROWS_BELOW];
    let gap = families[family + GAP];
    let first_rows = FirstRows(item.lower & item.first_rows[0] & families[family + ALLOWED_BELOW],
        item.lower & item.first_rows[1] & families[family + ALLOWED_BELOW + 1u], family, gap);
    let triples = countOneBits(first_rows.first) * countOneBits(first_rows.second)
        * countOneBits(item.lower);
    let most = LISTED * params.capacity;
    var taken = 0u;
    var listed_mark = 0u;
    var at = Below(0u, 0u, 0u, 0u, 0u, 0u);
    var row = 3u;
    var candidates = 0u;
    // The rows on the stack, which is in the memory of planes.
    var depth = 0u;
    var is_complete = false;
    var iterations = 0u;
    while (iterations < params.list_iterations) {
        iterations += 1u;
        if (candidates == 0u) {
            if (depth > 0u) {
                depth -= 1u;
                let entry = depth * 4u * LANES + lane;
                let columns = planes[entry];
                let attacks = planes[entry + LANES];
                let masks = planes[entry + 2u * LANES];
                let rule = planes[entry + 3u * LANES].x;
                at = Below(columns.x, attacks.x, attacks.y, masks.x, masks.y, rule & 0x1ffffffu);
                candidates = columns.y;
                row = rule >> 25u;
            } else {
                // A lane takes the next columns of the first three rows, but not most of all: a driver
                // may run lanes one after another, and end long loops.
                var triple = triples;
                if (taken <= triples / LANES) {
                    triple = atomicAdd(&next_triple, 1u);
                }
                if (triple >= triples) {
                    is_complete = true;
                    break;
                }
                row = 3u;
                candidates = begin_triple(&at, triple, item.lower, first_rows);
                if (candidates == 0u) {
                    continue;
                }
                taken += 1u;
            }
        }
        let queen = candidates & (~candidates + 1u);
        candidates ^= queen;
        var next = at;
        if (!place_below(&next, row, queen, gap)) {
            continue;
        }
        if (row + 1u == rows) {
            let state = state_of(next.left, next.right, next.rule >> 20u, next.rule & 1u);
            let index = start + atomicAdd(&kept_count, 1u);
            if (index < params.capacity) {
                put_state(index, state);
                listed_mark += mark_of(state);
            } else if (index >= most) {
                break;
            }
            continue;
        }
        let open = open_below(next, family, row + 1u);
        if (open == 0u) {
            continue;
        }
        // A row is left for good with its last column.
        if (candidates != 0u) {
            let entry = depth * 4u * LANES + lane;
            planes[entry] = vec2<u32>(at.free, candidates);
            planes[entry + LANES] = vec2<u32>(at.from_right, at.from_left);
            planes[entry + 2u * LANES] = vec2<u32>(at.left, at.right);
            planes[entry + 3u * LANES].x = at.rule | (row << 25u);
            depth += 1u;
        }
        at = next;
        row += 1u;
        candidates = open;
    }
    if (!is_complete) {
        atomicStore(&stopped, 1u);
    }
    atomicMax(&most_iterations, iterations);
    atomicAdd(&kept_mark, listed_mark);
}

// What the states must not meet that are kept: two masks, and the rule of the first row.
struct Test {
    left: u32,
    right: u32,
    side: u32,
    limit: u32,
}

// Returns the test of the step's queen.
fn test_of_step() -> Test {
    return Test(step.left, step.right | REFUSED, step.side, step.limit);
}

// Eight states of a lane, which are read at once. A loop over them would not be unrolled by all
// drivers.
struct Eight {
    a: vec2<u32>,
    b: vec2<u32>,
    c: vec2<u32>,
    d: vec2<u32>,
    e: vec2<u32>,
    f: vec2<u32>,
    g: vec2<u32>,
    h: vec2<u32>,
}

// Returns the states of a lane in the batch that begins at a place of the workgroup's lists.
fn eight_at(at: u32) -> Eight {
    let part = group * (params.capacity / PART) + at / PART;
    return Eight(state_of_batch(part, 0u), state_of_batch(part, LANES),
        state_of_batch(part, 2u * LANES), state_of_batch(part, 3u * LANES),
        state_of_batch(part, 4u * LANES), state_of_batch(part, 5u * LANES),
        state_of_batch(part, 6u * LANES), state_of_batch(part, 7u * LANES));
}

fn state_of_batch(part: u32, at: u32) -> vec2<u32> {
    return states[part + at / PART][(at % PART) | lane];
}

fn mark_of_eight(s: Eight) -> u32 {
    return mark_of(s.a) + mark_of(s.b) + mark_of(s.c) + mark_of(s.d) + mark_of(s.e) + mark_of(s.f)
        + mark_of(s.g) + mark_of(s.h);
}

// Returns `bit` if a state does not meet the masks of a test.
fn bit_if_met_not(state: vec2<u32>, test: Test, bit: u32) -> u32 {
    return select(0u, bit, ((state.x & test.left) | (state.y & test.right)) == 0u);
}

// Returns `bit` if the rule of the first row refuses a state.
fn bit_if_refused(state: vec2<u32>, test: Test, bit: u32) -> u32 {
    return select(0u, bit, (state.y >> 31u) == test.side && (state.x >> 28u) >= test.limit);
}

// Returns which of the states are kept, a bit each.
fn kept_of_eight(s: Eight, test: Test) -> u32 {
    var kept = bit_if_met_not(s.a, test, 1u) | bit_if_met_not(s.b, test, 2u)
        | bit_if_met_not(s.c, test, 4u) | bit_if_met_not(s.d, test, 8u)
        | bit_if_met_not(s.e, test, 16u) | bit_if_met_not(s.f, test, 32u)
        | bit_if_met_not(s.g, test, 64u) | bit_if_met_not(s.h, test, 128u);
    if (test.side < 2u) {
        kept &= ~(bit_if_refused(s.a, test, 1u) | bit_if_refused(s.b, test, 2u)
            | bit_if_refused(s.c, test, 4u) | bit_if_refused(s.d, test, 8u)
            | bit_if_refused(s.e, test, 16u) | bit_if_refused(s.f, test, 32u)
            | bit_if_refused(s.g, test, 64u) | bit_if_refused(s.h, test, 128u));
    }
    return kept;
}

// Fills the last batch of a list that ends at a place up with states that every test refuses.
fn pad_list(end: u32) {
    let stop = min(next_start(end), params.capacity);
    for (var at = end + lane; at < stop; at += LANES) {
        put_state(at, vec2<u32>(0u, REFUSED));
    }
}

// Returns the mark of what fills up a list of so many states.
fn mark_of_padding(count: u32) -> u32 {
    return (next_start(count) - count) * mark_of(vec2<u32>(0u, REFUSED));
}

// Writes a state to `to` if it is kept. Returns the place behind it.
fn put_kept(state: vec2<u32>, is_kept: bool, to: u32, kept: ptr<function, u32>) -> u32 {
    if (!is_kept) {
        return to;
    }
    if (to < params.capacity) {
        put_state(to, state);
    }
    *kept += mark_of(state);
    return to + 1u;
}

// Copies the states that do not meet the step's queen behind the list.
fn filter_list() {
    let test = test_of_step();
    let start = step.start;
    let end = start + step.count;
    let next = next_start(end);
    let last = next - BATCH * LANES;
    var seen = 0u;
    var kept = 0u;
    // The next batch is read before this one is filtered.
    var following = eight_at(start);
    for (var at = start; at < end; at += BATCH * LANES) {
        let s = following;
        following = eight_at(min(at + BATCH * LANES, last));
        seen += mark_of_eight(s);
        let which = kept_of_eight(s, test);
        var to = next + atomicAdd(&kept_count, countOneBits(which));
        to = put_kept(s.a, (which & 1u) != 0u, to, &kept);
        to = put_kept(s.b, (which & 2u) != 0u, to, &kept);
        to = put_kept(s.c, (which & 4u) != 0u, to, &kept);
        to = put_kept(s.d, (which & 8u) != 0u, to, &kept);
        to = put_kept(s.e, (which & 16u) != 0u, to, &kept);
        to = put_kept(s.f, (which & 32u) != 0u, to, &kept);
        to = put_kept(s.g, (which & 64u) != 0u, to, &kept);
        to = put_kept(s.h, (which & 128u) != 0u, to, &kept);
    }
    if (lane == 0u) {
        seen -= mark_of_padding(end - start);
    }
    atomicAdd(&kept_mark, kept);
    atomicAdd(&seen_mark, seen);
}
