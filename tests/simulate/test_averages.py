"""Message rates in the long run."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.simulate.averages import LongRun


def _after(*rates: float) -> float:
    """Return the mean after these reports of one bundle."""
    long_run = LongRun()
    for rate in rates:
        long_run.take({"b": rate})
    return long_run.rates["b"]


def test_nothing_is_known_before_the_first_report() -> None:
    """And a bundle that is not named keeps its mean."""
    long_run = LongRun()
    assert long_run.rates == {}
    long_run.take({"b": 3.0})
    long_run.take({"c": 5.0})

    assert long_run.rates == {"b": 3.0, "c": 5.0}


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_up_to_a_thousand_reports_it_is_their_mean(rates: list[float]) -> None:
    """The plain one."""
    assert _after(*rates) == pytest.approx(math.fsum(rates) / len(rates), abs=1e-6)


def test_after_a_thousand_reports_it_is_an_exponential_mean() -> None:
    """A thousand of 10, then two of 1010: each moves the mean by a thousandth of the difference."""
    assert _after(*[10.0] * 1000, 1010.0) == pytest.approx(11.0)
    assert _after(*[10.0] * 1000, 1010.0, 1010.0) == pytest.approx(11.0 + 0.999)
