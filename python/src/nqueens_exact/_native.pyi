from collections.abc import Callable
from typing import final

__all__ = [
    "Board",
    "CoordinatorClient",
    "SolutionStream",
    "__version__",
    "beautiful",
    "check",
    "classes",
    "count",
    "estimate",
    "fingerprint",
    "first",
    "known",
    "solve",
    "svg",
    "validate",
]

__version__: str

_Progress = Callable[..., object] | None
_Estimate = tuple[float, float, float, float]
_Proved = tuple[list[int] | None, bytes | None, int, int, float]

@final
class Board:
    def __new__(
        cls, n: str, place: str, block: str, piece_name: str, largest: int
    ) -> Board: ...

@final
class SolutionStream:
    @property
    def item_bytes(self) -> int: ...
    def __new__(
        cls, board: Board, method: str, fundamental: bool, limit: int | None
    ) -> SolutionStream: ...
    def read(self, most: int, fill: bool) -> bytearray: ...
    def close(self) -> None: ...

@final
class CoordinatorClient:
    def __new__(
        cls,
        address: str | None,
        data: str | None,
        token: str | None,
        credentials: str | None,
        insecure: bool,
    ) -> CoordinatorClient: ...
    def status(self, job: str) -> str: ...

def count(board: Board, device: str, threads: str | None, progress: _Progress) -> int: ...
def classes(
    board: Board, device: str, threads: str | None, progress: _Progress
) -> tuple[int, int, int, int]: ...
def estimate(
    board: Board, threads: str | None, seconds: float, seed: int
) -> tuple[
    tuple[_Estimate, _Estimate, int, tuple[float, float, float] | None] | None,
    tuple[_Estimate, _Estimate, int, float] | None,
]: ...
def known(sequence: str, n: str) -> int | None: ...
def solve(
    board: Board, method: str | None, seed: int | None, time_limit_s: float | None
) -> list[int]: ...
def validate(piece: str, columns: list[int]) -> None: ...
def fingerprint(
    piece: str, columns: list[int], norm: str
) -> tuple[list[int], list[int], int, str]: ...
def svg(piece: str, columns: list[int], rings: str | None) -> str: ...
def first(
    board: Board, threads: str | None, time_limit_s: float | None, progress: _Progress
) -> _Proved: ...
def beautiful(
    board: Board,
    norm: str,
    symmetric: bool,
    threads: str | None,
    time_limit_s: float | None,
    progress: _Progress,
) -> _Proved: ...
def check(
    certificate: bytes, steps: int | None
) -> tuple[str, int, list[int] | None, tuple[str, bool] | None, int, str]: ...
