"""Figures of a run, computed from its samples."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import get_args

import numpy as np
import pytest

from lookup.simulate import MinuteSample, Trend, TrendFigures
from lookup.simulate.scenario import FigureName


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
