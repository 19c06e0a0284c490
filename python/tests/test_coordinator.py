"""The client of a coordinator, against the program."""

import subprocess
import time
from pathlib import Path

import nqueens_exact as nq
import pytest


def test_the_status_of_a_campaign_is_read(program: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    command = [program, "coordinator", "--data", str(data), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not (data / "address.json").exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        subprocess.run([program, "submit", "count", "10", "--data", str(data)], check=True)
        status = nq.Coordinator(data=data).status()
        job = status["jobs"][0]
        assert (job["n"], job["state"], job["piece"]) == (10, "running", "queen")
        assert nq.Coordinator(data=data).status(job["job"][:8])["jobs"][0]["job"] == job["job"]
    finally:
        process.terminate()
        process.wait()


def test_a_coordinator_that_is_not_there_is_an_error_of_one_line() -> None:
    with pytest.raises(nq.CoordinatorError, match="127.0.0.1:1") as raised:
        nq.Coordinator("127.0.0.1:1").status()
    assert raised.value.exit_code == 8 and "\n" not in str(raised.value)
    with pytest.raises(nq.UsageError):
        nq.Coordinator("127.0.0.1:1", data="x")
