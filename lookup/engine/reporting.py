"""Publish the load of brokers as Pulsar does, after a sufficient change or enough time since the last report.

Between publications every other broker sees the last published report, while the broker's own averages
change with every sample. This module does not read a clock. Times are arguments.

Source: `docs/pulsar/load-managers.md` (`BrokerLoadDataReporter`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Annotated, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks.protocols import Conf, Ge, Le
from lookup.model import Load

__all__ = ["Cadence", "Measured", "Published", "ReportBoard", "percent_change"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cadence:
    """Intervals and thresholds by which a broker samples and publishes its load. The defaults are Pulsar's."""

    name: ClassVar[str] = "cadence"

    #: ms between samples (loadBalancerReportUpdateMinIntervalMillis)
    min_interval_ms: Annotated[int, Ge(1), Conf("loadBalancerReportUpdateMinIntervalMillis")] = 5_000
    #: ms after which a report is published without any change (loadBalancerReportUpdateMaxIntervalMinutes, in minutes)
    max_interval_ms: Annotated[int, Ge(0), Conf("loadBalancerReportUpdateMaxIntervalMinutes", scale=60_000)] = (
        15 * 60_000
    )
    #: percent above which a change of a figure counts (loadBalancerReportUpdateThresholdPercentage)
    change_percent: Annotated[float, Ge(0), Conf("loadBalancerReportUpdateThresholdPercentage")] = 10.0
    #: share of the previous value in the next smoothed one, ratio in [0, 1] (loadBalancerHistoryResourcePercentage)
    history: Annotated[float, Ge(0), Le(1), Conf("loadBalancerHistoryResourcePercentage")] = 0.9


def percent_change(old: Floats | Ints | float, new: Floats | Ints | float) -> Floats:
    """Compute the change of figures in percent of their old values, infinite for a change from 0."""
    before = np.asarray(old, dtype=np.float64)
    # 0 / 0 and x / 0 are replaced below.
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = 100 * np.abs((before - new) / before)
    return np.where(before == 0, np.where(np.asarray(new) == 0, 0.0, np.inf), relative)


@dataclass(frozen=True, eq=False)
class Measured:
    """Figures that the brokers of a cluster measure from one instant on, in arrays of shape (n_brokers,)."""

    #: the fullest resource, which is the weighted one as well, 1.0 is full, NaN if unknown
    usage: Floats
    #: bytes, or weight, per second, NaN for an absent broker
    throughput: Floats
    #: messages, or lookups, per second
    rate: Floats
    bundles: Ints
    topics: Ints


@dataclass(frozen=True, eq=False)
class Published:
    """Load reports of a cluster's brokers, shape (n_brokers,). Without one, throughput is NaN, counts and times 0."""

    #: smoothed (Pulsar: weightedMaxEMA), 1.0 is full, NaN if unknown
    usage: Floats
    #: as measured (Pulsar: maxResourceUsage)
    max_usage: Floats
    #: as measured, per second
    throughput: Floats
    rate: Floats
    #: smoothed, per second (Pulsar: msgThroughputEMA)
    throughput_ema: Floats
    topics: Ints
    #: time of the published sample, µs since the Unix epoch (Pulsar: updatedAt and reportedAt)
    reported_us: Ints


def _measure_nothing(n_brokers: int) -> Measured:
    unknown, none = np.full(n_brokers, np.nan), np.zeros(n_brokers, np.int64)
    return Measured(unknown, unknown, unknown, none, none)


def _publish_nothing(n_brokers: int) -> Published:
    unknown, zero = np.full(n_brokers, np.nan), np.zeros(n_brokers, np.int64)
    return Published(unknown, unknown, unknown, unknown, unknown, zero, zero)


@dataclass(eq=False)
class ReportBoard:
    """The reporting of all brokers of a cluster in closed loop, sample by sample from a common start.

    Measurements of brokers change at the instants of `measure` and stay the same in between, while brokers
    continue to take samples at the cadence's interval. Averages move on, and an old report is published again.
    So a report that was due to a jump of usage has an average that has hardly moved, and stays on the board
    until the next change or the end of the longest interval. That is upstream's behaviour.

    A broker that leaves loses its report at once. A new or returning broker starts without a past and publishes
    its first sample. Lists of top bundles are not kept here, since Pulsar publishes them at every refresh.

    Args:
        n_brokers: brokers of the run, whether present or not.
        start_us: time of the first sample, µs since the Unix epoch.
    """

    n_brokers: int
    start_us: int
    cadence: Cadence = Cadence()
    #: the published reports
    published: Published = field(init=False)

    def __post_init__(self) -> None:
        self.published = _publish_nothing(self.n_brokers)
        self._next_us = self.start_us
        self._measured = _measure_nothing(self.n_brokers)
        #: the measurements at their publication
        self._known = self._measured
        self._averages = np.full((2, self.n_brokers), np.nan)

    def measure(self, measured: Measured, now_us: int) -> Published:
        """Take all samples before an instant, then, if one is due at it, that one with the new figures.

        Args:
            now_us: µs since the Unix epoch, not before that of the last call.
        """
        self._sample_before(now_us)
        # Counts of owned bundles change further in the caller's books, and are compared with the next ones.
        self._measured = replace(measured, bundles=measured.bundles.copy())
        self._forget(np.isnan(measured.throughput))
        self._sample(int(self._next_us == now_us))
        return self.published

    def shown(self, figures: Load, bundles: Ints, now_us: int) -> Load:
        """Find the published load at an instant at which the brokers measure some figures.

        Figures outside a load report stay the same, such as top bundles, traffic of topics, and rates in the long run.

        Args:
            bundles: number of bundles that each broker owns, shape (n_brokers,).
            now_us: µs since the Unix epoch, not before that of the last call.
        """
        load = figures.throughput
        # If no rate of messages is known, the load's changes are its changes.
        rate = load if figures.rates is None else figures.rates
        report = self.measure(Measured(figures.usage, load, rate, bundles, figures.topics), now_us)
        return replace(
            figures,
            usage=report.usage,
            max_usage=report.max_usage,
            throughput=report.throughput,
            smoothed_throughput=report.throughput_ema,
            topics=report.topics,
            updated_us=report.reported_us,
            rates=None if figures.rates is None else report.rate,
        )

    def leave(self, gone: NDArray[np.bool_], now_us: int) -> None:
        """Note that brokers left, shape (n_brokers,). A broker that returns by its next measurement starts anew.

        Args:
            now_us: µs since the Unix epoch, not before that of the last call.
        """
        self._sample_before(now_us)
        self._measured = _merge_columns(gone, _measure_nothing(self.n_brokers), self._measured)
        self._forget(gone)

    def _sample_before(self, now_us: int) -> None:
        step_us = self.cadence.min_interval_ms * 1000
        self._sample(max(0, -((self._next_us - now_us) // step_us)))

    def _forget(self, gone: NDArray[np.bool_]) -> None:
        board = self.published
        self._averages = np.where(gone, np.nan, self._averages)
        self.published = _merge_columns(gone, _publish_nothing(self.n_brokers), board)

    def _sample(self, count: int) -> None:
        if count:
            last = self._find_last_publication(count)
            self._publish(last)
            self._averages = self._move_averages(np.int64(count))
            self._next_us += count * self.cadence.min_interval_ms * 1000

    def _find_last_publication(self, count: int) -> Ints:
        """Find which of the next samples is published last, from 1, or 0 for none, shape (n_brokers,)."""
        step_us, longest_us = self.cadence.min_interval_ms * 1000, self.cadence.max_interval_ms * 1000
        is_new = np.isnan(self.published.throughput)
        # The first sample later than the longest interval after the last report. Samples are numbered from 1.
        waited = np.maximum(1, (self.published.reported_us + longest_us - self._next_us) // step_us + 2)
        first = np.where(is_new | self._has_changed(), 1, waited)
        again = longest_us // step_us + 1
        last = first + again * ((count - first) // again)
        there = ~np.isnan(self._measured.throughput)
        return np.where(there & (first <= count), last, 0)

    def _has_changed(self) -> NDArray[np.bool_]:
        before, now = self._known, self._measured
        changes = np.stack(
            [
                100 * np.abs(before.usage - now.usage),
                percent_change(before.rate, now.rate),
                percent_change(before.throughput, now.throughput),
                percent_change(before.bundles, now.bundles),
            ]
        )
        has_changed: NDArray[np.bool_] = np.logical_or.reduce(changes > self.cadence.change_percent)
        return has_changed

    def _move_averages(self, samples: Ints | np.int64) -> Floats:
        now = np.stack([self._measured.usage, self._measured.throughput])
        # The first sample of all starts the averages.
        before = np.where(np.isnan(self._averages), now, self._averages)
        # Each sample multiplies the distance to the value before by `history`.
        return now + (before - now) * np.power(self.cadence.history, samples, dtype=np.float64)

    def _publish(self, samples: Ints) -> None:
        usage, throughput_ema = self._move_averages(samples)
        at_us = self._next_us + (samples - 1) * self.cadence.min_interval_ms * 1000
        now = self._measured
        is_due = samples > 0
        fresh = Published(usage, now.usage, now.throughput, now.rate, throughput_ema, now.topics, at_us)
        self.published = _merge_columns(is_due, fresh, self.published)
        self._known = _merge_columns(is_due, now, self._known)


_Columns = TypeVar("_Columns", Measured, Published)


def _merge_columns(mask: NDArray[np.bool_], chosen: _Columns, rest: _Columns) -> _Columns:
    names = (entry.name for entry in fields(chosen))
    return type(chosen)(**{name: np.where(mask, getattr(chosen, name), getattr(rest, name)) for name in names})
