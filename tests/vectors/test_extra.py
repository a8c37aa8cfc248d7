"""Examples of every documented area, worked out from the rules alone and kept as data beside this project's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vectors import AREAS, Vector, read_vectors, run_vector

_EXTRA = read_vectors(Path(__file__).parents[1] / "assets" / "extra_vectors.json")


@pytest.mark.parametrize("vector", _EXTRA, ids=lambda vector: vector.id)
def test_what_follows_from_the_rules_comes_out(vector: Vector) -> None:
    """Each example passes; what is expected was written down by hand, not taken from what came out."""
    outcome = run_vector(vector)

    assert (outcome.ending, outcome.differences, outcome.why) == ("passed", (), "")


def test_every_area_has_an_example() -> None:
    """But topics, which have a file of their own."""
    assert {vector.area for vector in _EXTRA} == {area for area in AREAS if not area.startswith("topics.")}
