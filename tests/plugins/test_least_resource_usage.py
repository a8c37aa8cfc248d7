"""The selector `least-resource-usage`."""

from __future__ import annotations

import pytest

from lookup.testing import cluster
from lookup_policies.least_resource_usage import LeastResourceUsage
from tests.plugins.worlds import shares


@pytest.mark.parametrize(
    ("difference", "usage", "expected"),
    [
        (0.05, {"1": 0.5, "2": 1.0}, {"1"}),
        (0.05, {"1": 1.0, "2": 1.0}, {"1", "2", "5"}),
        (0.05, {}, {"1", "2", "5"}),
        (0.1, {"1": 0.1, "2": 0.3, "5": 0.8}, {"1", "2"}),
        (1.0, {"1": 0.1, "2": 0.3, "5": 0.8}, {"1", "2", "5"}),
        (0.1, {"1": 0.4, "2": 0.4, "5": 0.4}, {"1", "2", "5"}),
        (0.01, {"1": 0.95, "2": 0.99}, {"1"}),
        (0.25, {"1": 0.25, "2": 0.75}, {"1"}),
        (0.15, {"1": 0.35, "2": 0.05}, {"1", "2", "5"}),
    ],
    ids=[
        "below",
        "nobody-below",
        "no-reports",
        "documented-example",
        "random",
        "equal",
        "overloaded",
        "on-the-edge",
        "a-last-bit-off-the-edge",
    ],
)
def test_brokers_clearly_below_the_average_share_the_odds(
    difference: float, usage: dict[str, float], expected: set[str]
) -> None:
    """The pool are the brokers at least `difference` below the mean of the reported ones, else all."""
    odds = shares(LeastResourceUsage(difference), cluster("1", "2", "5", usage=usage))

    assert odds == pytest.approx(dict.fromkeys(expected, 1 / len(expected)))


def test_the_average_is_that_of_the_candidates() -> None:
    """A broker that a filter has dropped does not lift the mean."""
    view = cluster("1", "2", "3", usage={"1": 0.1, "2": 0.15, "3": 1.0})

    assert set(shares(LeastResourceUsage(), view, "1", "2")) == {"1", "2"}
