"""Solutions, one and all, and their pictures."""

import gc
import itertools
import pickle

import numpy
import nqueens_exact as nq
import pytest


def is_solution(columns: "numpy.typing.NDArray[numpy.uint8] | tuple[int, ...]") -> bool:
    """Checks the plain definition."""
    numbers = [int(column) for column in columns]
    pairs = itertools.combinations(enumerate(numbers), 2)
    return sorted(numbers) == list(range(1, len(numbers) + 1)) and all(
        abs(a - b) != j - i for (i, a), (j, b) in pairs
    )


@pytest.mark.parametrize("method", ["backtracking", "cp", "columns", "brute-force"])
def test_all_solutions_are_listed_once(method: str) -> None:
    for n in range(1, 8):
        found = [tuple(solution) for solution in nq.solutions(n, method=method)]
        assert len(found) == len(set(found)) == nq.count(n)
        assert all(is_solution(columns) for columns in found)


def test_arrays_have_the_solutions_of_the_iterator() -> None:
    expected = [solution.columns for solution in nq.solutions(9)]
    array = nq.solutions(9).array()
    assert array.dtype == numpy.uint8 and array.shape == (352, 9)
    assert [tuple(row) for row in array.tolist()] == expected
    parts = list(nq.solutions(9).arrays(size=100))
    assert [len(part) for part in parts] == [100, 100, 100, 52]
    assert (numpy.concatenate(parts) == array).all()
    # After some were read one by one, the arrays have the rest.
    stream = nq.solutions(9)
    first = [next(stream).columns for _ in range(7)]
    assert first + [tuple(row) for row in stream.array().tolist()] == expected
    assert nq.solutions(3).array().shape == (0, 3)


def test_lists_are_lazy_and_end_when_they_are_closed() -> None:
    # Nobody can list all solutions of this board.
    with nq.solutions(20) as solutions:
        some = list(itertools.islice(solutions, 3))
    assert all(is_solution(solution.columns) for solution in some)
    assert next(solutions, None) is None
    for _ in range(50):
        next(nq.solutions(18))
    gc.collect()


def test_limits_and_completions() -> None:
    assert len(list(nq.solutions(8, limit=5))) == 5
    assert len(list(nq.solutions(8, fundamental=True))) == 12
    assert all(s[0] == 4 for s in nq.solutions(8, place="d1"))
    with pytest.raises(nq.UsageError, match="limit"):
        nq.solutions(8, limit=0)


def test_one_solution_of_any_size() -> None:
    for n in (1, 4, 8, 100, 1000):
        assert is_solution(nq.solve(n).columns)
    assert len(nq.solve(100_000)) == 100_000
    with pytest.raises(nq.NoSolutionError) as raised:
        nq.solve(3)
    assert raised.value.exit_code == 3
    solution = nq.solve(12, place="1,1", block=[(2, 3)])
    assert solution[0] == 1 and solution[1] != 3
    assert is_solution(solution.columns)


def test_placements_are_checked_sequences() -> None:
    placement = nq.Placement([2, 4, 1, 3])
    assert placement == nq.solve(4, method="backtracking")
    assert list(placement) == [2, 4, 1, 3] and placement[1:3] == (4, 1) and len(placement) == 4
    assert placement.squares == ((1, 2), (2, 4), (3, 1), (4, 3))
    assert pickle.loads(pickle.dumps(placement)) == placement
    assert {placement: 1}[nq.Placement((2, 4, 1, 3))] == 1
    assert "<svg" in placement._repr_svg_() and placement.svg(rings="manhattan") != placement.svg()
    for wrong in ([1, 2], [0, 1], [-1, 2], [5, 2, 1, 3], [1, 1]):
        with pytest.raises(nq.NQueensError):
            nq.Placement(wrong)


def test_fingerprints_are_those_of_all_images() -> None:
    solution = nq.solve(8, method="backtracking")
    found = nq.fingerprint(solution)
    reflected = nq.Placement([9 - column for column in solution])
    assert found.costs == nq.fingerprint(reflected).costs
    assert found.canonical == nq.fingerprint(reflected).canonical
    u = [2 * row - 9 for row, _ in solution.squares]
    v = [2 * column - 9 for _, column in solution.squares]
    assert list(found.costs) == sorted((a * a + b * b for a, b in zip(u, v)), reverse=True)


def test_repeated_calls_keep_no_memory() -> None:
    def resident_kib() -> int:
        with open("/proc/self/status") as status:
            line = next(line for line in status if line.startswith("VmRSS"))
        return int(line.split()[1])

    def calls(times: int) -> None:
        for _ in range(times):
            nq.count(5)
            nq.Placement([2, 4, 1, 3]).fingerprint()
            nq.solutions(5).array()
            with pytest.raises(nq.UsageError):
                nq.count(99)

    calls(1000)
    before = resident_kib()
    calls(9000)
    assert resident_kib() - before < 8192
