"""First and most beautiful solutions with proofs, and the check of proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import index
from os import PathLike, fspath
from typing import SupportsIndex

from . import _native
from ._arguments import Squares, board, number
from ._counting import ProgressCallback, callback
from ._errors import FileError, NQueensError
from ._placement import Placement

#: The maximum number of steps of a check, each at most a microsecond.
MOST_WORK = 500_000_000


@dataclass(frozen=True)
class Proof:
    """A solution that is proved to be the first or a most beautiful one."""

    #: The size of the board.
    n: int
    #: The solution; None if it is proved that there is none.
    solution: Placement | None
    #: The certificate, which was checked; :func:`check` and ``nqueens check`` check it again. None
    #: if squares were decided.
    certificate: bytes | None = field(repr=False)
    #: The nodes of all searches.
    nodes: int
    #: The linear programs that were solved.
    programs: int
    #: The wall-clock time in seconds.
    elapsed_s: float

    def _repr_svg_(self) -> str | None:
        return None if self.solution is None else self.solution.svg()


def _placement(columns: Sequence[int] | None) -> Placement | None:
    return None if columns is None else Placement._checked(columns, "queen")


def _proof(
    n: int, proved: tuple[list[int] | None, bytes | None, int, int, float]
) -> Proof:
    columns, certificate, nodes, programs, elapsed_s = proved
    return Proof(n, _placement(columns), certificate, nodes, programs, elapsed_s)


def first(
    n: SupportsIndex,
    *,
    place: Squares | None = None,
    block: Squares | None = None,
    threads: SupportsIndex | None = None,
    time_limit_s: float | None = None,
    progress: ProgressCallback | None = None,
) -> Proof:
    """Finds the lexicographically first solution for n queens, from 0 to 128, and proves it.

    These are the rows of OEIS A141843. The method is exact: linear programs (Fischetti and
    Salvagnin, arXiv 1907.08246) only propose multipliers, and the proof is in integers.

    :param time_limit_s: the time limit in seconds, with the check of the certificate.
    :raises UnprovenError: the time limit was reached; ``best`` is the first solution found so far.

    >>> proof = first(10)
    >>> print(proof.solution)
    1 3 6 8 10 5 9 2 4 7
    >>> check(proof.certificate).text
    'proved: the lexicographically first solution for n = 10 is 1 3 6 8 10 5 9 2 4 7'
    """
    native = board(n, place, block)
    limit = None if time_limit_s is None else float(time_limit_s)
    return _proof(index(n), _native.first(native, number(threads), limit, callback(progress)))


def beautiful(
    n: SupportsIndex,
    *,
    norm: str = "euclidean",
    symmetric: bool = False,
    threads: SupportsIndex | None = None,
    time_limit_s: float | None = None,
    progress: ProgressCallback | None = None,
) -> Proof:
    """Finds a most beautiful solution for n queens, from 0 to 250, and proves that it is one.

    Its queens keep away from the corners: the costs of their squares, sorted from the largest, are
    lexicographically smallest (:func:`fingerprint` says what a square costs; the problem is
    Knuth's, see Fischetti and Salvagnin, arXiv 1907.08246).

    :param norm: ``euclidean``, ``manhattan`` or ``chebyshev``.
    :param symmetric: only doubly symmetric solutions, which quarter turns do not change.
    :param time_limit_s: the time limit in seconds, with the check of the certificate.
    :raises UnprovenError: the time limit was reached; ``best`` is the best solution found so far.

    >>> beautiful(8).solution.fingerprint().costs
    (58, 58, 50, 50, 34, 34, 26, 26)
    """
    limit = None if time_limit_s is None else float(time_limit_s)
    proved = _native.beautiful(
        board(n), norm, bool(symmetric), number(threads), limit, callback(progress)
    )
    return _proof(index(n), proved)


@dataclass(frozen=True)
class Statement:
    """What a certificate proves."""

    #: ``first`` or ``beautiful``.
    kind: str
    #: The size of the board.
    n: int
    #: The solution; None if it is proved that there is none.
    solution: Placement | None
    #: The norm of a most beautiful solution; None for a first solution.
    norm: str | None
    #: Whether only doubly symmetric solutions were considered; None for a first solution.
    symmetric: bool | None
    #: The steps of the check, each at most a microsecond.
    work: int
    #: The statement as a sentence.
    text: str


def check(
    certificate: bytes | bytearray | memoryview | str | PathLike[str] | None,
    *,
    max_work: int | None = MOST_WORK,
) -> Statement:
    """Checks a certificate, given as bytes or as the path of a file.

    The statement is proved again, in exact integers, by code that shares only the definition of
    the board with the solvers (docs/certificates.md has the format).

    :param max_work: the maximum number of steps, each at most a microsecond; None for no limit.
    :raises CheckFailedError: the certificate does not prove what it says.
    :raises FileError: it is not a certificate, or cannot be read.
    :raises UnprovenError: the check takes more steps.
    """
    if certificate is None:
        raise TypeError("there is no certificate; only proofs for empty boards have one")
    steps = None if max_work is None else index(max_work)
    if isinstance(certificate, (bytes, bytearray, memoryview)):
        return _check(bytes(certificate), steps)
    path = fspath(certificate)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        reason = f"{error.strerror} (os error {error.errno})"
        raise FileError(f"{path} cannot be read: {reason}") from error
    try:
        return _check(content, steps)
    except NQueensError as error:
        raise type(error)(f"{path}: {error}") from None


def _check(certificate: bytes, steps: int | None) -> Statement:
    kind, n, columns, beauty, work, text = _native.check(certificate, steps)
    norm, symmetric = (None, None) if beauty is None else beauty
    return Statement(kind, n, _placement(columns), norm, symmetric, work, text)
