"""Areas on splitting."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vectors.files import outcome

_BUNDLE = "t/n/0x00000000_0xFFFFFFFF"
_CYCLE: dict[str, Any] = {
    "bundle_stats_in_order": {_BUNDLE: {"topics": 2, "msgRateOut": 31000}},
    "split_boundaries": {_BUNDLE: 16},
    "owner_of_all": True,
    "bundle_count": 1,
}
_DECISION = {
    "bundle": _BUNDLE,
    "source": "broker-1",
    "children": ["0x00000000_0x00000010", "0x00000010_0xffffffff"],
    "reason": "MsgRate",
    "label": "Success",
}


@pytest.mark.parametrize(
    ("area", "given", "expected"),
    [
        ("split_algorithm.range_equally_divide", {"lower": 5, "upper": 6}, {"boundaries": [5]}),
        ("split_algorithm.topic_count_equally_divide", {"topic_hashes": []}, {"boundaries": None}),
        (
            "split_algorithm.specified_positions_divide",
            {"positions": None, "lower": 0, "upper": 25, "topics_in_bundle": 0},
            {"boundaries": "error: IllegalArgument"},
        ),
        (
            "split_algorithm.specified_positions_divide",
            {"positions": [1], "lower": 0, "upper": 25, "topics_in_bundle": 1},
            {"boundaries": None},
        ),
        (
            "split_algorithm.flow_or_qps_equally_divide",
            {
                "topics_hash_rate_throughput": [[100, 5000, 0], [200, 10, 0]],
                "loadBalancerNamespaceBundleMaxMsgRate": 1000,
            },
            {"boundaries": [150, 150]},
        ),
        ("split_strategy", _CYCLE | {"calls": 4}, {"decisions_per_call": [[], [], [], [_DECISION]]}),
        ("split_strategy", _CYCLE | {"calls": 9}, {"number_of_decisions": 0, "failure_unknown_count": 0}),
        (
            "split_strategy",
            _CYCLE | {"config": {"loadBalancerNamespaceBundleSplitConditionHitCountThreshold": 0}},
            {"decisions": [_DECISION]},
        ),
        ("split_strategy", _CYCLE | {"calls": 6, "split_boundaries": {}}, {"failure_unknown_count": 3}),
        (
            "split_strategy",
            _CYCLE | {"calls": 4, "loadBalancerNamespaceMaximumBundles": 1},
            {"decisions_per_call": [[], [], [], []]},
        ),
    ],
)
def test_what_the_file_has_no_example_of(area: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    """Other inputs of the areas are run as well."""
    assert outcome(area, given, expected).ending == "passed"


@pytest.mark.parametrize(
    ("area", "given"),
    [
        ("split_algorithm.range_equally_divide", {"lower": 0, "upper": 9, "middle": 5}),
        ("split_strategy", _CYCLE | {"config": {"loadBalancerMoon": 1}}),
        ("split_strategy", _CYCLE | {"bundle_stats_in_order": {_BUNDLE: {"moons": 2}}}),
    ],
)
def test_a_key_nobody_knows_is_not_passed_over(area: str, given: dict[str, Any]) -> None:
    """It is told as not understood."""
    assert outcome(area, given, {}).ending == "not understood"
