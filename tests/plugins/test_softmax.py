"""The selector `softmax`."""

from __future__ import annotations

import math

import pytest

from lookup.testing import cluster
from lookup_policies.softmax import Softmax
from tests.plugins.worlds import shares

VIEW = cluster("b1", "b2")


def test_odds_fall_by_e_per_temperature() -> None:
    """A score one temperature lower has 1/e of the odds."""
    odds = shares(Softmax(temperature=0.2), VIEW, scores={"b1": 0.7, "b2": 0.5})

    assert odds["b1"] / odds["b2"] == pytest.approx(math.e)


def test_a_tiny_temperature_does_not_overflow() -> None:
    """The best candidate keeps its odds however cold it is."""
    assert shares(Softmax(temperature=1e-9), VIEW, scores={"b1": 1.0, "b2": 0.0}) == {"b1": 1.0}
