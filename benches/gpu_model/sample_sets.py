"""Prints random column sets of a board, with the words of their families, for `steps.cpp`.

The families are those of `src/decomposition/column_sets.rs`, their words those of
`src/kernel/gpu/sets/families.rs`. A line of output: `family` and its 100 words, `set` with its
masks and its weights: that of a placement (in solutions), and the sets that a sampled one stands for.
`python sample_sets.py 12 0` prints all sets.
"""

import itertools
import math
import random
import sys

NO_COLUMN, NO_SIDE, NOT_COUNTED, OTHER_SIDE = 31, 2, 16, 15


def columns_of(mask):
    return [column for column in range(32) if mask >> column & 1]


def mirror(n, mask):
    return sum(1 << n - 1 - column for column in columns_of(mask))


class Family:
    def __init__(self, n, rule, has_queen):
        self.n, self.rule, m = n, rule, n // 2
        self.gap = 2 if has_queen else 1
        self.centre = (m - 1, m) if n % 2 == 0 else (m - 1, m + 1)
        full = (1 << n) - 1

        def allowed(row):
            attacked = [m, m + row - m, m - row + m] if has_queen else []
            return full & ~sum(1 << column for column in set(attacked) if 0 <= column < n)

        self.columns = full & ~(1 << m) if has_queen else full
        upper, lower = range(m - 1, -1, -1), range(m + has_queen, n)
        left, right = 1 << self.centre[0], 1 << self.centre[1]
        always = {"nearer": (0, 1 << m), "both": (0, left | right), "split": (left, right)}[rule]
        self.always = always[0]
        self.divided = self.columns & ~(always[0] | always[1])
        self.chosen = len(upper) - always[0].bit_count()
        self.above = [allowed(row) & ~always[1] for row in upper]
        self.below = [allowed(row) & ~always[0] for row in lower]
        if rule == "nearer":
            self.below[0] &= ~(1 << m)

    def distance(self, column):
        a, b = self.centre
        return column - b + 1 if column >= b else a + 1 - column

    def words(self):
        words = [0] * 100
        words[0:3] = len(self.below), len(self.above), self.gap
        words[4:4 + len(self.below)] = self.below
        words[20:20 + len(self.above)] = self.above
        for column in range(self.n):
            right = column >= self.centre[1]
            side, distance = int(not right), self.distance(column)
            if self.rule == "nearer":
                middle = self.n // 2
                below = middle << 1 | abs(column - middle) << 6 | NOT_COUNTED << 11
                above = NO_SIDE
            elif self.rule == "split":
                below, above = side | NO_COLUMN << 1, side
            else:
                same, other = self.centre[int(right)], self.centre[1 - int(right)]
                below = side | (other << 1 | 1 << 16 if distance == 1 else
                                same << 1 | distance - 1 << 6 | OTHER_SIDE << 11)
                above = side | distance << 2
            words[36 + column], words[68 + column] = below, above
        return words

    def set_of(self, chosen):
        """Returns masks, weight and whether only the right side counts; None for an image."""
        upper = self.always | sum(1 << column for column in chosen)
        lower, n = self.columns & ~upper, self.n
        right_only = False
        if self.rule == "split":
            if upper < mirror(n, lower):
                return None
            weight = 2 if upper == mirror(n, lower) else 4
        else:
            if upper > mirror(n, upper):
                return None
            weight, right_only = 8, upper == mirror(n, upper)
        first = lower & ~((1 << self.centre[1]) - 1) if right_only else lower
        return upper, lower, first, lower, weight


def families(n):
    if n % 2 == 0:
        return [Family(n, "both", 0), Family(n, "split", 0)]
    return [Family(n, "nearer", 0), Family(n, "both", 1), Family(n, "split", 1)]


def main():
    n, samples = int(sys.argv[1]), int(sys.argv[2])
    chance = random.Random(n)
    print("board", n)
    for family in families(n):
        print("family", *family.words())
        columns = columns_of(family.divided)
        if samples == 0:
            chosen, stands_for = itertools.combinations(columns, family.chosen), 1
        else:
            # Images of other sets are drawn again, which leaves half of all.
            stands_for = math.comb(len(columns), family.chosen) / 2 / samples

            def draw():
                while True:
                    some = chance.sample(columns, family.chosen)
                    if family.set_of(some):
                        return some
            chosen = (draw() for _ in range(samples))
        for some in chosen:
            if found := family.set_of(some):
                print("set", *found, stands_for)


if __name__ == "__main__":
    main()
