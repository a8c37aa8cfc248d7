"""Measure the distance from clients to the brokers that serve them, and the price of the traffic between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lookup.hooks import Better, Grain, Luck, Resample
from lookup.model.batch import Batch
from lookup.score.metrics.totals import FloatArray, LookupQuotient, of_pairs, per_bundle

__all__ = ["NetworkCost", "NetworkCoveredRatio", "NetworkMsMean", "NetworkMsP95"]


@dataclass(frozen=True)
class NetworkMsMean(LookupQuotient):
    """Distance from client to broker in ms, weighted, over lookups whose ends have comparable locations."""

    name: ClassVar[str] = "network_ms_mean"
    unit: ClassVar[str] = "ms"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    better: ClassVar[Better] = "down"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Compute weight x ms and weight, shape (n_bundles, 2)."""
        distance, known = _split_unknown(batch.distance_ms)
        return per_bundle(batch, batch.served.bundle, _weigh_groups(batch, distance), _weigh_groups(batch, known))


@dataclass(frozen=True)
class NetworkCoveredRatio(LookupQuotient):
    """Answered weight with a known distance / answered weight, which is the coverage of `network_ms_mean`."""

    name: ClassVar[str] = "network_covered_ratio"
    better: ClassVar[Better] = "info"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Compute the covered weight and the answered weight, shape (n_bundles, 2)."""
        served = batch.served
        _, known = _split_unknown(batch.distance_ms)
        answered = np.where(served.broker >= 0, served.weight, 0.0)
        return per_bundle(batch, served.bundle, _weigh_groups(batch, known), answered)


@dataclass(frozen=True)
class NetworkMsP95:
    """The smallest distance in ms such that 95 % of the covered weight is at or below it.

    Distances come from the topology, so there are few different ones. They are the rows, in ascending order, so
    exact quantiles add up over batches and clusters.
    """

    name: ClassVar[str] = "network_ms_p95"
    unit: ClassVar[str] = "ms"
    better: ClassVar[Better] = "down"
    grain: ClassVar[Grain] = "lookup"
    resample: ClassVar[Resample] = "none"
    luck: ClassVar[tuple[Luck, ...]] = ("demand", "placement")
    every_key: ClassVar[tuple[str, ...]] = ()

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """List the whole."""
        return (None,)

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Compute weight and weight x ms by possible distance, shape (n_distances, 2)."""
        distance, known = _split_unknown(batch.distance_ms)
        weight = np.bincount(batch.pairs, weights=batch.served.weight, minlength=distance.size)
        # all possible distances between two locations of the topology, so rows are the same in all batches of a run
        steps = np.array(batch.topology.distances)
        # nearest, not equal, since the two directions of one path may differ in their last bit
        nearest = np.searchsorted((steps[1:] + steps[:-1]) / 2, distance.ravel())
        total = np.bincount(nearest, weights=weight * known.ravel(), minlength=len(steps))
        return np.stack([total, total * steps], axis=1)

    def value(self, sums: FloatArray) -> FloatArray:
        """Compute the weighted quantile of all rows, one number."""
        # a distance without weight has no quotient
        covered = sums[sums[:, 0] > 0]
        if not len(covered):
            return np.array(np.nan)
        cumulative = np.cumsum(covered[:, 0])
        # the tolerance forgives the rounding of the sums, a billionth of a lookup
        row = int(np.searchsorted(cumulative, 0.95 * cumulative[-1] * (1 - 1e-12)))
        return np.array(covered[row, 1] / covered[row, 0])


@dataclass(frozen=True)
class NetworkCost:
    """Price of the traffic between clients and brokers, weight x `bytes_per_weight` / 1e9 x price per GB."""

    name: ClassVar[str] = "network_cost"
    unit: ClassVar[str] = "currency"
    better: ClassVar[Better] = "down"
    grain: ClassVar[Grain] = "lookup"
    resample: ClassVar[Resample] = "bundle"
    luck: ClassVar[tuple[Luck, ...]] = ("demand", "placement")
    every_key: ClassVar[tuple[str, ...]] = ()

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """List the whole, or no key if the bytes of a lookup are unknown."""
        return () if batch.bytes_per_weight is None else (None,)

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Compute the cost and the covered weight, shape (n_bundles, 2)."""
        price, known = _split_unknown(batch.price_per_gb)
        gigabytes = (batch.bytes_per_weight or 0.0) / 1e9
        return per_bundle(
            batch, batch.served.bundle, _weigh_groups(batch, gigabytes * price), _weigh_groups(batch, known)
        )

    def value(self, sums: FloatArray) -> FloatArray:
        """Compute the cost in the topology's currency, NaN if no distance is known."""
        cost: FloatArray = np.where(sums[..., 1] > 0, sums[..., 0], np.nan)
        return cost


def _weigh_groups(batch: Batch, table: FloatArray) -> FloatArray:
    """Compute each group's weight times the figure of its pair, shape (n_groups,)."""
    return batch.served.weight * of_pairs(batch, table)


def _split_unknown(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split figures of pairs into the figure, 0.0 if it is unknown, and whether it is known, 1.0 or 0.0."""
    known = ~np.isnan(table)
    return np.where(known, table, 0.0), known.astype(np.float64)
