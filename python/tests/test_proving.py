"""First and most beautiful solutions, and the check of their certificates."""

import hashlib
from pathlib import Path

import nqueens_exact as nq
import pytest

# OEIS A141843.
FIRST = {
    8: (1, 5, 8, 6, 3, 7, 2, 4),
    12: (1, 3, 5, 8, 10, 12, 6, 11, 2, 7, 9, 4),
}


def test_first_solutions_are_proved() -> None:
    for n, columns in FIRST.items():
        proof = nq.first(n)
        assert proof.solution is not None and proof.solution.columns == columns
        statement = nq.check(proof.certificate)
        assert (statement.kind, statement.n, statement.solution) == ("first", n, proof.solution)
    assert nq.first(3).solution is None
    decided = nq.first(8, place="1,2")
    assert decided.solution is not None and decided.solution[0] == 2
    with pytest.raises(TypeError, match="no certificate"):
        nq.check(decided.certificate)


def test_most_beautiful_solutions_are_proved() -> None:
    proof = nq.beautiful(10)
    assert proof.solution is not None
    best = min(solution.fingerprint().costs for solution in nq.solutions(10))
    assert proof.solution.fingerprint().costs == best
    statement = nq.check(proof.certificate)
    assert (statement.kind, statement.norm, statement.symmetric) == ("beautiful", "euclidean", False)
    symmetric = nq.beautiful(12, norm="manhattan", symmetric=True)
    assert symmetric.solution is not None
    assert symmetric.solution.fingerprint().symmetry == "rotation"


def test_forged_certificates_are_refused(tmp_path: Path) -> None:
    certificate = nq.first(8).certificate
    assert certificate is not None
    body, digest = certificate[:-32], certificate[-32:]
    assert hashlib.sha256(body).digest() == digest
    # Another solution, which is not the first one, under a right digest.
    false = body.replace(bytes([0, 4, 7, 5, 2, 6, 1, 3]), bytes([0, 5, 7, 2, 6, 3, 1, 4]))
    assert false != body
    with pytest.raises(nq.CheckFailedError):
        nq.check(false + hashlib.sha256(false).digest())
    for at in range(0, len(certificate), 7):
        changed = certificate[:at] + bytes([certificate[at] ^ 1]) + certificate[at + 1 :]
        with pytest.raises(nq.NQueensError):
            nq.check(changed)
    with pytest.raises(nq.FileError):
        nq.check(b"\xff\x00 no certificate")
    with pytest.raises(nq.UnprovenError):
        nq.check(certificate, max_work=1)
    path = tmp_path / "first-8.txt"
    path.write_bytes(certificate)
    assert nq.check(path).n == nq.check(str(path)).n == 8
    with pytest.raises(nq.FileError, match="no-such"):
        nq.check(tmp_path / "no-such")


def test_a_time_limit_leaves_the_best_solution() -> None:
    with pytest.raises(nq.UnprovenError) as raised:
        nq.first(118, time_limit_s=0.3)
    assert raised.value.exit_code == 4
