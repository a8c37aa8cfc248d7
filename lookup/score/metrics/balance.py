"""How evenly brokers are used: imbalance over cells of time, and time spent overloaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model.batch import Batch, Cells
from lookup.score.metrics.totals import CellQuotient

__all__ = ["ImbalanceCv", "ImbalanceMaxMean", "OverloadRatio"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ImbalanceMaxMean(CellQuotient):
    """Per cell the largest weight a registered broker served / their mean; then the mean over cells by weight.

    1.0 is perfect balance.
    """

    name: ClassVar[str] = "imbalance_max_mean"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return max / mean x weight, and weight, shape (n_cells, 2)."""
        served, brokers, weight = _registered(batch.cells)
        # max / mean x weight = max x brokers, since mean = weight / brokers
        return np.stack([served.max(axis=1, initial=0.0) * brokers, weight], axis=1)


@dataclass(frozen=True)
class ImbalanceCv(CellQuotient):
    """Per cell the standard deviation of the weight brokers served / their mean; then the mean over cells by weight.

    The deviation is that of a population, and the brokers are those that are registered. 0.0 is perfect balance.
    """

    name: ClassVar[str] = "imbalance_cv"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return deviation / mean x weight, and weight, shape (n_cells, 2)."""
        served, brokers, weight = _registered(batch.cells)
        mean = weight / np.maximum(brokers, 1)
        squares = np.where(batch.cells.registered, (served - mean[:, None]) ** 2, 0.0).sum(axis=1)
        # deviation / mean x weight = deviation x brokers = sqrt(squares x brokers)
        return np.stack([np.sqrt(squares * brokers), weight], axis=1)


@dataclass(frozen=True)
class OverloadRatio(CellQuotient):
    """Broker-time with usage above the overload threshold / broker-time with a known usage."""

    name: ClassVar[str] = "overload_ratio"

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """Return one whole, nothing where capacities are assumed."""
        return () if batch.cells.known_s is None or batch.cells.overloaded_s is None else (None,)

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return overloaded and known broker-seconds, shape (n_cells, 2)."""
        overloaded, known = batch.cells.overloaded_s, batch.cells.known_s
        if overloaded is None or known is None:
            return np.zeros((len(batch.cells.start), 2))
        return np.stack([overloaded.sum(axis=1), known.sum(axis=1)], axis=1)


def _registered(cells: Cells) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what registered brokers served, how many they are and their weight, by cell."""
    served = np.where(cells.registered, cells.served, 0.0)
    return served, cells.registered.sum(axis=1).astype(np.float64), served.sum(axis=1)
