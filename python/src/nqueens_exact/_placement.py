"""Placements: solutions that were checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import SupportsIndex, overload

from . import _native


class Placement(Sequence[int]):
    """A solution: one piece in each row, no two of which attack each other.

    It is a sequence of the column of the piece in each row, from the top, counted from 1. It draws
    itself in Jupyter. Creating one checks the columns by the plain definition.

    >>> solution = Placement([2, 4, 1, 3])
    >>> solution.columns
    (2, 4, 1, 3)
    >>> print(solution.board())
    · ♛ · ·
    · · · ♛
    ♛ · · ·
    · · ♛ ·
    >>> Placement([1, 2, 3, 4])
    Traceback (most recent call last):
        ...
    nqueens_exact._errors.CheckFailedError: not valid: the pieces on 1,1 and 2,2 attack each other
    """

    __slots__ = ("_columns", "_piece")

    _columns: tuple[int, ...]
    _piece: str

    def __init__(self, columns: Iterable[SupportsIndex], piece: str = "queen") -> None:
        numbers = tuple(index(column) for column in columns)
        # Negative columns are refused with the same text as 0.
        _native.validate(piece, [max(column, 0) for column in numbers])
        self._columns = numbers
        self._piece = piece

    @classmethod
    def _checked(cls, columns: Sequence[int], piece: str) -> Placement:
        """Creates the placement of columns that the native part has checked."""
        placement = cls.__new__(cls)
        placement._columns = tuple(columns)
        placement._piece = piece
        return placement

    @property
    def n(self) -> int:
        """The size of the board: its rows, its columns and its pieces."""
        return len(self._columns)

    @property
    def piece(self) -> str:
        """The piece: queen, rook, superqueen or toroidal."""
        return self._piece

    @property
    def columns(self) -> tuple[int, ...]:
        """The column of the piece in each row, from the top, counted from 1."""
        return self._columns

    @property
    def squares(self) -> tuple[tuple[int, int], ...]:
        """The row and the column of each piece, counted from 1."""
        return tuple(enumerate(self._columns, 1))

    def board(self) -> str:
        """Returns a diagram of ``♛`` and ``·``."""
        rows = (["♛" if at == column else "·" for at in range(1, self.n + 1)] for column in self)
        return "\n".join(" ".join(row) for row in rows)

    def svg(self, rings: str | None = None) -> str:
        """Returns a picture as SVG, chequered or on the rings of equal cost of a norm.

        ``rings`` is ``euclidean``, ``manhattan`` or ``chebyshev``, as in :func:`beautiful`.

        >>> Placement([2, 4, 1, 3]).svg(rings="euclidean")[:4]
        '<svg'
        """
        return _native.svg(self._piece, list(self._columns), rings)

    def fingerprint(self, norm: str = "euclidean") -> Fingerprint:
        """Returns the fingerprint; see :func:`fingerprint`."""
        return fingerprint(self, norm=norm)

    def _repr_svg_(self) -> str:
        return self.svg()

    @overload
    def __getitem__(self, row: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, row: slice) -> tuple[int, ...]: ...
    def __getitem__(self, row: SupportsIndex | slice) -> int | tuple[int, ...]:
        return self._columns[row]

    def __len__(self) -> int:
        return len(self._columns)

    def __iter__(self) -> Iterator[int]:
        return iter(self._columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placement):
            return NotImplemented
        return (self._columns, self._piece) == (other._columns, other._piece)

    def __hash__(self) -> int:
        return hash((self._columns, self._piece))

    def __str__(self) -> str:
        return " ".join(map(str, self._columns))

    def __repr__(self) -> str:
        piece = "" if self._piece == "queen" else f", {self._piece!r}"
        return f"Placement({list(self._columns)}{piece})"

    def __reduce__(self) -> tuple[type[Placement], tuple[list[int], str]]:
        return Placement, (list(self._columns), self._piece)


@dataclass(frozen=True)
class Fingerprint:
    """The fingerprint of a solution, and its images under rotations and reflections."""

    #: The costs of the squares, the largest first.
    costs: tuple[int, ...]
    #: The lexicographically smallest image.
    canonical: Placement
    #: The number of different images: 1, 2, 4 or 8.
    images: int
    #: The symmetry that the solution has: none, point, rotation, reflection or full.
    symmetry: str


def fingerprint(
    solution: Iterable[SupportsIndex], *, piece: str | None = None, norm: str = "euclidean"
) -> Fingerprint:
    """Returns the fingerprint of a solution: the costs of its squares, the largest first.

    The square in row i and column j has the distances u = 2i − n − 1 and v = 2j − n − 1 from the
    centre, in half squares. It costs u² + v² (``norm="euclidean"``), abs(u) + abs(v)
    (``"manhattan"``) or max(abs(u), abs(v)) (``"chebyshev"``). A most beautiful solution has the
    lexicographically smallest fingerprint (Fischetti and Salvagnin, arXiv 1907.08246).

    >>> found = fingerprint([2, 4, 1, 3])
    >>> found.costs, found.images, found.symmetry
    ((10, 10, 10, 10), 2, 'rotation')
    """
    if piece is None:
        piece = solution.piece if isinstance(solution, Placement) else "queen"
    columns = [max(index(column), 0) for column in solution]
    costs, canonical, images, symmetry = _native.fingerprint(piece, columns, norm)
    return Fingerprint(tuple(costs), Placement._checked(canonical, piece), images, symmetry)
