"""Reads SASS: the instructions of a cubin, the functions of the shader that they come from, and loops."""

import bisect
import pathlib
import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field

from translate import nvidia

# The pipe of an instruction, by its name without suffixes.
PIPES = {
    "fma": "IMAD FFMA HFMA2 IMUL",
    "shared": "LDS STS ATOMS",
    "global": "LDG STG LD ST LDL STL RED REDG ATOMG ATOM",
    "popc": "POPC FLO BREV I2F F2I MUFU I2FP",
    "control": "BRA BSSY BSYNC BREAK EXIT NOP WARPSYNC YIELD BAR RET CALL BRX CS2R S2R DEPBAR"
               " MEMBAR ERRBAR CCTL LDGDEPBAR SHFL VOTE LDC S2UR R2UR ULDC",
}
PIPE = {name: pipe for pipe, names in PIPES.items() for name in names.split()}


def pipe(name):
    """Returns the pipe of an instruction; uniform instructions have their own, the rest are ALU."""
    base = name.split(".")[0]
    if base in PIPE:
        return PIPE[base]
    return "uniform" if base.startswith("U") else "alu"


@dataclass
class Instruction:
    predicate: str
    name: str
    operands: str
    # The functions of the shader, the innermost first, and the lines of the translation.
    functions: list
    lines: list

    @property
    def pipe(self):
        return pipe(self.name)


@dataclass
class Loop:
    """A loop, from its first instruction to the branch back; `inner` are loops within it."""
    first: int
    last: int
    inner: list = field(default_factory=list)

    def own(self):
        """Returns the positions of the instructions that are in no inner loop."""
        within = [range(loop.first, loop.last + 1) for loop in self.inner]
        return [i for i in range(self.first, self.last + 1) if not any(i in r for r in within)]


@dataclass
class Code:
    instructions: list
    loops: list
    # The targets of branches, by label.
    labels: dict

    def classes(self, positions):
        return Counter(self.instructions[i].pipe for i in positions)


def read(cubin):
    """Returns the code of a cubin that was compiled beside its source."""
    cubin = pathlib.Path(cubin)
    source = (cubin.parent / "shader.cu").read_text().splitlines()
    starts = [(number, re.search(r"(\w+)\(", line).group(1))
              for number, line in enumerate(source, 1) if line.startswith("FUNCTION ")]
    numbers = [number for number, _ in starts]

    def function_of(line):
        at = bisect.bisect_right(numbers, line) - 1
        return starts[at][1] if at >= 0 else ""

    command = [nvidia("nvdisasm"), "-c", "-gi", str(cubin)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    instructions, labels, lines, fresh = [], {}, [], True
    for line in text.splitlines():
        if label := re.match(r"(\.L_x_\d+):", line):
            labels[label.group(1)] = len(instructions)
        elif "//## File" in line:
            # A new group of lines begins after an instruction; then come the callers.
            if fresh:
                lines, fresh = [], False
            lines.append(int(re.search(r"line (\d+)", line).group(1)))
        elif found := re.match(r"\s+/\*[0-9a-f]{4,6}\*/\s+(@!?U?P\w+ )?\s*([A-Z][\w.]*)(.*);", line):
            fresh = True
            predicate, name, operands = found.groups()
            functions = [function_of(number) for number in lines]
            instructions.append(
                Instruction((predicate or "").strip(), name, operands, functions, lines))
    loops = {}
    for position, instruction in enumerate(instructions):
        target = re.search(r"(\.L_x_\d+)", instruction.operands)
        if instruction.name.startswith("BRA") and target:
            first = labels.get(target.group(1), position + 1)
            # `BRA` to itself ends the program.
            if first < position:
                loops[first] = max(position, loops.get(first, 0))
    every = [Loop(first, last) for first, last in sorted(loops.items())]
    for loop in every:
        loop.inner = [other for other in every if other is not loop
                      and loop.first <= other.first and other.last <= loop.last]
    return Code(instructions, every, labels)


def describe(code):
    """Prints the loops: where they are, how long, by pipes, and the functions in them."""
    for loop in code.loops:
        own = loop.own()
        depth = sum(other.first <= loop.first and loop.last <= other.last for other in code.loops) - 1
        names = Counter(name for i in own for name in code.instructions[i].functions[:-1])
        classes = dict(code.classes(own))
        print("  " * depth, loop.first, loop.last, len(own), classes, names.most_common(5))


if __name__ == "__main__":
    import sys
    describe(read(sys.argv[1]))
