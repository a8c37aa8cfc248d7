"""Mean and deviation of loads, and what moving load does to them."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model import LoadStats

LOADS = st.lists(st.floats(0, 10), min_size=2, max_size=20)


def test_no_loads_have_no_deviation() -> None:
    """Everything is zero."""
    assert LoadStats.of([]) == LoadStats(0, 0.0, 0.0, 0.0)


def test_the_order_of_the_sums_is_that_of_the_loads() -> None:
    """Pulsar's own example, to the last bit: another order gives another average."""
    loads = [0.8, 0.02, 0.04, 0.9, 0.06]

    assert LoadStats.of(loads).average == 0.36400000000000005
    assert LoadStats.of(loads).deviation == 0.3982762860126121
    assert LoadStats.of(sorted(loads)).average == 0.364


def test_round_off_never_makes_a_deviation_negative() -> None:
    """Three equal loads whose mean square comes out below the square of their mean have deviation zero."""
    loads = [0.1, 0.1, 0.1]
    average = sum(loads) / 3

    assert sum(load * load for load in loads) / 3 - average * average < 0
    assert LoadStats.of(loads).deviation == 0.0


def test_a_source_does_not_fall_below_zero() -> None:
    """More than there is cannot leave it."""
    assert LoadStats.of([1.0, 3.0]).moved(3.0, 1.0, 5.0).squares == 36.0


@given(LOADS)
def test_figures_are_mean_and_population_deviation(loads: list[float]) -> None:
    """As the standard library has them."""
    stats = LoadStats.of(loads)

    assert stats.average == pytest.approx(statistics.fmean(loads))
    assert stats.deviation == pytest.approx(statistics.pstdev(loads), abs=1e-6)


@given(LOADS, st.floats(0, 1))
def test_moving_leaves_the_figures_of_the_loads_after_it(loads: list[float], share: float) -> None:
    """The first load gives some of itself to the second."""
    amount = loads[0] * share
    after = [loads[0] - amount, loads[1] + amount, *loads[2:]]
    moved = LoadStats.of(loads).moved(loads[0], loads[1], amount)

    assert moved.average == pytest.approx(statistics.fmean(after))
    assert moved.deviation == pytest.approx(statistics.pstdev(after), abs=1e-6)
