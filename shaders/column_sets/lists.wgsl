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

// The effect of the rule on the rows behind the first three: the decisive queen if it is in one of
// them, or 0; the row from which on it is not counted; and the group of a placement by the row of
// that queen: from `group_from` on `group`, plus the row if `adds_row` is 1; before, 0.
struct Decisive {
    queen: u32,
    refused_from: u32,
    group_from: u32,
    group: u32,
    adds_row: u32,
}

fn decisive_of(rule: u32, free: u32) -> Decisive {
    let column = (rule >> 1u) & 31u;
    let queen = select(1u << column, 0u, column == 31u) & free;
    if (queen == 0u) {
        return Decisive(0u, 32u, 0u, rule >> 20u, 0u);
    }
    if ((rule & 0x10000u) != 0u) {
        return Decisive(queen, 32u, 0u, 1u, 1u);
    }
    let limit = (rule >> 6u) & 31u;
    let group = (rule >> 11u) & 31u;
    return Decisive(queen, select(32u, limit, group == NOT_COUNTED), limit, group, 0u);
}

// Takes the next columns of the first three rows, but not most of all: a driver may run lanes one
// after another, and end long loops.
fn take_triple(taken: u32, triples: u32) -> u32 {
    if (taken > triples / LANES) {
        return triples;
    }
    return atomicAdd(&numbers.next_triple, 1u);
}

// Lists the placements of the lower half of a set. A list that does not fit is not written any more,
// but counted, up to a few times the room. A list that takes a lane too long is given up. Compilers
// make two functions of it: calls have constants for `has_rule`, whether the family has a rule.
fn list_set(item: SetItem, family: u32, start: u32, has_rule: bool) {
    let rows = families[family + ROWS_BELOW];
    let gap = families[family + GAP];
    let full = (1u << params.n) - 1u;
    let first_rows = FirstRows(item.lower & item.first_rows[0] & families[family + ALLOWED_BELOW],
        item.lower & item.first_rows[1] & families[family + ALLOWED_BELOW + 1u], family, gap);
    let triples = countOneBits(first_rows.first) * countOneBits(first_rows.second)
        * countOneBits(item.lower);
    let most = LISTED * params.capacity;
    var taken = 0u;
    var listed_mark = 0u;
    var at = Below(0u, 0u, 0u, 0u, 0u, 0u);
    var decisive = Decisive(0u, 32u, 0u, 0u, 0u);
    var row_of_decisive = 0u;
    // The number of rows behind the first three.
    var level = 0u;
    var candidates = 0u;
    // The levels that are on the stack. The stack and the placements that were found are in the
    // memory of planes.
    var pending = 0u;
    var is_complete = false;
    var fits = true;
    var iterations = 0u;
    while (!is_complete && fits && iterations < params.list_iterations) {
        // All lanes write what they have found at the same time.
        let turns = min(LIST_TURNS, params.list_iterations - iterations);
        var turn = 0u;
        var found = 0u;
        while (turn < turns && found < MOST_FOUND) {
            turn += 1u;
            if (candidates == 0u) {
                if (pending != 0u) {
                    level = 31u - countLeadingZeros(pending);
                    pending ^= 1u << level;
                    let entry = (level & 15u) * 3u * LANES + lane;
                    let columns = planes[entry];
                    let attacks = planes[entry + LANES];
                    let masks = planes[entry + 2u * LANES];
                    candidates = columns.y;
                    at = Below(columns.x, attacks.x, attacks.y, masks.x, masks.y, at.rule);
                } else {
                    let triple = take_triple(taken, triples);
                    if (triple >= triples) {
                        is_complete = true;
                        break;
                    }
                    level = 0u;
                    candidates = begin_triple(&at, triple, item.lower, first_rows);
                    if (has_rule) {
                        decisive = decisive_of(at.rule, at.free);
                        candidates &= ~select(0u, decisive.queen, 3u >= decisive.refused_from);
                    }
                    if (candidates == 0u) {
                        continue;
                    }
                    taken += 1u;
                }
            }
            let queen = candidates & (~candidates + 1u);
            candidates ^= queen;
            // Overwrites what is not needed any more, if there are no more candidates.
            let entry = (level & 15u) * 3u * LANES + lane;
            planes[entry] = vec2<u32>(at.free, candidates);
            planes[entry + LANES] = vec2<u32>(at.from_right, at.from_left);
            planes[entry + 2u * LANES] = vec2<u32>(at.left, at.right);
            let row = level + 3u;
            let free = at.free ^ queen;
            let from_right = (at.from_right | queen) << 1u;
            let from_left = (at.from_left | queen) >> 1u;
            let left = at.left | (queen >> (row + gap));
            let right = at.right | (queen << (row + gap));
            var open = free & ~from_right & ~from_left & allowed_below[(row + 1u) & (MOST_ROWS - 1u)];
            // The column of the last row is known.
            let is_last = row + 2u >= rows;
            var group = 0u;
            if (has_rule) {
                open &= ~select(0u, decisive.queen, row + 1u >= decisive.refused_from);
                row_of_decisive = select(row_of_decisive, row, queen == decisive.queen);
                let row_of_queen = select(row_of_decisive, row + 1u, free == decisive.queen);
                group = select(0u, decisive.group + decisive.adds_row * row_of_queen,
                    row_of_queen >= decisive.group_from);
            }
            planes[(FOUND + (found & 31u)) * LANES + lane] = state_of(
                left | (free >> (row + 1u + gap)), (right | (free << (row + 1u + gap))) & full,
                group, at.rule & 1u);
            found += select(0u, 1u, is_last && open == free);
            if (!is_last && open != 0u) {
                // A level is left for good with its last column.
                pending |= select(0u, 1u << level, candidates != 0u);
                at = Below(free, from_right, from_left, left, right, at.rule);
                level += 1u;
                candidates = open;
            }
        }
        iterations += turn;
        for (var i = 0u; i < found; i++) {
            let state = planes[(FOUND + (i & 31u)) * LANES + lane];
            let index = start + atomicAdd(&numbers.kept_count, 1u);
            if (index < params.capacity) {
                put_state(index, state);
                listed_mark += mark_of(state);
            } else if (index >= most) {
                fits = false;
            }
        }
    }
    if (!is_complete) {
        atomicStore(&numbers.stopped, 1u);
    }
    atomicMax(&numbers.most_iterations, iterations);
    atomicAdd(&numbers.kept_mark, listed_mark);
}

// A test: two masks that the states that are kept do not meet, and the rule of the first row.
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
    let first = (at & (PART - BATCH * LANES)) + lane;
    return Eight(states[part][first], states[part][first + LANES], states[part][first + 2u * LANES],
        states[part][first + 3u * LANES], states[part][first + 4u * LANES],
        states[part][first + 5u * LANES], states[part][first + 6u * LANES],
        states[part][first + 7u * LANES]);
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

// Writes a state to `to` if it is kept, and adds it to the sum. Returns the place behind it.
fn put_kept(state: vec2<u32>, is_kept: bool, to: u32, sum: ptr<function, vec2<u32>>) -> u32 {
    if (is_kept) {
        put_state(to, state);
    }
    let one = select(0u, 1u, is_kept);
    *sum += state * vec2<u32>(one);
    return to + one;
}

// Copies the states that do not meet the step's queen behind the list.
fn filter_list() {
    let test = test_of_step();
    let start = step.start;
    let end = start + step.count;
    let next = next_start(end);
    let last = next - BATCH * LANES;
    var seen = 0u;
    var sum = vec2<u32>(0u);
    // The next batch is read before this one is filtered.
    var following = eight_at(start);
    for (var at = start; at < end; at += BATCH * LANES) {
        let s = following;
        following = eight_at(min(at + BATCH * LANES, last));
        seen += mark_of_eight(s);
        var which = kept_of_eight(s, test);
        let more = countOneBits(which);
        var to = next + atomicAdd(&numbers.kept_count, more);
        if (to + more > params.capacity) {
            // The set is given up.
            which = 0u;
        }
        to = put_kept(s.a, (which & 1u) != 0u, to, &sum);
        to = put_kept(s.b, (which & 2u) != 0u, to, &sum);
        to = put_kept(s.c, (which & 4u) != 0u, to, &sum);
        to = put_kept(s.d, (which & 8u) != 0u, to, &sum);
        to = put_kept(s.e, (which & 16u) != 0u, to, &sum);
        to = put_kept(s.f, (which & 32u) != 0u, to, &sum);
        to = put_kept(s.g, (which & 64u) != 0u, to, &sum);
        to = put_kept(s.h, (which & 128u) != 0u, to, &sum);
    }
    if (lane == 0u) {
        seen -= mark_of_padding(end - start);
    }
    // Marks are linear.
    atomicAdd(&numbers.kept_mark, mark_of(sum));
    atomicAdd(&numbers.seen_mark, seen);
}
