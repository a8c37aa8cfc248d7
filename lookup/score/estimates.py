"""Values with intervals: every series in each cluster and pooled over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lookup.score.luck import Layout, Sample, sample, spread
from lookup.score.series import Series

__all__ = ["Estimate", "estimate"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """What one series is worth in one cluster, or pooled."""

    series: Series
    #: None: pooled over all clusters
    cluster: str | None
    #: the mean over replicates, NaN if there is nothing to measure
    value: float
    #: NaN if there is no interval
    low: float = math.nan
    high: float = math.nan
    #: the figure in every replicate; kept for pooled estimates of the whole demand only
    sample: Sample | None = None


def estimate(series: Sequence[Series], layout: Layout) -> list[Estimate]:
    """Estimate every series, in the order given: pooled first, then each of its clusters."""
    return [_estimate(one, cluster, layout) for one in series for cluster in (None, *one.clusters)]


def _estimate(series: Series, cluster: str | None, layout: Layout) -> Estimate:
    drawn = sample(series, layout, cluster)
    value = float(drawn.values.mean())
    kept = drawn if cluster is None and not series.by else None
    if math.isnan(value) or not drawn.has_spread:
        return Estimate(series, cluster, value, sample=kept)
    half = spread(drawn).half_width()
    # What is made of sums that are never negative is not negative either.
    least = 0.0 if all((part.sums >= 0).all() for part in series.parts.values()) and value >= 0 else -math.inf
    return Estimate(series, cluster, value, max(value - half, least), value + half, kept)
