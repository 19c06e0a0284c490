"""Counts, estimates and published values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from operator import index
from typing import NamedTuple, SupportsIndex

from . import _native
from ._arguments import Squares, board, number


@dataclass(frozen=True)
class Progress:
    """The progress of a run."""

    #: The fraction of the work that is done, from 0 to 1; None if it is unknown.
    fraction: float | None
    #: The finished units of a count; the rows or cost levels that a proof has decided.
    done: int
    #: The number of units of a count; 0 if it is unknown.
    all: int
    #: The solutions in the finished units of a count.
    solutions: int
    #: The nodes tried so far by a search; 0 for a count.
    nodes: int
    #: The time since the start, in seconds.
    elapsed_s: float
    #: The time left, in seconds; None if it is unknown.
    left_s: float | None


#: A progress callback. It is called at most ten times a second, on the calling thread. What it
#: raises ends the run.
ProgressCallback = Callable[[Progress], object]


def callback(progress: ProgressCallback | None) -> Callable[..., object] | None:
    """Returns the callback for the native part."""
    return None if progress is None else lambda *values: progress(Progress(*values))


def count(
    n: SupportsIndex,
    *,
    place: Squares | None = None,
    block: Squares | None = None,
    piece: str = "queen",
    device: str = "auto",
    threads: SupportsIndex | None = None,
    progress: ProgressCallback | None = None,
) -> int:
    """Counts the solutions of the board of size n, from 0 to 32, or its completions.

    Residues modulo two primes accompany the sum, and the total of an empty board is compared with
    the published value (OEIS A000170 for queens, A000142 for rooks, A051223 for superqueens,
    A007705 for toroidal queens).

    :param place: squares that hold a piece.
    :param block: squares that must stay empty.
    :param piece: ``queen``, ``rook``, ``superqueen`` (queen and knight) or ``toroidal`` (a queen
        on a board whose opposite edges are joined).
    :param device: ``auto`` (the CPU, and all GPUs if the count takes the CPU more than about 3 s),
        ``cpu``, ``gpu``, or ids, separated by commas.
    :param threads: the number of CPU threads, from 1 to 1024; None for one a core.
    :param progress: a function that receives a :class:`Progress`, at most ten times a second and
        once at the end.

    >>> count(8), count(8, place=[(1, 1)], block="2,3 5,5"), count(5, piece="toroidal")
    (92, 4, 10)
    """
    native = board(n, place, block, piece)
    return _native.count(native, device, number(threads), callback(progress))


class Classes(NamedTuple):
    """The number of solutions by their symmetry."""

    #: All solutions (OEIS A000170 for queens).
    total: int
    #: Solutions with images under the 8 symmetries of the square counted once (A002562).
    fundamental: int
    #: Solutions that a half turn leaves unchanged (A032522).
    point_symmetric: int
    #: Solutions that a quarter turn leaves unchanged (A033148).
    rotation_symmetric: int


def classes(
    n: SupportsIndex,
    *,
    piece: str = "queen",
    device: str = "auto",
    threads: SupportsIndex | None = None,
    progress: ProgressCallback | None = None,
) -> Classes:
    """Counts the solutions of the board of size n by their symmetry, for any piece but the rook.

    >>> classes(8)
    Classes(total=92, fundamental=12, point_symmetric=4, rotation_symmetric=0)
    """
    native = board(n, piece=piece)
    return Classes(*_native.classes(native, device, number(threads), callback(progress)))


class Interval(NamedTuple):
    """An estimate."""

    #: The mean.
    value: float
    #: The standard error.
    error: float
    #: The lower bound of the 90 % interval.
    least: float
    #: The upper bound of the 90 % interval.
    most: float


@dataclass(frozen=True)
class Estimate:
    """An estimate of a count."""

    #: The size of the board.
    n: int
    #: The solutions; None above n = 32, where they may exceed every float.
    solutions: Interval | None
    #: The decimal logarithm of the solutions, above n = 32.
    log10_solutions: Interval | None
    #: The constant γ of (n exp(−γ))ⁿ solutions, above n = 32. Its limit is 1.94400 (Simkin,
    #: arXiv 2107.13460; Nobel, Agrawal and Boyd, arXiv 2112.03336).
    gamma: Interval | None
    #: The nodes of the search tree after symmetry reduction and without look-ahead, up to n = 32.
    nodes: Interval | None
    #: The time of the count on this machine in seconds, for queens up to n = 32: the estimate, and
    #: the bounds of its 90 % interval. None if nothing could be sampled.
    count_s: tuple[float, float, float] | None
    #: The number of random dives or, above n = 32, of annealing runs.
    samples: int


def estimate(
    n: SupportsIndex,
    *,
    place: Squares | None = None,
    block: Squares | None = None,
    piece: str = "queen",
    threads: SupportsIndex | None = None,
    seconds: float = 2.0,
    seed: int = 1,
) -> Estimate:
    """Estimates the solutions of the board of size n, from 0 to 1000, without counting them.

    Up to n = 32 by random dives into the search tree (Knuth, "Estimating the efficiency of
    backtrack programs", 1975) for ``seconds``, and the time of the count from subproblems that are
    counted for ``seconds``. Above, for the empty board of queens only, by annealed importance
    sampling (Neal, "Annealed importance sampling", 2001) for ``seconds``.

    After Ctrl-C its threads end by themselves within about twice that time.

    >>> found = estimate(10, seconds=0.1)
    >>> found.solutions is not None and 500 < found.solutions.value < 1000
    True
    """
    native = board(n, place, block, piece)
    dives, annealing = _native.estimate(native, number(threads), float(seconds), index(seed))
    size = index(n)
    if annealing is not None:
        logarithm, gamma, runs, _ = annealing
        decimal = Interval(*(value / log(10) for value in logarithm))
        return Estimate(size, None, decimal, Interval(*gamma), None, None, runs)
    assert dives is not None, "an estimate is by dives or by annealing"
    solutions, nodes, samples, count_s = dives
    return Estimate(size, Interval(*solutions), None, None, Interval(*nodes), count_s, samples)


def known(n: SupportsIndex, sequence: str = "A000170") -> int | None:
    """Returns the published value of a sequence at n, or None if no value is known here.

    :param sequence: an OEIS number (A000170, A002562, A032522, A033148, A007705, A051223, A051224,
        A374013, A000142) or a piece, which means the totals of that piece.

    The value for n = 27 queens is the record of Preußer and Engelhardt, "Putting Queens in Carry
    Chains, No. 27" (2017).

    >>> known(27), known(8, "A002562"), known(28)
    (234907967154122528, 12, None)
    """
    return _native.known(sequence, str(index(n)))
