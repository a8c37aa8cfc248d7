"""Values with intervals: every series in each cluster and pooled over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from lookup.engine.measuring import value_of
from lookup.score.bootstrap import Draws, interval, totals
from lookup.score.series import Series

__all__ = ["Estimate", "estimate"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """What one series is worth in one cluster, or pooled."""

    series: Series
    #: None: pooled over all clusters
    cluster: str | None
    #: NaN where there is nothing to measure
    value: float
    #: NaN where there is no interval
    low: float = float("nan")
    high: float = float("nan")
    #: value under each resample, shape (resamples,); kept for pooled estimates of the whole demand only
    samples: FloatArray | None = None


def estimate(series: Sequence[Series], draws: Draws) -> list[Estimate]:
    """Estimate every series, in the order given: pooled first, then each of its clusters."""
    known: dict[int, list[Estimate]] = {}
    places = sorted(range(len(series)), key=lambda place: (series[place].by, series[place].metric.resample))
    for _, group in groupby(places, key=lambda place: (series[place].by, series[place].metric.resample)):
        together = list(group)
        known.update(zip(together, _estimate_group([series[place] for place in together], draws), strict=True))
    return [one for place in range(len(series)) for one in known[place]]


def _estimate_group(series: Sequence[Series], draws: Draws) -> Iterator[list[Estimate]]:
    """Estimate series that share a unit of resampling and a part of the demand: their sums are resampled in one go."""
    if series[0].metric.resample == "none":
        yield from ([Estimate(one, cluster, one.value(cluster)) for cluster in _scopes(one)] for one in series)
        return
    clusters = sorted({cluster for one in series for cluster in one.clusters})
    resampled = {cluster: totals(series, cluster, draws) for cluster in clusters}
    for place, one in enumerate(series):
        by_cluster = {cluster: resampled[cluster][place] for cluster in one.clusters}
        yield [_estimate(one, cluster, by_cluster, draws) for cluster in _scopes(one)]


def _scopes(series: Series) -> tuple[str | None, ...]:
    return (None, *series.clusters)


def _estimate(
    series: Series, cluster: str | None, by_cluster: Mapping[str, Mapping[int, FloatArray]], draws: Draws
) -> Estimate:
    pooled = by_cluster.values() if cluster is None else [by_cluster[cluster]]
    samples = _values(series, list(pooled), draws)
    observed = series.value(cluster)
    low, high = interval(samples, observed)
    return Estimate(series, cluster, observed, low, high, samples if cluster is None and not series.by else None)


def _values(series: Series, parts: Sequence[Mapping[int, FloatArray]], draws: Draws) -> FloatArray:
    """Return the value under each resample, shape (resamples,): the mean over the seeds drawn in it."""
    seeds = sorted({seed for part in parts for seed in part})
    shares = draws.seed_shares(len(seeds))
    by_seed = [np.sum([part[seed] for part in parts if seed in part], axis=0) for seed in seeds]
    values = np.stack([value_of(series.metric, total) for total in by_seed], axis=1)
    # a seed that was not drawn must not make the mean NaN
    means: FloatArray = np.where(shares > 0, values * shares, 0.0).sum(axis=1)
    return means
