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
// the pairs of rows 4 and 5 are attacked; the lower quadruples, each with the squares from which it is
// attacked; and upper ones, as they are found and in order. No two lanes write words of one pair, because
// a write to one of them may write both.
const PAIRS_AT: u32 = 8u;
const MOST_PAIRS_OF_ROWS: u32 = 56u;
const ATTACKERS_AT: u32 = 456u; // PAIRS_AT + 2 * 4 * MOST_PAIRS_OF_ROWS
const LOWER_AT: u32 = 512u; // ATTACKERS_AT + MOST_PAIRS_OF_ROWS
// More lower quadruples are rare.
const MOST_LOWER: u32 = 1024u;
// The end of a list of lower quadruples.
const NO_QUADRUPLE: u32 = 0xffffu;
// A word of a record without completions.
const NO_COMPLETIONS: u32 = 0xffffffffu;

// The numbers of pairs.
var<workgroup> pairs_count: array<atomic<u32>, 4>;
// The first of the lower quadruples that use a set of ranks. How many ranks they use is known, so the
// eighth bit of the set is left out.
var<workgroup> first_lower: array<atomic<u32>, 128>;

// Returns the room for lower quadruples, two pairs of words each: at most 7/8 of the memory.
fn lower_room() -> u32 {
    return min((PLANES * COLUMNS - LOWER_AT) * 7u / 16u, MOST_LOWER);
}

// Returns the place of the upper quadruples.
fn upper_at() -> u32 {
    return LOWER_AT + 2u * lower_room();
}

// Returns the room for upper quadruples, a pair of words each, and again as much for them in order. If
// there are more, some are joined after the others.
fn upper_room() -> u32 {
    return (PLANES * COLUMNS - upper_at()) / 2u;
}

fn sorted_at() -> u32 {
    return upper_at() + upper_room();
}

// Counts a lower quadruple that uses a set of ranks.
fn count_lower(ranks: u32) {
    atomicAdd(&scratch[ranks >> 2u], 1u << (8u * (ranks & 3u)));
}

// Counts an upper quadruple that is compared with so many lower ones.
fn count_upper(lowers: u32) {
    atomicAdd(&scratch[32u + lowers], 1u);
}

// Returns the number of lower quadruples that use a set of ranks: at most 24.
fn lower_with(ranks: u32) -> u32 {
    return (atomicLoad(&scratch[ranks >> 2u]) >> (8u * (ranks & 3u))) & 31u;
}

// A record of the program under construction: the numbers of the pairs in rows 0 and 1 and, in the
// second byte, in rows 2 and 3; and up to four completions, two in a word, each with the number of its
// pair in rows 4 and 5 in the low byte, and of that in rows 6 and 7 in the other.
struct Record {
    inner: u32,
    count: u32,
    words: vec2<u32>,
}

fn put_record(record: Record) {
    let base = group * PROGRAM;
    if (record.count == 1u) {
        let index = atomicAdd(&numbers.single_count, 1u);
        if (index < SINGLE_RECORDS) {
            programs[base + index] = vec2<u32>(record.inner, record.words.x);
        }
    } else if (record.count == 2u) {
        let index = atomicAdd(&numbers.double_count, 1u);
        if (index < DOUBLE_RECORDS) {
            programs[base + SINGLE_RECORDS + index] = vec2<u32>(record.inner, record.words.x);
        }
    } else if (record.count > 2u) {
        let index = atomicAdd(&numbers.long_count, 1u);
        if (index < LONG_RECORDS) {
            // First the first words of two records, then their second ones.
            let to = base + SINGLE_RECORDS + DOUBLE_RECORDS + 4u * (index / 2u) + index % 2u;
            programs[to] = vec2<u32>(record.inner, record.words.x);
            programs[to + 2u] = vec2<u32>(NO_COMPLETIONS, record.words.y);
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
        var queens = vec2<u32>(planes[ranks.x].x, planes[ranks.y].x);
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

// Lists those quadruples of the pairs of rows 0 to 3, or 4 to 7, that fit, of the combinations of a
// pair and another one with numbers from `start` to before `end`; but no upper ones whose columns leave
// no lower ones.
fn list_quadruples(is_lower: bool, start: u32, end: u32, all_ranks: u32) {
    let which = select(0u, 2u, is_lower);
    let firsts = PAIRS_AT + 2u * which * MOST_PAIRS_OF_ROWS;
    let seconds = atomicLoad(&pairs_count[which + 1u]);
    if (seconds == 0u) {
        return;
    }
    // The quotient and the remainder of `i` by `seconds`, without a division in the loop.
    let step_of_first = LANES / seconds;
    let step_of_second = LANES % seconds;
    var at_first = (start + lane) / seconds;
    var at_second = (start + lane) % seconds;
    for (var i = start + lane; i < end; i += LANES) {
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
            let index = atomicAdd(&numbers.lower_count, 1u);
            if (index < lower_room()) {
                let next = atomicExchange(&first_lower[ranks & 127u], index);
                count_lower(ranks & 127u);
                let at = LOWER_AT + 2u * index;
                planes[at] = planes[ATTACKERS_AT + pair_number]
                    | vec2<u32>(other_masks.x >> 2u, other_masks.y << 2u);
                planes[at + 1u].x = both | (next << 16u);
            }
        } else {
            let lowers = lower_with(all_ranks & ~ranks & 127u);
            if (lowers == 0u) {
                continue;
            }
            let index = atomicAdd(&numbers.upper_count, 1u);
            if (index < upper_room()) {
                // The queens of a row that there is not are told by `outer`.
                planes[upper_at() + index] = vec2<u32>(both | ((ranks & 0xffu) << 16u), lowers);
                count_upper(lowers);
            }
        }
    }
}

// Returns the number of upper quadruples that are compared with so many lower ones, or 0 if these are
// not more than `lane`.
fn with_more(lowers: u32) -> u32 {
    return select(0u, atomicLoad(&scratch[32u + lowers]), lowers > lane);
}

// Puts the upper quadruples in the order of the number of lower ones that they are compared with, the
// most first, so that lanes take about equally long.
fn sort_uppers(uppers: u32) {
    // Those with more than `lane` lower ones. A loop would not be unrolled by all drivers.
    let start = with_more(1u) + with_more(2u) + with_more(3u) + with_more(4u) + with_more(5u)
        + with_more(6u) + with_more(7u) + with_more(8u) + with_more(9u) + with_more(10u)
        + with_more(11u) + with_more(12u) + with_more(13u) + with_more(14u) + with_more(15u)
        + with_more(16u) + with_more(17u) + with_more(18u) + with_more(19u) + with_more(20u)
        + with_more(21u) + with_more(22u) + with_more(23u) + with_more(24u);
    workgroupBarrier();
    if (lane < 32u) {
        atomicStore(&scratch[32u + lane], start);
    }
    workgroupBarrier();
    for (var i = lane; i < uppers; i += LANES) {
        let upper = planes[upper_at() + i];
        let place = atomicAdd(&scratch[32u + (upper.y & 31u)], 1u);
        planes[min(sorted_at() + place, PLANES * COLUMNS - 1u)] = upper;
    }
    workgroupBarrier();
}

// Lists the completions of the outer rows. The queens of row 4 have one of the ranks `of_row_4`.
fn list_completions(outer: u32, first_row: u32, of_row_4: u32) {
    let columns = countOneBits(step.free);
    for (var i = lane; i < 128u; i += LANES) {
        atomicStore(&first_lower[i], NO_QUADRUPLE);
    }
    if (lane < 8u) {
        planes[lane].x = select(0u, bit_of(step.free, lane), lane < columns);
    }
    if (lane < 4u) {
        atomicStore(&pairs_count[lane], 0u);
    }
    if (lane < 32u) {
        atomicStore(&scratch[lane], 0u);
    }
    if (lane == 0u) {
        atomicStore(&numbers.lower_count, 0u);
    }
    workgroupBarrier();
    for (var which = 0u; which < 4u; which++) {
        list_pairs(which, outer, first_row, of_row_4);
    }
    workgroupBarrier();
    let all_ranks = (1u << columns) - 1u;
    list_quadruples(true, 0u, atomicLoad(&pairs_count[2]) * atomicLoad(&pairs_count[3]), all_ranks);
    if (workgroupUniformLoad(&numbers.lower_count) > lower_room()) {
        // Does not fit.
        if (lane == 0u) {
            atomicAdd(&numbers.single_count, SINGLE_RECORDS + 1u);
        }
        return;
    }
    // All combinations of upper pairs at once, or as many as there is room for.
    let firsts = workgroupUniformLoad(&pairs_count[0]);
    let combinations = firsts * workgroupUniformLoad(&pairs_count[1]);
    var at_once = combinations;
    var next = 0u;
    while (next < combinations) {
        if (lane == 0u) {
            atomicStore(&numbers.upper_count, 0u);
        }
        if (lane < 32u) {
            atomicStore(&scratch[32u + lane], 0u);
        }
        workgroupBarrier();
        list_quadruples(false, next, min(next + at_once, combinations), all_ranks);
        let uppers = workgroupUniformLoad(&numbers.upper_count);
        if (uppers > upper_room()) {
            // Probably few enough, and at last certainly.
            at_once = max(at_once / (uppers / upper_room() + 2u), upper_room());
            continue;
        }
        sort_uppers(uppers);
        for (var i = lane; i < uppers; i += LANES) {
            join(planes[sorted_at() + i].x, all_ranks);
        }
        workgroupBarrier();
        next += at_once;
    }
}

// Writes the records of the completions of an upper quadruple. `ranks` are all that there are.
fn join(upper: u32, ranks: u32) {
    let of_rows = (vec4<u32>(upper) >> vec4<u32>(3u, 0u, 11u, 8u)) & vec4<u32>(7u);
    let queens = vec2<u32>(planes[of_rows.x].x, planes[of_rows.y].x);
    // If there is no row 3, there are no queens behind it either.
    let more = vec2<u32>(planes[of_rows.z].x, planes[of_rows.w].x);
    let attacks = attacks_of(more)
        | vec2<u32>(attacks_of(queens).x << 2u, attacks_of(queens).y >> 2u);
    var record = Record(upper & 0xffffu, 0u, vec2<u32>(NO_COMPLETIONS));
    var index = atomicLoad(&first_lower[ranks & ~(upper >> 16u) & 127u]);
    while (index != NO_QUADRUPLE) {
        // The minimum changes nothing, but tells compilers that the places need no check.
        let at = min(LOWER_AT + 2u * index, PLANES * COLUMNS - 2u);
        let met = planes[at] & attacks;
        let lower = planes[at + 1u].x;
        if ((met.x | met.y) == 0u) {
            add_completion(&record, lower & 0xffffu);
        }
        index = lower >> 16u;
    }
    put_record(record);
}

// Returns the place of the records of a kind, and their number of pairs of words, also if more were
// made than fit. The number of records is even, because two are counted at once.
fn records_of(kind: u32) -> vec2<u32> {
    let program = group * PROGRAM;
    if (kind == 0u) {
        let count = min(atomicLoad(&numbers.single_count), SINGLE_RECORDS);
        return vec2<u32>(program, (count + 1u) & ~1u);
    }
    if (kind == 1u) {
        let count = min(atomicLoad(&numbers.double_count), DOUBLE_RECORDS);
        return vec2<u32>(program + SINGLE_RECORDS, (count + 1u) & ~1u);
    }
    let count = min(atomicLoad(&numbers.long_count), LONG_RECORDS);
    return vec2<u32>(program + SINGLE_RECORDS + DOUBLE_RECORDS, 2u * ((count + 1u) & ~1u));
}

// Returns whether the number of records of a kind is odd.
fn is_odd(kind: u32) -> bool {
    if (kind == 0u) {
        return (atomicLoad(&numbers.single_count) & 1u) != 0u;
    }
    let doubles = atomicLoad(&numbers.double_count);
    return (select(atomicLoad(&numbers.long_count), doubles, kind == 1u) & 1u) != 0u;
}

// Returns the bit of a pair among those of its rows.
fn bit_of_pair(pair: u32) -> vec2<u32> {
    let bit = select(1u << (pair & 31u), 0u, pair == 0xffu);
    let is_high = (pair & 32u) != 0u;
    return vec2<u32>(select(bit, 0u, is_high), select(0u, bit, is_high));
}

// Collects the pairs that the program uses.
fn collect_pairs() {
    var bits = vec4<u32>(0u);
    var upper_bits = vec2<u32>(0u);
    for (var kind = 0u; kind < 3u; kind++) {
        let records = records_of(kind);
        let added = added_record(kind, records.y);
        for (var i = lane; i < records.y; i += LANES) {
            if (i < added || (i & 1u) == 0u) {
                let record = programs[records.x + i];
                upper_bits |= bit_of_pair(record.x & 0xffu);
                let word = record.y;
                bits |= vec4<u32>(bit_of_pair(word & 0xffu), bit_of_pair((word >> 8u) & 0xffu));
                bits |= vec4<u32>(bit_of_pair((word >> 16u) & 0xffu), bit_of_pair(word >> 24u));
            }
        }
    }
    atomicOr(&used[0], bits.x);
    atomicOr(&used[1], bits.y);
    atomicOr(&used[2], bits.z);
    atomicOr(&used[3], bits.w);
    atomicOr(&used[4], upper_bits.x);
    atomicOr(&used[5], upper_bits.y);
}

// Returns the place of the record that makes the number of a kind even, and has no completion; of the
// places behind it, every second one is of it.
fn added_record(kind: u32, places: u32) -> u32 {
    return select(places, places - select(2u, 4u, kind == 2u), is_odd(kind));
}

// Replaces the numbers of pairs in the program by those of their planes.
fn finish_program(pairs: UsedPairs, has_upper: bool) {
    var sum = 0u;
    for (var kind = 0u; kind < 3u; kind++) {
        let records = records_of(kind);
        let added = added_record(kind, records.y);
        for (var i = lane; i < records.y; i += LANES) {
            var record = vec2<u32>(NO_COMPLETIONS);
            if (i < added || (i & 1u) == 0u) {
                record = programs[records.x + i];
            }
            record = vec2<u32>(inner_planes(record.x, pairs, has_upper),
                with_planes(record.y, pairs));
            programs[records.x + i] = record;
            sum += mark_of(record);
        }
    }
    atomicAdd(&numbers.program_mark, sum);
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
    atomicAdd(&numbers.program_seen, sum);
}
