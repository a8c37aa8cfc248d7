"""Areas of load figures."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vectors.files import outcome

_CPU: dict[str, Any] = {"cpu": [10, 100]}


@pytest.mark.parametrize(
    ("area", "given", "expected"),
    [
        (
            "broker_load_data.update",
            {"updates": [{"cpu": [50, 100], "topics": 3}, {"cpu": [100, 100]}]},
            {"after_1": {"topics": 3, "weightedMaxEMA": 0.5}, "after_2": {"weightedMaxEMA": 0.55}},
        ),
        (
            "broker_load_data.update",
            {"loadBalancerHistoryResourcePercentage": 0.0, "updates": [_CPU, {"memory": [90, 100]}]},
            {"after_2": {"weightedMaxEMA": 0.0, "maxResourceUsage": 0.0}},
        ),
        ("broker_load_data.throughput_ema", {"msgThroughput_in_plus_out": [10, 20]}, {"msgThroughputEMA": [10, 11.0]}),
        ("bundle_stats.compare", {"a": {}, "b": {"producerCount": 500}}, {"sign": -1}),
        ("reporter.percent_change", {"old": 100, "new": 110}, {"publishes_with_default_threshold_10": False}),
        (
            "reporter.percent_change",
            {"old": 100, "new": 89},
            {"percent": 11, "publishes_with_default_threshold_10": True},
        ),
        ("resource_usage.percent", {"usage": 200, "limit": 100}, {"percentUsage": 200.0, "percentUsage_div_100": 2.0}),
        (
            "topk",
            {"msgRateIn": {"t/n/0": 1000, "t/a/0": 2000}, "k": 1, "anti_affinity_namespaces": ["t/a"]},
            {"order": ["t/n/0"]},
        ),
        (
            "topk",
            {
                "msgRateIn": {"t/n/0": 1000, "t/n2/0": 2000},
                "k": 5,
                "isolation_policy_namespaces": ["t/n"],
                "loadBalancerSheddingBundlesWithPoliciesEnabled": True,
            },
            {"order": ["t/n/0", "t/n2/0"]},
        ),
        (
            "topk",
            {"msgRateIn": {"t/n/0": 1, "t/n2/0": 2}, "k": 5, "isolation_policy_namespaces": ["t/n"]},
            {"order": ["t/n2/0"]},
        ),
    ],
)
def test_other_examples_of_the_areas_pass(area: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    """What the README describes works for values that are not in the file."""
    assert outcome(area, given, expected).ending == "passed"


@pytest.mark.parametrize(
    ("area", "given", "expected", "ending"),
    [
        ("broker_load_data.update", {"updates": [_CPU]}, {"after_2": {}}, "not understood"),
        ("broker_load_data.update", {"updates": [{"disk": [1, 2]}]}, {"after_1": {}}, "not understood"),
        ("broker_load_data.defaults", {"action": "construct"}, {"maxResourceUsage": 0.0}, "failed"),
        ("broker_load_data.defaults", {"action": "construct"}, {"disk": 0.0}, "not understood"),
        ("bundle_stats.compare", {"a": {"color": 1}, "b": {}}, {"sign": 0}, "not understood"),
        ("local_broker_data.print", _CPU, {"text": "cpu: 10%"}, "failed"),
        ("resource_usage.percent", {"usage": 30, "limit": 100}, {"percentUsage": 30.0}, "failed"),
        ("topk", {"msgRateIn": {"t/n/0": 1000, "t/m/0": 2000}, "k": 2}, {"order": ["t/m/0", "t/n/0"]}, "failed"),
    ],
)
def test_wrong_examples_do_not_pass(area: str, given: dict[str, Any], expected: dict[str, Any], ending: str) -> None:
    """A wrong value fails, an unknown key is not understood."""
    assert outcome(area, given, expected).ending == ending
