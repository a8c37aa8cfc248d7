"""Numbers in few digits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.report.numbers import amount_text, change_text, difference_text, size_text, span_text, value_text
from lookup.score.figures import Figure

_UNITS = {"moves": "moves", "network_ms_mean": "ms", "moved_weight": "weight/s"}


def _figure(metric: str) -> Figure:
    nan = math.nan
    unit = _UNITS.get(metric, "ratio")
    return Figure("p", "all clusters", None, metric, None, None, None, nan, nan, nan, unit, "up", "demand")


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("match_ratio", 0.34204, "34.2 %"),
        ("match_ratio", 0.0, "0 %"),
        ("match_ratio", 1.0, "100 %"),
        ("answered_ratio", 0.99982, "99.98 %"),
        ("answered_ratio", 0.9999997, "99.99997 %"),
        ("imbalance_max_mean", 1.17562, "1.176 × mean"),
        ("moves", 442.3, "442"),
        ("moves", 12_345.0, "12,300"),
        ("network_ms_mean", 0.30763, "0.308 ms"),
        ("moved_weight", 53.2, "53.2 weight/s"),
        ("moves", math.nan, "–"),
    ],
)
def test_an_amount_has_three_digits_and_its_unit(metric: str, value: float, text: str) -> None:
    """A share is in percent, and one that is nearly the whole is not rounded to it."""
    assert amount_text(value, _figure(metric)) == text


@pytest.mark.parametrize(
    ("metric", "before", "after", "text"),
    [
        ("match_ratio", 0.342, 0.4378, "+9.6 points"),
        ("match_ratio", 0.5, 0.49, "-1 point"),
        ("moves", 194, 442, "× 2.3"),
        ("moves", 217, 273, "+26 %"),
        ("moves", 217, 0, "-100 %"),
        ("moves", 0, 249, "+249"),
        ("moves", 0, 0, "0"),
        ("imbalance_max_mean", 1.7606, 1.1867, "-0.57 × mean"),
        ("network_ms_mean", math.nan, 2.0, "–"),
    ],
)
def test_a_change_has_two_digits(metric: str, before: float, after: float, text: str) -> None:
    """Points of a share, a multiple or percent of anything else; from nothing the value itself."""
    assert change_text(before, after, _figure(metric)) == text


@pytest.mark.parametrize(
    ("before", "after", "what", "text"),
    [
        (194, 442, "many bundles", "2.3 times as many bundles"),
        (194, 388, "many bundles", "twice as many bundles"),
        (217, 105, "many bundles", "52 % fewer bundles"),
        (217, 0, "many bundles", "no bundles"),
        (0, 249, "many bundles", "249 bundles instead of none"),
        (4.971, 1.219, "much load", "75 % less load"),
    ],
)
def test_amounts_are_compared_in_words(before: float, after: float, what: str, text: str) -> None:
    """As one would say it."""
    assert difference_text(before, after, what) == text


def test_intervals_and_sizes_have_the_unit_of_the_change() -> None:
    """Points of a share; a dash where nothing is known."""
    assert span_text(0.071, 0.1204, _figure("match_ratio")) == "+7.1 to +12 points"
    assert span_text(-0.68, -0.47, _figure("imbalance_max_mean")) == "-0.68 to -0.47 × mean"
    assert span_text(math.nan, math.nan, _figure("moves")) == "–"
    assert size_text(0.0073, _figure("match_ratio")) == "0.73 points"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.12345, "ratio", "0.1235"),
        (-0.00001, "ratio", "0.0000"),
        (1234.0, "moves", "1,234"),
        (3.25, "moves", "3.2"),
        (0.5, "ms", "0.5"),
        (1.82e9, "weight/s", "1,820 M"),
        (math.inf, "ms", "–"),
    ],
)
def test_a_value_of_a_table(value: float, unit: str, text: str) -> None:
    """Ratios have four decimals, counts are whole, and what rounds to zero has no sign."""
    assert value_text(value, unit) == text


@given(st.floats(0.0, 1.0))
def test_a_share_is_rounded_and_nothing_else(value: float) -> None:
    """The text is the value in percent to three digits at least, and only the whole is 100 %."""
    text = amount_text(value, _figure("match_ratio"))

    assert float(text.removesuffix(" %")) == pytest.approx(100 * value, rel=5.1e-3, abs=1e-12)
    assert (text == "100 %") == (value > 0.99999999)
