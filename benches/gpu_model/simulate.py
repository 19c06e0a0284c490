"""Simulates one multiprocessor on a loop: warps in order, four schedulers, pipes, latencies.

Every warp repeats the loop's instructions, from a random place. An instruction waits for its
operands and for its pipe. Branches are not followed: a warp executes what any of its lanes does.
"""

import random
import re

# Clocks for which an instruction of a warp keeps the pipe of its scheduler busy (H100), and its
# latency. Published figures for similar chips; not measured here.
ISSUE = {"alu": 2, "fma": 2, "popc": 8, "uniform": 2}
LATENCY = {"alu": 5, "fma": 5, "popc": 14, "uniform": 10, "control": 6}
BARRIER_LATENCY = 20
SHARED_LATENCY = 24
# The work in flight in the memory pipe before a scheduler waits, in clocks of the pipe.
MEMORY_QUEUE = 24


def width(name):
    return 4 if ".128" in name else 2 if ".64" in name else 1


def registers(instruction):
    """Returns the registers that an instruction writes and those that it reads."""
    operands = instruction.operands.split(",")
    stores = instruction.name.split(".")[0] in (
        "STS", "STG", "ST", "STL", "RED", "REDG", "BRA", "BSSY", "BSYNC", "BAR", "EXIT", "NOP")
    wide = 2 if instruction.name.startswith(("IMAD.WIDE", "CS2R")) else width(instruction.name)
    writes, reads = [], []
    for place, operand in enumerate(operands):
        names = re.findall(r"\b(U?R\d+|U?P\d)\b", operand)
        is_result = not stores and "[" not in operand and (
            place == 0 or place == 1 and re.fullmatch(r"\s*P\d\s*", operand))
        if is_result:
            for name in names:
                writes.append(name)
                if place == 0 and name[0] == "R":
                    writes += [f"R{int(name[1:]) + i}" for i in range(1, wide)]
        else:
            reads += names
    reads += re.findall(r"U?P\d", instruction.predicate)
    return writes, reads


def memory_clocks(instruction, lines):
    """Returns the clocks of the memory pipe: 128 bytes a clock, and a line a clock."""
    if instruction.pipe == "shared":
        if instruction.name.startswith("ATOMS"):
            # Lanes that add to the same word do so one after another, unless the compiler has added
            # up what they add, for one of them. Other words are mostly different ones. A
            # quarter of the lanes count a quadruple; upper ones that are put in order often share a word.
            if instruction.predicate:
                return 1
            if {"count_lower", "count_upper", "sort_uppers"} & set(instruction.functions):
                return 8 if "sort_uppers" in instruction.functions else 4
            return 32 if ".ADD" in instruction.name else 4
        # Lanes write what they keep behind each other, into banks that are used twice; and planes of
        # masks into every second bank.
        is_twice = {"take_state", "put_two"} & set(instruction.functions)
        return width(instruction.name) * (2 if is_twice else 1)
    if instruction.pipe == "global":
        # All lanes read the same record, or each its own state.
        return lines
    return 0


def clocks(instructions, warps, memory_latency, lines=1.0, seed=1):
    """Returns the clocks of a multiprocessor for one iteration of one warp."""
    chance = random.Random(seed)
    trace = []
    for instruction in instructions:
        writes, reads = registers(instruction)
        barrier = instruction.name.startswith("BAR")
        trace.append((instruction.pipe, memory_clocks(instruction, lines), writes, reads, barrier))
    length, repeats = len(trace), max(3, 3000 // len(trace))
    at = [chance.randrange(length) for _ in range(warps)]
    done, ready, free_at = [0] * warps, [{} for _ in range(warps)], [0] * warps
    pipes = [{} for _ in range(4)]
    memory, now, issued, start = 0.0, 0, 0, None
    while True:
        for scheduler in range(4):
            waiting = range(scheduler, warps, 4)
            for turn in range(len(waiting)):
                warp = waiting[(turn + now) % len(waiting)]
                if free_at[warp] > now:
                    continue
                pipe, needs, writes, reads, barrier = trace[at[warp]]
                scores = ready[warp]
                if any(scores.get(register, 0) > now for register in reads + writes):
                    continue
                if pipe in ISSUE:
                    if pipes[scheduler].get(pipe, 0) > now:
                        continue
                    pipes[scheduler][pipe] = now + ISSUE[pipe]
                if needs:
                    if memory > now + MEMORY_QUEUE:
                        continue
                    memory = max(memory, now) + needs
                    latency = memory - now + (SHARED_LATENCY if pipe == "shared" else memory_latency)
                else:
                    latency = LATENCY.get(pipe, 5)
                for register in writes:
                    scores[register] = now + latency
                free_at[warp] = now + (BARRIER_LATENCY if barrier else
                                       LATENCY["control"] if pipe == "control" else 1)
                at[warp] = (at[warp] + 1) % length
                issued += 1
                break
        now += 1
        if start is None and issued >= length * warps:
            start, before = now, issued
        if start is not None and issued >= length * warps * repeats:
            return (now - start) / ((issued - before) / length)
