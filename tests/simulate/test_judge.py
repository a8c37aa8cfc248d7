"""Assertions against trends, and both as text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lookup.simulate import AssertionResult, MinuteSample, Trend, findings, trends_text
from lookup.simulate.judge import broken
from lookup.simulate.scenario import Assertion
from tests.simulate.scenarios import scenario, trends

#: One broker goes, and under both policies its three bundles move.
_CHANGES: dict[str, Any] = {
    "events": [{"at": 3, "leave": ["b1"]}],
    "policies": [{"name": name, "selector": "round-robin"} for name in ("stays", "turns")],
}

#: One minute of two brokers that are used alike, without load that clients' properties match.
_EVEN = Trend(
    "p", 1, (MinuteSample(0, np.array([0.5, 0.5]), (), 0, 0.0, 0, 0, 0, math.nan, {"b1": 0.5, "b2": 0.5}),)
).figures


def _judged(**assertion: Any) -> list[AssertionResult]:
    """Judge one assertion of two policies that both make three moves."""
    changes = _CHANGES | {"assertions": [{"figure": "moves", **assertion}]}
    return list(findings(scenario(**changes), trends(**changes)))


def test_without_policy_it_is_about_all() -> None:
    """Each gets a finding of its own."""
    found = _judged(at_most=3)

    assert [(one.policy, one.holds, one.wanted) for one in found] == [
        ("stays", True, "moves at most 3"),
        ("turns", True, "moves at most 3"),
    ]


def test_what_is_true_of_the_unlike_too_does_not_hold() -> None:
    """Both make three moves, so that says nothing about the one."""
    found = _judged(policy="stays", at_most=3, unlike=["turns"])

    assert [(one.policy, one.holds) for one in found] == [("stays", True), ("turns", False)]
    assert found[1].wanted == "moves not at most 3"
    assert found[1].failure == "policy 'turns': moves is 3 and should not be at most 3"


def test_the_unlike_are_not_among_all() -> None:
    """An assertion without policy leaves them out, and wants the contrary of them."""
    found = _judged(at_most=2, unlike=["turns"])

    assert [(one.policy, one.holds) for one in found] == [("stays", False), ("turns", True)]


def test_a_failure_says_why_it_should_be_otherwise() -> None:
    """With the limits and the reason as written."""
    (found,) = _judged(policy="stays", at_least=4, at_most=5, because="four bundles go")

    assert found.failure == (
        "policy 'stays': moves is 3 and should be at least 4 and at most 5, because four bundles go"
    )


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"at_most": 1.0}, False),
        ({"at_most": 0.99}, True),
        ({"at_least": 1.0}, False),
        ({"at_least": 1.01}, True),
        ({"at_least": 0.5, "at_most": 0.9}, True),
    ],
)
def test_assertions_hold_at_their_limits(limits: dict[str, float], expected: bool) -> None:
    """`balance` is 1.0 here."""
    assert broken(Assertion.model_validate({"figure": "balance", **limits}), _EVEN) is expected


def test_a_figure_that_cannot_be_told_breaks_its_assertion() -> None:
    """Clients without properties match nothing."""
    assert math.isnan(_EVEN.matched)
    assert broken(Assertion(figure="matched", at_least=0.0), _EVEN)


def test_a_trend_is_told_in_rows() -> None:
    """Every five minutes and the last, with moves since the row before, figures, and the policy's own assertions."""
    assertions = [
        {"figure": "moves", "at_most": 3},
        {"figure": "balance", "at_most": 1, "policy": "stays"},
        {"figure": "balance", "at_most": 1, "policy": "other"},
    ]
    changes = {
        "assertions": assertions,
        "events": [{"at": 3, "leave": ["b1"]}],
        "policies": [{"name": name, "selector": "round-robin"} for name in ("stays", "other")],
    }
    lines = trends_text(scenario(**changes), trends(**changes)).splitlines()

    assert lines[:5] == [
        "policy stays",
        "  minute   balance  usage max  unloads  moves  moved MiB/s  splits  unowned",
        "       0     1.714      0.600        0      0          0.0       0        0",
        "       5     1.000      0.400        0      3          6.0       0        0",
        "      10     1.000      0.400        0      0          0.0       0        0",
    ]
    assert lines[6].startswith("  balance 1.000, usage_max 0.400, usage_peak 0.600, overloaded 0, idle 0, thrash ")
    assert "matched" not in lines[6]
    assert lines[7:10] == ["  holds: moves at most 3", "  holds: balance at most 1", ""]


def test_a_shedder_that_unloads_nothing_says_why() -> None:
    """In a line below the figures, with what it fell short of."""
    changes = {"policies": [{"name": "calm", "selector": "random", "shedder": {"use": "overload", "threshold": 0.99}}]}
    told = [line for line in trends_text(scenario(**changes), trends(**changes)).splitlines() if "unloaded" in line]

    assert len(told) == 1
    assert "balanced" in told[0]
    assert "% usage of the fullest broker, minimum 99" in told[0]
