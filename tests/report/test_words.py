"""Figures in words and in few digits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.report.words import amount_text, change_text, filled, size_text, span_text, words_of
from tests.score.cases import METRICS

_METRIC = {metric.name: metric for metric in METRICS}


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("match_ratio", 0.34204, "34.2 %"),
        ("match_ratio", 0.0, "0 %"),
        ("match_ratio", 1.0, "100 %"),
        ("answered_ratio", 0.99982, "99.98 %"),
        ("answered_ratio", 0.9999997, "99.99997 %"),
        ("imbalance_max_mean", 1.7606, "1.76 × mean"),
        ("moves", 442.3, "442"),
        ("moves", 12_345.0, "12,300"),
        ("moves", 3.6, "3.6"),
        ("network_ms_mean", 0.30763, "0.308 ms"),
        ("moved_weight", 53.2, "53.2 weight/s"),
        ("moves", math.nan, "–"),
    ],
)
def test_a_figure_has_three_digits_and_its_unit(metric: str, value: float, text: str) -> None:
    """A share is in percent, and one that is nearly the whole is not rounded to it."""
    assert amount_text(value, _METRIC[metric]) == text


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
        ("imbalance_max_mean", 1.7606, 1.1867, "-33 %"),
        ("network_cost", math.nan, 2.0, "–"),
    ],
)
def test_a_change_has_two_digits(metric: str, before: float, after: float, text: str) -> None:
    """Points of a share, a multiple or a part of anything else, and what there was nothing of before as it is."""
    assert change_text(before, after, _METRIC[metric]) == text


@pytest.mark.parametrize(
    ("metric", "before", "after", "text"),
    [
        ("moves", 194, 442, "moves 2.3 times as many bundles"),
        ("moves", 194, 388, "moves twice as many bundles"),
        ("moves", 217, 105, "moves 52 % fewer bundles"),
        ("moves", 217, 0, "moves no bundles"),
        ("moves", 0, 249, "moves 249 instead of no bundles"),
        ("moved_weight", 4.971, 1.219, "moves 75 % less load"),
        ("network_ms_mean", 0.3076, 0.2782, "is 9.6 % nearer to clients"),
        ("imbalance_max_mean", 1.7, 1.2, "balances better"),
    ],
)
def test_a_clause_says_how_two_figures_compare(metric: str, before: float, after: float, text: str) -> None:
    """As one would say it."""
    words = words_of((metric, None))

    assert filled(words.more if after > before else words.less, before, after) == text


def test_a_label_is_named_in_the_words() -> None:
    """Whatever it is called."""
    assert words_of(("match_ratio", "rack")).name == "same-rack share"
    assert filled(words_of(("match_ratio", "{x}")).more, 0.3, 0.4).endswith(" own {x}")
    assert words_of(("moves", "shed")).name == "moved bundles (unloaded by the shedder)"


def test_a_metric_of_a_plug_in_goes_by_its_name() -> None:
    """With its key, in words as far as it has any."""
    words = words_of(("tail_latency", "p99"))

    assert (words.name, words.more) == ("tail latency p99", "has more tail latency p99")


def test_every_built_in_metric_has_words() -> None:
    """None has more or less of a name, but one that is no built-in."""
    plain = {name for name in _METRIC if words_of((name, None)).more.startswith("has more")}

    assert plain == {"waiting"}


def test_intervals_and_sizes_have_the_unit_of_the_difference() -> None:
    """Points of a share; a dash where nothing is known."""
    assert span_text(0.071, 0.1204, _METRIC["match_ratio"]) == "+7.1 to +12 points"
    assert span_text(-26.2, 7.6, _METRIC["moves"]) == "-26 to +7.6"
    assert span_text(-0.68, -0.47, _METRIC["imbalance_max_mean"]) == "-0.68 to -0.47 × mean"
    assert span_text(math.nan, math.nan, _METRIC["moves"]) == "–"
    assert size_text(0.0073, _METRIC["match_ratio"]) == "0.73 points"


@given(st.floats(0.0, 1.0))
def test_a_share_is_rounded_and_nothing_else(value: float) -> None:
    """The text is the figure in percent to three digits at least, and only the whole is 100 %."""
    text = amount_text(value, _METRIC["match_ratio"])

    assert float(text.removesuffix(" %")) == pytest.approx(100 * value, rel=5.1e-3, abs=1e-12)
    assert (text == "100 %") == (value > 0.99999999)
