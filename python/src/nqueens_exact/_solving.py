"""One solution, and all solutions."""

from __future__ import annotations

from collections.abc import Iterator
from operator import index
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from . import _native
from ._arguments import Squares, board
from ._placement import Placement

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

#: Solutions that the iterator asks for at a time.
_CHUNK = 4096

#: The formats of columns by their bytes.
_FORMATS: dict[int, Literal["B", "H", "I"]] = {1: "B", 2: "H", 4: "I"}


def solve(
    n: SupportsIndex,
    *,
    place: Squares | None = None,
    block: Squares | None = None,
    piece: str = "queen",
    method: str | None = None,
    seed: int | None = None,
    time_limit_s: float | None = None,
) -> Placement:
    """Finds one solution of the board of size n, from 0 to 10 000 000, or one completion.

    :param method: ``formula`` (the closed form of Pauls, 1874; empty boards), ``backtracking``
        (the lexicographically first solution), ``local-search`` (min-conflicts; Sosic and Gu,
        1990) or ``cp`` (constraint programming). None tries the formula; or backtracking or local
        search for less than a second, and then cp until the board is decided.
    :param seed: the seed of the random numbers of ``local-search``; None for 1.
    :param time_limit_s: the time limit in seconds.
    :raises NoSolutionError: it is proved that there is no solution.
    :raises UnprovenError: the method gave up, or the time limit was reached.

    >>> print(solve(8, method="backtracking"))
    1 5 8 6 3 7 2 4
    >>> solve(3)
    Traceback (most recent call last):
        ...
    nqueens_exact._errors.NoSolutionError: no solution exists
    """
    native = board(n, place, block, piece)
    limit = None if time_limit_s is None else float(time_limit_s)
    return Placement._checked(_native.solve(native, method, seed, limit), piece)


class Solutions(Iterator[Placement]):
    """The solutions of a board, found while they are read.

    It is an iterator of :class:`Placement`. :meth:`arrays` and :meth:`array` give them as NumPy
    arrays instead, without an object for each. A thread runs a few thousand solutions ahead; it
    ends when the iterator is closed or deleted.
    """

    def __init__(
        self, stream: _native.SolutionStream, n: int, piece: str
    ) -> None:
        self._stream = stream
        self._n = n
        self._piece = piece
        self._chunk: Iterator[Placement] = iter(())

    def __iter__(self) -> Solutions:
        return self

    def __next__(self) -> Placement:
        for placement in self._chunk:
            return placement
        chunk = self._stream.read(_CHUNK, False)
        if not chunk:
            raise StopIteration
        self._chunk = self._placements(chunk)
        return next(self._chunk)

    def _placements(self, chunk: bytearray) -> Iterator[Placement]:
        numbers = memoryview(chunk).cast(_FORMATS[self._stream.item_bytes])
        n, piece = self._n, self._piece
        # The board of size 0 has one solution, which takes one byte.
        for start in range(0, len(numbers), max(n, 1)):
            yield Placement._checked(numbers[start : start + n].tolist(), piece)

    def arrays(self, size: int = 65536) -> Iterator[NDArray[numpy.unsignedinteger[Any]]]:
        """Returns the solutions that are left as NumPy arrays.

        Each array has ``size`` rows, the last one fewer: a row for each solution, with the column
        of the piece in each row of the board, counted from 1. The type is uint8 up to n = 255, and
        then uint16 or uint32.

        >>> for array in solutions(8).arrays(size=50):
        ...     print(array.shape, array.dtype)
        (50, 8) uint8
        (42, 8) uint8
        """
        if index(size) < 1:
            from ._errors import UsageError

            raise UsageError(f"invalid size '{size}'; use a whole number of at least 1")
        while len(array := self._array(index(size))) > 0:
            yield array

    def array(self) -> NDArray[numpy.unsignedinteger[Any]]:
        """Returns all solutions that are left as one NumPy array; see :meth:`arrays`."""
        return self._array((1 << 63) - 1)

    def _array(self, size: int) -> NDArray[numpy.unsignedinteger[Any]]:
        import numpy

        # What the iterator has read from the stream already comes first.
        before = list(self._chunk)
        taken, self._chunk = before[:size], iter(before[size:])
        dtype = numpy.dtype(f"u{self._stream.item_bytes}")
        rest = self._stream.read(size - len(taken), True)
        rows = len(rest) // max(self._n * dtype.itemsize, 1)
        array = numpy.frombuffer(rest, dtype, count=rows * self._n).reshape(rows, self._n)
        if not taken:
            return array
        first = numpy.array([placement.columns for placement in taken], dtype)
        return numpy.concatenate([first.reshape(len(taken), self._n), array])

    def close(self) -> None:
        """Ends the search."""
        self._chunk = iter(())
        self._stream.close()

    def __enter__(self) -> Solutions:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def solutions(
    n: SupportsIndex,
    *,
    place: Squares | None = None,
    block: Squares | None = None,
    piece: str = "queen",
    method: str = "backtracking",
    fundamental: bool = False,
    limit: SupportsIndex | None = None,
) -> Solutions:
    """Returns an iterator of all solutions of a board, or of all its completions.

    :param method: ``backtracking`` (lexicographic order), ``cp`` (also in this order; for boards
        with many blocked squares), ``columns`` or ``brute-force``.
    :param fundamental: only one solution of each symmetry class, the lexicographically smallest
        (OEIS A002562 of them on the empty board).
    :param limit: at most so many solutions.

    >>> for solution in solutions(6):
    ...     print(solution)
    2 4 6 1 3 5
    3 6 2 5 1 4
    4 1 5 2 6 3
    5 3 1 6 4 2
    >>> solutions(10).array().shape
    (724, 10)
    """
    if limit is not None and index(limit) < 1:
        from ._errors import UsageError

        raise UsageError(f"invalid limit '{index(limit)}'; use a whole number of at least 1")
    most = None if limit is None else min(index(limit), (1 << 63) - 1)
    stream = _native.SolutionStream(
        board(n, place, block, piece), method, bool(fundamental), most
    )
    return Solutions(stream, index(n), piece)
