"""Exact counts of n non-attacking queens, solutions and proofs.

>>> import nqueens_exact as nq
>>> nq.count(8)
92
>>> nq.count(8, place="d1")
18
>>> print(nq.first(8).solution)
1 5 8 6 3 7 2 4

Rows and columns are counted from 1, and row 1 is at the top, as on the command line of the program
``nqueens``. A square is a pair ``(row, column)`` or a text: ``"2,4"`` or ``"d2"``; several squares
are a list of these, or a text with spaces between them. Counts are exact ``int``. Times are in
seconds, and their names end with ``_s``.

All functions release the GIL while they work, and Ctrl-C ends them. Errors are subclasses of
:class:`NQueensError` with the texts of the command line; its ``exit_code`` is that of the program.
"""

from ._coordinator import Coordinator
from ._counting import (
    Classes,
    Estimate,
    Interval,
    Progress,
    classes,
    count,
    estimate,
    known,
)
from ._errors import (
    CheckFailedError,
    CoordinatorError,
    FileError,
    NoSolutionError,
    NotAvailableError,
    NQueensError,
    UnprovenError,
    UsageError,
)
from ._native import __version__
from ._placement import Fingerprint, Placement, fingerprint
from ._proving import Proof, Statement, beautiful, check, first
from ._solving import Solutions, solutions, solve

__all__ = [
    "CheckFailedError",
    "Classes",
    "Coordinator",
    "CoordinatorError",
    "Estimate",
    "FileError",
    "Fingerprint",
    "Interval",
    "NQueensError",
    "NoSolutionError",
    "NotAvailableError",
    "Placement",
    "Progress",
    "Proof",
    "Solutions",
    "Statement",
    "UnprovenError",
    "UsageError",
    "__version__",
    "beautiful",
    "check",
    "classes",
    "count",
    "estimate",
    "fingerprint",
    "first",
    "known",
    "solutions",
    "solve",
]
