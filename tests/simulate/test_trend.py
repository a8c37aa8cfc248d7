"""Figures of a run, and how they are told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lookup.simulate import Sample, Trend, told
from lookup.simulate.scenario import Assertion
from lookup.simulate.trend import broken
from tests.simulate.scenarios import scenario, trends


def _sample(minute: int, b1: float, b2: float, moves: int = 0) -> Sample:
    by_broker = {"b1": b1, "b2": b2}
    usage = np.array([value for value in by_broker.values() if not math.isnan(value)])
    return Sample(minute, usage, moves, moves, float(moves), 0, 0, math.nan, by_broker)


def _trend(*usages: tuple[float, float], window: int = 1) -> Trend:
    return Trend("p", window, tuple(_sample(minute, *pair) for minute, pair in enumerate(usages)))


def test_balance_is_averaged_over_the_last_minutes() -> None:
    """1.5 and 1.0 in the last two; what was before does not count."""
    figures = _trend((0.9, 0.1), (0.6, 0.2), (0.4, 0.4), window=2).figures

    assert figures.balance == pytest.approx(1.25)
    assert figures.usage_max == pytest.approx(0.5)


def test_thrash_is_variation_beyond_the_trend() -> None:
    """A rise costs nothing, up and down again does; a gap is no change."""
    assert _trend((0.1, 0.5), (0.3, 0.5), (0.6, 0.5)).figures.thrash == pytest.approx(0.0)
    assert _trend((0.1, 0.5), (0.5, 0.5), (0.2, 0.5)).figures.thrash == pytest.approx((0.7 - 0.1) / 2)
    assert _trend((0.1, 0.5), (math.nan, 0.5), (0.9, 0.5)).figures.thrash == pytest.approx(0.0)


def test_the_last_move_is_counted_from_one() -> None:
    """Zero says that nothing moved."""
    samples = (_sample(0, 0.5, 0.5), _sample(1, 0.5, 0.5, moves=2), _sample(2, 0.5, 0.5))

    assert Trend("p", 1, samples).figures.last_move == 2
    assert Trend("p", 1, samples[:1]).figures.last_move == 0


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
    figures = _trend((0.5, 0.5)).figures

    assert broken(Assertion(figure="balance", **limits), figures) is expected


def test_a_figure_that_cannot_be_told_breaks_its_assertion() -> None:
    """Clients without properties match nothing."""
    figures = _trend((0.5, 0.5)).figures

    assert math.isnan(figures.matched)
    assert broken(Assertion(figure="matched", at_least=0.0), figures)


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
    lines = told(scenario(**changes), trends(**changes)).splitlines()

    assert lines[:5] == [
        "policy stays",
        "  minute   balance  usage max  sheds  moves  moved MiB/s  splits  unowned",
        "       0     1.714      0.600      0      0          0.0       0        0",
        "       5     1.000      0.400      0      3          6.0       0        0",
        "      10     1.000      0.400      0      0          0.0       0        0",
    ]
    assert lines[6].startswith("  balance 1.000, usage_max 0.400, thrash 0.000, last_move 4, moves 3, sheds 0, ")
    assert "matched" not in lines[6]
    assert lines[7:10] == ["  holds: moves at most 3", "  holds: balance at most 1", ""]
