"""Pulsar's own examples of all areas."""

from __future__ import annotations

import pytest

from tests.vectors import Vector, run_vector
from tests.vectors.files import vectors_in


@pytest.mark.parametrize("vector", [*vectors_in("loadmanager.json"), *vectors_in("topics.json")])
def test_pulsars_examples_pass(vector: Vector) -> None:
    """What upstream's tests assert is what comes out, in every area."""
    outcome = run_vector(vector)

    assert (outcome.ending, outcome.differences, outcome.why) == ("passed", (), "")
