"""Pulsar's own examples of all areas, and others, kept as data, that were worked out from the rules alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vectors import AREAS, Vector, read_vectors, run_vector

#: no part of the repository, so that its tests skip where they are absent
_UPSTREAM = Path(__file__).parents[3] / "shared" / "vectors"
_EXTRA = read_vectors(Path(__file__).parents[1] / "assets" / "extra_vectors.json")

#: Keys of sums that are the same only if they are added up in the same order.
_SUMS = ("loadAvg", "loadStd", "internal_std_after_cycle")


def _upstream() -> list[Vector]:
    paths = (_UPSTREAM / "loadmanager.json", _UPSTREAM / "topics.json")
    return [vector for path in paths if path.is_file() for vector in read_vectors(path)]


@pytest.mark.parametrize("vector", [*_upstream(), *_EXTRA], ids=lambda vector: vector.id)
def test_examples_pass(vector: Vector) -> None:
    """Each area gives what upstream's tests assert, or what was written down by hand from the rules."""
    outcome = run_vector(vector)

    assert (outcome.ending, outcome.differences, outcome.why) == ("passed", (), "")


def test_every_area_has_an_example() -> None:
    """No handler is left without one."""
    assert {vector.area for vector in _EXTRA} == set(AREAS)


@pytest.mark.parametrize(
    "vector",
    [one for one in _upstream() if one.area in ("transfer_shedder", "transfer_shedder.debug_quirk")],
    ids=lambda vector: vector.id,
)
def test_sums_are_upstreams_to_the_last_bit(vector: Vector) -> None:
    """Averages and deviations of the shedder `transfer` are equal, not only close."""
    expected = {key: vector.expected[key] for key in _SUMS if key in vector.expected}
    answer = AREAS[vector.area](vector.input, vector.expected)

    assert {key: answer[key] for key in expected} == expected
