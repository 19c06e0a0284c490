// The programs of column sets: the completions of the outer rows.

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
