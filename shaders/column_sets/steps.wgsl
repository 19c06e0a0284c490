// The steps of a workgroup that counts column sets, and its sums.

// Adds a number to one of 64 bits in a slot.
fn add_hits(slot: u32, more: u32, more_high: u32) {
    if ((more | more_high) != 0u) {
        let before = atomicAdd(&slots[slot].hits[0], more);
        let carry = more_high + select(0u, 1u, before > ~more);
        if (carry != 0u) {
            atomicAdd(&slots[slot].hits[1], carry);
        }
    }
}

fn add_parts(slot: u32, more_low: u32, more_high: u32) {
    if (more_low != 0u) {
        let before = atomicAdd(&slots[slot].low[0], more_low);
        if (before > ~more_low) {
            atomicAdd(&slots[slot].low[1], 1u);
        }
    }
    if (more_high != 0u) {
        let before = atomicAdd(&slots[slot].high[0], more_high);
        if (before > ~more_high) {
            atomicAdd(&slots[slot].high[1], 1u);
        }
    }
}

fn add_states(slot: u32, more: u32) {
    if (more != 0u) {
        let before = atomicAdd(&slots[slot].states[0], more);
        if (before > ~more) {
            atomicAdd(&slots[slot].states[1], 1u);
        }
    }
}

// Moves what this lane has counted to the slot.
fn flush(slot: u32) {
    add_hits(slot, hits, hits_high);
    add_parts(slot, low, high);
    add_states(slot, counted_states);
    hits = 0u;
    hits_high = 0u;
    low = 0u;
    high = 0u;
    counted_states = 0u;
}

// Decides on the next step. For lane 0.
fn choose_step(has_time: bool) {
    let base = group * FRAMES;
    step.what = STOP;
    loop {
        let row = frames[base + ROW];
        if (row == NO_ROW) {
            if (frames[base + ITEM] != NO_ITEM) {
                step.what = FINISH;
                step.item = frames[base + ITEM];
                return;
            }
            if (!has_time || atomicLoad(&queue.next) >= params.items) {
                return;
            }
            let item = atomicAdd(&queue.next, 1u);
            if (item >= params.items) {
                return;
            }
            frames[base + ITEM] = item;
            step.what = LIST;
            step.item = item;
            step.family = items[item].family * FAMILY;
            step.start = 0u;
            return;
        }
        let at = base + row * FRAME;
        let candidates = frames[at + CANDIDATES];
        if (candidates == 0u) {
            frames[base + ROW] = row - 1u;
            continue;
        }
        if (!has_time) {
            return;
        }
        let queen = candidates & (~candidates + 1u);
        let column = countTrailingZeros(queen);
        frames[at + CANDIDATES] = candidates ^ queen;
        step.item = frames[base + ITEM];
        step.family = items[step.item].family * FAMILY;
        step.row = row;
        step.start = frames[at + START];
        step.count = frames[at + COUNT];
        step.mark = frames[at + MARK];
        step.left = select(0u, queen << row, column + row < params.n);
        step.right = queen >> row;
        step.side = 2u;
        step.limit = 0u;
        if (row == 0u) {
            let rule = families[step.family + FIRST_ABOVE + column];
            step.side = rule & 3u;
            step.limit = rule >> 2u;
        }
        step.free = frames[at + FREE] & ~queen;
        step.from_right = (frames[at + FROM_RIGHT] | queen) << 1u;
        step.from_left = (frames[at + FROM_LEFT] | queen) >> 1u;
        let rows = families[step.family + ROWS_ABOVE];
        let outer = min(OUTER, rows - 1u);
        step.what = select(FILTER, COUNT_OUTER, row + 1u + outer == rows);
        return;
    }
}

// Begins a row of the upper half, with a list. For lane 0.
fn push(row: u32, free: u32, from_right: u32, from_left: u32, start: u32, count: u32, mark: u32) {
    let at = group * FRAMES + row * FRAME;
    frames[at + FREE] = free;
    frames[at + FROM_RIGHT] = from_right;
    frames[at + FROM_LEFT] = from_left;
    frames[at + CANDIDATES] = free & ~from_right & ~from_left
        & families[step.family + ALLOWED_ABOVE + row];
    frames[at + START] = start;
    frames[at + COUNT] = count;
    frames[at + MARK] = mark;
    frames[group * FRAMES + ROW] = row;
}

// Gives the set up: the host splits it. For lane 0.
fn give_up() {
    atomicAdd(&slots[step.item].overflows, 1u);
    frames[group * FRAMES + ROW] = NO_ROW;
}

// Returns a sum over what is pending. For lane 0.
fn check_of_frames() -> u32 {
    let base = group * FRAMES;
    let row = frames[base + ROW];
    var sum = row * 31u + frames[base + ITEM];
    if (row < MOST_ROWS) {
        for (var i = 0u; i < (row + 1u) * FRAME; i++) {
            sum = sum * 0x9e3779b1u + frames[base + i];
        }
    }
    return sum;
}

@compute @workgroup_size(LANES)
fn count_sets(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    lane = index & (LANES - 1u);
    team = (lane / WIDTH) & (TEAMS - 1u);
    // The minima change nothing, but tell compilers that a place among the planes needs no check.
    column = min(lane - team * WIDTH, WIDTH - 1u);
    half = team & 1u;
    own_word = team >> 1u;
    own_column = own_word * WIDTH + column;
    own_place = half * WIDTH + column;
    group = id.x;
    var spent = 0u;
    if (lane == 0u) {
        step.item = frames[group * FRAMES + ITEM];
        // What was written by the host has no sum.
        let check = frames[group * FRAMES + CHECK];
        if (check != 0u && check != (check_of_frames() | 1u)) {
            atomicAdd(&queue.damaged, 1u);
            frames[group * FRAMES + ROW] = NO_ROW;
            frames[group * FRAMES + ITEM] = NO_ITEM;
        }
    }
    var item = workgroupUniformLoad(&step.item);
    loop {
        if (lane == 0u) {
            choose_step(spent < params.budget);
            atomicStore(&numbers.stopped, 0u);
            atomicStore(&numbers.kept_count, 0u);
            atomicStore(&numbers.kept_mark, 0u);
            atomicStore(&numbers.seen_mark, 0u);
            atomicStore(&numbers.next_triple, 0u);
            atomicStore(&numbers.most_iterations, 0u);
        }
        let what = workgroupUniformLoad(&step.what);
        item = workgroupUniformLoad(&step.item);
        if (what == STOP) {
            break;
        }
        if (what == FINISH) {
            flush(item);
            storageBarrier();
            if (lane == 0u) {
                atomicAdd(&slots[item].finished, 1u);
                atomicAdd(&queue.finished, 1u);
                frames[group * FRAMES + ITEM] = NO_ITEM;
            }
            continue;
        }
        let family = workgroupUniformLoad(&step.family);
        let start = workgroupUniformLoad(&step.start);
        if (what == LIST) {
            if (lane < MOST_ROWS) {
                allowed_below[lane] = families[family + ALLOWED_BELOW + lane];
            }
            mark_set(item, items[item], family);
            workgroupBarrier();
            // With a rule, every first column has a decisive one.
            if (((families[family + FIRST_BELOW] >> 1u) & 31u) != 31u) {
                list_set(items[item], family, start, true);
            } else {
                list_set(items[item], family, start, false);
            }
            storageBarrier();
            workgroupBarrier();
            let count = atomicLoad(&numbers.kept_count);
            pad_list(start + count);
            storageBarrier();
            spent += atomicLoad(&numbers.most_iterations) + 512u;
            if (lane == 0u) {
                atomicAdd(&slots[item].listed, count);
                if (count > params.capacity || atomicLoad(&numbers.stopped) != 0u) {
                    give_up();
                } else if (count > 0u) {
                    push(0u, items[item].upper, 0u, 0u, 0u, count, atomicLoad(&numbers.kept_mark));
                }
            }
            workgroupBarrier();
            continue;
        }
        let count = workgroupUniformLoad(&step.count);
        if (what == FILTER) {
            filter_list();
            storageBarrier();
            workgroupBarrier();
            spent += 4u * count / LANES + 64u;
            let kept = atomicLoad(&numbers.kept_count);
            let next = next_start(start + count);
            pad_list(next + kept);
            storageBarrier();
            if (lane == 0u) {
                if (atomicLoad(&numbers.seen_mark) != step.mark) {
                    atomicAdd(&slots[item].damaged, 1u);
                }
                if (next + kept > params.capacity) {
                    give_up();
                } else if (kept > 0u) {
                    push(step.row + 1u, step.free, step.from_right, step.from_left, next, kept,
                        atomicLoad(&numbers.kept_mark));
                }
            }
            workgroupBarrier();
            continue;
        }
        // The outer rows; in two parts if the program does not fit.
        let row = workgroupUniformLoad(&step.row);
        let outer = families[family + ROWS_ABOVE] - row - 1u;
        for (var part = 0u; part < 3u; part++) {
            if (lane < 6u) {
                atomicStore(&used[lane], 0u);
            }
            if (lane == 0u) {
                atomicStore(&numbers.single_count, 0u);
                atomicStore(&numbers.double_count, 0u);
                atomicStore(&numbers.long_count, 0u);
                atomicStore(&numbers.program_mark, 0u);
                atomicStore(&numbers.program_seen, 0u);
                atomicStore(&numbers.seen_mark, 0u);
            }
            workgroupBarrier();
            var of_row_4 = 0xffu;
            if (part == 1u) {
                of_row_4 = 0x0fu;
            } else if (part == 2u) {
                of_row_4 = 0xf0u;
            }
            list_completions(outer, row + 1u, of_row_4);
            storageBarrier();
            workgroupBarrier();
            collect_pairs();
            workgroupBarrier();
            if (lane == 0u) {
                let pairs = used_pairs(false);
                let bits = countOneBits(pairs.mask);
                let upper_bits = countOneBits(pairs.upper_mask);
                let end = PAIRS + bits.x + bits.y + bits.z + bits.w;
                let singles = atomicLoad(&numbers.single_count);
                let doubles = atomicLoad(&numbers.double_count);
                let longs = atomicLoad(&numbers.long_count);
                let upper_pairs_fit =
                    end + upper_bits.x + upper_bits.y <= ZERO + PAIRS - SQUARES_OF_ROW_0;
                let fits = (end <= ZERO || upper_pairs_fit) && singles <= SINGLE_RECORDS
                    && doubles <= DOUBLE_RECORDS && longs <= LONG_RECORDS;
                numbers.program_fits = select(0u, 1u, fits);
                numbers.upper_pairs_fit = select(0u, 1u, upper_pairs_fit);
                numbers.program_counts = select(0u, 1u, singles + doubles + longs > 0u);
            }
            let fits = workgroupUniformLoad(&numbers.program_fits) != 0u;
            let has_upper = workgroupUniformLoad(&numbers.upper_pairs_fit) != 0u;
            let counts = workgroupUniformLoad(&numbers.program_counts) != 0u;
            if (fits && counts) {
                let pairs = used_pairs(has_upper);
                finish_program(pairs, has_upper);
                storageBarrier();
                workgroupBarrier();
                count_states(outer, row + 1u, pairs, has_upper, part < 2u);
                check_program();
                let records = records_of(0u).y + records_of(1u).y + records_of(2u).y;
                // The rounds, if every second state is kept.
                spent += (count / (2u * AT_ONCE * COLUMNS) + 1u) * (records / 2u + 256u) + 1024u;
                workgroupBarrier();
                if (lane == 0u && (atomicLoad(&numbers.seen_mark) != step.mark
                    || atomicLoad(&numbers.program_seen) != atomicLoad(&numbers.program_mark))) {
                    atomicAdd(&slots[item].damaged, 1u);
                }
            }
            if (!fits && part > 0u) {
                if (lane == 0u) {
                    give_up();
                }
                break;
            }
            if (fits && part == 0u) {
                break;
            }
        }
        workgroupBarrier();
    }
    if (item != NO_ITEM) {
        flush(item);
    }
    if (lane == 0u) {
        frames[group * FRAMES + CHECK] = check_of_frames() | 1u;
        atomicAdd(&queue.ran, 1u);
        if (frames[group * FRAMES + ITEM] == NO_ITEM) {
            atomicAdd(&queue.idle, 1u);
        }
        if (group == 0u) {
            queue.stamp = params.stamp;
        }
    }
}
