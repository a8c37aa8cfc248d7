"""The selector `random`."""

from __future__ import annotations

from lookup.testing import cluster
from lookup_policies.random import Random
from tests.plugins.worlds import shares


def test_everybody_has_the_same_odds() -> None:
    """Scores make no difference."""
    view = cluster("b1", "b2", "b3", "b4")

    assert shares(Random(), view, scores={"b1": 1.0, "b2": 0.0, "b3": 0.2, "b4": 0.9}) == dict.fromkeys(
        ("b1", "b2", "b3", "b4"), 0.25
    )
