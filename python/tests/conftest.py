"""The program that the tests start, if it is named."""

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture
def program() -> str:
    """Returns the path of the program nqueens."""
    found = os.environ.get("NQUEENS") or shutil.which("nqueens")
    if found is None or not Path(found).exists():
        pytest.fail("set NQUEENS to the program, such as target/release/nqueens")
    return found
