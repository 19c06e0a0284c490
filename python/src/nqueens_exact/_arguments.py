"""The arguments that several functions share, as the native part reads them: as texts."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import SupportsIndex, Union

from . import _native

#: A square: ``(row, column)``, counted from 1, or a text: ``"2,4"`` or ``"d2"``.
Square = Union[str, "tuple[SupportsIndex, SupportsIndex]"]

#: Several squares: a text with spaces between them, or a list.
Squares = Union[str, Iterable[Square]]

LARGEST = 10_000_000


def squares(given: Squares | None) -> str:
    """Returns squares as a text."""
    if given is None:
        return ""
    if isinstance(given, str):
        return given
    return " ".join(square if isinstance(square, str) else pair(square) for square in given)


def pair(square: tuple[SupportsIndex, SupportsIndex]) -> str:
    """Returns a row and a column as a text."""
    row, column = square
    return f"{index(row)},{index(column)}"


def number(given: SupportsIndex | None) -> str | None:
    """Returns an integer as a text."""
    return None if given is None else str(index(given))


def board(
    n: SupportsIndex,
    place: Squares | None = None,
    block: Squares | None = None,
    piece: str = "queen",
    largest: int = LARGEST,
) -> _native.Board:
    """Returns the board with these squares."""
    return _native.Board(str(index(n)), squares(place), squares(block), piece, largest)
