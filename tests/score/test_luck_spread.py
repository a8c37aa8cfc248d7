"""The variance of a mean over replicates, units and events put together, its degrees of freedom and probabilities."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy import stats

from lookup.hooks import Question
from lookup.score.luck import Spread, spread
from lookup.score.units import Sample, Stratum, minus, sample
from tests.score.cases import layout, moves, series, sums
from tests.score.samples import QUOTIENTS, drawn, table

QUESTIONS: tuple[Question, Question] = ("log", "demand")


def stratum(parts: ArrayLike, weights: ArrayLike | None = None, **kind: Any) -> Stratum:
    """Write down units of the demand, shape (n_replicates, n_units), by default of equal weight."""
    parts = np.asarray(parts, dtype=np.float64)
    weights = np.ones(parts.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    return Stratum("demand", parts, weights, **kind)


def of_demand(parts: ArrayLike, weights: ArrayLike | None = None, **kind: Any) -> Sample:
    """Write down what units add to a figure that is 0 in every replicate, shape (n_replicates, n_units)."""
    one = stratum(parts, weights, **kind)
    return Sample(np.zeros(len(one.parts)), (one,))


class TestInterplay:
    """What units do differently in each replicate is counted once."""

    def test_it_is_subtracted(self) -> None:
        """Unit effects of ±3 and an interplay of ±1 in two replicates leave 2 (9 - 1) times the correction 2."""
        whole = spread(of_demand([[4, -4], [2, -2]]))

        assert whole.variances["demand"] == pytest.approx(2 * 2 * (9 - 1))

    def test_nothing_is_left_on_average(self) -> None:
        """Over worlds with unit effects of variance 1 beside an interplay of variance 4 the 1 alone remains."""
        rng = np.random.default_rng(2)
        worlds = [rng.normal(size=100) + rng.normal(0, 2, (4, 100)) for _ in range(200)]

        whole = np.mean([spread(of_demand(parts - parts.mean())).variances["demand"] for parts in worlds])
        assert whole / 100 == pytest.approx(1.0, abs=0.1)

    def test_blocks_have_interplay_too(self) -> None:
        """Blocks of two cells that move against each other in two replicates leave nothing."""
        rows = np.array([1.0, 1.0, -1.0, -1.0])

        assert spread(of_demand([rows, -rows], block=2)).variances["demand"] == 0.0


class TestPlacement:
    """The variance over replicates, of which there are few."""

    def test_replicates_that_agree_by_chance_vary_as_their_units_do(self) -> None:
        """They count as one more: half of an interplay of 2 * (2 + 2) / 2, though both figures are 0."""
        assert spread(of_demand([[1, -1], [-1, 1]])).variances["placement"] == pytest.approx(2.0)

    @pytest.mark.parametrize(("apart", "expected"), [(0.0, 4 / 3), (2.0, (2 * 4 / 3 + 4) / 3), (9.0, 27.0)])
    def test_it_is_the_larger_of_two(self, apart: float, expected: float) -> None:
        """Of three replicates with an interplay of 4: their own variance, or that with one more unit's in it."""
        parts = np.array([[2.0, -2.0], [-2.0, 2.0], [0.0, 0.0]]) * math.sqrt(3) / 2
        # each unit has the variance 3 over replicates: with the correction 2, for the mean of three, 2 * (3 + 3) / 3
        values = np.array([-apart, 0.0, apart])

        assert spread(Sample(values, (stratum(parts),))).variances["placement"] == pytest.approx(expected)

    def test_the_interplay_of_all_strata_counts(self) -> None:
        """That of bundles and of events, whether a question is about them or not."""
        bundles, events = stratum([[1, -1], [-1, 1]]), replace(stratum([[1], [-1]], is_few=True), source="events")
        whole = Sample(np.zeros(2), (bundles, events))

        for question in QUESTIONS:
            assert spread(whole, question).variances["placement"] == pytest.approx((4 + 1) / 2)

    def test_units_that_do_not_differ_between_replicates_add_nothing(self) -> None:
        """A policy whose replicates are the same has no luck of the placement."""
        assert spread(of_demand([[3, -1, -2]] * 4)).variances["placement"] == pytest.approx(0.0)


class TestQuestion:
    """What an interval is about: this log alone, or demand like it."""

    PARTS = (moves("new", [3, 1, 4, 9, 2, 6], causes=["forced"] * 2),)

    def test_on_the_log_the_demand_is_as_it_was(self) -> None:
        """Of a run with lost brokers only their luck remains, with its freedom."""
        on_log, whole = (spread(drawn(*self.PARTS, min_events=2), question) for question in QUESTIONS)

        assert on_log.variances == pytest.approx({"placement": 0.0, "events": 2 * np.var([2, 6], ddof=1)})
        assert on_log.freedom == pytest.approx(1.0)
        assert whole.variances["demand"] == pytest.approx(4 * np.var([3, 1, 4, 9], ddof=1))

    def test_nothing_but_demand_is_nothing_on_the_log(self) -> None:
        """One replicate of a ratio is what it is."""
        assert spread(drawn(sums("new", QUOTIENTS)), "log").error == 0.0
        assert spread(drawn(sums("new", QUOTIENTS))).error > 0.0

    def test_a_drift_of_the_demand_is_none_on_the_log(self) -> None:
        """These hours are what is asked about."""
        rising = Sample(np.zeros(1), (stratum([np.arange(24.0) - 11.5], block=1),))

        assert [spread(rising, question).is_drifting for question in QUESTIONS] == [False, True]


class TestSpread:
    """Degrees of freedom, intervals and probabilities."""

    @given(st.lists(st.floats(-9, 9), min_size=2, max_size=8), st.lists(st.floats(-9, 9), min_size=2, max_size=8))
    def test_the_freedom_lies_between_the_least_and_the_sum(self, values: list[float], units: list[float]) -> None:
        """Satterthwaite's, of a sum of two variances."""
        parts = np.tile(units, (len(values), 1))
        whole = spread(Sample(np.array(values), (stratum(parts - parts.mean()),)))

        least, most = sorted([len(values) - 1, len(units) - 1])[0], len(values) + len(units) - 2
        assert whole.error < 1e-6 or least - 1e-6 <= whole.freedom <= most + 1e-6

    def test_the_freedom_of_equal_variances_is_the_sum(self) -> None:
        """Two variances of the same size with three and four degrees of freedom have a harmonic mean of them."""
        whole = spread(Sample(np.array([-1.0, 1.0]), (stratum(np.array([[1, 0, -1]] * 2) / np.sqrt(3)),)))

        assert whole.variances == pytest.approx({"placement": 1.0, "demand": 1.0})
        assert whole.freedom == pytest.approx(4 / (1 / 1 + 1 / 2))

    @pytest.mark.parametrize(
        ("weights", "expected"),
        [
            ([5, 5, 5, 5], 3.0),
            ([6, 1, 1, 1], (81 / 39 - 1 + 39**2 / 1299) / 2),
            ([1000, 1, 1, 1], 1.0),
            ([4, 4, 0, 0], 1.5),
        ],
    )
    def test_the_freedom_of_unequal_units(self, weights: list[float], expected: float) -> None:
        """Midway between Kish's number less one and that of the squares, at most n - 1 and at least one."""
        assert spread(of_demand([[1, 2, -3, 0]], weights)).freedom == pytest.approx(expected)

    def test_weights_of_cells_of_time_do_not_matter(self) -> None:
        """Blocks of them are compared as they are; of seven there are seven over two."""
        parts = [[1, -2, 1, -1, 2, -2, 1]]

        assert spread(of_demand(parts, [1000, 1, 1, 1, 1, 1, 1], block=1)).freedom == pytest.approx(7 / 2 - 1)

    @pytest.mark.parametrize(("replicates", "least"), [(1, 0.0), (2, 1 / 8), (3, 1 / 32), (5, 1 / 512)])
    def test_so_many_replicates_carry_no_smaller_probability(self, replicates: int, least: float) -> None:
        """Equals that have one of two values at even odds come out apart in all of them that often."""
        whole = spread(Sample(np.full(replicates, 7.0)))

        assert (whole.least, whole.chance(7.0), whole.chance(0.0)) == (least, least, 1.0)
        assert replace(whole, variances={"placement": 1e-9}, freedom=9.0).chance(7.0) >= least

    @pytest.mark.parametrize("freedom", [1.0, 3.5, 200.0])
    def test_probability_and_interval_agree(self, freedom: float) -> None:
        """A difference of half a width has the probability with which the interval misses."""
        whole = Spread({"placement": 4.0}, freedom)

        assert whole.half_width() == pytest.approx(2 * stats.t.ppf(0.975, freedom))
        assert whole.chance(-whole.half_width()) == whole.chance(whole.half_width()) == pytest.approx(0.05)
        assert whole.half_width(0.01) > whole.half_width()

    def test_without_variance_every_difference_is_one(self) -> None:
        """And none is none."""
        assert (Spread().half_width(), Spread().chance(0.1), Spread().chance(0.0)) == (0.0, 0.0, 1.0)

    def test_a_sample_less_itself_is_nothing(self) -> None:
        """No value, no part, no variance."""
        one = drawn(*table([[1, 2, 4], [3, 1, 1]], causes=["forced"]))
        whole = spread(minus(one, one))

        assert not np.any(minus(one, one).values)
        assert (whole.error, whole.chance(0.0)) == (0.0, 1.0)

    def test_a_difference_keeps_what_its_strata_are(self) -> None:
        """Blocks, few units and those of the log; weights add up, since both policies rest on them."""
        kinds: list[dict[str, Any]] = [{"block": 3}, {"is_few": True}, {"is_on_log": True}]
        one, other = (
            Sample(np.zeros(1), tuple(stratum([[part, 1.0]], [weight, 2.0], **kind) for kind in kinds))
            for part, weight in ((5.0, 1.0), (3.0, 7.0))
        )

        held = minus(one, other).strata or ()
        assert [(part.block, part.is_few, part.is_on_log) for part in held] == [
            (3, False, False),
            (None, True, False),
            (None, False, True),
        ]
        assert [(part.parts.tolist(), part.weights.tolist()) for part in held] == [([[2.0, 0.0]], [8.0, 4.0])] * 3

    def test_differences_are_paired(self) -> None:
        """What makes a bundle, an event or a replicate hard for both cancels out: one more move in each is certain."""
        rows = np.array([[1.0, 2.0, 4.0, 9.0, 5.0, 6.0], [3.0, 1.0, 1.0, 5.0, 2.0, 7.0]])
        stock = [replace(one, policy="stock") for one in table(rows, causes=["forced"] * 2)]
        several = series(*stock, *table(rows + 1, causes=["forced"] * 2))
        old, new = (sample(one, layout(several, min_events=2)) for one in several)

        assert minus(new, old).values.tolist() == [6.0, 6.0]
        assert spread(minus(new, old)).error == pytest.approx(0.0, abs=1e-6)
        # Those of a class with dice of its own are not: what each varies by adds up.
        both = spread(minus(new, old, is_paired=False), "log").variances["placement"]
        assert both >= np.var(new.values, ddof=1) / 2 + np.var(old.values, ddof=1) / 2
        assert spread(new).error > 1.0
