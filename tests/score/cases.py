"""Sums written down instead of replayed, and plans to score them by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookup.hooks import Better, Grain, Luck, Metric, Question, Resample
from lookup.model.batch import Batch
from lookup.replay.outcome import MetricSums, ReplayOutcome
from lookup.score.metrics import lookup_register_metrics
from lookup.score.scoring import Scored, ScoringPlan, score
from lookup.score.series import Series, series_of
from lookup.score.units import Layout, layout_of
from lookup.settings.evaluation import EvaluationSection, VerdictSection

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Waiting:
    """Lookups that waited, by why: a guarded total, as a plug-in may have one."""

    name: ClassVar[str] = "waiting"
    unit: ClassVar[str] = "lookups"
    better: ClassVar[Better] = "down"
    grain: ClassVar[Grain] = "lookup"
    resample: ClassVar[Resample] = "bundle"
    luck: ClassVar[tuple[Luck, ...]] = ("demand", "placement")
    question: ClassVar[Question] = "log"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    every_key: ClassVar[tuple[str, ...]] = ("lock",)

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """Return nothing: no batch says it."""
        return ()

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return zeros, shape (n_bundles, 1)."""
        return np.zeros((len(batch.bundles), 1))

    def value(self, sums: FloatArray) -> FloatArray:
        """Take the only column of totals, shape (..., 1) to (...)."""
        return sums[..., 0]


METRICS: tuple[Metric, ...] = (*(metric() for metric in lookup_register_metrics()), Waiting())
#: So many replicates can carry a verdict.
SEEDS = (1, 2, 3, 4, 5)
HOUR_US = 3600 * 1_000_000
_OVER_TIME = {metric.name for metric in METRICS if metric.resample in ("time", "none")}


def sums(policy: str, rows: ArrayLike, metric: str = "answered_ratio", **where: Any) -> MetricSums:
    """Write down the sums of one policy, shape (n_units, k), by default in cluster `c` with seed 1."""
    place: dict[str, Any] = {"cluster": "c", "seed": 1, "key": None, "by": (), "start_us": 0} | where
    return MetricSums(policy=policy, metric=metric, sums=np.array(rows, dtype=np.float64), **place)


def ratios(
    policy: str, shares: Sequence[float] | FloatArray, metric: str = "answered_ratio", **where: Any
) -> MetricSums:
    """Write down a quotient for each unit, over 100 each."""
    return sums(policy, [[100 * share, 100] for share in shares], metric, **where)


def moves(policy: str, counts: Sequence[float], *, causes: Sequence[str] = (), **where: Any) -> MetricSums:
    """Write down moves by bundle, and behind the bundles those of events with these causes."""
    return sums(policy, [[count] for count in counts], where.pop("metric", "moves"), events=tuple(causes), **where)


def copies(part: MetricSums, seeds: Sequence[int] = SEEDS) -> list[MetricSums]:
    """Repeat sums in several replicates, all of them the same."""
    return [replace(part, seed=seed) for seed in seeds]


def replicated(parts: Sequence[MetricSums], seeds: Sequence[int] = SEEDS) -> list[MetricSums]:
    """Repeat sums in several replicates, which differ in a figure without verdict: policies are placed anew in each."""
    same = [copy for part in parts for copy in copies(part, seeds)]
    # of each policy the first part whose rows are bundles, if there is one
    of_policy = {part.policy: part for part in sorted(parts, key=lambda part: part.metric not in _OVER_TIME)[::-1]}
    return same + [_marked(part, seed) for part in of_policy.values() for seed in seeds]


def _marked(part: MetricSums, seed: int) -> MetricSums:
    """Return what tells a replicate from others: lookups of its first bundle that were answered as logged."""
    rows = np.zeros((len(part.sums) - len(part.events), 2))
    rows[0] = seed, 100
    cluster = "hours" if part.metric in _OVER_TIME else part.cluster
    return replace(part, metric="agreement_ratio", key=None, by=(), seed=seed, events=(), sums=rows, cluster=cluster)


def plan(*policies: str, seeds: tuple[int, ...] = (1,), **rules: Any) -> ScoringPlan:
    """Compare policies, by default `stock` and `new`; the first is the incumbent."""
    policies = policies or ("stock", "new")
    return ScoringPlan(policies, EvaluationSection(incumbent=policies[0], seeds=seeds), VerdictSection(**rules))


def scored(parts: Sequence[MetricSums], how: ScoringPlan | None = None, **outcome: Any) -> Scored:
    """Score sums."""
    return score(ReplayOutcome(parts, **outcome), METRICS, how or plan())


def decided(parts: Sequence[MetricSums], *policies: str, **rules: Any) -> Scored:
    """Score sums as those of five replicates that were placed anew, so that verdicts hold for policies."""
    return scored(replicated(parts), plan(*policies, seeds=SEEDS, **rules))


def series(*parts: MetricSums) -> list[Series]:
    """Group sums of the policies `stock` and `new`."""
    return series_of(parts, METRICS, ["stock", "new"])


def layout(several: Sequence[Series], *, block_s: int = 3600, min_events: int = 5) -> Layout:
    """Lay series out in cells of an hour."""
    return layout_of(several, cell_s=3600, block_s=block_s, min_events=min_events)


def spread(mean: float, width: float, units: int = 40) -> list[float]:
    """Spread shares evenly around a mean, in an order without a trend, the same for all of so many units."""
    shares: list[float] = (
        np.random.default_rng(units).permutation(np.linspace(mean - width, mean + width, units)).tolist()
    )
    return shares
