"""The selector `least-resource-usage-with-weight`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lookup.hooks import Offer
from lookup.model import ClusterView
from lookup.testing import candidates, cluster, request
from lookup_policies.least_resource_usage_with_weight import LeastResourceUsageWithWeight
from tests.plugins.worlds import shares

LEAST = LeastResourceUsageWithWeight(history=0.5)
AVERAGE = LeastResourceUsageWithWeight(history=0.5, rule="average")


def _select(part: LeastResourceUsageWithWeight, view: ClusterView, memory: dict[str, Any], *ids: str) -> set[str]:
    seen = replace(view, memory=memory)
    pool = set(shares(part, seen, *ids))
    offered = candidates(seen, *ids)
    part.observe(memory, request(), candidates(seen, min(pool))[0], Offer(offered, seen))
    return pool


@pytest.mark.parametrize(
    ("part", "usage", "expected"),
    [
        (LEAST, {"1": 0.3, "2": 0.2, "3": 0.8}, {"2"}),
        (LEAST, {"1": 0.3, "2": 0.3, "3": 0.8}, {"1", "2"}),
        (LEAST, {"1": 0.9, "2": 0.86, "3": 0.99}, {"1", "2", "3"}),
        (LEAST, {"1": 0.9, "2": 0.85, "3": 0.99}, {"2"}),
        (AVERAGE, {"1": 0.1, "2": 0.3, "3": 0.8}, {"1", "2"}),
        (AVERAGE, {"1": 0.9, "2": 0.9, "3": 0.95}, {"1", "2", "3"}),
        (replace(AVERAGE, difference=0.1), {"1": 0.05, "2": 0.05, "3": 0.35}, {"1", "2", "3"}),
    ],
    ids=["least", "tie", "all-overloaded", "one-not", "below-the-mean", "nobody-below", "a-last-bit-off-the-edge"],
)
def test_the_rule_says_who_may_be_chosen(
    part: LeastResourceUsageWithWeight, usage: dict[str, float], expected: set[str]
) -> None:
    """By the old rule the least usage wins, by the new one whoever is clearly below the mean."""
    assert set(shares(part, cluster("1", "2", "3", usage=usage))) == expected


def test_every_selection_moves_smoothed_usage_on() -> None:
    """The past fades by selections, not by time, and only for those who were candidates."""
    memory: dict[str, Any] = {}
    _select(LEAST, cluster("1", "2", usage={"1": 0.8, "2": 0.4}), memory)
    later = cluster("1", "2", usage={"1": 0.0, "2": 0.6})

    assert [_select(LEAST, later, memory) for _ in range(2)] == [{"1"}, {"1"}]
    assert memory["usage"] == {"1": pytest.approx(0.2), "2": pytest.approx(0.55)}
    _select(LEAST, later, memory, "2")
    assert memory["usage"]["1"] == pytest.approx(0.2)


def test_an_idle_broker_starts_anew_by_the_new_rule_only() -> None:
    """A broker that carries nothing has no past in newer releases."""
    usage, memory = {"1": 0.6, "2": 0.4}, {"usage": {"1": 0.0, "2": 1.0}}
    idle = replace(cluster("1", "2", usage=usage, throughput={"1": 5.0, "2": 0.0}), memory=memory)

    assert set(shares(LEAST, idle)) == {"1"}
    assert set(shares(LeastResourceUsageWithWeight(history=0.5, difference=0.0, rule="average"), idle)) == {"1"}
    assert set(shares(LeastResourceUsageWithWeight(history=1.0, difference=0.1, rule="average"), idle)) == {"1"}
    assert _select(AVERAGE, idle, memory) == {"1", "2"}
    assert memory["usage"] == {"1": pytest.approx(0.3), "2": pytest.approx(0.4)}
