"""What both kinds of certificates share: reading numbers, and the definition of a solution."""


class Refused(Exception):
    """A step of the check failed."""


class Undecided(Exception):
    """The check takes more operations than it may."""


def require(condition, why):
    if not condition:
        raise Refused(why)


class Reader:
    """Reads bytes and numbers, and counts the operations of a check."""

    def __init__(self, data, limit):
        self.data, self.place, self.left = data, 0, limit

    def spend(self, operations):
        self.left -= operations
        if self.left < 0:
            raise Undecided

    def byte(self):
        require(self.place < len(self.data), "it ends too early")
        self.place += 1
        return self.data[self.place - 1]

    def number(self, most=(1 << 64) - 1):
        number = 0
        for index in range(10):
            byte = self.byte()
            require(index < 9 or byte <= 1, "a number has more than 64 bits")
            number |= (byte & 127) << 7 * index
            if byte < 128:
                break
        require(number <= most, "a number is too large")
        self.spend(1)
        return number

    def signed(self):
        number = self.number()
        return -(number + 1) // 2 if number & 1 else number // 2

    def flag(self):
        byte = self.byte()
        require(byte <= 1, "a flag is neither 0 nor 1")
        return byte == 1

    def is_at_end(self):
        return self.place == len(self.data)


def attack(n, a, b):
    rows, columns = abs(a // n - b // n), abs(a % n - b % n)
    return rows == 0 or columns == 0 or rows == columns


def check_solution(n, columns):
    squares = [row * n + column for row, column in enumerate(columns)]
    require(all(column < n for column in columns), "a queen is not on the board")
    apart = not any(attack(n, a, b) for i, a in enumerate(squares) for b in squares[:i])
    require(apart, "its queens attack each other")


def sentence(n, subject, symmetric, columns):
    if columns is None:
        return f"proved: there is no {symmetric}solution for n = {n}"
    return f"proved: {subject} for n = {n} is" + "".join(f" {column + 1}" for column in columns)
