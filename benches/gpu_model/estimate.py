"""Prints estimates of the time of a board on GPUs that were not measured: see README.md.

python estimate.py COUNTS_DIR OUT_DIR ESTIMATES_CSV

COUNTS_DIR has CAPACITY/N.csv, the output of steps.cpp for a capacity of workgroups in states.
"""

import csv
import pathlib
import sys
from collections import Counter

import sass
import translate
from simulate import clocks, memory_clocks

# Name, multiprocessors, clock in Hz, bytes a second of its memory, bytes of its second cache.
GPUS = [("H200", 132, 1.8e9, 4.8e12, 50e6), ("H100", 132, 1.7e9, 3.35e12, 50e6)]
SHARED_BYTES = 227 * 1024
SOLUTIONS = {18: 666090624, 20: 39029188884, 22: 2691008701644, 24: 227514171973736,
             27: 234907967154122528}
# The search: turns a solution, and the share of groups of turns in which a lane begins a state
# (of sampled boards, by an earlier simulation; those of 24 and 27 are extrapolated).
TURNS = {20: (9.3, 0.75), 22: (10.2, 0.45), 24: (11.0, 0.3), 27: (12.0, 0.2)}
# The shares of turns without masks, with one gate, and with masks (even boards).
VARIANTS = [({}, 0.65), ({"GATED": 1}, 0.28), ({"GENERAL": 1}, 0.07)]
# The states of a workgroup in `src/kernel/gpu/sets/backend.rs`.
DEFAULT_CAPACITY = "655360"
# The pairs of words that an iteration of the loops over records reads; more without pairs of rows 0
# and 1; and half of them in narrow rounds.
READS = {"two single records": 20, "two double records": 28, "two long records": 44}
MORE_READS = 4
# The warps of a workgroup.
WARPS = 2
# Latencies of a read from the first cache and from the second one.
NEAR, FAR = 35, 260


def phase(code, loop):
    """Returns the function of the entry's that a loop belongs to."""
    names = Counter(code.instructions[i].functions[-3] for i in loop.own()
                    if len(code.instructions[i].functions) >= 3)
    return names.most_common(1)[0][0] if names else ""


def functions(code, loop):
    return {name for i in loop.own() for name in code.instructions[i].functions}


def hot_loops(code):
    """Finds the loops of the shader of column sets. Returns the positions of what one iteration
    executes, by the name of the count in steps.cpp."""
    found = {}
    of = {}
    for loop in code.loops:
        of.setdefault(phase(code, loop), []).append(loop)

    def among(loops, function):
        return [loop for loop in loops if function in functions(code, loop)]

    # A lane that has ended a triple begins the next one; `bit_of` has inner loops. There is a variant
    # for families with a rule, and one without.
    begin = {"take_triple", "begin_triple", "decisive_of"}
    variants = [loop for loop in of["list_set"] if "begin_triple" in functions(code, loop) and loop.inner]
    writes = among(of["list_set"], "put_state")
    for turns in variants:
        begins = [i for i in turns.own() if begin & set(code.instructions[i].functions)]
        suffix = "" if "decisive_of" in functions(code, turns) else ", no rule"
        found["list iterations" + suffix] = sorted(set(turns.own()) - set(begins))
        found["list steps" + suffix] = begins + [i for loop in turns.inner for i in loop.own()] * 4
        found["list writes" + suffix] = next(loop for loop in writes if loop.first > turns.last).own()
    joins = of["list_completions"]
    chains = [loop for loop in among(joins, "add_completion") if not loop.inner]
    # A record that is full is written.
    full = [i for i in chains[0].own() if "put_record" in code.instructions[i].functions]
    found["join iterations"] = sorted(set(chains[0].own()) - set(full))
    found["full records"] = full
    # Around it are the loops over upper quadruples, over chunks of them, and over parts of a program.
    around = sorted((loop for loop in code.loops if chains[0] in loop.inner),
                    key=lambda loop: loop.last - loop.first)
    for name, loop in zip(("join steps", "chunk steps", "program steps"), around):
        found[name] = loop.own()
    for name, function in (("pair steps", "list_pairs"), ("lower quadruple steps", "count_lower"),
                           ("upper quadruple steps", "count_upper"), ("sort steps", "sort_uppers")):
        inner = [loop for loop in among(joins, function) if not loop.inner]
        # The compiler makes several loops over pairs; the longest one is charged for all.
        found[name] = max(inner, key=lambda loop: len(loop.own())).own()
    finish = [loop for loop in among(of["finish_program"], "with_planes") if not loop.inner]
    collect = [loop for loop in among(of["collect_pairs"], "bit_of_pair") if not loop.inner]
    found["record steps"] = collect[0].own() + finish[0].own()
    # The rule of the first row is not tested in later rows, which nearly all tests are in.
    def without_rule(positions):
        return [i for i in positions if "bit_if_refused" not in code.instructions[i].functions]

    counts = of["count_states"]
    # The records of each kind, in the order of the shader; in narrow rounds half the words are read,
    # and without pairs of rows 0 and 1 four squares.
    records = sorted((loop for loop in among(counts, "inner_of") if not loop.inner),
                     key=lambda loop: loop.first)
    kinds = {}
    for loop in records:
        own = [code.instructions[i] for i in loop.own()]
        suffix = ""
        if any({"inner_of", "high_pairs"} <= set(i.functions) for i in own):
            suffix += ", squares"
        if any("narrow_plane_at" in i.functions for i in own):
            suffix += ", narrow"
        kinds.setdefault(suffix, []).append(loop)
    for suffix in ("", ", narrow", ", squares", ", squares, narrow"):
        for name, loop in zip(READS, kinds[suffix]):
            found[name + suffix] = loop.own()
    rounds = [loop for loop in counts if records[0] in loop.inner][0]
    found["batches in rounds"] = without_rule(among(rounds.inner, "kept_of_eight")[0].own())
    # Lanes take turns to write planes of masks: first one warp, then the other one.
    turns = among(rounds.inner, "put_two")
    found["rounds"] = rounds.own() + [i for loop in turns for i in loop.own()]
    found["filter batches"] = without_rule(among(of["filter_list"], "kept_of_eight")[0].own())
    return found


def skipped_in_rounds(body, pairs):
    """Returns which instructions of a round are not executed: what is written for rows that a board
    lacks, as none does from n = 18 on; the loops over records of other rounds, of which there are
    four variants; and what writes planes of pairs that are not used. `pairs` are those that a warp
    writes in each round."""
    skipped = [i for i in body if "put_valid" in i.functions]
    before_records = [i for i in body if "add_records" in i.functions]
    skipped += before_records[len(before_records) // 4:]
    # Between a branch and the end of its block is a place. The warp executes it if one of its two teams
    # uses the pair, as if by chance; a store of one team is half of one of both.
    places, is_inside = [], False
    for i in body:
        if "put_pairs" in i.functions:
            if i.name.startswith("BRA"):
                places.append([])
                is_inside = True
            elif i.name.startswith("BSYNC"):
                is_inside = False
            elif is_inside:
                places[-1].append(i)
    share = pairs / 2 / len(places)
    of_any = 1 - (1 - share) ** 2
    executed = 0
    for number, place in enumerate(places):
        if not is_chosen(number, of_any):
            skipped += place
            continue
        if not is_chosen(executed, share / of_any):
            skipped += [i for i in place if i.name.startswith("STS")]
        executed += 1
    return {id(i) for i in skipped}


def is_chosen(number, share):
    """Returns whether a thing with a number is among a share of all, evenly spread."""
    return int(number * share) != int((number + 1) * share)


def read_counts(path):
    with open(path, newline="") as file:
        return {name: float(value) for *names, value in csv.reader(file)
                for name in [",".join(names)]}


class Sets:
    """The shader of column sets, compiled."""

    def __init__(self, out, arch, **options):
        cubin, self.resources = translate.build(
            "column_sets", "count_sets", {"LANES": 64, "PLANES": 128, "MASK_PLANES": 24}, 64, arch, out,
            **options)
        self.code = sass.read(cubin)
        self.loops = hot_loops(self.code)
        self.groups = min(32, SHARED_BYTES // (self.resources["shared"] + 1024))
        self.warps = self.groups * WARPS

    def rows(self, counts):
        """Returns for each loop: iterations, instructions of each pipe, memory clocks and simulated
        clocks of an iteration with records near and far."""
        rows = []
        for name, positions in self.loops.items():
            body = [self.code.instructions[i] for i in positions]
            lines = 2.0 if name in ("batches in rounds", "filter batches") else 1.0
            if name == "rounds":
                skipped = skipped_in_rounds(body, counts["pairs"] / counts["rounds"])
            else:
                skipped = set()
            executed = [i for i in body if id(i) not in skipped]
            pipes = Counter(i.pipe for i in executed)
            memory = sum(memory_clocks(i, lines) for i in executed)
            # A compiler may make several iterations one.
            reads = sum(i.name.startswith("LDS") for i in body)
            kind, *suffixes = name.split(", ")
            of_one = READS.get(kind, 0) + (MORE_READS if "squares" in suffixes else 0)
            of_one //= 2 if "narrow" in suffixes else 1
            unrolled = reads // of_one if kind in READS else 1
            simulated = [clocks(executed, self.warps, latency, lines)
                         for latency in ((600, 600) if lines > 1.5 else (NEAR, FAR))]
            rows.append((name, counts.get(name, 0) / unrolled, len(executed), pipes, memory, simulated))
        return rows


def print_sets(title, sets, n, counts):
    per = 1024 / counts["states"]
    print(f"\n{title}, n = {n}: clocks of a multiprocessor for 1,024 counted states")
    print(f"{sets.resources}, {sets.groups} workgroups a multiprocessor, of {WARPS} warps each")
    print("loop                         iterations  instr.  issue    ALU    FMA  memory   POPC  simulated")
    sums = [0.0] * 7
    for name, count, length, pipes, memory, simulated in sets.rows(counts):
        values = [length / 4, (pipes["alu"] + pipes["uniform"]) / 2, pipes["fma"] / 2, memory,
                  pipes["popc"] * 2, *simulated]
        values = [value * count * per for value in values]
        sums = [a + b for a, b in zip(sums, values)]
        print(f"{name:28} {count * per:10.3f} {length:7}"
              + "".join(f" {value:6.0f}" for value in values[:5])
              + f"  {values[5]:.0f} to {values[6]:.0f}")
    print(f"{'sum':47}" + "".join(f" {value:6.0f}" for value in sums[:5])
          + f"  {sums[5]:.0f} to {sums[6]:.0f}")
    return sums[5] / 1024, sums[6] / 1024


def bytes_of_memory(counts, cache, groups, processors):
    """Returns the bytes of lists that do not stay in the second cache: those of lists of which all
    workgroups at once need more than it has; and what is written."""
    total = counts.get("states written", 0) * 8 + counts["states listed"] * 8
    for name, value in counts.items():
        if name.startswith("bytes read from lists below 2^"):
            size = 2 ** int(name.split("^")[1])
            if size * 0.75 * groups * processors > cache:
                total += value
    return total


def search_clocks(out, arch, n):
    """Returns the clocks of a multiprocessor for a turn of 32 lanes, by the ALU and by issue."""
    turns, begins = TURNS[n]
    alu = issue = 0.0
    for overrides, share in VARIANTS:
        cubin, _ = translate.build("search", "search", {"DEPTH": n - 8, **overrides}, 64, arch,
                                   out / "search")
        code = sass.read(cubin)
        loop = max(code.loops, key=lambda loop: len(loop.own()))
        for i in loop.own():
            instruction = code.instructions[i]
            # A state is begun in some groups; its sums are moved to a slot rarely.
            if {"settle", "flush", "take"} & set(instruction.functions):
                weight = 0.02
            else:
                weight = begins if "begin" in instruction.functions else 1.0
            issue += share * weight / 4 / 4
            if instruction.pipe in ("alu", "uniform"):
                alu += share * weight / 2 / 4
    return turns, alu, issue


def print_seconds(title, seconds, boards):
    print(f"\n{title}: seconds; processors (with records in the first cache, in the second), and "
          "memory; the greater of both counts")
    for name, *_ in GPUS:
        for n in boards:
            busy, memory = seconds[name, n]
            print(f"{name} n = {n}: processors {busy[0]:.3g} to {busy[1]:.3g}, memory {memory:.3g}")
        busy, memory = seconds[name, max(boards)]
        more = SOLUTIONS[27] / SOLUTIONS[max(boards)]
        print(f"{name} n = 27, by the ratio of solutions to n = {max(boards)}: processors "
              f"{busy[0] * more:.2g} to {busy[1] * more:.2g}, memory {memory * more:.2g}")


def main():
    counts_dir, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    lines = ["gpu,n,subproblems,low_s,high_s"]
    print("ESTIMATES from compilers, counts and a simulation. Nothing here was measured on a GPU.")
    kinds = [("the shader as it is", {}), ("the same without bounds of loops", {"bounded": False})]
    for kind, options in kinds:
        sets = Sets(out / kind.replace(" ", "_"), "sm_90", **options)
        for folder in sorted(counts_dir.iterdir(), key=lambda folder: int(folder.name)):
            boards = {n: read_counts(folder / f"{n}.csv") for n in (18, 20, 22, 24)
                      if (folder / f"{n}.csv").exists()
                      and "states," in (folder / f"{n}.csv").read_text()}
            title = f"{kind}, {folder.name} states a workgroup"
            seconds = {}
            for n, counts in boards.items():
                per_state = print_sets(title, sets, n, counts)
                for name, processors, clock, rate, cache in GPUS:
                    busy = [value * counts["states"] / processors / clock for value in per_state]
                    memory = bytes_of_memory(counts, cache, sets.groups, processors) / rate
                    seconds[name, n] = (busy, memory)
                    if not options and folder.name == DEFAULT_CAPACITY:
                        low, high = (max(value, memory) for value in busy)
                        lines.append(f"{name},{n},column-sets,{low:.3g},{high:.3g}")
            print_seconds(title, seconds, boards)
    print("\nthe search: clocks of a multiprocessor for a turn of 32 lanes, seconds at 85 % of them")
    for n in TURNS:
        turns, alu, issue = search_clocks(out, "sm_90", n)
        for name, processors, clock, _, _ in GPUS:
            busy = max(alu, issue) / 32 * turns * SOLUTIONS[n] / processors / clock / 0.85
            print(f"{name} n = {n}: {turns} turns a solution, ALU {alu:.1f}, issue {issue:.1f}: "
                  f"{busy:.3g} s")
            # Other parts of a turn, and the clock, are uncertain by about this much.
            lines.append(f"{name},{n},prefixes,{busy * 0.85:.3g},{busy * 1.2:.3g}")
    pathlib.Path(sys.argv[3]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
