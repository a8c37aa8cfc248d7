"""Figures of a run, computed from its samples, and the assertions about them: which hold, and what is printed."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any, get_args

import numpy as np
import pytest

from lookup.engine.answers import Failures
from lookup.simulation import AssertionResult, MinuteSample, Trend, TrendFigures, findings, trends_text
from lookup.simulation.scenario import FigureName
from tests.simulation.scenarios import scenario, trends


def _sample(minute: int, b1: float, b2: float, *moved: tuple[int, int]) -> MinuteSample:
    by_broker = {"b1": b1, "b2": b2}
    usage = np.array([value for value in by_broker.values() if not math.isnan(value)])
    idle = int((usage == 0.0).sum())
    return MinuteSample(minute, usage, moved, len(moved), float(len(moved)), 0, 0, idle, math.nan, by_broker)


def _trend(*usages: tuple[float, float], window: int = 1) -> Trend:
    return Trend("p", window, tuple(_sample(minute, *pair) for minute, pair in enumerate(usages)))


def test_balance_is_averaged_over_the_last_minutes() -> None:
    """1.5 and 1.0 in the last two; what was before does not count."""
    figures = _trend((0.9, 0.1), (0.6, 0.2), (0.4, 0.4), window=2).figures

    assert figures.balance == pytest.approx(1.25)
    assert figures.usage_max == pytest.approx(0.5)


def test_the_peak_is_of_all_minutes() -> None:
    """And a broker is overloaded above 0.85, not at it; who serves nothing at the end is idle."""
    figures = _trend((0.9, 0.1), (0.85, 0.2), (0.4, 0.0)).figures

    assert (figures.usage_peak, figures.overloaded, figures.idle) == (0.9, 1, 1)


def test_thrash_is_variation_against_the_trend() -> None:
    """A rise costs nothing, up by 0.4 and down by 0.3 does as in asim's formula; a gap is no change."""
    share = 0.75**0.8

    assert _trend((0.1, 0.5), (0.3, 0.5), (0.6, 0.5)).figures.thrash == pytest.approx(0.0)
    assert _trend((0.1, 0.5), (0.5, 0.5), (0.2, 0.5)).figures.thrash == pytest.approx(
        (share * 0.7 + (1 - share) * 0.3) / 2
    )
    assert _trend((0.1, 0.5), (math.nan, 0.5), (0.9, 0.5)).figures.thrash == pytest.approx(0.0)


def test_the_last_move_is_counted_from_one() -> None:
    """Zero says that nothing moved."""
    samples = (_sample(0, 0.5, 0.5), _sample(1, 0.5, 0.5, (0, 1)), _sample(2, 0.5, 0.5))

    assert (Trend("p", 1, samples).figures.last_move, Trend("p", 1, samples).figures.last_unload) == (2, 2)
    assert (Trend("p", 1, samples[:1]).figures.last_move, Trend("p", 1, samples[:1]).figures.last_unload) == (0, 0)


def test_moves_there_and_back_are_a_cycle() -> None:
    """Two went over and another one came back: one of the two was not needed, and neither was the third."""
    samples = (_sample(0, 0.5, 0.5, (0, 1), (0, 1)), _sample(1, 0.5, 0.5, (1, 0)))
    figures = Trend("p", 1, samples).figures

    assert (figures.moves, figures.cycle_moves) == (3, 2)


def test_every_figure_can_be_asserted() -> None:
    """Names of figures are listed once for files and once as fields."""
    assert list(get_args(FigureName)) == [entry.name for entry in fields(TrendFigures)]


#: One broker goes, and under both policies its three bundles move.
_CHANGES: dict[str, Any] = {
    "events": [{"at": 3, "leave": ["b1"]}],
    "policies": [{"name": name, "selector": "round-robin"} for name in ("stays", "turns")],
}

#: One minute of two brokers that are used alike, without load that clients' properties match.
_EVEN = _trend((0.5, 0.5))


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
    assert found[1].failure.startswith("policy 'turns': moves is 3 ")


def test_the_unlike_are_not_among_all() -> None:
    """An assertion without policy leaves them out, and wants the contrary of them."""
    found = _judged(at_most=2, unlike=["turns"])

    assert [(one.policy, one.holds) for one in found] == [("stays", False), ("turns", True)]


def test_a_failure_says_why_it_should_be_otherwise() -> None:
    """With the limits and the reason as written."""
    (found,) = _judged(policy="stays", at_least=4, at_most=5, because="four bundles go")

    for part in ("policy 'stays': moves is 3", "at least 4 and at most 5", "because four bundles go"):
        assert part in found.failure


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"at_most": 1.0}, True),
        ({"at_most": 0.99}, False),
        ({"at_least": 1.0}, True),
        ({"at_least": 1.01}, False),
        ({"at_least": 0.5, "at_most": 0.9}, False),
    ],
)
def test_assertions_hold_at_their_limits(limits: dict[str, float], expected: bool) -> None:
    """`balance` is 1.0 here."""
    (found,) = findings(scenario(assertions=[{"figure": "balance", **limits}]), [_EVEN])

    assert found.holds is expected


def test_a_figure_that_cannot_be_told_breaks_its_assertion() -> None:
    """Clients without properties match nothing."""
    asked = scenario(properties={"rack": "a"}, assertions=[{"figure": "matched", "at_least": 0.0}])
    (found,) = findings(asked, [_EVEN])

    assert math.isnan(found.value)
    assert not found.holds


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

    assert "moved MiB/s" in lines[1]
    assert lines[:5] == [
        "policy stays",
        lines[1],
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
    assert "minimum 99" in told[0]


def test_failures_that_a_policy_passes_over_are_said() -> None:
    """Below its figures, with the first of them."""
    (trend,) = trends(policies=[{"name": "calm", "selector": "random"}])
    trend = replace(trend, failures=Failures(3, "shedder 'x' raised OSError: gone"))

    assert "  its parts failed 3 times, the first: shedder 'x' raised OSError: gone" in trends_text(scenario(), [trend])
