"""Variances over replicates, units and events: by hand, under changes of scale and order, and against known truths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy import stats

from lookup.replay.outcome import MetricSums
from lookup.score.luck import Sample, Spread, Stratum, minus, sample, spread
from tests.score.cases import HOUR_US, layout, moves, ratios, series, sums

#: Sums of a quotient, shape (n_bundles, 2).
QUOTIENTS = np.array([[1, 4], [3, 5], [9, 9], [2, 8], [0, 3]], dtype=np.float64)


def drawn(*parts: MetricSums, cluster: str | None = None, **how: int) -> Sample:
    """Return the figure of the policy `new` in every replicate."""
    several = series(*parts)
    return sample(several[-1], layout(several, **how), cluster)


def half_width(*parts: MetricSums, **how: int) -> float:
    """Return half the width of the interval of that figure."""
    return spread(drawn(*parts, **how)).half_width()


def table(rows: ArrayLike, **where: object) -> list[MetricSums]:
    """Write down moves by replicate and bundle, shape (n_replicates, n_bundles)."""
    return [moves("new", row, seed=seed, **where) for seed, row in enumerate(np.asarray(rows, dtype=np.float64), 1)]


def of_demand(parts: ArrayLike, block: int = 1) -> Sample:
    """Write down what units add to a figure that is 0 in every replicate, shape (n_replicates, n_units)."""
    parts = np.asarray(parts, dtype=np.float64)
    return Sample(np.zeros(len(parts)), (Stratum("demand", parts, block),))


class TestLayout:
    """Which units and events there are."""

    def test_bundles_without_figures_are_no_units(self) -> None:
        """Nothing happened in them under any policy."""
        several = series(sums("stock", [[0, 1], [0, 0], [0, 0]]), sums("new", [[1, 1], [0, 0], [2, 2]]))

        assert layout(several).bundles["c"].tolist() == [0, 2]

    def test_events_are_told_apart_by_cause(self) -> None:
        """Those in which a bundle moved under any policy, by cluster and number."""
        causes = ("forced", "admin", "forced")
        several = series(
            moves("stock", [1, 0, 0, 4], causes=causes),
            moves("new", [1, 2, 0, 0], causes=causes),
            moves("new", [1, 0, 3, 0], causes=causes, cluster="d"),
        )

        events = layout(several).events
        numbers = {cause: {name: held.tolist() for name, held in events[cause].items()} for cause in events}
        assert numbers == {"admin": {"d": [1]}, "forced": {"c": [0, 2]}}

    @pytest.mark.parametrize(("block_s", "expected"), [(1, 1), (3600, 1), (5400, 2), (7200, 2), (10**9, 5)])
    def test_blocks_have_one_cell_at_least_and_all_at_most(self, block_s: int, expected: int) -> None:
        """A block shorter than a cell is a cell, one longer than the run is the run."""
        several = series(ratios("new", [0.5] * 5, "imbalance_cv"))

        assert layout(several, block_s=block_s).block == expected

    def test_clusters_share_their_time(self) -> None:
        """Cells are known by their start: two clusters that overlap by one hour span five, and a gap has none."""
        several = series(
            *(
                ratios("new", [0.5] * count, "imbalance_cv", cluster=name, start_us=start * HOUR_US)
                for name, count, start in (("c", 3, 0), ("d", 3, 2), ("e", 1, 10_000))
            )
        )

        assert (layout(several).cells // HOUR_US).tolist() == [0, 1, 2, 3, 4, 10_000]


class TestClosedForms:
    """Small cases, each by its formula."""

    def test_one_replicate_of_equal_bundles_has_no_variance(self) -> None:
        """There is nothing that could have been otherwise."""
        whole = spread(drawn(ratios("new", [0.5] * 4)))

        assert whole.variances == {"placement": 0.0, "demand": 0.0}
        assert (whole.half_width(), whole.freedom) == (0.0, math.inf)

    @pytest.mark.parametrize("values", [(0.4, 0.6), (0.3, 0.5, 0.55, 0.8)])
    def test_replicates_of_equal_bundles_are_a_mean(self, values: Sequence[float]) -> None:
        """Student's quantile times the standard deviation over the root of the replicates, as for any mean."""
        parts = [ratios("new", [value] * 30, seed=seed) for seed, value in enumerate(values)]

        expected = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
        assert half_width(*parts) == pytest.approx(expected)

    def test_a_ratio_over_bundles_has_the_classical_standard_error(self) -> None:
        """That of linearisation, from the residuals above - ratio * below."""
        whole = spread(drawn(sums("new", QUOTIENTS)))

        above, below = QUOTIENTS.T
        residuals = above - above.sum() / below.sum() * below
        expected = 5 / 4 * (residuals**2).sum() / below.sum() ** 2
        assert whole.variances["demand"] == pytest.approx(expected)
        assert whole.freedom == pytest.approx(4)

    def test_a_total_over_bundles_has_their_number_times_their_variance(self) -> None:
        """As the sum of that many independent counts."""
        counts = [3, 1, 4, 1, 5]

        assert spread(drawn(*table([counts]))).variances["demand"] == pytest.approx(5 * np.var(counts, ddof=1))

    def test_clusters_are_strata(self) -> None:
        """Variances add up; that the clusters differ is no luck."""
        counts = {"c": [3, 1, 4], "d": [105, 109, 102, 106]}
        parts = [moves("new", rows, cluster=name) for name, rows in counts.items()]

        expected = sum(len(rows) * np.var(rows, ddof=1) for rows in counts.values())
        assert spread(drawn(*parts)).variances["demand"] == pytest.approx(expected)
        assert spread(drawn(*parts, cluster="c")).variances["demand"] == pytest.approx(3 * np.var(counts["c"], ddof=1))

    def test_clusters_of_one_bundle_each_vary_as_one(self) -> None:
        """A bundle alone has no spread; thirty clusters with one each are not thirty certainties."""
        shares = np.random.default_rng(1).uniform(0.2, 0.8, 30).tolist()
        apart = spread(drawn(*(ratios("new", [share], cluster=f"c{place}") for place, share in enumerate(shares))))

        assert apart.variances["demand"] == pytest.approx(np.var(shares) / 30)
        assert apart.freedom > 10

    def test_blocks_of_time_overlap_and_go_round(self) -> None:
        """Of six cells in blocks of two every neighbouring pair counts, the last with the first, half each."""
        values = np.array([1.0, 2.0, 4.0, 8.0, 9.0, 3.0])
        below = np.full(6, 10.0)

        parts = sums("new", np.stack([values, below], axis=1), "imbalance_cv")
        residuals = (values - values.mean()) / 60
        pairs = residuals + np.roll(residuals, -1)
        whole = spread(drawn(parts, block_s=7200))
        assert whole.variances["demand"] == pytest.approx(3 / 2 * (pairs**2).sum() / 2)
        assert whole.freedom == pytest.approx(2)

    def test_cells_of_clusters_stand_where_their_time_is(self) -> None:
        """A cell of two clusters is one unit, and hours without cells between clusters are none."""
        several = [sums("new", rows, "imbalance_cv", cluster=name, start_us=start * HOUR_US) for name, start, rows in (
            ("c", 0, [[1, 4], [3, 4]]),
            ("d", 1, [[2, 4], [4, 4]]),
            ("e", 90, [[0, 4]]),
        )]  # fmt: skip
        together = sums("new", [[1, 4], [5, 8], [4, 4], [0, 4]], "imbalance_cv")

        assert half_width(*several) == pytest.approx(half_width(together))

    def test_a_replicate_without_figures_has_no_value(self) -> None:
        """And there is no mean over replicates then."""
        whole = drawn(sums("new", [[1, 2]], seed=1), sums("new", [[0, 0]], seed=2))

        assert np.isnan(whole.values).tolist() == [False, True]

    def test_rows_that_are_no_units_have_no_strata(self) -> None:
        """A quantile has values only."""
        assert drawn(sums("new", [[1, 1]], "network_ms_p95")).strata is None


class TestEvents:
    """What a lost broker, an unload or a split caused."""

    def test_many_events_vary_around_their_mean(self) -> None:
        """As bundles do: their number times their variance."""
        lost = [8, 9, 4, 12, 7]
        whole = spread(drawn(moves("new", [2, 2, 2, *lost], causes=["forced"] * 5), min_events=5))

        assert whole.variances["events"] == pytest.approx(5 * np.var(lost, ddof=1))
        assert whole.freedom == pytest.approx(4)

    @pytest.mark.parametrize("lost", [[8], [8, 9, 4, 12]])
    def test_few_events_count_at_full_size(self, lost: list[float]) -> None:
        """Their spread says nothing: each might as well not have been, with one degree of freedom each."""
        whole = spread(drawn(moves("new", [2, 2, 2, *lost], causes=["forced"] * len(lost)), min_events=5))

        assert whole.variances["events"] == pytest.approx(sum(count**2 for count in lost))
        assert whole.freedom == pytest.approx(len(lost))

    def test_one_event_is_few_whatever_is_asked_for(self) -> None:
        """It has no spread of its own: centred, it would be a certainty."""
        assert spread(drawn(moves("new", [2, 2, 8], causes=["forced"]), min_events=1)).variances["events"] > 60

    def test_causes_are_strata(self) -> None:
        """Three lost brokers are few, and five unloads beside them are many."""
        lost, unloaded = [8.0, 2.0, 5.0], [1.0, 2.0, 1.0, 1.0, 0.0, 3.0]
        causes = ["forced"] * 3 + ["admin"] * 6
        whole = spread(drawn(moves("new", [2, 2, *lost, *unloaded], causes=causes), min_events=5))

        active = [count for count in unloaded if count]
        expected = sum(count**2 for count in lost) + 5 * np.var(active, ddof=1)
        assert whole.variances["events"] == pytest.approx(expected)

    def test_events_of_other_clusters_do_not_count(self) -> None:
        """In one cluster, those of another cause nothing."""
        parts = [moves("new", [2, 3, 8], causes=["forced"], cluster=name) for name in "cd"]

        assert spread(drawn(*parts, cluster="c")).variances["events"] == pytest.approx(64)
        assert spread(drawn(*parts)).variances["events"] == pytest.approx(128)

    def test_the_event_is_the_main_source_if_it_is(self) -> None:
        """The largest of the three variances is named."""
        assert spread(drawn(moves("new", [1, 2, 50], causes=["forced"]))).main_source == "events"
        assert spread(drawn(moves("new", [1, 90, 5], causes=["forced"]))).main_source == "demand"
        assert spread(drawn(*table([[1, 1], [9, 9]]))).main_source == "placement"


class TestInterplay:
    """What units do differently in each replicate is counted once."""

    def test_it_is_subtracted(self) -> None:
        """Unit effects of ±3 and an interplay of ±1 in two replicates leave 2 (9 - 1) times the correction 2."""
        whole = spread(of_demand([[4, -4], [2, -2]]))

        assert whole.variances["demand"] == pytest.approx(2 * 2 * (9 - 1))

    def test_nothing_else_is_nothing(self) -> None:
        """A table of pure interplay leaves no variance over units, and none below zero."""
        assert spread(of_demand([[1, -1], [-1, 1]])).variances == {"placement": 0.0, "demand": 0.0}

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


class TestSpread:
    """Degrees of freedom, intervals and probabilities."""

    @given(
        st.lists(st.floats(-9, 9), min_size=2, max_size=8),
        st.lists(st.floats(-9, 9), min_size=2, max_size=8),
    )
    def test_the_freedom_lies_between_the_least_and_the_sum(self, values: list[float], units: list[float]) -> None:
        """Satterthwaite's, of a sum of two variances."""
        parts = np.tile(units, (len(values), 1))
        whole = spread(Sample(np.array(values), (Stratum("demand", parts - parts.mean()),)))

        least, most = sorted([len(values) - 1, len(units) - 1])[0], len(values) + len(units) - 2
        assert whole.error < 1e-6 or least - 1e-6 <= whole.freedom <= most + 1e-6

    def test_the_freedom_of_equal_variances_is_the_sum(self) -> None:
        """Two variances of the same size with three and four degrees of freedom have a harmonic mean of them."""
        whole = spread(Sample(np.array([-1.0, 1.0]), (Stratum("demand", np.array([[1, 0, -1]] * 2) / np.sqrt(3)),)))

        assert whole.variances == pytest.approx({"placement": 1.0, "demand": 1.0})
        assert whole.freedom == pytest.approx(4 / (1 / 1 + 1 / 2))

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

    def test_differences_are_paired(self) -> None:
        """What makes a bundle, an event or a replicate hard for both cancels out: one more move in each is certain."""
        rows = np.array([[1.0, 2.0, 4.0, 9.0, 5.0, 6.0], [3.0, 1.0, 1.0, 5.0, 2.0, 7.0]])
        stock = [replace(one, policy="stock") for one in table(rows, causes=["forced"] * 2)]
        several = series(*stock, *table(rows + 1, causes=["forced"] * 2))
        old, new = (sample(one, layout(several, min_events=2)) for one in several)

        assert minus(new, old).values.tolist() == [6.0, 6.0]
        assert spread(minus(new, old)).error == pytest.approx(0.0, abs=1e-6)
        assert spread(new).error > 1.0


class TestInvariance:
    """What must not change an interval."""

    def test_bundles_without_figures(self) -> None:
        """They are no observations."""
        padded = np.concatenate([QUOTIENTS, np.zeros((50, 2))])

        assert half_width(sums("new", padded)) == half_width(sums("new", QUOTIENTS))

    def test_one_more_policy_with_figures_in_the_same_units(self) -> None:
        """An interval is about one policy."""
        rows, events = [3, 1, 4, 7, 2], ["forced"] * 2
        alone = drawn(moves("new", rows, causes=events))
        beside = drawn(moves("new", rows, causes=events), moves("stock", [9, 9, 1, 1, 1], causes=events))

        assert spread(beside) == spread(alone)

    def test_a_policy_with_figures_in_other_units_counts(self) -> None:
        """A bundle that only the other policy moves is one in which this one moved nothing."""
        beside = drawn(moves("new", [3, 1, 4, 0]), moves("stock", [0, 0, 0, 2]))

        assert spread(beside).variances["demand"] == pytest.approx(4 * np.var([3, 1, 4, 0], ddof=1))

    @given(st.floats(1e-3, 1e6), st.lists(st.integers(1, 90), min_size=8, max_size=8))
    def test_the_unit_of_sums(self, scale: float, counts: list[int]) -> None:
        """Intervals of ratios stay as they are; those of totals scale."""
        rows = np.array(counts, dtype=np.float64).reshape(2, 4)
        quotients = [np.stack([row, row[::-1] + 9], axis=1) for row in rows]
        ratio, scaled = (
            half_width(*(sums("new", k * row, seed=seed) for seed, row in enumerate(quotients))) for k in (1.0, scale)
        )

        assert scaled == pytest.approx(ratio, rel=1e-5, abs=1e-9)
        events = ["forced"] * 2
        total, larger = (half_width(*table(k * rows, causes=events)) for k in (1.0, scale))
        assert larger == pytest.approx(scale * total, rel=1e-5, abs=1e-9 * scale)

    @given(st.permutations(range(5)))
    def test_the_order_of_bundles(self, order: list[int]) -> None:
        """They have numbers, and no neighbours."""
        parts = [sums("new", rows, seed=seed) for seed, rows in enumerate([QUOTIENTS, QUOTIENTS[::-1] + 1])]
        permuted = [replace(part, sums=part.sums[order]) for part in parts]

        assert half_width(*permuted) == pytest.approx(half_width(*parts))

    def test_the_start_of_time(self) -> None:
        """A log of another year has the same intervals."""
        early, late = (
            half_width(sums("new", QUOTIENTS, "imbalance_cv", start_us=hour * HOUR_US)) for hour in (0, 400_000)
        )

        assert early == late


#: Replicates, bundles and lost brokers of a world.
REPLICATES, BUNDLES, LOST = 10, 40, 20
#: Standard deviations of an effect: the variances of the mean are 1 for replicates, 2 for bundles and 2 for events.
OF_REPLICATES, OF_BUNDLES, OF_EVENTS = math.sqrt(REPLICATES), math.sqrt(2 / BUNDLES), math.sqrt(2 / LOST)


def world(rng: np.random.Generator) -> list[MetricSums]:
    """Draw moves around 1 per bundle and event, with effects of replicates, units, events, and their interplay."""
    replicates = rng.normal(0, OF_REPLICATES / BUNDLES, (REPLICATES, 1))
    bundles = replicates + rng.normal(1, OF_BUNDLES, BUNDLES) + rng.normal(0, OF_BUNDLES, (REPLICATES, BUNDLES))
    events = rng.normal(1, OF_EVENTS, LOST) + rng.normal(0, OF_EVENTS, (REPLICATES, LOST))
    return table(np.concatenate([bundles, events], axis=1), causes=["forced"] * LOST)


def without(source: str) -> Callable[[Sample], Sample]:
    """Leave the units of one kind out of a sample."""
    return lambda whole: replace(whole, strata=tuple(one for one in whole.strata or () if one.source != source))


@cache
def samples() -> list[Sample]:
    """Return the figure of 400 worlds."""
    rng = np.random.default_rng(17)
    return [drawn(*world(rng)) for _ in range(400)]


def coverage(chosen: Callable[[Sample], Sample]) -> float:
    """Return the share of the worlds in which the interval of a sample holds the truth."""
    given = [chosen(whole) for whole in samples()]
    return float(np.mean([abs(one.values.mean() - BUNDLES - LOST) <= spread(one).half_width() for one in given]))


def test_intervals_cover_the_truth() -> None:
    """In 400 worlds of crossed effects intervals hold the truth 92 to 98 times in a hundred."""
    assert 0.92 <= coverage(lambda whole: whole) <= 0.98


@pytest.mark.parametrize(
    "chosen",
    [
        without("demand"),
        without("events"),
        lambda whole: Sample(whole.values),
        lambda whole: Sample(whole.values[:1], tuple(replace(one, parts=one.parts[:1]) for one in whole.strata or ())),
    ],
    ids=["no-demand", "no-events", "replicates-only", "one-replicate"],
)
def test_intervals_without_a_source_cover_less(chosen: Callable[[Sample], Sample]) -> None:
    """Every source is needed: without one the same worlds are held less than 92 times in a hundred."""
    assert coverage(chosen) < 0.92
