// Counts what a warp of 32 lanes does to count column sets (see shaders/column_sets/): iterations of
// each loop, states, records, planes, bytes. Reads the output of sample_sets.py and prints totals,
// scaled to the whole board. A warp makes an iteration if any lane does.
//
// With the argument `check` it counts placements, too, and prints their weighted sum.
// The other argument is the capacity of a workgroup in states. A third one is the probability with
// which a list of the last filtering row is counted (the others stand for those left out), written
// with a point. `dump=FILE` writes lists with their completions and counts for cuda/leaf.cu.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

typedef uint32_t u32;
typedef uint64_t u64;
struct State { u32 x, y; };
struct Item { u32 upper, lower, first[2]; double weight, stands_for; };
struct Below { u32 free, right, left, x, y, rule; };

// A workgroup has two warps. What both do is counted twice.
constexpr int WARPS = 2, LANES = 32 * WARPS, WARP = 32, OUTER = 8, AT_ONCE = 64 * WARP;
constexpr int MOST_PAIRS = 95, MOST_WITH_UPPER = 111, UPPER_ROOM = 768;
constexpr u32 MOST_SINGLES = 2048, MOST_DOUBLES = 2048, MOST_LONGS = 1024;
constexpr int LIST_TURNS = 128;
static u32 n, family[100];
static bool check;
static u64 capacity = 1 << 18;
static double chance = 1;
static FILE *dump;
static std::mt19937_64 generator(1);
static std::map<std::string, double> totals;
// Bytes that are read from lists, by the logarithm of the list's size in bytes.
static double bytes_by_size[40];
static double scale, placements;

static void add(const std::string &name, double value) { totals[name] += scale * value; }
static int size_class(u64 states) { return 64 - __builtin_clzll(states * 8); }

// LIST. Returns the iterations of the lane's loop.
static bool place(Below &at, u32 row, u32 queen) {
    u32 column = __builtin_ctz(queen), gap = family[2];
    if ((at.rule >> 1 & 31) == column) {
        u32 group = at.rule & 0x10000 ? row + 1 : row >= (at.rule >> 6 & 31) ? at.rule >> 11 & 31 : 0;
        at.rule = (at.rule & 0xfffff) | 31 << 1 | group << 20;
        if (group == 16) return false;
    }
    at.free &= ~queen;
    at.right = (at.right | queen) << 1;
    at.left = (at.left | queen) >> 1;
    at.x |= queen >> (row + gap);
    at.y |= queen << (row + gap) & ((1u << n) - 1);
    return true;
}

// The column of the last row is known when the one before it has its queen. Adds the iterations in
// which placements are found.
static u64 list_below(const Below &at, u32 row, std::vector<State> &states, u64 iterations,
                      std::vector<u64> &found) {
    u32 open = at.free & ~at.right & ~at.left & family[4 + row];
    bool is_known = row + 1 == family[0] && row > 3;
    for (; open; open &= open - 1) {
        iterations += !is_known;
        Below next = at;
        if (!place(next, row, open & -open)) continue;
        if (row + 1 == family[0]) {
            states.push_back({next.x | next.rule >> 20 << 28, next.y | next.rule << 31});
            found.push_back(iterations);
        } else {
            iterations = list_below(next, row + 1, states, iterations, found);
        }
    }
    return iterations;
}

// A lane that has ended a triple takes the next one, up to a number of them. Returns the states that
// are listed, at most four times the capacity and a little more.
static u64 list_set(const Item &item, std::vector<State> &states) {
    std::vector<u64> lanes(LANES), taken(LANES), found;
    // The number of finds of each lane in each group of iterations.
    std::vector<std::map<u64, u32>> groups(LANES);
    u64 steps = 0, busy = 0;
    u32 first = item.first[0] & item.lower & family[4], second = item.lower & item.first[1] & family[5];
    u64 triples = __builtin_popcount(first) * __builtin_popcount(second) * __builtin_popcount(item.lower);
    u64 most = triples / LANES;
    for (u32 a = first; a; a &= a - 1)
        for (u32 b = second; b; b &= b - 1)
            for (u32 c = item.lower; c; c &= c - 1, steps++) {
                u32 queens[3] = {a & -a, b & -b, c & -c};
                Below at = {item.lower, 0, 0, 0, 0, family[36 + __builtin_ctz(a)]};
                bool open = true;
                for (int row = 0; row < 3 && open; row++) {
                    u32 free = row ? at.free & ~at.right & ~at.left & family[4 + row] : at.free;
                    open = (free & queens[row]) && place(at, row, queens[row]);
                }
                found.clear();
                u64 iterations = open ? list_below(at, 3, states, 0, found) : 0;
                u64 next = std::min_element(lanes.begin(), lanes.end(), [&](u64 &a, u64 &b) {
                    bool full_a = taken[&a - &lanes[0]] > most, full_b = taken[&b - &lanes[0]] > most;
                    return full_a != full_b ? full_b : a < b;
                }) - lanes.begin();
                for (u64 i : found) groups[next][(lanes[next] + i) / LIST_TURNS]++;
                lanes[next] += std::max<u64>(iterations, 1);
                taken[next] += open;
                busy += iterations;
                if (states.size() > 4 * capacity) goto end;
            }
end:
    u64 written = 0;
    for (int warp = 0; warp < WARPS; warp++) {
        std::map<u64, u32> most;
        for (int lane = WARP * warp; lane < WARP * (warp + 1); lane++)
            for (auto [group, count] : groups[lane]) most[group] = std::max(most[group], count);
        for (auto [_, count] : most) written += count;
    }
    // With a rule, every first column has a decisive one.
    std::string suffix = (family[36] >> 1 & 31) == 31 ? ", no rule" : "";
    add("list writes" + suffix, written);
    add("list steps" + suffix, steps);
    add("list iterations" + suffix, WARPS * *std::max_element(lanes.begin(), lanes.end()));
    add("list iterations of lanes", busy);
    add("states listed", states.size());
    return states.size();
}

// The outer rows.
struct Program {
    std::vector<u64> completions;
    u32 singles, doubles, longs;
    // Of rows 4 and 5, and of rows 6 and 7; and of rows 0 and 1.
    std::set<u32> pairs[2], upper_pairs;
};

static void complete(int row, int outer, u32 first_row, u32 all, u32 free, u32 right, u32 left, u64 code,
                     u32 of_row_4, Program &program) {
    for (u32 open = free & ~right & ~left & family[20 + first_row + row]; open; open &= open - 1) {
        u32 queen = open & -open, rank = __builtin_popcount(all & (queen - 1));
        if (row == 4 && !(of_row_4 >> rank & 1)) continue;
        u64 next = code | (u64)rank << 4 * row;
        if (row + 1 == outer) program.completions.push_back(next);
        else complete(row + 1, outer, first_row, all, free & ~queen, (right | queen) << 1,
                      (left | queen) >> 1, next, of_row_4, program);
    }
}

// Counts how the shader joins the completions of eight rows from pairs and quadruples.
struct Pair { u32 set, queens[2]; };

static std::vector<Pair> list_pairs(u32 row, u32 first_row, u32 free, u32 right, u32 left, u32 of_row_4) {
    std::vector<Pair> pairs;
    std::vector<u32> columns;
    for (u32 a = free; a; a &= a - 1) columns.push_back(a & -a);
    auto is_open = [&](u32 r, u32 queen) {
        return queen & family[20 + first_row + r] & ~(right << r) & ~(left >> r);
    };
    for (u32 a = 0; a < columns.size(); a++)
        for (u32 b = 0; b < columns.size(); b++) {
            u32 x = columns[a], y = columns[b];
            bool fits = a != b && is_open(row, x) && is_open(row + 1, y) && !(y & (x << 1 | x >> 1));
            if (fits && (row != 4 || of_row_4 >> a & 1)) pairs.push_back({1u << a | 1u << b, {x, y}});
        }
    return pairs;
}

static void count_joins(u32 first_row, u32 free, u32 right, u32 left, u32 of_row_4) {
    std::vector<Pair> pairs[4];
    for (u32 i = 0; i < 4; i++) pairs[i] = list_pairs(2 * i, first_row, free, right, left, of_row_4);
    std::map<u32, u32> lowers;
    // The number of each upper quadruple among the combinations of pairs, and how many lower ones it is
    // compared with.
    std::vector<std::pair<u64, u32>> uppers;
    u64 steps[2] = {}, chunks = 0, join_steps = 0, join_iterations = 0, lower_count = 0;
    for (int half = 2; half >= 0; half -= 2) {
        steps[half / 2] += (pairs[half].size() * pairs[half + 1].size() + WARP - 1) / WARP;
        u64 number = 0;
        for (const Pair &p : pairs[half])
            for (const Pair &q : pairs[half + 1]) {
                number++;
                u32 right_hit = (p.queens[0] << 2 | p.queens[1] << 1) & (q.queens[0] | q.queens[1] >> 1);
                u32 left_hit = (p.queens[0] >> 2 | p.queens[1] >> 1) & (q.queens[0] | q.queens[1] << 1);
                if (p.set & q.set || right_hit || left_hit) continue;
                u32 set = (p.set | q.set) & 127;
                if (half) lowers[set]++, lower_count++;
                else if (lowers.count(~set & 127)) uppers.push_back({number - 1, lowers[~set & 127]});
            }
    }
    u64 at_once = pairs[0].size() * pairs[1].size();
    // Too many: once more, fewer at once.
    if (uppers.size() > UPPER_ROOM) {
        steps[0] += (at_once + WARP - 1) / WARP;
        chunks++;
        at_once = std::max<u64>(at_once / (uppers.size() / UPPER_ROOM + 2), UPPER_ROOM);
    }
    for (size_t i = 0; i < uppers.size();) {
        std::vector<u32> lengths;
        u64 end = (uppers[i].first / at_once + 1) * at_once;
        for (; i < uppers.size() && uppers[i].first < end; i++) lengths.push_back(uppers[i].second);
        std::sort(lengths.rbegin(), lengths.rend());
        chunks++;
        // The longest of each warp is its first one.
        for (size_t j = 0; j < lengths.size(); j += WARP) join_steps++, join_iterations += lengths[j];
    }
    add("pair steps", 8);
    add("upper quadruple steps", steps[0]);
    add("lower quadruple steps", steps[1]);
    add("quadruples", uppers.size() + lower_count);
    add("chunk steps", WARPS * chunks);
    add("sort steps", join_steps);
    add("join steps", join_steps);
    add("join iterations", join_iterations);
}

static Program make_program(int outer, u32 first_row, u32 free, u32 right, u32 left, u32 of_row_4) {
    Program program = {};
    complete(0, outer, first_row, free, free, right, left, 0, of_row_4, program);
    if (outer == OUTER) count_joins(first_row, free, right, left, of_row_4);
    std::map<u32, u32> inner;
    for (u64 c : program.completions) {
        inner[c & 0xffff]++;
        program.upper_pairs.insert(c & 0xff);
        // The rows that there are not have any two different columns.
        u32 five = outer > 5 ? c >> 20 & 15 : (c >> 16 & 15) == 0;
        u32 seven = outer > 7 ? c >> 28 & 15 : (c >> 24 & 15) == 0;
        program.pairs[0].insert((c >> 16 & 15) | five << 4);
        program.pairs[1].insert((c >> 24 & 15) | seven << 4);
    }
    u64 full = 0;
    for (auto [_, count] : inner) {
        full += (count - 1) / 4;
        program.longs += count / 4 + (count % 4 > 2);
        program.doubles += count % 4 == 2;
        program.singles += count % 4 == 1;
    }
    program.singles += program.singles % 2;
    program.doubles += program.doubles % 2;
    program.longs += program.longs % 2;
    if (outer == OUTER) add("full records", full);
    add("programs", 1);
    add("program steps", WARPS);
    return program;
}

static u32 columns_hit(u64 completion, int outer, u32 first_row, const std::vector<u32> &columns, u32 &right) {
    u32 left = 0;
    right = 0;
    for (int i = 0; i < outer; i++) {
        u32 column = columns[completion >> 4 * i & 15], row = first_row + i;
        if (column + row < n) left |= 1u << (column + row);
        if (column >= row) right |= 1u << (column - row);
    }
    return left;
}

// Writes a list, its test and its completions; see `Call` in cuda/leaf.cu.
static void dump_call(u32 first_row, const std::vector<u32> &columns, u32 left, u32 right,
                      const std::vector<State> &list, const Program &program, u64 expected) {
    u32 head[7] = {(u32)list.size(), (u32)program.completions.size(), (u32)expected,
                   (u32)(expected >> 32), left, right, first_row};
    fwrite(head, 4, 7, dump);
    fwrite(columns.data(), 4, 8, dump);
    fwrite(list.data(), 8, list.size(), dump);
    for (u64 completion : program.completions) {
        u32 ranks = completion;
        fwrite(&ranks, 4, 1, dump);
    }
}

static bool count_outer(u32 outer, u32 first_row, u32 free, u32 right, u32 left,
                        const std::vector<State> &list, const std::vector<char> &kept, double weight,
                        u32 test_left, u32 test_right) {
    for (int part = 0; part < 3; part++) {
        u32 ranks = part == 0 ? 0xff : part == 1 ? 0x0f : 0xf0;
        Program program = make_program(outer, first_row, free, right, left, ranks);
        u32 pairs = program.pairs[0].size() + program.pairs[1].size();
        bool has_upper = pairs + program.upper_pairs.size() <= MOST_WITH_UPPER;
        bool fits = (pairs <= MOST_PAIRS || has_upper) && program.singles <= MOST_SINGLES &&
                    program.doubles <= MOST_DOUBLES && program.longs <= MOST_LONGS;
        if (!fits && part) return false;
        if (!fits || program.completions.empty()) {
            add(fits ? "empty programs" : "programs that do not fit", 1);
            if (fits && !part) return true;
            continue;
        }
        add("counted programs", 1);
        u32 words = program.singles + program.doubles + 2 * program.longs;
        auto steps = [](u32 records) { return WARPS * ((records + LANES - 1) / LANES); };
        add("record steps", steps(program.singles) + steps(program.doubles) + steps(2 * program.longs));
        add("words of records", words);
        u64 rounds = 0, batches = 0, states = 0, narrow = 0, end = list.size();
        for (u64 at = 0, filled = 0; at < end; at += 8 * LANES) {
            u64 more = std::count(kept.begin() + at, kept.begin() + std::min(at + 8 * LANES, end), 1);
            batches += WARPS;
            states += more;
            filled += more;
            // Those that do not fit are read again in the next round.
            for (; filled > AT_ONCE; filled -= AT_ONCE) {
                rounds++;
                batches += WARPS;
            }
            if (at + 8 * LANES >= end) {
                rounds++;
                narrow = filled <= AT_ONCE / 2;
            }
        }
        if (part < 2) add("states", states);
        add("rounds", WARPS * rounds);
        add("batches in rounds", batches);
        // Each of the four teams, two in a warp, takes two records of every eight; of those with two
        // completions the last teams begin. Both warps wait for the slower one.
        u32 kinds[] = {program.singles, program.doubles, program.longs}, slower[3] = {}, most = 0;
        for (u32 warp = 0; warp < WARPS; warp++) {
            u32 mine[3], time = 0;
            for (u32 kind = 0; kind < 3; kind++) {
                u32 twos = kinds[kind] / 2, before = (kind == 1) != (warp == 0) ? 0 : 2;
                mine[kind] = twos > before ? (twos - before + 3) / 4 : 0;
                time += mine[kind] * (kind + 2);
            }
            if (time >= most) std::copy(mine, mine + 3, slower), most = time;
        }
        if (has_upper) pairs += program.upper_pairs.size();
        const char *names[] = {"two single records", "two double records", "two long records"};
        for (u32 kind = 0; kind < 3; kind++) {
            std::string name = std::string(names[kind]) + (has_upper ? "" : ", squares");
            add(name, (double)(rounds - narrow) * WARPS * slower[kind]);
            add(name + ", narrow", (double)narrow * WARPS * slower[kind]);
        }
        add("completions times rounds", (double)rounds * program.completions.size());
        add("pairs", (double)rounds * pairs);
        add("tests in rounds", end);
        bytes_by_size[size_class(end)] += scale * end * 8;
        if (check || dump) {
            std::vector<u32> columns;
            for (u32 a = free; a; a &= a - 1) columns.push_back(__builtin_ctz(a));
            u64 found = 0;
            for (u64 completion : program.completions) {
                u32 y, x = columns_hit(completion, outer, first_row, columns, y);
                for (u64 i = 0; i < end; i++) found += kept[i] && !(list[i].x & x) && !(list[i].y & y);
            }
            placements += weight * found;
            if (dump && fits && !part && outer == 8)
                dump_call(first_row, columns, test_left, test_right, list, program, found);
        }
        if (fits && !part) return true;
    }
    return true;
}

// Counts the rows from `row` on. Returns false if a list does not fit.
static bool count_rows(u32 row, u32 free, u32 right, u32 left, const std::vector<State> &list, u64 used, double weight) {
    u32 rows = family[1], outer = std::min<u32>(OUTER, rows - 1);
    for (u32 open = free & ~right & ~left & family[20 + row]; open; open &= open - 1) {
        u32 queen = open & -open, column = __builtin_ctz(queen);
        u32 x = column + row < n ? queen << row : 0, y = queen >> row;
        u32 rule = row ? 2 : family[68 + column], side = rule & 3, limit = rule >> 2;
        bool last = row + 1 + outer == rows;
        double before = scale;
        if (last && chance < 1) {
            if (std::uniform_real_distribution<>()(generator) >= chance) continue;
            scale /= chance;
        }
        std::vector<char> kept(list.size());
        std::vector<State> after;
        for (u64 i = 0; i < list.size(); i++) {
            State s = list[i];
            kept[i] = !(s.x & x || s.y & y) && !(s.y >> 31 == side && s.x >> 28 >= limit);
            if (kept[i] && !last) after.push_back(s);
        }
        u32 next_free = free & ~queen, next_right = (right | queen) << 1, next_left = (left | queen) >> 1;
        bool fits = true;
        if (last) {
            fits = count_outer(outer, row + 1, next_free, next_right, next_left, list, kept, weight, x, y);
        } else {
            add("filters", 1);
            add("filter batches", WARPS * ((list.size() + 8 * LANES - 1) / (8 * LANES)));
            add("tests in filters", list.size());
            add("states written", after.size());
            bytes_by_size[size_class(list.size())] += scale * list.size() * 8;
            fits = used + after.size() <= capacity;
            if (fits && !after.empty())
                fits = count_rows(row + 1, next_free, next_right, next_left, after, used + after.size(), weight);
        }
        scale = before;
        if (!fits) return false;
    }
    return true;
}

// The count of a set that does not fit is thrown away, but the work was done.
static void count_item(const Item &item) {
    std::vector<State> states;
    double before = placements;
    add("items", 1);
    u64 listed = list_set(item, states);
    if (listed <= capacity &&
        (states.empty() || count_rows(0, item.upper, 0, 0, states, states.size(), item.weight)))
        return;
    placements = before;
    add("items that do not fit", 1);
    for (int row = 0; row < 2; row++) {
        u32 columns = __builtin_popcount(item.first[row]);
        if (columns < 2) continue;
        u32 parts = std::max<u64>(2, (listed * 7 / 4 + capacity - 1) / capacity);
        if (listed > 4 * capacity || parts > columns) parts = columns;
        u32 each = (columns + parts - 1) / parts;
        for (u32 left = item.first[row]; left;) {
            Item part = item;
            part.first[row] = 0;
            for (u32 i = 0; i < each && left; i++, left &= left - 1) part.first[row] |= left & -left;
            count_item(part);
        }
        return;
    }
    add("items for the CPU", 1);
}

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        if (!strcmp(arguments[i], "check")) check = true;
        else if (!strncmp(arguments[i], "dump=", 5)) dump = fopen(arguments[i] + 5, "wb");
        else if (strchr(arguments[i], '.')) chance = atof(arguments[i]);
        else capacity = strtoull(arguments[i], nullptr, 10);
    }
    std::string word;
    while (std::cin >> word) {
        if (word == "board") {
            std::cin >> n;
            if (dump) fwrite(&n, 4, 1, dump);
        }
        if (word == "family") for (u32 &w : family) std::cin >> w;
        if (word == "set") {
            Item item;
            std::cin >> item.upper >> item.lower >> item.first[0] >> item.first[1] >> item.weight >> item.stands_for;
            scale = item.stands_for;
            count_item(item);
        }
    }
    for (auto &[name, value] : totals) printf("%s,%.6g\n", name.c_str(), value);
    for (int i = 0; i < 40; i++) if (bytes_by_size[i]) printf("bytes read from lists below 2^%d,%.6g\n", i, bytes_by_size[i]);
    if (check) printf("placements,%.0f\n", placements);
}
