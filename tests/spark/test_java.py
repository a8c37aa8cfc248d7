"""The Java that Spark runs in."""

from __future__ import annotations

import os

import pytest

from lookup.spark.java import local_cores


@pytest.mark.parametrize(("master", "cores"), [("local", 1), ("local[3]", 3), ("local[2,4]", 2)])
def test_a_local_master_says_its_cores(master: str, cores: int) -> None:
    """The number in brackets counts, without one it is one task at a time."""
    assert local_cores(master) == cores


def test_a_star_is_every_core() -> None:
    """`local[*]` uses the machine."""
    assert local_cores("local[*]") == os.cpu_count()
