"""Certificates of most beautiful solutions (docs/certificates.md)."""

from reading import Refused, attack, check_solution, require, sentence

NORMS = [
    ("", lambda u, v: u * u + v * v),
    (" by the manhattan norm", lambda u, v: u + v),
    (" by the chebyshev norm", max),
]


def beautiful(n, reader):
    norm = reader.byte()
    require(norm <= 2, "it names an unknown norm")
    turning = reader.flag()
    columns = [reader.number() for _ in range(n)] if reader.flag() else None
    if columns is None:
        require(n > 0, "the board without squares has a solution")
    else:
        check_solution(n, columns)
        turned = all(columns[columns[row]] == n - 1 - row for row in range(n))
        require(turned or not turning, "the solution changes under quarter turns")
    checker = BeautifulChecker(n, NORMS[norm][1], turning, columns, reader)
    checker.proved = columns is None and turning and n % 4 in (2, 3)
    while not checker.is_done():
        checker.record()
    require(reader.is_at_end(), "bytes follow the end of the proof")
    symmetric = "doubly symmetric " if turning else ""
    return sentence(n, f"a most beautiful {symmetric}solution{NORMS[norm][0]}", symmetric, columns)


class Contradiction(Exception):
    """No solution in question is left."""


class Supposition:
    def __init__(self, level, at_least, queens):
        self.level, self.at_least, self.queens = level, at_least, queens
        self.closed, self.filled, self.ranges = [], [], []


class BeautifulChecker:
    def __init__(self, n, norm, turning, columns, reader):
        self.n, self.turning, self.reader = n, turning, reader
        reader.spend(10 * n * n + 100)
        squares = range(n * n)
        cost = [norm(abs(2 * (q // n) + 1 - n), abs(2 * (q % n) + 1 - n)) for q in squares]
        costs = sorted(set(cost), reverse=True)
        number = {value: level for level, value in enumerate(costs)}
        self.level_of = [number[value] for value in cost]
        self.levels = [[] for _ in costs]
        self.lines = [[] for _ in range(6 * n)]
        self.lines_of = [
            (q // n, n + q % n, 4 * n + q // n - q % n + n - 1, 2 * n + q // n + q % n)
            for q in squares
        ]
        for square in squares:
            self.levels[self.level_of[square]].append(square)
            for line in self.lines_of[square]:
                self.lines[line].append(square)
        self.is_open = [True] * (n * n)
        self.open_on_line = [len(line) for line in self.lines]
        self.open_on_level = [len(level) for level in self.levels]
        self.queen_on = [None] * (6 * n)
        self.queens_on_level = [0] * len(costs)
        self.mandatory = [line < 2 * n for line in range(6 * n)]
        self.range = [(0, n) for _ in costs]
        self.level, self.shown, self.passed, self.proved = 0, 0, 0, False
        self.suppositions, self.cliques, self.clique_memory = [], [], 0
        self.claimed = None if columns is None else [0] * len(costs)
        for row, column in enumerate(columns or []):
            self.claimed[self.level_of[row * n + column]] += 1
        self.trail, self.pending = [], []
        self.orbits = {}

    def is_done(self):
        return self.proved if self.claimed is None else self.passed == self.n

    def orbit(self, square):
        if square not in self.orbits:
            n, r, c = self.n, square // self.n, square % self.n
            pairs = [(a, b) for a in (r, n - 1 - r) for b in (c, n - 1 - c)]
            self.orbits[square] = sorted({k for a, b in pairs for k in (a * n + b, b * n + a)})
        return self.orbits[square]

    def square(self):
        return self.reader.number(self.n * self.n - 1)

    def record(self):
        tag, number, n = self.reader.byte(), self.reader.number, self.n
        self.reader.spend(10)
        if tag == 1:
            self.begin_trial(number(n))
        elif tag == 2:
            self.search(None)
            self.refute()
        elif tag == 3:
            square = self.square()
            self.search(square)
            self.eliminate(square)
        elif tag == 4:
            require(self.multipliers()[0] > 0, "the multipliers refute nothing")
            self.refute()
        elif tag == 5:
            base, rest, _ = self.multipliers()
            squares = [self.square() for _ in range(number(n * n))]
            require(squares, "the multipliers eliminate nothing")
            for square in squares:
                good = base + rest(square) > 0
                require(good, "the multipliers do not eliminate an orbit")
            for square in squares:
                self.eliminate(square)
        elif tag == 6:
            self.clique()
        elif tag == 7:
            self.next_level()
        elif tag == 8:
            self.assume(number(len(self.levels) - 1), not self.reader.flag(), number(n))
        elif tag == 9:
            base, _, of_diagonal = self.multipliers()
            distances = [number(n - 1) for _ in range(number(n))]
            require(distances and not self.turning, "no diagonals can be filled")
            for distance in distances:
                require(base - of_diagonal[distance] > 0, "the multipliers do not fill a diagonal")
                self.fill(distance)
        else:
            raise Refused("it has an unknown record")

    def begin_trial(self, queens):
        require(self.claimed is not None and not self.suppositions, "a trial is out of place")
        require(self.shown < queens <= self.claimed[self.level], "a trial can show nothing")
        most = queens - 1
        if self.turning and self.open_on_level[self.level] > 1:
            most -= most % 4
        self.range[self.level] = (self.shown, most)
        self.suppositions.append(Supposition(self.level, True, queens))

    def assume(self, level, at_least, queens):
        good = self.suppositions and level > self.level and queens > 0
        require(good, "an assumption is out of place")
        require(len(self.suppositions) < 10_000, "too many assumptions are nested")
        self.suppositions.append(Supposition(level, at_least, queens))
        self.narrow(level, not at_least, queens)

    def narrow(self, level, at_least, queens):
        """Supposes or concludes that a level has at least so many queens, or fewer."""
        low, high = self.range[level]
        self.suppositions[-1].ranges.append((level, (low, high)))
        narrower = (max(low, queens), high) if at_least else (low, min(high, queens - 1))
        self.range[level] = narrower

    def refute(self):
        if not self.suppositions:
            require(self.claimed is None, "it rules out the solution itself")
            self.proved = True
            return
        ended = self.suppositions.pop()
        for square in ended.closed:
            self.set_open(square, True)
        for line in ended.filled:
            self.mandatory[line] = False
        for level, before in reversed(ended.ranges):
            self.range[level] = before
        if self.suppositions:
            self.narrow(ended.level, ended.at_least, ended.queens)
        else:
            self.shown = ended.queens
            self.range[ended.level] = (ended.queens, self.n)

    def set_open(self, square, is_open):
        change = 1 if is_open else -1
        self.is_open[square] = is_open
        self.open_on_level[self.level_of[square]] += change
        for line in self.lines_of[square]:
            self.open_on_line[line] += change

    def eliminate(self, square):
        require(self.is_open[square], "an orbit is eliminated twice")
        for image in self.orbit(square):
            if self.is_open[image]:
                self.set_open(image, False)
                if self.suppositions:
                    self.suppositions[-1].closed.append(image)

    def fill(self, distance):
        n = self.n
        lines = {m + s * distance for m in (3 * n - 1, 5 * n - 1) for s in (1, -1)}
        require(not any(self.mandatory[line] for line in lines), "diagonals are filled twice")
        for line in lines:
            self.mandatory[line] = True
            if self.suppositions:
                self.suppositions[-1].filled.append(line)

    def clique(self):
        squares = []
        for _ in range(self.reader.number(2 * self.n)):
            square = self.square()
            good = all(other != square and attack(self.n, other, square) for other in squares)
            require(good, "the squares of a clique do not attack each other")
            squares.append(square)
        self.clique_memory += len(squares) + 4
        require(self.clique_memory <= 1 << 26, "it has too many cliques")
        self.cliques.append(squares)

    def next_level(self):
        good = self.claimed is not None and not self.suppositions
        require(good and self.claimed[self.level] == self.shown, "a level ends too early")
        self.range[self.level] = (self.shown, self.shown)
        if self.shown == 0:
            for square in self.levels[self.level]:
                if self.is_open[square]:
                    self.set_open(square, False)
        self.passed += self.shown
        self.level, self.shown = self.level + 1, 0

    def multipliers(self):
        """Reads multipliers. Returns base, the function r(o), and y(d) by distance."""
        n = self.n
        self.reader.spend(5 * n * n)
        of_rank, of_diagonal = [0] * ((n + 1) // 2), [0] * n
        of_level, of_orbit = [0] * len(self.levels), {}
        base = 0
        total = len(of_rank) + n + len(self.levels) + len(self.cliques)
        for _ in range(self.reader.number(total)):
            number, y = self.reader.number(total - 1), self.reader.signed()
            upper_only = False
            if number < len(of_rank):
                of_rank[number] += y
                bound = 2 if 2 * number + 1 == n else 4
            elif number < len(of_rank) + n:
                of_diagonal[number - len(of_rank)] += y
                bound, upper_only = 2 if number == len(of_rank) else 4, True
            elif number < len(of_rank) + n + len(self.levels):
                level = number - len(of_rank) - n
                of_level[level] += y
                bound = self.range[level][0 if y > 0 else 1]
            else:
                bound, upper_only = 8, True
                for square in self.cliques[number - len(of_rank) - n - len(self.levels)]:
                    self.reader.spend(1)
                    orbit = self.orbit(square)
                    of_orbit[orbit[0]] = of_orbit.get(orbit[0], 0) + y * (8 // len(orbit))
            require(y <= 0 or not upper_only, "a multiplier has the wrong sign")
            base += y * bound

        def rest(square):
            r, c = square // n, square % n
            return -(
                of_rank[min(r, n - 1 - r)]
                + of_rank[min(c, n - 1 - c)]
                + of_diagonal[abs(r - c)]
                + of_diagonal[abs(r + c - (n - 1))]
                + of_level[self.level_of[square]]
                + of_orbit.get(self.orbit(square)[0], 0)
            )

        for square in range(n * n):
            orbit = self.orbit(square)
            if orbit[0] == square and self.is_open[square]:
                base += min(0, rest(square)) * (4 if len(orbit) == 8 else 1)
        return base, rest, of_diagonal

    # Search trees

    def search(self, square):
        self.pending = list(range(6 * self.n + len(self.levels)))
        try:
            if square is not None:
                self.place(square)
            self.propagate()
        except Contradiction:
            pass
        else:
            self.tree()
        self.undo(0)

    def undo(self, length):
        while len(self.trail) > length:
            change, of = self.trail.pop()
            if change == "closed":
                self.set_open(of, True)
            elif change == "filled":
                self.mandatory[of] = False
            else:
                self.queens_on_level[self.level_of[of]] -= 1
                for line in self.lines_of[of]:
                    self.queen_on[line] = None

    def close(self, square):
        if self.is_open[square]:
            self.reader.spend(1)
            self.set_open(square, False)
            self.trail.append(("closed", square))
            self.pending += [l for l in self.lines_of[square] if self.open_on_line[l] <= 1]
            self.pending.append(6 * self.n + self.level_of[square])

    def place(self, square):
        n, image = self.n, square
        while True:
            if not self.is_open[image]:
                raise Contradiction
            self.trail.append(("placed", image))
            self.queens_on_level[self.level_of[image]] += 1
            for line in self.lines_of[image]:
                self.queen_on[line] = image
            for line in self.lines_of[image]:
                for other in self.lines[line]:
                    self.close(other)
            image = image % n * n + n - 1 - image // n
            if not self.turning or image == square:
                return

    def propagate(self):
        n = self.n
        while self.pending:
            next_one = self.pending.pop()
            if next_one >= 6 * n:
                self.propagate_level(next_one - 6 * n)
            elif self.mandatory[next_one] and self.queen_on[next_one] is None:
                if self.open_on_line[next_one] == 0:
                    raise Contradiction
                if self.open_on_line[next_one] == 1:
                    self.place(next(q for q in self.lines[next_one] if self.is_open[q]))

    def propagate_level(self, level):
        queens, is_open = self.queens_on_level[level], self.open_on_level[level]
        low, high = self.range[level]
        if queens > high or queens + is_open < low:
            raise Contradiction
        centre = self.n % 2 == 1 and level == len(self.levels) - 1
        together = 4 if self.turning and not centre else 1
        squares = self.levels[level]
        if queens + together > high:
            for square in squares:
                self.close(square)
        elif queens + is_open == low:
            for square in [square for square in squares if self.is_open[square]]:
                if self.queen_on[square // self.n] != square:
                    self.place(square)

    def tree(self):
        n = self.n
        number = self.reader.number(6 * n + 2)
        while number in (2 * n + 1, 6 * n + 2):
            try:
                self.prices(number == 6 * n + 2)
            except Contradiction:
                return
            number = self.reader.number(6 * n + 2)
        require(number != 2 * n, "a tree is not finished")
        line = number if number < 2 * n else number - 2
        good = self.mandatory[line] and self.queen_on[line] is None
        require(good, "a tree branches over a line that needs no queen")
        for square in [square for square in self.lines[line] if self.is_open[square]]:
            before = len(self.trail)
            self.pending = []
            try:
                self.place(square)
                self.propagate()
            except Contradiction:
                pass
            else:
                self.tree()
            self.undo(before)

    def prices(self, may_fill):
        n, levels = self.n, len(self.levels)
        price = [0] * (6 * n + levels)
        for _ in range(self.reader.number(6 * n + levels)):
            number = self.reader.number(6 * n + levels - 1)
            price[number] = self.reader.signed()
        good = all(self.mandatory[line] or price[line] >= 0 for line in range(6 * n))
        require(good, "the price of a diagonal that is not full is negative")
        self.reader.spend(n * n)
        paid = sum(price[line] for line in range(n, 6 * n) if self.open_on_line[line])
        for level, (low, high) in enumerate(self.range):
            queens, of_level = self.queens_on_level[level], price[6 * n + level]
            most = min(max(0, high - queens), self.open_on_level[level])
            paid += of_level * (most if of_level > 0 else max(0, low - queens))
        excess = []
        for row in range(n):
            squares = [square for square in self.lines[row] if self.is_open[square]]
            if squares:
                prices = [self.price(price, square) for square in squares]
                paid -= min(prices)
                cheapest = min(prices)
                excess += [(square, paid_by - cheapest) for square, paid_by in zip(squares, prices)]
        if paid < 0:
            raise Contradiction
        costly = [square for square, more in excess if more > paid]
        lines = range(n, 6 * n) if may_fill else ()
        is_costly = lambda line: self.open_on_line[line] and price[line] > paid
        full = [line for line in lines if not self.mandatory[line] and is_costly(line)]
        require(costly or full, "the prices rule nothing out")
        self.pending = list(full)
        for line in full:
            self.mandatory[line] = True
            self.trail.append(("filled", line))
        for square in costly:
            self.close(square)
        self.propagate()

    def price(self, price, square):
        _, column, diagonal, antidiagonal = self.lines_of[square]
        level = price[6 * self.n + self.level_of[square]]
        return price[column] + price[diagonal] + price[antidiagonal] + level
