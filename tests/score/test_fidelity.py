"""The replayed incumbent beside the log."""

from __future__ import annotations

import math

import pytest

from lookup.replay.outcome import LOGGED
from tests.score.cases import plan, ratios, scored, sums


def test_gaps_are_absolute() -> None:
    """Which side errs does not matter; candidates play no part."""
    parts = [ratios("stock", [0.5] * 30), ratios("new", [0.9] * 30), ratios(LOGGED, [0.6] * 30)]

    (found,) = scored(parts).fidelity

    assert (found.metric, found.key, found.reason) == ("answered_ratio", None, None)
    assert (found.logged, found.resimulated, found.gap) == pytest.approx((0.6, 0.5, 0.1))


def test_an_unusable_log_is_the_reason() -> None:
    """The replay says why the logged choices could not be measured."""
    (found,) = scored([ratios("stock", [0.5] * 30)], logged_reason="only 12 % of the lookups carry a broker").fidelity

    assert math.isnan(found.gap)
    assert found.reason == "only 12 % of the lookups carry a broker"


def test_some_metrics_cannot_be_computed_from_the_log() -> None:
    """The others can."""
    parts = [ratios("stock", [0.5] * 30), sums("stock", [[1]] * 30, "moves"), ratios(LOGGED, [0.6] * 30)]

    answered, moves = scored(parts).fidelity

    assert answered.reason is None
    assert moves.reason == "it cannot be computed from the logged brokers"
    assert moves.resimulated == 30


def test_nothing_to_measure() -> None:
    """A log in which nobody sent the property has no gap."""
    (found,) = scored([sums("stock", [[0, 0]] * 30), sums(LOGGED, [[0, 0]] * 30)]).fidelity

    assert found.reason == "there is nothing to measure"


def test_the_gap_stops_a_verdict() -> None:
    """A gain of 0.05 is not believed where the replay misses the log by 0.1."""
    parts = [ratios("stock", [0.5] * 30), ratios("new", [0.55] * 30)]

    believed, doubted = scored(parts), scored([*parts, ratios(LOGGED, [0.6] * 30)], plan())

    assert [one.verdicts[0].verdict for one in (believed, doubted)] == ["better", "inconclusive"]
