// The programs of column sets: the completions of the outer rows.

// The completions of the outer rows (at most eight, numbered from 0) are joined from parts: pairs of
// queens in rows 0 and 1, 2 and 3, 4 and 5, 6 and 7; of these, quadruples in rows 0 to 3 and 4 to 7;
// and of these, completions. Two parts fit if they have no column in common and no queen of the upper
// one attacks one of the lower one: the masks of the squares that the upper part attacks in the first
// row behind it, and of the squares in that row from which the lower part is attacked, are disjoint.
// The rank of a column among the free ones is its position, from 0. A row that there is not has no
// queen, and rank 0, or 1 if the other row of its pair has 0.

// The parts are in the memory of planes, which is not used otherwise meanwhile: the columns by rank;
// four lists of pairs, each with the masks that are compared in its quadruples; the squares from which
// the pairs of rows 4 and 5 are attacked; the upper quadruples (a word each); and the lower ones, each
// with the squares from which it is attacked.
const PAIRS_AT: u32 = 4u;
const MOST_PAIRS_OF_ROWS: u32 = 56u;
const ATTACKERS_AT: u32 = 452u; // PAIRS_AT + 2 * 4 * MOST_PAIRS_OF_ROWS
const UPPER_AT: u32 = 1016u; // 2 * (ATTACKERS_AT + MOST_PAIRS_OF_ROWS)
// The end of a list of lower quadruples.
const NO_QUADRUPLE: u32 = 0xffffu;
// A word of a record without completions.
const NO_COMPLETIONS: u32 = 0xffffffffu;

// The numbers of pairs, of upper and of lower quadruples.
var<workgroup> pairs_count: array<atomic<u32>, 4>;
var<workgroup> upper_count: atomic<u32>;
var<workgroup> lower_count: atomic<u32>;
// The first of the lower quadruples that use a set of ranks. How many ranks they use is known, so the
// eighth bit of the set is left out.
var<workgroup> first_lower: array<atomic<u32>, 128>;

// The rooms for quadruples: of five pairs of words, one is for two upper ones, four for two lower ones.
fn upper_room() -> u32 {
    return (PLANES * COLUMNS - UPPER_AT / 2u) / 5u * 2u;
}

fn lower_room() -> u32 {
    return upper_room();
}

// Returns the place of the lower quadruples.
fn lower_at() -> u32 {
    return (UPPER_AT + upper_room()) / 2u;
}

// A record of the program under construction: the planes of the four inner squares, and up to four
// completions, two in a word, each with the number of its pair in rows 4 and 5 in the low byte, and
// of that in rows 6 and 7 in the other.
struct Record {
    inner: u32,
    count: u32,
    words: vec2<u32>,
}

fn put_record(record: Record) {
    let base = group * PROGRAM;
    if (record.count == 1u) {
        let index = atomicAdd(&single_count, 1u);
        if (index < SINGLE_RECORDS) {
            programs[base + index] = vec2<u32>(record.inner, record.words.x);
        }
    } else if (record.count == 2u) {
        let index = atomicAdd(&double_count, 1u);
        if (index < DOUBLE_RECORDS) {
            programs[base + SINGLE_RECORDS + index] = vec2<u32>(record.inner, record.words.x);
        }
    } else if (record.count > 2u) {
        let index = atomicAdd(&long_count, 1u);
        if (index < LONG_RECORDS) {
            // First the first words of two records, then their second ones.
            let to = base + SINGLE_RECORDS + DOUBLE_RECORDS + 4u * (index / 2u) + index % 2u;
            programs[to] = vec2<u32>(record.inner, record.words.x);
            programs[to + 2u] = vec2<u32>(0u, record.words.y);
        }
    }
}

// Adds a completion to a record: its pairs in rows 4 and 5, and in rows 6 and 7.
fn add_completion(record: ptr<function, Record>, completion: u32) {
    if ((*record).count == 4u) {
        put_record(*record);
        *record = Record((*record).inner, 0u, vec2<u32>(NO_COMPLETIONS));
    }
    let words = (*record).words;
    (*record).words = vec2<u32>((words.x << 16u) | completion, (words.y << 16u) | (words.x >> 16u));
    (*record).count += 1u;
}

// Returns the columns of an outer row where a queen may stand.
fn open_columns(row: u32, outer: u32, first_row: u32) -> u32 {
    if (row >= outer) {
        return 0u;
    }
    return step.free & families[step.family + ALLOWED_ABOVE + first_row + row]
        & ~(step.from_right << row) & ~(step.from_left >> row);
}

// Lists the pairs of rows 2 * `which` and the next one. A pair has its number, eight times its first
// rank and the other one, and in bits 8 to 15 the set of ranks that it uses.
fn list_pairs(which: u32, outer: u32, first_row: u32, of_row_4: u32) {
    let row = 2u * which;
    let open = vec2<u32>(open_columns(row, outer, first_row),
        open_columns(row + 1u, outer, first_row));
    for (var i = lane; i < 64u; i += LANES) {
        let ranks = vec2<u32>(i >> 3u, i & 7u);
        var queens = vec2<u32>(word(ranks.x), word(ranks.y));
        var pair = i;
        var fits = ranks.x != ranks.y;
        if (row < outer) {
            fits = fits && (queens.x & open.x) != 0u;
            fits = fits && (row != 4u || ((of_row_4 >> ranks.x) & 1u) != 0u);
            pair |= 0x100u << ranks.x;
        } else {
            fits = fits && ranks.x == 0u;
            queens.x = 0u;
        }
        if (row + 1u < outer) {
            fits = fits && (queens.y & open.y & ~(queens.x << 1u) & ~(queens.x >> 1u)) != 0u;
            pair |= 0x100u << ranks.y;
        } else {
            fits = fits && ranks.y == select(0u, 1u, ranks.x == 0u);
            queens.y = 0u;
        }
        if (fits) {
            let index = atomicAdd(&pairs_count[which], 1u);
            let attackers = attackers_of(queens);
            var masks = attacks_of(queens);
            if ((which & 1u) != 0u) {
                masks = attackers;
            }
            let at = PAIRS_AT + 2u * (which * MOST_PAIRS_OF_ROWS + index);
            planes[at] = masks;
            planes[at + 1u].x = pair;
            if (which == 2u) {
                planes[ATTACKERS_AT + index] = attackers;
            }
        }
    }
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
    let firsts = PAIRS_AT + 2u * which * MOST_PAIRS_OF_ROWS;
    let seconds = atomicLoad(&pairs_count[which + 1u]);
    if (seconds == 0u) {
        return;
    }
    let all = atomicLoad(&pairs_count[which]) * seconds;
    // The quotient and the remainder of `i` by `seconds`, without a division in the loop.
    let step_of_first = LANES / seconds;
    let step_of_second = LANES % seconds;
    var at_first = lane / seconds;
    var at_second = lane % seconds;
    for (var i = lane; i < all; i += LANES) {
        // The minima change nothing, but tell compilers that the places need no check.
        let pair_number = min(at_first, MOST_PAIRS_OF_ROWS - 1u);
        let other_number = min(at_second, MOST_PAIRS_OF_ROWS - 1u);
        let pair_at = firsts + 2u * pair_number;
        let other_at = firsts + 2u * (MOST_PAIRS_OF_ROWS + other_number);
        let pair_masks = planes[pair_at];
        let other_masks = planes[other_at];
        let pair = planes[pair_at + 1u].x;
        let other = planes[other_at + 1u].x;
        at_first += step_of_first;
        at_second += step_of_second;
        if (at_second >= seconds) {
            at_first += 1u;
            at_second -= seconds;
        }
        let met = pair_masks & other_masks;
        if ((pair & other & 0xff00u) != 0u || (met.x | met.y) != 0u) {
            continue;
        }
        let ranks = (pair | other) >> 8u;
        let both = (pair & 0xffu) | ((other & 0xffu) << 8u);
        if (is_lower) {
            let index = atomicAdd(&lower_count, 1u);
            if (index < lower_room()) {
                let next = atomicExchange(&first_lower[ranks & 127u], index);
                let at = lower_at() + 2u * index;
                planes[at] = planes[ATTACKERS_AT + pair_number]
                    | vec2<u32>(other_masks.x >> 2u, other_masks.y << 2u);
                planes[at + 1u].x = both | (next << 16u);
            }
        } else {
            let index = atomicAdd(&upper_count, 1u);
            if (index < upper_room()) {
                // The queens of a row that there is not are told by `outer`.
                put_word(UPPER_AT + index, both | ((ranks & 0xffu) << 16u));
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
        put_word(lane, select(0u, bit_of(step.free, lane), lane < columns));
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
            atomicAdd(&single_count, SINGLE_RECORDS + 1u);
        }
        return;
    }
    for (var i = lane; i < uppers; i += LANES) {
        let upper = word(UPPER_AT + i);
        let ranks = (vec4<u32>(upper) >> vec4<u32>(3u, 0u, 11u, 8u)) & vec4<u32>(7u);
        let queens = vec2<u32>(word(ranks.x), word(ranks.y));
        // If there is no row 3, there are no queens behind it either.
        let more = vec2<u32>(word(ranks.z), word(ranks.w));
        let attacks = attacks_of(more)
            | vec2<u32>(attacks_of(queens).x << 2u, attacks_of(queens).y >> 2u);
        let inner = ranks.x | ((8u + ranks.y) << 8u) | ((16u + ranks.z) << 16u)
            | ((24u + ranks.w) << 25u);
        var record = Record(inner, 0u, vec2<u32>(NO_COMPLETIONS));
        let others = ((1u << columns) - 1u) & ~(upper >> 16u);
        var index = atomicLoad(&first_lower[others & 127u]);
        while (index != NO_QUADRUPLE) {
            // The minimum changes nothing, but tells compilers that the places need no check.
            let at = min(lower_at() + 2u * index, PLANES * COLUMNS - 2u);
            let met = planes[at] & attacks;
            let lower = planes[at + 1u].x;
            if ((met.x | met.y) == 0u) {
                add_completion(&record, lower & 0xffffu);
            }
            index = lower >> 16u;
        }
        put_record(record);
    }
}

// Returns the place of the records of a kind, and their number of pairs of words, also if more were
// made than fit. The number of records is even, because two are counted at once.
fn records_of(kind: u32) -> vec2<u32> {
    let program = group * PROGRAM;
    if (kind == 0u) {
        let count = min(atomicLoad(&single_count), SINGLE_RECORDS);
        return vec2<u32>(program, (count + 1u) & ~1u);
    }
    if (kind == 1u) {
        let count = min(atomicLoad(&double_count), DOUBLE_RECORDS);
        return vec2<u32>(program + SINGLE_RECORDS, (count + 1u) & ~1u);
    }
    let count = min(atomicLoad(&long_count), LONG_RECORDS);
    return vec2<u32>(program + SINGLE_RECORDS + DOUBLE_RECORDS, 2u * ((count + 1u) & ~1u));
}

// Returns whether the number of records of a kind is odd.
fn is_odd(kind: u32) -> bool {
    if (kind == 0u) {
        return (atomicLoad(&single_count) & 1u) != 0u;
    }
    return (select(atomicLoad(&long_count), atomicLoad(&double_count), kind == 1u) & 1u) != 0u;
}

// Returns the bit of a pair among those of its rows.
fn bit_of_pair(pair: u32) -> vec2<u32> {
    let bit = select(1u << (pair & 31u), 0u, pair == 0xffu);
    let is_high = (pair & 32u) != 0u;
    return vec2<u32>(select(bit, 0u, is_high), select(0u, bit, is_high));
}

// Collects the pairs that the program's completions use: of rows 4 and 5, and of rows 6 and 7.
fn collect_pairs() {
    var bits = vec4<u32>(0u);
    for (var kind = 0u; kind < 3u; kind++) {
        let records = records_of(kind);
        let added = added_record(kind, records.y);
        for (var i = lane; i < records.y; i += LANES) {
            if (i < added || (i & 1u) == 0u) {
                let word = programs[records.x + i].y;
                bits |= vec4<u32>(bit_of_pair(word & 0xffu), bit_of_pair((word >> 8u) & 0xffu));
                bits |= vec4<u32>(bit_of_pair((word >> 16u) & 0xffu), bit_of_pair(word >> 24u));
            }
        }
    }
    atomicOr(&used[0], bits.x);
    atomicOr(&used[1], bits.y);
    atomicOr(&used[2], bits.z);
    atomicOr(&used[3], bits.w);
}

// Returns the place of the record that makes the number of a kind even, and has no completion; of the
// places behind it, every second one is of it.
fn added_record(kind: u32, places: u32) -> u32 {
    return select(places, places - select(2u, 4u, kind == 2u), is_odd(kind));
}

// Replaces the numbers of pairs in the program by those of their planes.
fn finish_program(mask: vec4<u32>) {
    let bases = bases_of_pairs(mask);
    var sum = 0u;
    for (var kind = 0u; kind < 3u; kind++) {
        let records = records_of(kind);
        let added = added_record(kind, records.y);
        for (var i = lane; i < records.y; i += LANES) {
            var record = vec2<u32>(0u, NO_COMPLETIONS);
            if (i < added || (i & 1u) == 0u) {
                record = programs[records.x + i];
            }
            record.y = with_planes(record.y, mask, bases);
            programs[records.x + i] = record;
            sum += mark_of(record);
        }
    }
    atomicAdd(&program_mark, sum);
}

// Reads the program again, after the count, to notice damage.
fn check_program() {
    var sum = 0u;
    for (var kind = 0u; kind < 3u; kind++) {
        let records = records_of(kind);
        for (var i = lane; i < records.y; i += LANES) {
            sum += mark_of(programs[records.x + i]);
        }
    }
    atomicAdd(&program_seen, sum);
}
