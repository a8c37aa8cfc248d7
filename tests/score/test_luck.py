"""Variances over replicates, units and events: by hand, under changes of scale and order, and against known truths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lookup.replay.outcome import MetricSums
from lookup.score.luck import spread
from lookup.score.units import Sample
from tests.score.cases import HOUR_US, layout, moves, ratios, series, sums
from tests.score.samples import QUOTIENTS, drawn, kish, table


def half_width(*parts: MetricSums, **how: Any) -> float:
    """Return half the width of the interval of that figure."""
    return spread(drawn(*parts, **how)).half_width()


def jackknife(rows: np.ndarray) -> float:
    """Return the variance of a quotient of two totals by leaving one unit out after the other."""
    n, (above, below) = len(rows), rows.sum(axis=0)
    without = [(above - a) / (below - b) for a, b in rows]
    return float((n - 1) / n * sum((above / below - one) ** 2 for one in without))


class TestLayout:
    """Which units and events there are."""

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

    def test_a_ratio_over_bundles_has_the_variance_of_the_jackknife(self) -> None:
        """Every bundle is left out once; the freedom is midway between what Kish's two numbers of bundles say."""
        whole = spread(drawn(sums("new", QUOTIENTS)))

        below = QUOTIENTS[:, 1]
        assert whole.variances["demand"] == pytest.approx(jackknife(QUOTIENTS))
        assert whole.freedom == pytest.approx((kish(below) - 1 + kish(below**2)) / 2)

    def test_a_ratio_over_clusters_has_the_mean_bundle_for_one_left_out(self) -> None:
        """Both clusters keep their size: without a bundle of one the others of its own stand in for it."""
        large = QUOTIENTS + 2
        whole = spread(drawn(sums("new", QUOTIENTS), sums("new", large, cluster="d")))

        both, expected = QUOTIENTS.sum(axis=0) + large.sum(axis=0), 0.0
        for rows in (QUOTIENTS, large):
            for row in rows:
                above, below = both - rows.sum(axis=0) + 5 / 4 * (rows.sum(axis=0) - row)
                expected += 4 / 5 * (both[0] / both[1] - above / below) ** 2
        assert whole.variances["demand"] == pytest.approx(expected)

    def test_a_ratio_over_one_bundle_among_others_without_figures_is_what_it_is(self) -> None:
        """However many the others are: what is left without the bundle is nothing, and not a ratio."""
        for others in range(1, 30):
            rest = [[0.0, 0.0]] * others
            whole = drawn(sums("stock", [[1, 2]] * (others + 1)), sums("new", [[1 / 3, 0.7], *rest]))
            assert spread(whole).error == pytest.approx(0.0, abs=1e-9)

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

        without = [(sum(shares) - share) / 29 for share in shares]
        assert apart.variances["demand"] == pytest.approx(sum((np.mean(shares) - one) ** 2 for one in without))
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
