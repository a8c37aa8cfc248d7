"""The table in docs/forecasts.md: its rows come out of the replays that the page describes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Reads and writes tables as Spark's tasks do.
pytestmark = pytest.mark.spark

_ROOT = Path(__file__).parents[1]
_TRACE = _ROOT.parent / "shared" / "data" / "nasa_http_19950801.tsv"


@pytest.mark.thorough
def test_the_script_prints_the_rows_of_the_page() -> None:
    """The table is what the script prints today; rows of the real trace are compared if its data is there."""
    page = (_ROOT / "docs" / "forecasts.md").read_text(encoding="utf-8").splitlines()
    with_trace = ["--nasa", str(_TRACE)] if _TRACE.exists() else []
    command = [sys.executable, "benchmarks/foresight.py", *with_trace]
    printed = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True, encoding="utf-8").stdout

    table = [line for line in page if line.startswith("|") and (with_trace or not line.startswith("| NASA |"))]
    assert printed.splitlines() == table
