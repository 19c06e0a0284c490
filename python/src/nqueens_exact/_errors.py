"""The exceptions. Their classes are the exit codes of the program (docs/exit-codes.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from ._placement import Placement


class NQueensError(Exception):
    """An error of this package. Its text says what is wrong and what would be right."""

    #: The exit code of the program for this error.
    exit_code: ClassVar[int] = 1


class UsageError(NQueensError, ValueError):
    """An argument is wrong."""

    exit_code: ClassVar[int] = 2


class NoSolutionError(NQueensError):
    """It is proved that no solution exists."""

    exit_code: ClassVar[int] = 3


class UnprovenError(NQueensError):
    """Nothing is proved: a limit ended the search or the check, or the method gave up."""

    exit_code: ClassVar[int] = 4

    #: The best solution that was found, if there is one. It is checked, but not proved to be best.
    best: Placement | None = None


class NotAvailableError(NQueensError):
    """A device or a feature is not available here."""

    exit_code: ClassVar[int] = 5


class CheckFailedError(NQueensError):
    """A check failed: do not use the result."""

    exit_code: ClassVar[int] = 6


class FileError(NQueensError):
    """A file or a certificate cannot be read."""

    exit_code: ClassVar[int] = 7


class CoordinatorError(NQueensError):
    """The coordinator cannot be reached, or refuses the call."""

    exit_code: ClassVar[int] = 8


_CLASSES: tuple[type[NQueensError], ...] = (
    UsageError,
    NoSolutionError,
    UnprovenError,
    NotAvailableError,
    CheckFailedError,
    FileError,
    CoordinatorError,
)


def exception(
    exit_code: int, message: str, best: tuple[list[int], str] | None
) -> BaseException:
    """Returns the exception for an exit code. The native part calls it."""
    for kind in _CLASSES:
        if kind.exit_code == exit_code:
            error = kind(message)
            if isinstance(error, UnprovenError) and best is not None:
                from ._placement import Placement

                columns, piece = best
                error.best = Placement(columns, piece)
            return error
    return KeyboardInterrupt(message)
