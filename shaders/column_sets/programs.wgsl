// The programs of column sets: the completions of the outer rows.

// The completions of the outer rows (at most eight, numbered from 0) are joined from parts: pairs of
// queens in rows 0 and 1, 2 and 3, 4 and 5, 6 and 7; of these, quadruples in rows 0 to 3 and 4 to 7;
// and of these, completions. Two parts fit if they have no column in common and no queen of the upper
// one attacks one of the lower one: the masks of the squares that the upper part attacks in the first
// row behind it, and of the squares in that row from which the lower part is attacked, are disjoint.
// The rank of a column among the free ones is its position, from 0. A row that there is not has no
// queen, and rank 0, or 1 if the other row of its pair has 0.

// The parts are in `planes`, which is not used otherwise meanwhile: the columns by rank, four lists
// of pairs, the upper quadruples (a word each), and the lower ones (three words each).
const PAIRS_AT: u32 = 8u;
const MOST_PAIRS_OF_ROWS: u32 = 56u;
const UPPER_AT: u32 = 232u; // PAIRS_AT + 4 * MOST_PAIRS_OF_ROWS
// The end of a list of lower quadruples.
const NO_QUADRUPLE: u32 = 0xffffu;

// The numbers of pairs, of upper and of lower quadruples.
var<workgroup> pairs_count: array<atomic<u32>, 4>;
var<workgroup> upper_count: atomic<u32>;
var<workgroup> lower_count: atomic<u32>;
// The first of the lower quadruples that use a set of ranks. How many ranks they use is known, so the
// eighth bit of the set is left out.
var<workgroup> first_lower: array<atomic<u32>, 128>;

fn upper_room() -> u32 {
    return (PLANES * LANES - UPPER_AT) * 2u / 5u;
}

fn lower_room() -> u32 {
    return (PLANES * LANES - UPPER_AT - upper_room()) / 3u;
}

// A record of the program under construction: the planes of the four inner squares, and up to six
// completions, two in a word, each with the number of its pair in rows 4 and 5 in the low byte, and
// of that in rows 6 and 7 in the other.
struct Record {
    inner: u32,
    count: u32,
    words: vec3<u32>,
}

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

// Returns the record with one more completion: its pairs in rows 4 and 5, and in rows 6 and 7.
fn with_completion(record: Record, pairs: u32) -> Record {
    var next = record;
    if (next.count == 6u) {
        put_record(next);
        next = Record(next.inner, 0u, vec3<u32>(0xffffffffu));
    }
    let inner_pair = pairs & 0xffu;
    let outer_pair = pairs >> 8u;
    atomicOr(&used[inner_pair >> 5u], 1u << (inner_pair & 31u));
    atomicOr(&used[2u + (outer_pair >> 5u)], 1u << (outer_pair & 31u));
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

// Returns the columns of an outer row where a queen may stand.
fn open_columns(row: u32, outer: u32, first_row: u32) -> u32 {
    if (row >= outer) {
        return 0u;
    }
    return step.free & families[step.family + ALLOWED_ABOVE + first_row + row]
        & ~(step.from_right << row) & ~(step.from_left >> row);
}

// Lists the pairs of rows 2 * `which` and the next one. A pair has its two ranks, four bits each, the
// set of ranks that it uses in bits 8 to 15, and in bits 16 and 17 whether it has the queens.
fn list_pairs(which: u32, outer: u32, first_row: u32, of_row_4: u32) {
    let row = 2u * which;
    let open = vec2<u32>(open_columns(row, outer, first_row),
        open_columns(row + 1u, outer, first_row));
    for (var i = lane; i < 64u; i += LANES) {
        let ranks = vec2<u32>(i >> 3u, i & 7u);
        let queens = vec2<u32>(planes[ranks.x], planes[ranks.y]);
        var pair = ranks.x | (ranks.y << 4u);
        var fits = ranks.x != ranks.y;
        if (row < outer) {
            fits = fits && (queens.x & open.x) != 0u;
            fits = fits && (row != 4u || ((of_row_4 >> ranks.x) & 1u) != 0u);
            pair |= (0x100u << ranks.x) | 0x10000u;
        } else {
            fits = fits && ranks.x == 0u;
        }
        if (row + 1u < outer) {
            fits = fits && (queens.y & open.y & ~(queens.x << 1u) & ~(queens.x >> 1u)) != 0u;
            pair |= (0x100u << ranks.y) | 0x20000u;
        } else {
            fits = fits && ranks.y == select(0u, 1u, ranks.x == 0u);
        }
        if (fits) {
            let index = atomicAdd(&pairs_count[which], 1u);
            planes[PAIRS_AT + which * MOST_PAIRS_OF_ROWS + index] = pair;
        }
    }
}

// Returns the queens of a pair.
fn queens_of(pair: u32) -> vec2<u32> {
    return vec2<u32>(select(0u, planes[pair & 15u], (pair & 0x10000u) != 0u),
        select(0u, planes[(pair >> 4u) & 15u], (pair & 0x20000u) != 0u));
}

// Returns the squares that a pair attacks in the row behind it, along the diagonals to the right and
// to the left.
fn attacks_of(queens: vec2<u32>) -> vec2<u32> {
    return vec2<u32>((queens.x << 2u) | (queens.y << 1u), (queens.x >> 2u) | (queens.y >> 1u));
}

// Returns the squares in the first row of a pair from which it is attacked.
fn attackers_of(queens: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(queens.x | (queens.y >> 1u), queens.x | (queens.y << 1u));
}

// Lists the quadruples of the pairs of rows 0 to 3, or 4 to 7.
fn list_quadruples(is_lower: bool) {
    let which = select(0u, 2u, is_lower);
    let firsts = PAIRS_AT + which * MOST_PAIRS_OF_ROWS;
    let seconds = atomicLoad(&pairs_count[which + 1u]);
    let all = atomicLoad(&pairs_count[which]) * seconds;
    for (var i = lane; i < all; i += LANES) {
        let first = planes[firsts + i / seconds];
        let second = planes[firsts + MOST_PAIRS_OF_ROWS + i % seconds];
        let queens = queens_of(first);
        let more = queens_of(second);
        let met = attacks_of(queens) & attackers_of(more);
        if ((first & second & 0xff00u) != 0u || (met.x | met.y) != 0u) {
            continue;
        }
        let ranks = (first | second) >> 8u;
        if (is_lower) {
            let index = atomicAdd(&lower_count, 1u);
            if (index >= lower_room()) {
                continue;
            }
            let attackers = attackers_of(queens);
            let others = attackers_of(more);
            let at = UPPER_AT + upper_room() + 3u * index;
            let pair = (first & 15u) * 8u + ((first >> 4u) & 15u);
            let other = (second & 15u) * 8u + ((second >> 4u) & 15u);
            let next = atomicExchange(&first_lower[ranks & 127u], index);
            planes[at] = pair | (other << 8u) | (next << 16u);
            planes[at + 1u] = attackers.x | (others.x >> 2u);
            planes[at + 2u] = attackers.y | (others.y << 2u);
        } else {
            let index = atomicAdd(&upper_count, 1u);
            if (index < upper_room()) {
                // The queens of a row that there is not are told by `outer`.
                planes[UPPER_AT + index] =
                    (first & 0xffu) | ((second & 0xffu) << 8u) | ((ranks & 0xffu) << 16u);
            }
        }
    }
}

// Lists the completions of the outer rows. The queens of row 4 have one of the ranks `of_row_4`.
fn list_completions(outer: u32, first_row: u32, of_row_4: u32) {
    let columns = countOneBits(step.free);
    for (var i = lane; i < 128u; i += LANES) {
        atomicStore(&first_lower[i], NO_QUADRUPLE);
    }
    if (lane < 8u) {
        planes[lane] = select(0u, bit_of(step.free, lane), lane < columns);
    }
    if (lane < 4u) {
        atomicStore(&pairs_count[lane], 0u);
    }
    if (lane == 0u) {
        atomicStore(&upper_count, 0u);
        atomicStore(&lower_count, 0u);
    }
    workgroupBarrier();
    for (var which = 0u; which < 4u; which++) {
        list_pairs(which, outer, first_row, of_row_4);
    }
    workgroupBarrier();
    list_quadruples(false);
    list_quadruples(true);
    workgroupBarrier();
    let uppers = atomicLoad(&upper_count);
    if (uppers > upper_room() || atomicLoad(&lower_count) > lower_room()) {
        // Does not fit.
        if (lane == 0u) {
            atomicAdd(&short_count, SHORT_RECORDS + 1u);
        }
        return;
    }
    let lowers = UPPER_AT + upper_room();
    for (var i = lane; i < uppers; i += LANES) {
        let upper = planes[UPPER_AT + i];
        let ranks = (vec4<u32>(upper) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
        let queens = vec2<u32>(planes[ranks.x], planes[ranks.y]);
        // If there is no row 3, there are no queens behind it either.
        let more = vec2<u32>(planes[ranks.z], planes[ranks.w]);
        let attacks = attacks_of(more)
            | vec2<u32>(attacks_of(queens).x << 2u, attacks_of(queens).y >> 2u);
        let inner = ranks.x | ((8u + ranks.y) << 8u) | ((16u + ranks.z) << 16u)
            | ((24u + ranks.w) << 24u);
        var record = Record(inner, 0u, vec3<u32>(0xffffffffu));
        let others = ((1u << columns) - 1u) & ~(upper >> 16u);
        var index = atomicLoad(&first_lower[others & 127u]);
        while (index != NO_QUADRUPLE) {
            let at = lowers + 3u * index;
            let lower = planes[at];
            if (((planes[at + 1u] & attacks.x) | (planes[at + 2u] & attacks.y)) == 0u) {
                record = with_completion(record, lower & 0xffffu);
            }
            index = lower >> 16u;
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
