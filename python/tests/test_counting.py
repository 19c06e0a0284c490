"""Counts, estimates, progress, and the end of a run."""

import _thread
import signal
import threading
import time

import nqueens_exact as nq
import pytest

# OEIS A000170, n = 0 to 14.
QUEENS = [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596]


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_counts_are_the_published_ones(device: str) -> None:
    assert [nq.count(n, device=device) for n in range(15)] == QUEENS
    assert all(nq.known(n) == value for n, value in enumerate(QUEENS))


def test_other_pieces_and_decided_squares() -> None:
    assert nq.count(6, piece="rook") == 720
    assert nq.count(10, piece="superqueen") == 4
    assert nq.count(5, piece="toroidal") == 10
    # Each solution has one queen in row 1.
    assert sum(nq.count(8, place=[(1, column)]) for column in range(1, 9)) == 92
    without = nq.count(8, block="a1")
    assert without + nq.count(8, place="a1") == 92
    assert nq.count(8, place=["d1", (2, 7)]) == nq.count(8, place="1,4 2,7")


def test_classes_are_the_published_ones() -> None:
    assert nq.classes(8) == (92, 12, 4, 0)
    assert nq.classes(12).total == 14200


def test_large_counts_are_exact_integers() -> None:
    value = nq.known(27)
    assert value == 234907967154122528 and isinstance(value, int)
    # 30!, which has more than 64 bits.
    assert nq.known(30, "rook") == 265252859812191058636308480000000


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: nq.count(33), nq.UsageError, "32"),
        (lambda: nq.count(-1), nq.UsageError, "-1"),
        (lambda: nq.count(8, place="i9"), nq.UsageError, "off the board"),
        (lambda: nq.count(8, place="zz"), nq.UsageError, "not a square"),
        (lambda: nq.count(8, piece="pawn"), nq.UsageError, "pawn"),
        (lambda: nq.count(8, threads=0), nq.UsageError, "1024"),
        (lambda: nq.count(8, device="no-such"), nq.NQueensError, "no-such"),
        (lambda: nq.known(8, "A0"), nq.UsageError, "A0"),
    ],
)
def test_errors_say_what_is_wrong_in_one_line(call, kind, says) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kind) as raised:
        call()
    text = str(raised.value)
    assert says in text and "\n" not in text
    assert raised.value.exit_code in (2, 5)


def test_a_size_must_be_an_integer() -> None:
    for wrong in (8.0, "8", None):
        with pytest.raises(TypeError):
            nq.count(wrong)  # type: ignore[arg-type]


def test_progress_ends_at_one_and_what_it_raises_ends_the_run() -> None:
    seen: list[nq.Progress] = []
    assert nq.count(13, threads=1, progress=seen.append) == 73712
    assert seen and seen[-1].fraction == 1.0 and seen[-1].done == seen[-1].all
    assert all(before.done <= after.done for before, after in zip(seen, seen[1:]))

    def stop(progress: nq.Progress) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        nq.count(24, progress=stop, device="cpu")


def test_ctrl_c_ends_a_count() -> None:
    # A shell that starts the tests in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            nq.count(26, device="cpu")
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert nq.count(8) == 92


def test_other_threads_run_during_a_count() -> None:
    turns = 0
    ended = threading.Event()

    def turn() -> None:
        nonlocal turns
        while not ended.is_set():
            turns += 1
            time.sleep(0.001)

    def stop_after_turns(progress: nq.Progress) -> None:
        if turns > 20:
            raise StopIteration

    other = threading.Thread(target=turn)
    other.start()
    try:
        # If the interpreter were locked, the other thread would never get so far.
        with pytest.raises(StopIteration):
            nq.count(26, device="cpu", progress=stop_after_turns)
    finally:
        ended.set()
        other.join()


def test_estimates_have_their_errors() -> None:
    found = nq.estimate(12, seconds=0.2)
    assert found.solutions is not None
    assert found.solutions.least < 14200 * 1.2 and found.solutions.most > 14200 / 1.2
    large = nq.estimate(100, seconds=0.5)
    assert large.solutions is None and large.gamma is not None
    assert 1.5 < large.gamma.value < 2.5
