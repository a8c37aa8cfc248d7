"""Compute sums per bundle or event, figures of pairs of broker and client, and quotients for all metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Better, Grain, Luck, Resample
from lookup.model.batch import Batch, OwnerChanges

__all__ = [
    "CellQuotient", "ChangeTotal", "FloatArray", "LookupQuotient", "of_pairs", "per_bundle", "per_unit",
]  # fmt: skip

FloatArray = NDArray[np.float64]


def per_bundle(batch: Batch, bundles: NDArray[np.int64], *figures: FloatArray) -> FloatArray:
    """Add up figures by bundle, shape (n_bundles, k).

    Args:
        bundles: the bundle of each figure, shape (n,).
        figures: k columns of shape (n,).
    """
    size = len(batch.bundles)
    return np.stack([np.bincount(bundles, weights=column, minlength=size) for column in figures], axis=1)


def per_unit(batch: Batch, changes: OwnerChanges, *figures: FloatArray) -> FloatArray:
    """Add up figures of changes of owner by the event behind them, else by bundle, shape (n_bundles + n_events, k).

    The eight bundles of one lost broker move together, and are one observation.

    Args:
        figures: k columns of shape (n_changes,).
    """
    n_bundles = len(batch.bundles)
    units = np.where(changes.event >= 0, n_bundles + changes.event, changes.bundle)
    size = n_bundles + len(batch.events)
    return np.stack([np.bincount(units, weights=column, minlength=size) for column in figures], axis=1)


def of_pairs(batch: Batch, table: FloatArray) -> FloatArray:
    """Find the figure of each group's pair of broker and client, shape (n_groups,).

    Args:
        table: shape (1 + n_brokers, n_clients), with the first row for unanswered lookups.
    """
    # one flat index is several times faster than two
    figures: FloatArray = table.ravel()[batch.pairs]
    return figures


@dataclass(frozen=True)
class _Quotient:
    unit: ClassVar[str] = "ratio"
    every_key: ClassVar[tuple[str, ...] | None] = ()
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def keys(self, batch: Batch) -> Sequence[str | None]:
        return (None,)

    def value(self, sums: FloatArray) -> FloatArray:
        """Divide the first column of totals by the second, shape (..., 2) to (...), NaN if the second is zero."""
        dividend, divisor = sums[..., 0], sums[..., 1]
        quotient = np.full(divisor.shape, np.nan)
        # `where` spares the warning about a division by zero that a plain quotient would give
        np.divide(dividend, divisor, out=quotient, where=divisor > 0)
        return quotient


@dataclass(frozen=True)
class LookupQuotient(_Quotient):
    """Quotient of two totals over lookups, by bundle. By default it is a share of lookups."""

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    grain: ClassVar[Grain] = "lookup"
    resample: ClassVar[Resample] = "bundle"
    luck: ClassVar[tuple[Luck, ...]] = ("demand", "placement", "events")


@dataclass(frozen=True)
class CellQuotient(_Quotient):
    """Quotient of two totals over cells of time."""

    better: ClassVar[Better] = "down"
    grain: ClassVar[Grain] = "cell"
    resample: ClassVar[Resample] = "time"
    luck: ClassVar[tuple[Luck, ...]] = ("demand", "placement")


@dataclass(frozen=True)
class ChangeTotal:
    """Total over changes of owner. Metrics differ in the changes that they count, and in their weight."""

    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    better: ClassVar[Better] = "down"
    every_key: ClassVar[tuple[str, ...]] = ()
    grain: ClassVar[Grain] = "change"
    resample: ClassVar[Resample] = "event"
    luck: ClassVar[tuple[Luck, ...]] = ("demand", "placement", "events")

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """List the whole, or no key if owners are not known."""
        return () if batch.changes is None else (None,)

    def value(self, sums: FloatArray) -> FloatArray:
        """Take the only column of totals, shape (..., 1) to (...)."""
        return sums[..., 0]
