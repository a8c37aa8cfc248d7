"""Tests that need a cluster run only if they are asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_SOME = {"pulsar": "test_brokers_publish_their_racks", "cluster": "test_worker_that_is_lost_changes_no_byte"}


@pytest.mark.parametrize("marks", ["", "not spark", "pulsar", "cluster"])
def test_cluster_is_started_only_if_asked_for(marks: str) -> None:
    """No choice of other marks, as a whole run or one without Spark, takes in the tests that start a cluster."""
    files = ["tests/test_errors.py", "tests/pulsar/test_cluster.py", "tests/spark/test_cluster.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", marks, *files],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert [mark for mark, name in _SOME.items() if name in done.stdout] == [mark for mark in _SOME if mark == marks]
