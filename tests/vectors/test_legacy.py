"""Areas of the modular load manager's shedders."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vectors.files import outcome

BUSY = {"cpu": 80, "rate_in_out": [5000, 5000], "bundles": "x-0..9"}
IDLE = {"cpu": 50, "rate_in_out": [0, 0]}
AVG: dict[str, Any] = {
    "config": {"maxUnloadPercentage": 0.5},
    "brokers": {"a": BUSY, "b": IDLE},
    "each_bundle": {"rate_in_out": [500, 500], "count": 10},
}
THRESHOLD: dict[str, Any] = {
    "brokers": {
        "a": {"cpu": [99, 100], "msgThroughputIn": 1e8, "msgThroughputOut": 1e8, "bundles": ["one", "two", "three"]},
        "b": {"usage": "none at all"},
    },
    "bundle_throughput_in_out": {"one": [1e7, 1e7], "two": [5e7, 5e7], "three": [4e7, 4e7]},
}


@pytest.mark.parametrize(
    ("area", "given", "expected"),
    [
        ("avg_shedder", AVG, {"unload_counts_per_call": [0, 0, 0, 0, 0, 0, 0, 5, 0], "per_source": {}}),
        ("avg_shedder", AVG, {"unload_counts_per_call": [0] * 7 + [5], "from": "a", "per_source": {"a": 5}}),
        (
            "avg_shedder",
            {**AVG, "brokers": {"a": BUSY, "b": {**IDLE, "cpu": 66}}},
            {"unload_counts_per_call": [0] * 12},
        ),
        ("threshold_shedder", THRESHOLD, {"unload": {"a": ["two"]}}),
        ("threshold_shedder", {**THRESHOLD, "recently_unloaded": ["two"]}, {"unload": {"a": ["three", "one"]}}),
    ],
)
def test_other_examples_of_the_areas_pass(area: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    """What the README describes works for values that are not in the file."""
    assert outcome(area, given, expected).ending == "passed"


@pytest.mark.parametrize(
    ("area", "given", "expected", "ending"),
    [
        ("avg_shedder", AVG, {"unload_counts_per_call": [0, 5]}, "failed"),
        ("avg_shedder", AVG | {"steps": 1}, {"unload_counts_per_call": [0]}, "not understood"),
        ("avg_shedder", AVG, {"to": "b"}, "not understood"),
        ("avg_shedder", {"brokers": {"a": {**BUSY, "bundles": "x"}}}, {"from": "a"}, "not understood"),
        ("threshold_shedder", THRESHOLD, {"unload": {}}, "failed"),
        ("threshold_shedder", {"brokers": {"a": {"disk": [1, 2]}}}, {"unload": {}}, "not understood"),
        ("threshold_shedder", {"brokers": {"a": {"usage": "full"}}}, {"unload": {}}, "not understood"),
    ],
)
def test_wrong_examples_do_not_pass(area: str, given: dict[str, Any], expected: dict[str, Any], ending: str) -> None:
    """A wrong value fails, an unknown key is not understood."""
    assert outcome(area, given, expected).ending == ending
