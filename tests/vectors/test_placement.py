"""Areas of placement."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vectors import assigning, placement
from tests.vectors.files import outcome

AREAS = {**placement.AREAS, **assigning.AREAS}


_FILTER = {"removes": ["b1"], "fails": False}
_STEPS = [
    {"do": {"replace_with_fresh": {"1": 10, "2": 60, "3": 5}}, "candidates": ["1", "2", "3"]},
    {"do": {"update_in_place": {"1": 50}, "replace_with_fresh": {"3": 90}}, "candidates": ["1", "2"]},
]


@pytest.mark.parametrize(
    ("area", "given", "expected"),
    [
        (
            "anti_affinity.filter",
            {"failureDomainsEnabled": True, "candidates": ["b1", "b2"], "owned_count": None, "domains": {"b1": "d1"}},
            {"kept": ["b1", "b2"]},
        ),
        (
            "anti_affinity.filter",
            {"candidates": ["b1", "b2"], "owned_count": {"b1": 3, "b2": 2, "gone": 0}, "domains": None},
            {"kept": ["b2"]},
        ),
        (
            "anti_affinity.should_unload",
            {"current": "b1", "candidates": ["b1", "b2"], "owned_count": {"b1": 1, "b2": 1}},
            {"should_unload": False},
        ),
        (
            "assign.filter",
            {
                "brokers": ["b1", "b2", "b3"],
                "pipeline": "two",
                "filters": [_FILTER, {"removes": ["b3"], "fails": True}],
            },
            {"assigned": "b2"},
        ),
        ("assign.read_only", {"readOnly": True, "bundle_owner": None}, {"result": "empty, and nothing is written"}),
        (
            "filter.isolation",
            {
                "policies_present": True,
                "namespace": "t/n",
                "policy": {"primary": ["b.1"], "secondary": [], "shared": [], "min_limit": 1},
                "available": ["b.1:80", "bx1:80", "b.1"],
            },
            {"kept": ["b.1:80"]},
        ),
        (
            "filter.version",
            {"preferLaterVersions": True, "brokers": {"a": "1.0.0", "b": None}},
            {"error": "BrokerFilterBadVersionException", "map_unchanged": True},
        ),
        (
            "strategy.least_resource_usage",
            {
                "config": {
                    "loadBalancerHistoryResourcePercentage": 0.5,
                    "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": 10,
                },
                "steps": _STEPS,
            },
            {
                "weightedMaxEMA_after": [
                    {"1": 0.1, "2": 0.6000000381469727, "3": 0.05},
                    {"1": 0.3, "2": 0.6000000381469727, "3": 0.9},
                ]
            },
        ),
        (
            "strategy.least_resource_usage",
            {"weightedMaxEMA": {"1": 0.1}, "candidates": []},
            {"selected": None},
        ),
        (
            "strategy.round_robin",
            {"candidate_calls": [["c", "a", "b"], ["a", "b", "c"], ["b", "a", "d"]]},
            {"selected": ["c", "a", "b"]},
        ),
    ],
)
def test_unseen_examples_are_understood(area: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    """Other inputs of the documented areas, worked out by hand."""
    ran = outcome(area, given, expected)

    assert (ran.ending, ran.differences) == ("passed", ())


@pytest.mark.parametrize("area", AREAS)
def test_an_unknown_key_is_not_understood(area: str) -> None:
    """No input is read past."""
    assert outcome(area, {"unheard of": 1}, {}).ending != "passed"
