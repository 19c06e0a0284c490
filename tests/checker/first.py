"""Certificates of first solutions (docs/certificates.md, "First solutions")."""

from operator import add

from reading import attack, check_solution, require, sentence

NONE = -(1 << 80)  # The weight of a set that does not exist; no sum comes near to it.


def first(n, reader):
    work = Work(reader.number())
    columns = [reader.number(128) for _ in range(n)] if reader.flag() else None
    if columns is None:
        require(n > 0, "the board without squares has a solution")
        FirstChecker(n, reader, work, []).refute_prefix()
    else:
        check_solution(n, columns)
        for row in range(n):
            for column in range(columns[row]):
                here = row * n + column
                if not any(attack(n, here, r * n + c) for r, c in enumerate(columns[:row])):
                    FirstChecker(n, reader, work, columns[:row] + [column]).refute_prefix()
    require(reader.is_at_end(), "bytes follow the end of the proof")
    return sentence(n, "the lexicographically first solution", "", columns)


class Work:
    def __init__(self, stated):
        self.left = stated

    def add(self, work):
        self.left -= work
        require(self.left >= 0, "it takes more work than it states")


class DualBound:
    """A dual bound: reduced costs, weights, the slack and the two credits."""

    def __init__(self, costs, squares, weights, directions, slack, credits):
        self.costs, self.weights = costs, weights
        self.squares = sorted(squares, key=lambda square: (-costs[square], square))
        self.lines = [
            sorted((l for l in direction if weights[l] > 0), key=lambda l: (-weights[l], l))
            for direction in directions
        ]
        self.slack, self.credits = slack, credits
        # How many squares, diagonals and antidiagonals were found to exceed the slack.
        self.costly, self.required = 0, [0, 0]

    def lose(self, line, direction):
        self.credits[direction] -= self.weights[line]
        if self.credits[direction] < 0:
            self.slack += self.credits[direction]
            self.credits[direction] = 0

    def requires(self, line, direction):
        return self.weights[line] > self.slack + self.credits[direction]

    def state(self):
        return (self.slack, tuple(self.credits), self.costly, tuple(self.required))

    def restore(self, state):
        self.slack, self.costly = state[0], state[2]
        self.credits, self.required = list(state[1]), list(state[3])


class Position:
    def __init__(self, n, prefix, reader):
        self.n, self.reader = n, reader
        reader.spend(10 * n * n + 100)
        self.directions = [range(2 * n, 4 * n - 1), range(4 * n - 1, 6 * n - 2)]
        self.lines_of = [
            (q // n, n + q % n, 3 * n - 1 + q % n - q // n, 4 * n - 1 + q // n + q % n)
            for q in range(n * n)
        ]
        self.taken = [False] * (6 * n - 2)
        for row, column in enumerate(prefix):
            for line in self.lines_of[row * n + column]:
                self.taken[line] = True
        self.candidate = [not any(self.taken[l] for l in lines) for lines in self.lines_of]
        self.squares_on = [[] for _ in self.taken]
        for square in self.candidates():
            for line in self.lines_of[square]:
                self.squares_on[line].append(square)
        self.count = [len(squares) for squares in self.squares_on]
        self.weights, self.failures = [1] * (2 * n), [0, 0]
        self.bounds, self.trail, self.sets = [], [], None
        open_lines = [line for line in range(2 * n) if not self.taken[line]]
        self.refuted = any(self.count[line] == 0 for line in open_lines)
        self.units = [line for line in open_lines if self.count[line] == 1]

    def candidates(self):
        return [square for square, is_candidate in enumerate(self.candidate) if is_candidate]

    def candidates_on(self, line):
        return [square for square in self.squares_on[line] if self.candidate[square]]

    def direction(self, line):
        return int(line >= 4 * self.n - 1)

    def is_possible(self, line):
        return not self.taken[line] and self.count[line] > 0

    def is_mandatory(self, line):
        direction = self.direction(line)
        required = lambda: any(bound.requires(line, direction) for bound in self.bounds)
        return self.is_possible(line) and (line < 2 * self.n or required())

    def mark(self):
        states = [bound.state() for bound in self.bounds]
        return len(self.trail), list(self.bounds), states, self.sets

    def restore(self, mark):
        length, self.bounds, states, self.sets = mark[0], list(mark[1]), mark[2], mark[3]
        while len(self.trail) > length:
            square, is_queen = self.trail.pop()
            for line in self.lines_of[square]:
                if is_queen:
                    self.taken[line] = False
                else:
                    self.count[line] += 1
            if not is_queen:
                self.candidate[square] = True
        for bound, state in zip(self.bounds, states):
            bound.restore(state)
        self.units, self.refuted = [], False

    def place(self, square):
        for bound in self.bounds:
            bound.slack -= bound.costs[square]
        self.trail.append((square, True))
        for line in self.lines_of[square]:
            self.taken[line] = True
        for line in self.lines_of[square]:
            for other in self.squares_on[line]:
                if self.candidate[other]:
                    self.remove(other)

    def remove(self, square):
        self.reader.spend(1)
        self.candidate[square] = False
        self.trail.append((square, False))
        for line in self.lines_of[square]:
            self.count[line] -= 1
        for line in self.lines_of[square]:
            if self.taken[line] or self.count[line] > 1:
                continue
            if self.count[line] == 1:
                self.units.append(line)
            elif line < 2 * self.n:
                self.refuted = True
                self.fail(line)
            else:
                for bound in self.bounds:
                    bound.lose(line, self.direction(line))

    def fail(self, line):
        n, kind = self.n, line // self.n
        self.weights[line] += 1
        self.failures[kind] += 1
        if self.failures[kind] == 20_000:
            self.failures[kind] = 0
            for other in range(kind * n, kind * n + n):
                self.weights[other] = (self.weights[other] + 1) // 2

    def propagate(self):
        """Returns whether the position is refuted."""
        while True:
            while self.use_slack():
                pass
            if self.refuted or not self.units:
                return self.refuted
            line = self.units.pop()
            if self.count[line] == 1 and self.is_mandatory(line):
                self.place(self.candidates_on(line)[0])

    def use_slack(self):
        """Returns whether a candidate was removed."""
        removed = False
        for bound in self.bounds:
            if bound.slack < 0:
                self.refuted = True
            while bound.costly < len(bound.squares):
                square = bound.squares[bound.costly]
                if bound.costs[square] <= bound.slack:
                    break
                if self.refuted:
                    return False
                bound.costly += 1
                if self.candidate[square]:
                    self.remove(square)
                    removed = True
            for direction, lines in enumerate(bound.lines):
                while bound.required[direction] < len(lines):
                    line = lines[bound.required[direction]]
                    if not bound.requires(line, direction):
                        break
                    bound.required[direction] += 1
                    if self.count[line] == 1:
                        self.units.append(line)
        return removed

    def required_diagonals(self):
        for bound in self.bounds:
            for direction, lines in enumerate(bound.lines):
                yield from (line for line in lines if bound.requires(line, direction))

    def complete(self, multipliers):
        """Completes multipliers: those of the rows, and lower ones of the columns."""
        self.reader.spend(2 * self.n * self.n)
        y = [0] * self.n + multipliers
        for line in range(2 * self.n):
            if self.taken[line]:
                y[line] = 0
            else:
                y[line] -= min(self.cost(y, square) for square in self.candidates_on(line))
        return y

    def cost(self, y, square):
        row, column, diagonal, antidiagonal = self.lines_of[square]
        return y[row] + y[column] + y[diagonal] + y[antidiagonal]

    def items(self):
        """Returns for both directions the items, their places, their number k and the sum."""
        n = self.n
        rows = [row for row in range(n) if not self.taken[row]]
        columns = [column for column in range(n) if not self.taken[n + column]]
        for direction, lines in enumerate(self.directions):
            items = [line for line in lines if self.is_possible(line)]
            places = [self.place_of(line) for line in items]
            total = sum(columns) + (sum(rows) if direction else -sum(rows))
            yield items, places, len(rows), total

    def place_of(self, line):
        return line - (4 * self.n - 1 if self.direction(line) else 3 * self.n - 1)

    def knapsacks(self, y, with_items):
        """Returns for both directions "none", "large", or H and the H(i) by line."""
        if self.sets:
            return [heaviest(sets, self.open_weights(y)) for sets in self.possible_sets()]
        results = []
        for items, places, k, total in self.items():
            weights = [y[line] for line in items]
            found = knapsack(places, weights, k, total, with_items, self.reader)
            if not isinstance(found, str):
                found = found[0], dict(zip(items, found[1]))
            results.append(found)
        return results

    def open_weights(self, y):
        return [y[l] if l >= 2 * self.n and self.is_possible(l) else 0 for l in range(len(y))]

    def list_sets(self):
        """Lists the sets of diagonals. Returns whether the position is refuted."""
        inputs = list(self.items())
        self.reader.spend(sum(len(items) for items, _, _, _ in inputs))
        tables = [SetTables(places, k, total, self.reader) for _, places, k, total in inputs]
        if any(table.least is None and not table.is_large for table in tables):
            return True
        require(not any(table.is_large for table in tables), "a list of sets is too long")
        lines = [line for line in range(2 * self.n) if not self.taken[line]]
        total = 2 * sum((line % self.n) ** 2 for line in lines)
        found = []
        for (items, _, _, _), table, other in zip(inputs, tables, reversed(tables)):
            listed = table.sets(total - other.least)
            found.append({frozenset(items[i] for i in own): squares for own, squares in listed})
        self.sets = Sets(found, total, list(self.taken))
        return self.keep_to_sets()

    def possible_sets(self):
        sets, found = self.sets, []
        for lines, listed in zip(self.directions, self.sets.found):
            self.reader.spend(len(listed) + len(lines))
            since = {line for line in lines if self.taken[line] and not sets.taken[line]}
            usable = {line for line in lines if self.is_possible(line)} | since
            found.append({own: listed[own] for own in listed if since <= own <= usable})
        squares = [set(own.values()) for own in found]
        pairs = zip(found, reversed(squares))
        return [[s for s in own if sets.squares - own[s] in others] for own, others in pairs]

    def keep_to_sets(self):
        """Returns whether the position is refuted."""
        while not self.refuted:
            possible = self.possible_sets()
            if not all(possible):
                return True
            used = set().union(*possible[0], *possible[1])
            unused = [q for q in self.candidates() if not used.issuperset(self.lines_of[q][2:])]
            if not unused:
                break
            for square in unused:
                self.remove(square)
            self.propagate()
        return self.refuted

    def keep_case(self, line, contains):
        """Keeps to the listed sets that contain a line, or to those that do not. Returns whether
        the position is refuted."""
        direction, sets = self.direction(line), self.sets
        found, own = list(sets.found), sets.found[direction]
        self.reader.spend(len(own))
        found[direction] = {s: own[s] for s in own if (line in s) == contains}
        self.sets = Sets(found, sets.squares, sets.taken)
        return self.keep_to_sets()

    def add_bound(self, multipliers, with_knapsacks):
        y = self.complete(multipliers)
        n = self.n
        costs = [self.cost(y, square) for square in range(n * n)]
        weights = self.open_weights(y)
        total = [sum(weights[line] for line in lines) for lines in self.directions]
        on_lines = sum(y[: 2 * n])
        slack, credits = on_lines + sum(total), [0, 0]
        results = self.knapsacks(y, True) if with_knapsacks else ["large"]
        if "none" in results:
            self.refuted = True
        elif "large" not in results:
            (falling, with_falling), (rising, with_rising) = results
            costly = []
            for square in self.candidates():
                lines = self.lines_of[square]
                with_lines = with_falling.get(lines[2], NONE) + with_rising.get(lines[3], NONE)
                best = on_lines + with_lines
                if best < costs[square]:  # This includes lines that are in no set.
                    costly.append(square)
            slack = on_lines + falling + rising
            credits = [total[0] - falling, total[1] - rising]
            for square in costly:
                self.remove(square)
        bound = DualBound(costs, self.candidates(), weights, self.directions, slack, credits)
        for direction, lines in enumerate(self.directions):
            for line in lines:
                if not self.taken[line] and self.count[line] == 0:
                    bound.lose(line, direction)
        if len(self.bounds) == 3:
            del self.bounds[1]
        self.bounds.append(bound)

    def is_refuted_by(self, multipliers):
        y = self.complete(multipliers)
        results = self.knapsacks(y, False)
        if "none" in results:
            return True
        return "large" not in results and sum(y[: 2 * self.n]) + sum(r[0] for r in results) < 0


class Sets:
    """For both directions the listed sets with their sums of squares; the sum Q; and the lines that
    were taken at that time."""

    def __init__(self, found, squares, taken):
        self.found, self.squares, self.taken = found, squares, taken


class SetTables:
    """Lists all sets of k items whose places add up to the total."""

    def __init__(self, places, k, total, reader):
        """Finds the least sum of squares of a set, for any that begins with some of the items."""
        self.places, self.reader, self.least = places, reader, None
        framed = frame(places, k, total)
        self.is_large = framed == "large"
        if isinstance(framed, str):
            return
        self.order, self.moves, self.frames, entries = framed
        reader.spend(entries // 8)
        self.tables = [{k: [0]}]
        for i in reversed(range(len(places))):
            to, weight = self.frames[i], -places[self.order[i]] ** 2
            behind = self.tables[-1]
            table = moved(behind, self.frames[i + 1], to, -1, -self.moves[i], weight)
            merge(table, moved(behind, self.frames[i + 1], to, 0, 0, 0))
            self.tables.append(table)
        self.tables.reverse()
        least = self.least_behind(0, 0, 0)
        self.least = least if least < -NONE // 2 else None

    def least_behind(self, i, count, total):
        """Returns the least sum of squares of items from i that complete a set."""
        low, high = self.frames[i][2:]
        if count not in self.tables[i] or not low <= total <= high:
            return -NONE
        return -self.tables[i][count][total - low]

    def sets(self, limit):
        """Returns the sets whose squares add up to at most the limit, with these sums."""
        found, stack = [], [(0, 0, 0, 0, ())]
        while stack:
            i, count, total, squares, chosen = stack.pop()
            self.reader.spend(1)
            if squares + self.least_behind(i, count, total) > limit:
                continue
            if i == len(self.places):
                found.append((chosen, squares))
                require(len(found) <= 1 << 14, "a list of sets is too long")
                continue
            item = self.order[i]
            more = squares + self.places[item] ** 2
            stack.append((i + 1, count, total, squares, chosen))
            stack.append((i + 1, count + 1, total + self.moves[i], more, (*chosen, item)))
        return found


def heaviest(sets, weights):
    """Returns the greatest weight of a set, and for each line the greatest weight with it."""
    if not sets:
        return "none"
    most, best = NONE, {}
    for a_set in sets:
        weight = sum(weights[line] for line in a_set)
        most = max(most, weight)
        for line in a_set:
            best[line] = max(best.get(line, NONE), weight)
    return most, best


def frame(places, k, total):
    """Returns the order of the items, their new places, the bounds of the tables of a knapsack and
    the number of their entries; "none" if there is no set; "large" if they have too many."""
    size = len(places)
    if k > size:
        return "none"
    mean = total // k if k else 0
    order = sorted(range(size), key=lambda i: (abs(places[i] - mean), places[i]))
    places = [places[i] - mean for i in order]
    total -= k * mean
    frames = []
    for i in range(size + 1):
        before, behind = places[:i], places[i:]
        low = max(sum(p for p in before if p < 0), total - sum(p for p in behind if p > 0))
        high = min(sum(p for p in before if p > 0), total - sum(p for p in behind if p < 0))
        frames.append((max(0, k - (size - i)), min(k, i), low, high))
    if any(low > high for _, _, low, high in frames):
        return "none"
    entries = sum((high - low + 1) * (most - least + 1) for least, most, low, high in frames)
    return (order, places, frames, entries) if entries <= 1 << 25 else "large"


def knapsack(places, weights, k, total, with_items, reader):
    """Returns the greatest weight of k items whose places add up to the total, and for each item
    the greatest weight with it; "none" if there is no such set; "large" if there is no table."""
    framed = frame(places, k, total)
    if isinstance(framed, str):
        return framed
    order, places, frames, entries = framed
    size, weights = len(places), [weights[i] for i in order]
    reader.spend(entries // 8)
    tables = [{0: [0]}]
    for i in range(size):
        table = moved(tables[i], frames[i], frames[i + 1], 0, 0, 0)
        merge(table, moved(tables[i], frames[i], frames[i + 1], 1, places[i], weights[i]))
        tables.append(table)
    if tables[size].get(k, [NONE])[0] < 0:
        return "none"
    best = [NONE] * size
    behind = {k: [0]}
    for i in reversed(range(size if with_items else 0)):
        taken = moved(behind, frames[i + 1], frames[i], -1, -places[i], weights[i])
        for count, row in taken.items():
            if count in tables[i]:
                best[order[i]] = max(best[order[i]], max(map(add, row, tables[i][count])))
        behind = moved(behind, frames[i + 1], frames[i], 0, 0, 0)
        merge(behind, taken)
    return tables[size][k][0], best


def moved(table, frame, to, count, place, weight):
    """Returns the part of a table within the frame `to` after counts, sums and weights grow."""
    low, high = max(to[2], frame[2] + place), min(to[3], frame[3] + place)
    if low > high:
        return {}
    head, tail = [NONE] * (low - to[2]), [NONE] * (to[3] - high)
    rows = {}
    for old, row in table.items():
        if to[0] <= old + count <= to[1]:
            part = row[low - place - frame[2] : high - place - frame[2] + 1]
            rows[old + count] = head + [value + weight for value in part] + tail
    return rows


def merge(table, other):
    for count, row in other.items():
        table[count] = list(map(max, table[count], row)) if count in table else row


class FirstChecker:
    """Checks the tree of one prefix."""

    def __init__(self, n, reader, work, prefix):
        self.n, self.reader, self.work, self.branchings = n, reader, work, 0
        self.position = Position(n, prefix, reader)

    def refute_prefix(self):
        self.tree(self.position.propagate(), 0)

    def multipliers(self):
        n, values = self.n, []
        while len(values) < 5 * n - 2:
            value = self.reader.signed() if len(values) < n else self.reader.number()
            require(abs(value) < 1 << 40, "a multiplier is too large")
            values.append(value)
            if value == 0:
                values += [0] * self.reader.number(5 * n - 2 - len(values))
        self.reader.spend(5 * n)
        return values

    def blocks(self):
        number, n = self.reader.number, self.n
        return [{number(n - 1) for _ in range(number(n))} for _ in range(number(n))]

    def node(self):
        """Reads the next node: its byte and its content."""
        tag, number, n = self.reader.byte(), self.reader.number, self.n
        require(tag <= 11, "it has an unknown step")
        if tag in (1, 2):
            return tag, self.multipliers()
        if tag == 3:
            return tag, (number(), number(n))
        if tag == 4:
            multipliers = self.multipliers()
            return tag, (multipliers, [number(n * n - 1) for _ in range(number(n * n))])
        if tag >= 10:
            return tag, (number(), 2) if tag == 11 else None
        weights = [number((1 << 32) - 1) for _ in range(2 * n)] if tag >= 8 else None
        return tag, (self.blocks() if tag >= 6 else [], weights)

    def tree(self, refuted, depth):
        """Reads a tree. Unless the position is refuted already, the tree must refute it."""
        marks = []
        while True:
            require(depth <= 1000, "a tree is too deep")
            tag, content = self.node()
            if tag in (3, 11) and refuted:
                self.skip_children(tag, content[1], depth, 1)
            elif tag in (3, 11):
                self.branchings += 1
                require(self.branchings <= 384, "a tree is too deep")
                if tag == 3:
                    self.branch(content[0], content[1], depth)
                else:
                    self.distinguish(content[0], depth)
                self.branchings -= 1
            elif tag in (1, 2, 4, 10):
                if not refuted:
                    marks.append(self.position.mark())
                    refuted = self.change(tag, content)
                depth += 1
                continue
            elif not refuted:
                blocks, weights = content
                if tag >= 8:
                    self.position.weights = [max(1, weight) for weight in weights]
                self.search(tag, blocks, set())
            break
        if marks:
            self.position.restore(marks[0])

    def skip_children(self, tag, children, outermost, nested):
        """Skips the children of a branching or case distinction that is skipped."""
        for _ in range(children):
            if tag == 3:
                self.reader.number()
            depth = outermost + nested
            while True:
                require(depth <= 1000, "a tree is too deep")
                inner, content = self.node()
                if inner not in (1, 2, 4, 10):
                    break
                depth += 1
            if inner in (3, 11):
                self.skip_children(inner, content[1], outermost, nested + 1)

    def change(self, tag, content):
        """Makes the change of a step. Returns whether the position is refuted."""
        if tag == 10:
            require(self.position.sets is None, "it lists the sets of diagonals twice")
            self.work.add(500)
            return self.position.list_sets()
        return self.eliminate(*content) if tag == 4 else self.bound(tag, content)

    def distinguish(self, line, depth):
        position, n = self.position, self.n
        require(2 * n <= line < 6 * n - 2, "it distinguishes cases of no diagonal")
        require(position.sets, "it distinguishes cases without a list of sets")
        for contains in (False, True):
            self.work.add(500)
            mark = position.mark()
            self.tree(position.keep_case(line, contains), depth + 1)
            position.restore(mark)

    def bound(self, tag, multipliers):
        self.work.add(500)
        position = self.position
        position.add_bound(multipliers, tag == 2)
        refuted = position.propagate()
        return position.keep_to_sets() if position.sets and not refuted else refuted

    def place(self, square):
        """Returns whether the position with a queen there is refuted."""
        self.work.add(1)
        self.position.place(square)
        return self.position.propagate()

    def eliminate(self, multipliers, squares):
        position, refuted = self.position, False
        for square in squares:
            if refuted or not position.candidate[square]:
                continue
            mark = position.mark()
            if not self.place(square):
                self.work.add(500)
                good = position.is_refuted_by(multipliers)
                require(good, "an eliminated square may have a queen")
            position.restore(mark)
            position.remove(square)
            refuted = position.propagate()
        return refuted

    def branch(self, line, children, depth):
        position = self.position
        require(line < 6 * self.n - 2, "it branches over no line")
        if position.taken[line]:
            queens = [square for square, is_queen in position.trail if is_queen]
            queens = [square for square in queens if line in position.lines_of[square]]
            require(queens, "it branches over a line of the prefix")
            listed = False
            for _ in range(children):
                is_here = self.reader.number() == queens[0]
                self.tree(not is_here, depth + 1)
                listed = listed or is_here
            require(listed, "it branches over a line and omits the queen on it")
            return
        require(position.is_mandatory(line), "it branches over a line that need not be used")
        left = position.candidates_on(line)
        for _ in range(children):
            square = self.reader.number()
            if square not in left:
                self.tree(True, depth + 1)
                continue
            left[left.index(square)] = left[-1]
            left.pop()
            mark = position.mark()
            self.tree(self.place(square), depth + 1)
            position.restore(mark)
        for square in left:
            mark = position.mark()
            require(self.place(square), "it branches over a line and omits one of its squares")
            position.restore(mark)

    def search(self, tag, blocks, refuted):
        position = self.position
        line = self.smallest_line() if tag == 0 else self.weighted_line(blocks, tag >= 7)
        require(line is not None, "there is a completion")
        complete = self.complete_blocks(blocks)
        for square in position.candidates_on(line):
            mark = position.mark()
            if not self.place(square):
                remembers = tag == 9 and self.complete_blocks(blocks) > complete
                remembers = remembers and not position.sets
                lines = frozenset(self.open_lines()) if remembers else None
                if lines is None or lines not in refuted:
                    self.search(tag, blocks, refuted)
                    if lines is not None and len(refuted) < 1 << 18:
                        refuted.add(lines)
            position.restore(mark)

    def complete_blocks(self, blocks):
        return sum(all(self.position.taken[row] for row in block) for block in blocks)

    def open_lines(self):
        return filter(self.position.is_possible, range(6 * self.n - 2))

    def smallest_line(self):
        position = self.position
        lines = [*range(2 * self.n), *position.required_diagonals()]
        lines = filter(position.is_possible, lines)
        return min(lines, key=lambda line: position.count[line], default=None)

    def weighted_line(self, blocks, with_columns):
        position, n = self.position, self.n
        count, possible = position.count, position.is_possible
        for line in [*range(n, 2 * n), *position.required_diagonals()]:
            if possible(line) and count[line] <= 2:
                return line
        is_open = lambda block: any(not position.taken[row] for row in block)
        block = next(filter(is_open, blocks), range(n))
        lines = sorted(block)
        if with_columns:
            within = lambda column: all(q // n in block for q in position.candidates_on(column))
            lines += [column for column in range(n, 2 * n) if within(column)]
        best = None
        for line in filter(possible, lines):
            weights = position.weights
            if best is None or count[line] * weights[best] < count[best] * weights[line]:
                best = line
        return best
