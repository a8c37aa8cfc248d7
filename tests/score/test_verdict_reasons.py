"""Verdicts: every reason for `inconclusive`, by the words and figures that tell it from the others."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.score.cases import SEEDS, moves, plan, ratios, replicated, scored, spread, sums
from tests.score.pairs import judged

#: A candidate that gains a lot.
BOTH = (("stock", 0.1), ("new", 0.9))


#: Shares of candidates around a mean of 0.5, by replicate: all bundles alike, and all replicates alike.
BY_REPLICATE = [[share] * 40 for share in (0.3, 0.4, 0.5, 0.6, 0.7)]
BY_BUNDLE = [spread(0.5, 0.2)] * 5


@pytest.mark.parametrize(
    ("metric", "stock", "new", "source"),
    [
        ("match_ratio", [0.5] * 40, BY_REPLICATE, "the placement"),
        ("match_ratio", [0.5] * 40, BY_BUNDLE, "the demand"),
        ("moves", [1] * 41, [[1] * 40 + [9]] * 5, "the events"),
    ],
    ids=["placement", "demand", "events"],
)
def test_wide_interval(metric: str, stock: list[float], new: list[list[float]], source: str) -> None:
    """Half the width is the smallest detectable effect; the largest source of luck says what would help."""
    write = partial(moves, causes=["forced"]) if metric == "moves" else partial(ratios, metric=metric, key="rack")
    parts = [
        write(name, row, seed=seed)
        for name, rows in (("stock", [stock] * 5), ("new", new))
        for seed, row in enumerate(rows, 1)
    ]

    (verdict,) = scored(parts, plan(seeds=SEEDS)).verdicts

    effect = f"smallest detectable effect {(verdict.high - verdict.low) / 2:.3g}"
    assert f"{effect}, " in str(verdict.reason)
    assert f"most of the noise comes from {source}" in str(verdict.reason)


def test_a_drift_is_the_reason_of_a_wide_interval() -> None:
    """Where the demand's luck is that of hours that are like those before, only other hours would say more."""
    parts = [
        ratios("stock", [1.0] * 60, "imbalance_cv"),
        ratios("new", np.linspace(0.5, 1.6, 60).tolist(), "imbalance_cv"),
    ]

    (verdict,) = scored(parts).verdicts

    assert verdict.verdict == "inconclusive"
    assert "drifts" in str(verdict.reason)


@pytest.mark.parametrize(("seeds", "end"), [((1, 2), "; 5 seeds would"), ((1, 2, 3), None)])
def test_few_seeds(seeds: tuple[int, ...], end: str | None) -> None:
    """One half to the third power is more than one in twenty: of two seeds equals come out apart that often."""
    parts = [ratios(name, [share] * 30, "match_ratio") for name, share in (("stock", 0.1), ("new", 0.9))]

    (verdict,) = scored(replicated(parts, seeds), plan(seeds=seeds)).verdicts

    assert verdict.verdict == ("better" if end is None else "inconclusive")
    assert verdict.reason is end or str(verdict.reason).endswith(str(end))


def test_fidelity() -> None:
    """The gap is named."""
    assert "fidelity gap 0.05: " in str(judged(0.02, 0.01, gap=0.05).reason)


def test_a_gap_that_keeps_a_difference_from_being_none_is_named() -> None:
    """The interval is within the margin of 0.005, and would be called equivalent without the gap."""
    assert judged(0.002, 0.0025).verdict == "equivalent"

    found = judged(0.002, 0.0025, gap=0.001)

    assert found.verdict == "inconclusive"
    assert "fidelity gap 0.001; smallest detectable effect 0.0025, " in str(found.reason)


@pytest.mark.parametrize(("units", "count"), [(1, "1 bundle,"), (7, "7 bundles,"), (8, None)])
def test_few_bundles(units: int, count: str | None) -> None:
    """The number of bundles and the limit are named; as many as `min_units` are enough."""
    (verdict,) = scored([ratios(name, [share] * units, "match_ratio") for name, share in BOTH]).verdicts

    assert verdict.reason == (count and f"it is based on {count} fewer than the 8 of min_units")


@pytest.mark.parametrize(("units", "is_few"), [(1, True), (2, False)])
def test_one_bundle_is_few_whatever_is_asked_for(units: int, *, is_few: bool) -> None:
    """It has nothing to differ from."""
    parts = [ratios(name, [share] * units, "match_ratio") for name, share in BOTH]

    assert ("1 bundle" in str(scored(parts, plan(min_units=1)).verdicts[0].reason)) is is_few


def test_bundles_in_which_nothing_happened_do_not_count() -> None:
    """Of sixty bundles three moved under one of the policies."""
    parts = [moves("stock", [1, 0, 0] + [0] * 57), moves("new", [2, 1, 3] + [0] * 57)]

    (verdict,) = scored(parts).verdicts

    assert "on 3 bundles, " in str(verdict.reason)


def test_a_large_bundle_is_most_of_the_evidence() -> None:
    """With 60 % of the traffic in one of 21, the others are worth little: 1 / (0.6² + 20 * 0.02²) bundles."""
    parts = [
        sums(name, [[share * weight, weight] for weight in [600] + [20] * 20], "match_ratio") for name, share in BOTH
    ]

    (verdict,) = scored(parts).verdicts

    assert verdict.verdict == "inconclusive"
    for part in ("one bundle has 60%", "21 bundles count as 2.7", "the 8 of min_units"):
        assert part in str(verdict.reason)
    assert scored(parts, plan(min_units=2)).verdicts[0].verdict == "better"


def test_bundles_of_all_clusters_are_counted_together() -> None:
    """Four in each of two are eight, and four in one beside four with a tenth of the traffic in the other are not."""
    equal, unequal = (
        [
            sums(name, [[share * weight, weight]] * 4, "match_ratio", cluster=cluster)
            for name, share in BOTH
            for cluster, weight in (("c", 100), ("d", other))
        ]
        for other in (100, 10)
    )

    assert scored(equal).verdicts[0].verdict == "better"
    # 4.4² / (4 + 4 * 0.1²)
    assert "8 bundles count as 4.8" in str(scored(unequal).verdicts[0].reason)


@pytest.mark.parametrize(
    ("metric", "stock", "new"), [("answered_ratio", [90, 100], [10, 100]), ("waiting", [10], [90])]
)
def test_what_is_judged_on_the_log_needs_no_number_of_bundles(metric: str, stock: list[int], new: list[int]) -> None:
    """A lookup that was not answered is that, in however few bundles."""
    (verdict,) = scored([sums(name, [row] * 3, metric) for name, row in (("stock", stock), ("new", new))]).verdicts

    assert (verdict.verdict, verdict.guard, verdict.reason) == ("worse", "lost", None)


@pytest.mark.parametrize(("block_s", "count"), [(7200, None), (5 * 3600, "6 blocks"), (10**6, "1 block"), (3600, None)])
def test_few_blocks(block_s: int, count: str | None) -> None:
    """Thirty hours in blocks of five are six units; hours without figures are none."""
    rows = [0.1] * 30
    parts = [
        sums(name, [[share, 1] for share in shares] + [[0, 0]] * 30, "imbalance_cv")
        for name, shares in (("stock", rows), ("new", np.array(rows) * 9))
    ]

    (verdict,) = scored(parts, plan(block_s=block_s)).verdicts

    assert verdict.reason is count or f"on {count} of time, " in str(verdict.reason)


@pytest.mark.parametrize(
    ("causes", "count"),
    [
        (["forced"], "1 broker was lost"),
        (["forced"] * 4, "4 brokers were lost"),
        (["admin"], "1 bundle was unloaded"),
        (["admin", "forced", "admin"], "2 bundles were unloaded"),
        (["split"], "1 bundle was split"),
        (["split"] * 2, "2 bundles were split"),
        (["flood"] * 3, "3 events happened"),
    ],
)
def test_few_events(causes: list[str], count: str) -> None:
    """The cause with the most of them is named; the few bundles beside them would not be enough either."""
    parts = [moves(policy, [moved] * (3 + len(causes)), causes=causes) for policy, moved in (("stock", 1), ("new", 8))]

    (verdict,) = scored(parts).verdicts

    assert str(verdict.reason).startswith(f"only {count}")
    assert "5 of min_events" in str(verdict.reason)


@pytest.mark.parametrize(
    ("bundles", "events", "word"),
    [(3, 1, "inconclusive"), (3, 5, "worse"), (60, 1, "worse"), (60, 9, "worse"), (0, 5, "worse")],
)
def test_few_events_among_many_bundles(bundles: int, events: int, word: str) -> None:
    """Enough of either is enough: what a single lost broker did is then in the interval at its full size."""
    causes = ["forced"] * events
    parts = [
        moves(policy, [moved] * bundles + [1] * events, causes=causes, metric="moves")
        for policy, moved in (("stock", 1), ("new", 8))
    ]
    parts[1] = replace(parts[1], sums=parts[1].sums + np.array([[0]] * bundles + [[3]] * events))

    (verdict,) = scored(parts).verdicts

    assert verdict.verdict == word


QUANTILES = (sums("stock", [[1, 1]], "network_ms_p95"), sums("new", [[1, 9]], "network_ms_p95"))


def test_no_interval() -> None:
    """A quantile has none, and where it is to decide that is said."""
    (verdict,) = scored(QUANTILES, plan(primary=("network_ms_p95",))).verdicts

    assert (verdict.verdict, verdict.delta) == ("inconclusive", -8)
    assert "no interval" in str(verdict.reason)
    assert math.isnan(verdict.p_value)


def test_no_interval_no_verdict() -> None:
    """Nothing is said of a quantile that is not asked for."""
    assert scored(QUANTILES).verdicts == []


@pytest.mark.parametrize(("measured", "missing"), [("stock", "new"), ("new", "stock")])
def test_one_side_only(measured: str, missing: str) -> None:
    """It is said for which policy there is nothing."""
    (verdict,) = scored([ratios(measured, [0.5] * 30)]).verdicts

    assert str(verdict.reason).endswith(f" for {missing}")


def test_a_difference_beyond_numbers() -> None:
    """Two finite figures whose difference is not."""
    parts = [sums(policy, [[total / 30]] * 30, "moves") for policy, total in (("stock", -1.5e308), ("new", 1.5e308))]

    (verdict,) = scored(parts).verdicts

    assert "floating-point numbers" in str(verdict.reason)


def test_an_incumbent_that_cannot_act() -> None:
    """Nothing is said against it, whatever the figures; a candidate that cannot act is judged by what it did."""
    parts = [ratios("stock", spread(0.5, 0.1)), ratios("new", spread(0.6, 0.1))]
    refused = scored(parts, plan(require_decision=True), cannot_act={"stock": "no place"})
    allowed = scored(parts, cannot_act={"new": "no place"})

    (verdict,) = refused.verdicts
    assert str(verdict.reason).endswith("stock cannot act on this log")
    assert (verdict.verdict, math.isnan(verdict.delta), refused.exit_code) == ("inconclusive", True, 4)
    assert allowed.verdicts[0].verdict == "better"
