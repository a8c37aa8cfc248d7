"""Group sums into series, one per policy, metric, key and part of the demand, with sums by cluster and seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lookup.engine.measuring import value_of
from lookup.errors import PluginError
from lookup.hooks import Metric
from lookup.replay.outcome import MetricSums

__all__ = ["Series", "series_of"]


@dataclass(frozen=True, eq=False)
class Series:
    """One figure of one policy. Each seed is a replicate."""

    policy: str
    metric: Metric
    key: str | None
    by: tuple[tuple[str, str], ...]
    #: by cluster and seed
    parts: Mapping[tuple[str, int], MetricSums]

    @property
    def name(self) -> tuple[str, str | None]:
        """Metric and key."""
        return self.metric.name, self.key

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """The clusters it was measured in, sorted."""
        return tuple(sorted({cluster for cluster, _ in self.parts}))

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """The seeds it was measured with, ascending."""
        return tuple(sorted({seed for _, seed in self.parts}))

    def value(self) -> float:
        """Compute the observed value, pooled over all clusters, the mean over seeds, NaN if there is none."""
        return float(np.mean([self.value_of_seed(seed) for seed in self.seeds]))

    def value_of_seed(self, seed: int, cluster: str | None = None) -> float:
        """Compute the value of one replicate in one cluster or pooled over all, NaN if nothing was measured."""
        clusters = self.clusters if cluster is None else (cluster,)
        sums = [self.parts[name, seed].sums for name in clusters if (name, seed) in self.parts]
        if not sums:
            return float("nan")
        if self.metric.resample == "none":
            # The metric needs all rows. Clusters have different numbers of them, and the missing ones are zero.
            rows = np.zeros((max(len(part) for part in sums), sums[0].shape[1]))
            for part in sums:
                rows[: len(part)] += part
            return float(value_of(self.metric, rows))
        # axis by axis in the order of the clusters, so that the number does not depend on anything else
        return float(value_of(self.metric, np.sum([part.sum(axis=0) for part in sums], axis=0)))


def series_of(sums: Sequence[MetricSums], metrics: Sequence[Metric], policies: Sequence[str]) -> list[Series]:
    """Group sums into series, ordered by policy and metric as given, then key and part.

    Other policies are left out.

    Raises:
        PluginError: if the sums of a metric have different numbers of columns, so that they do not add up.
    """
    by_name = {metric.name: metric for metric in metrics}
    parts: dict[tuple[str, str, str | None, tuple[tuple[str, str], ...]], dict[tuple[str, int], MetricSums]]
    parts, widths = defaultdict(dict), dict[str, int]()
    for part in sums:
        width = part.sums.shape[1]
        # Metrics of plug-ins answer per batch, and only here all their batches come together.
        if widths.setdefault(part.metric, width) != width:
            batch = f"in cluster {part.cluster!r} under policy {part.policy!r}"
            right = f"sums of shape (n, {widths[part.metric]}) elsewhere; k must be the same for all batches"
            raise PluginError(f"metric {part.metric!r} answered sums of shape (n, {width}) {batch} and {right}")
        if part.metric in by_name and part.policy in policies:
            parts[part.policy, part.metric, part.key, part.by][part.cluster, part.seed] = part
    names = list(by_name)
    order = sorted(parts, key=lambda name: (name[3], policies.index(name[0]), names.index(name[1]), name[2] or ""))
    return [Series(name[0], by_name[name[1]], name[2], name[3], parts[name]) for name in order]
