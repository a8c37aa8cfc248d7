"""Units of demand: who sends together is one, as long as there are enough of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lookup.replay.outcome import MetricSums
from lookup.replay.senders import Senders, senders_of
from lookup.score.luck import spread as spread_of
from lookup.score.units import Sample, Stratum, Units, layout_of, sample
from tests.score.cases import SEEDS, plan, ratios, replicated, scored, series, sums


def _senders(namespaces: int, bundles: int, of_tenant: int = 1) -> Senders:
    """Name bundles, namespace by namespace."""
    return senders_of(
        [f"t{each // of_tenant:02}/n{each:02}/{bundle}" for each in range(namespaces) for bundle in range(bundles)]
    )


def _drawn(parts: Sequence[MetricSums], senders: Senders, *, by_tenant: bool = False) -> Sample:
    several = series(*parts)
    laid_out = layout_of(
        several, cell_s=3600, block_s=3600, min_units=8, senders={"c": senders}, by_tenant=by_tenant
    )  # fmt: skip
    return sample(several[-1], laid_out)


def _shares(namespaces: int, bundles: int, *, apart: float = 0.0) -> np.ndarray:
    """Draw a share for each bundle: its namespace's, and so much of its own."""
    rng = np.random.default_rng(3)
    common = np.repeat(rng.uniform(0.2, 0.8, namespaces), bundles)
    return common + apart * rng.uniform(-1, 1, namespaces * bundles)


class TestKinds:
    """Which units there are, and how many they are worth."""

    @pytest.mark.parametrize(
        ("namespaces", "bundles", "expected"),
        [
            (8, 4, Units("namespaces", 8, 8.0, is_taken_for_granted=False)),
            (7, 4, Units("bundles", 28, 28.0, is_taken_for_granted=True)),
            (1, 40, Units("bundles", 40, 40.0, is_taken_for_granted=True)),
        ],
    )
    def test_namespaces_are_units_if_there_are_eight(self, namespaces: int, bundles: int, expected: Units) -> None:
        """With fewer bundles are, and that they are independent is taken for granted."""
        drawn = _drawn([ratios("new", _shares(namespaces, bundles), "match_ratio")], _senders(namespaces, bundles))

        assert drawn.units is not None
        assert replace(drawn.units, worth=round(drawn.units.worth, 9)) == expected

    def test_large_namespaces_are_worth_fewer(self) -> None:
        """Ten of which one has half of the traffic are worth 3.6, so that bundles are the units."""
        weights = np.repeat([9.0] + [1.0] * 9, 4)
        rows = np.stack([0.5 * weights, weights], axis=1)

        drawn = _drawn([sums("new", rows, "match_ratio")], _senders(10, 4))

        assert drawn.units is not None
        assert drawn.units.is_taken_for_granted
        assert drawn.units.worth == pytest.approx(18**2 / (81 + 9) * 4)

    @pytest.mark.parametrize(
        ("tenants", "kind", "is_taken"), [(8, "tenants", False), (4, "namespaces", True), (1, "bundles", True)]
    )
    def test_tenants_that_share_a_label_come_first(self, tenants: int, kind: str, *, is_taken: bool) -> None:
        """Where there are too few, their namespaces are the units, and of these too few leave bundles."""
        drawn = _drawn(
            [ratios("new", _shares(tenants * 4, 2), "match_ratio")], _senders(tenants * 4, 2, 4), by_tenant=True
        )

        assert drawn.units is not None
        assert (drawn.units.kind, drawn.units.is_taken_for_granted) == (kind, is_taken)


class TestVariance:
    """How a figure varies with its demand."""

    def test_it_is_that_of_the_namespaces_if_their_bundles_agree(self) -> None:
        """Twelve namespaces of four equal bundles: half the interval of the mean of twelve numbers."""
        shares = _shares(12, 4)
        drawn = _drawn([ratios("new", shares, "match_ratio")], _senders(12, 4))

        means = shares.reshape(12, 4).mean(axis=1)
        half = stats.t.ppf(0.975, 11) * np.std(means, ddof=1) / math.sqrt(12)
        assert spread_of(drawn).half_width() == pytest.approx(half)

    def test_of_few_namespaces_the_larger_variance_counts(self) -> None:
        """Four namespaces whose bundles agree say that bundles are not independent; without agreement bundles count."""
        together, apart = (
            [ratios("new", shares, "match_ratio")] for shares in (_shares(4, 4), np.random.default_rng(5).random(16))
        )

        means = _shares(4, 4).reshape(4, 4).mean(axis=1)
        assert spread_of(_drawn(together, _senders(4, 4))).variances["demand"] == pytest.approx(
            np.var(means, ddof=1) / 4
        )
        alone = spread_of(_drawn(apart, senders_of([f"t/n{each:02}/0" for each in range(16)])))
        assert spread_of(_drawn(apart, _senders(4, 4))).variances["demand"] >= alone.variances["demand"] - 1e-12


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ({"kind": "namespaces"}, 40**2 / 196 - 1),
        ({"kind": "tenants"}, 40**2 / 196 - 1),
        ({"kind": "bundles"}, (26**2 / 40 - 1 + 40**2 / 196) / 2),
        # What is counted again without each is too wide already.
        ({"kind": "namespaces", "is_recounted": True}, (26**2 / 40 - 1 + 40**2 / 196) / 2),
    ],
)
def test_what_whole_namespaces_send_varies_by_leaps(kind: dict[str, Any], expected: float) -> None:
    """Of sizes that differ they have Satterthwaite's degrees of freedom less one, and bundles some more."""
    weights = np.array([1.0] * 18 + [2.0, 3.0, 3.0])
    parts = np.random.default_rng(1).normal(size=(1, len(weights)))

    found = spread_of(Sample(np.zeros(1), (Stratum("demand", parts, weights, **kind),)))
    assert found.freedom == pytest.approx(expected)


def _over_time(policy: str, without: Sequence[float], value: float = 1.5, **where: Any) -> MetricSums:
    """Write down a figure that is the same in every hour, and the figure without each namespace."""
    rows = np.tile([value, 1.0], (30, 1))
    served = 30 * (1 - 1 / len(without))
    left = np.array([[served * one, served] for one in without])
    return sums(policy, rows, "imbalance_cv", without=left, **where)


class TestOverTime:
    """Figures over time vary with who sends, besides from block to block."""

    def test_they_vary_by_what_they_are_without_each_sender(self) -> None:
        """A figure that never changes has an interval all the same: the delete-one jackknife over namespaces."""
        without = 1.5 + np.random.default_rng(4).normal(0, 0.1, 12)
        drawn = _drawn([_over_time("new", without.tolist())], _senders(12, 4))

        assert drawn.units == Units("namespaces", 12, pytest.approx(12.0), is_taken_for_granted=False)
        variance = 11 / 12 * np.sum((without - without.mean()) ** 2)
        assert spread_of(drawn).variances["demand"] == pytest.approx(variance, rel=1e-6)

    def test_a_difference_that_one_namespace_makes_is_no_verdict(self) -> None:
        """Without it the policies are equal; where every namespace has a part in it they are told apart."""
        words = []
        for alone in (True, False):
            without = [1.5 if alone and not each else 1.9 for each in range(12)]
            parts = [_over_time("stock", [1.5] * 12), _over_time("new", without, 1.9)]
            found = scored(replicated(parts), plan(seeds=SEEDS), senders={"c": _senders(12, 4)})
            words += [one.verdict for one in found.verdicts if one.metric == "imbalance_cv"]

        assert words == ["inconclusive", "worse"]


class TestVerdicts:
    """What a verdict holds for where few send."""

    @staticmethod
    def found(namespaces: int, bundles: int, metric: str = "match_ratio", **rules: Any) -> Any:
        """Compare with a candidate that is worse by as much in every bundle."""
        shares = _shares(namespaces, bundles, apart=0.1)
        parts = [ratios("stock", shares, metric), ratios("new", shares - 0.1, metric)]
        how = plan(seeds=SEEDS, **{"primary": (metric,), **rules})
        result = scored(replicated(parts), how, senders={"c": _senders(namespaces, bundles)})
        return next(one for one in result.verdicts if one.metric == metric), result

    @pytest.mark.parametrize(
        ("namespaces", "holds_for", "code", "required"), [(12, "policy", 3, 3), (3, "independence", 0, 4)]
    )
    def test_few_namespaces_fail_no_run(self, namespaces: int, holds_for: str, code: int, required: int) -> None:
        """It is worse all the same, if bundles are independent; where a decision is required, it is none."""
        verdict, result = self.found(namespaces, 12)

        assert (verdict.verdict, verdict.holds_for, result.exit_code) == ("worse", holds_for, code)
        assert self.found(namespaces, 12, require_decision=True)[1].exit_code == required

    def test_answers_stay_on_this_log(self) -> None:
        """They are guarded there, whoever sends."""
        verdict, result = self.found(1, 40, "answered_ratio")

        assert (verdict.verdict, verdict.holds_for, verdict.units, result.exit_code) == ("worse", "policy", None, 3)
