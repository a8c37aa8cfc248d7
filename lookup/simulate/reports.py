"""What everybody sees of the load of brokers: figures of this minute, or what was last published."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import LoadFigures
from lookup.engine.reporting import Cadence, Measured, ReportBoard

__all__ = ["FreshReports", "PublishedReports"]

Floats = NDArray[np.float64]


class FreshReports:
    """Every broker reports in every minute; usage is smoothed over the minutes before.

    Args:
        n_brokers: brokers of the scenario, there or not.
        history: share of the usage before in the next, ratio in [0, 1].
    """

    def __init__(self, n_brokers: int, history: float) -> None:
        self._usage: Floats = np.full(n_brokers, np.nan)
        self._history = history

    def see(self, figures: LoadFigures, bundles: NDArray[np.int64], now_us: int) -> LoadFigures:
        """Return what is seen of the figures of this minute.

        Args:
            bundles: how many bundles each broker owns, shape (n_brokers,).
        """
        # Who comes back begins anew: usage of brokers that are away is NaN.
        smoothed = self._history * self._usage + (1.0 - self._history) * figures.usage
        self._usage = np.where(np.isnan(self._usage), figures.usage, smoothed)
        return replace(figures, usage=self._usage.copy())


class PublishedReports:
    """A broker samples its load every five seconds and publishes what changed by more than a tenth, or is old.

    Lists of top bundles, message rates in the long run and what topics carry are not part of that report; they are
    those of the minute.

    Args:
        n_brokers: brokers of the scenario, there or not.
        start_us: time of the first minute, µs since the Unix epoch.
        history: share of the value before in the next sample's average, ratio in [0, 1].

    Source: `facts/loadmanager.md` section 11; the cadence is `lookup.engine.reporting`'s.
    """

    def __init__(self, n_brokers: int, start_us: int, history: float) -> None:
        self._board = ReportBoard(n_brokers, start_us, Cadence(history=history))

    def see(self, figures: LoadFigures, bundles: NDArray[np.int64], now_us: int) -> LoadFigures:
        """Return what is seen of the figures of this minute.

        Args:
            bundles: how many bundles each broker owns, shape (n_brokers,).
            now_us: µs since the Unix epoch, later than in the call before.
        """
        rate = np.full(len(bundles), np.nan) if figures.message_rate is None else figures.message_rate
        measured = Measured(figures.usage, figures.broker_load, rate, bundles, figures.topics)
        seen = self._board.measure(measured, now_us)
        return replace(
            figures,
            usage=seen.usage,
            max_usage=seen.max_usage,
            broker_load=seen.throughput,
            topics=seen.topics,
            load_ema=seen.throughput_ema,
            updated_us=seen.reported_us,
            message_rate=seen.rate,
        )
