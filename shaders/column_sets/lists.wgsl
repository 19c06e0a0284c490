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

// Lists the placements of the lower half of a set.
fn list_set(item: SetItem, family: u32, start: u32) {
    let rows = families[family + ROWS_BELOW];
    let gap = families[family + GAP];
    let first_columns = item.lower & item.first_rows[0] & families[family + ALLOWED_BELOW];
    let second_columns = item.lower & item.first_rows[1] & families[family + ALLOWED_BELOW + 1u];
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

// Returns a state of the list that ends before `end`, or padding.
fn state_at(base: u32, at: u32, end: u32) -> vec2<u32> {
    var state = vec2<u32>(PADDING, 0u);
    if (at < end) {
        state = states[base + at];
    }
    return state;
}

// Returns the mark of a state, 0 for padding.
fn mark_unless_padding(state: vec2<u32>) -> u32 {
    return select(0u, mark_of(state), state.x != PADDING);
}

fn one_if_kept(state: vec2<u32>) -> u32 {
    return select(0u, 1u, is_kept(state));
}

// Writes a state that is kept to `to`. Returns the place behind it.
fn put_kept(state: vec2<u32>, base: u32, to: u32, kept: ptr<function, u32>) -> u32 {
    if (!is_kept(state)) {
        return to;
    }
    if (to < params.capacity) {
        states[base + to] = state;
    }
    *kept += mark_of(state);
    return to + 1u;
}

// Copies the states that do not meet the step's queen behind the list. Each lane has eight states at
// once; a loop over them would not be unrolled by all drivers.
fn filter_list() {
    let base = group * params.capacity;
    let end = step.start + step.count;
    var seen = 0u;
    var kept = 0u;
    for (var at = step.start + lane; at < end; at += 8u * LANES) {
        let a = state_at(base, at, end);
        let b = state_at(base, at + LANES, end);
        let c = state_at(base, at + 2u * LANES, end);
        let d = state_at(base, at + 3u * LANES, end);
        let e = state_at(base, at + 4u * LANES, end);
        let f = state_at(base, at + 5u * LANES, end);
        let g = state_at(base, at + 6u * LANES, end);
        let h = state_at(base, at + 7u * LANES, end);
        seen += mark_unless_padding(a) + mark_unless_padding(b) + mark_unless_padding(c)
            + mark_unless_padding(d) + mark_unless_padding(e) + mark_unless_padding(f)
            + mark_unless_padding(g) + mark_unless_padding(h);
        let count = one_if_kept(a) + one_if_kept(b) + one_if_kept(c) + one_if_kept(d)
            + one_if_kept(e) + one_if_kept(f) + one_if_kept(g) + one_if_kept(h);
        var to = end + atomicAdd(&kept_count, count);
        to = put_kept(a, base, to, &kept);
        to = put_kept(b, base, to, &kept);
        to = put_kept(c, base, to, &kept);
        to = put_kept(d, base, to, &kept);
        to = put_kept(e, base, to, &kept);
        to = put_kept(f, base, to, &kept);
        to = put_kept(g, base, to, &kept);
        to = put_kept(h, base, to, &kept);
    }
    atomicAdd(&kept_mark, kept);
    atomicAdd(&seen_mark, seen);
}
