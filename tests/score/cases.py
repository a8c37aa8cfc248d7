"""Sums written down instead of replayed, and plans to score them by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lookup.replay.outcome import MetricSums, ReplayOutcome
from lookup.score.metrics import lookup_register_metrics
from lookup.score.scoring import Plan, Scored, score
from lookup.settings.sections import EvaluationSection, VerdictSection

METRICS = tuple(metric() for metric in lookup_register_metrics())
HOUR_US = 3600 * 1_000_000


def sums(policy: str, rows: ArrayLike, metric: str = "answered_ratio", **where: Any) -> MetricSums:
    """Write down the sums of one policy, shape (n_units, k), by default in cluster `c` with seed 1."""
    place = {"cluster": "c", "seed": 1, "key": None, "by": (), "start_us": 0} | where
    return MetricSums(policy=policy, metric=metric, sums=np.array(rows, dtype=np.float64), **place)


def ratios(policy: str, shares: Sequence[float], metric: str = "answered_ratio", **where: Any) -> MetricSums:
    """Write down a quotient for each unit, over 100 each."""
    return sums(policy, [[100 * share, 100] for share in shares], metric, **where)


def plan(*policies: str, seeds: tuple[int, ...] = (1,), **rules: Any) -> Plan:
    """Compare policies, by default `stock` and `new`; the first is the incumbent."""
    policies = policies or ("stock", "new")
    return Plan(policies, EvaluationSection(incumbent=policies[0], seeds=seeds), VerdictSection(**rules))


def scored(parts: Sequence[MetricSums], how: Plan | None = None, **outcome: Any) -> Scored:
    """Score sums."""
    return score(ReplayOutcome(parts, **outcome), METRICS, how or plan())


def spread(mean: float, width: float, units: int = 40) -> list[float]:
    """Spread shares evenly around a mean."""
    return np.linspace(mean - width, mean + width, units).tolist()
