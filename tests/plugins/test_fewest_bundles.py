"""The scorer `fewest-bundles`."""

from __future__ import annotations

from lookup.testing import cluster, request
from lookup_policies.fewest_bundles import FewestBundles
from tests.plugins.worlds import scored

OWNED = {"t/n/1": "b1", "t/n/2": "b1", "t/m/3": "b1", "t/m/4": "b1", "t/m/5": "b2"}


def test_the_score_falls_with_owned_bundles() -> None:
    """Who owns most scores 0, who owns none scores 1."""
    assert scored(FewestBundles(), request(), cluster("b1", "b2", "b3", owned=OWNED)) == {
        "b1": 0.0,
        "b2": 0.75,
        "b3": 1.0,
    }


def test_only_candidates_are_compared() -> None:
    """The most is that of the candidates."""
    assert scored(FewestBundles(), request(), cluster("b1", "b2", "b3", owned=OWNED), "b2", "b3") == {
        "b2": 0.0,
        "b3": 1.0,
    }


def test_without_bundles_all_are_alike() -> None:
    """Where nobody owns anything everybody scores 1."""
    assert scored(FewestBundles(), request(), cluster("b1", "b2")) == {"b1": 1.0, "b2": 1.0}
