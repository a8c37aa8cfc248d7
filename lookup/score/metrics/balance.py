"""Measure the balance of brokers by imbalance per cell of time, time spent overloaded, and swings of load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lookup.hooks import Question
from lookup.model.batch import Batch, Cells
from lookup.model.churn import discount_trend
from lookup.score.metrics.totals import CellQuotient, FloatArray

__all__ = ["ImbalanceCv", "ImbalanceMaxMean", "LoadVariation", "OverloadRatio"]


@dataclass(frozen=True)
class ImbalanceMaxMean(CellQuotient):
    """Per cell the largest weight of a registered broker / their mean, averaged by weight. 1.0 is perfect balance."""

    name: ClassVar[str] = "imbalance_max_mean"
    bounds: ClassVar[tuple[float, float]] = (1.0, math.inf)

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Compute max / mean x weight, and weight, shape (n_cells, 2)."""
        served = _select_registered(batch.cells)
        # mean = weight / brokers, hence max / mean x weight = max x brokers, without a division by an empty cell
        brokers = batch.cells.registered.sum(axis=1)
        return np.stack([served.max(axis=1, initial=0.0) * brokers, served.sum(axis=1)], axis=1)


@dataclass(frozen=True)
class ImbalanceCv(CellQuotient):
    """Per cell the standard deviation of the weight served / its mean, then the mean over cells by weight.

    The deviation is that of the population of registered brokers. 0.0 is perfect balance.
    """

    name: ClassVar[str] = "imbalance_cv"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Compute deviation / mean x weight, and weight, shape (n_cells, 2)."""
        served = _select_registered(batch.cells)
        brokers, weight = batch.cells.registered.sum(axis=1).astype(np.float64), served.sum(axis=1)
        mean = weight / np.maximum(brokers, 1)
        squares = np.where(batch.cells.registered, (served - mean[:, None]) ** 2, 0.0).sum(axis=1)
        # deviation / mean x weight = deviation x brokers = sqrt(squares x brokers)
        return np.stack([np.sqrt(squares * brokers), weight], axis=1)


@dataclass(frozen=True)
class OverloadRatio(CellQuotient):
    """Broker-time with usage above the overload threshold / broker-time with a known usage."""

    name: ClassVar[str] = "overload_ratio"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    question: ClassVar[Question] = "log"

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """List the whole, or no key if capacities are assumed."""
        return () if batch.cells.known_s is None or batch.cells.overloaded_s is None else (None,)

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Compute overloaded and known broker-seconds, shape (n_cells, 2)."""
        overloaded, known = batch.cells.overloaded_s, batch.cells.known_s
        if overloaded is None or known is None:
            return np.zeros((len(batch.cells.start), 2))
        return np.stack([overloaded.sum(axis=1), known.sum(axis=1)], axis=1)


@dataclass(frozen=True)
class LoadVariation(CellQuotient):
    """Swing of the load of brokers from cell to cell, against its trend, as a ratio of the load.

    It is 0.0 if load only ever grows, or only ever shrinks. The discount is `lookup.model.churn`'s.
    """

    name: ClassVar[str] = "load_variation"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Compute discounted variation against the previous cell, and weight, shape (n_cells, 2)."""
        cells = batch.cells
        steps, serving = np.zeros(cells.served.shape), _select_registered(cells)
        broker, cell = cells.registered.T.nonzero()
        # Cells before a broker's first served lookup are left out, since its first load is not a swing.
        is_step = (broker[1:] == broker[:-1]) & np.logical_or.accumulate(serving > 0)[cell[:-1], broker[:-1]]
        steps[cell[1:][is_step], broker[1:][is_step]] = np.diff(cells.served[cell, broker])[is_step]
        return np.stack([discount_trend(steps).sum(axis=1), serving.sum(axis=1)], axis=1)


def _select_registered(cells: Cells) -> FloatArray:
    """Compute the weight that registered brokers served by cell, 0.0 for others, shape (n_cells, n_brokers)."""
    return np.where(cells.registered, cells.served, 0.0)
