"""Tests that need a cluster run only if they are asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("marks", "is_chosen"), [("", False), ("not spark", False), ("pulsar", True)])
def test_cluster_is_started_only_if_asked_for(marks: str, *, is_chosen: bool) -> None:
    """No choice of other marks, as a whole run or one without Spark, takes in the tests that start a cluster."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", marks, "tests/pulsar"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert ("test_brokers_publish_their_racks" in done.stdout) is is_chosen
