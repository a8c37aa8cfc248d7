"""When a broker publishes its load: what changed since the last publication, and how long ago that was.

Between publications every other broker sees what was last published, while the broker's own averages move on with every
sample. Nothing here reads a clock; times come in as numbers.

Source: `facts/loadmanager.md` section 11 (`BrokerLoadDataReporter`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from lookup.model.load import BrokerLoadData
from lookup.model.load_data import LoadSample, ResourceWeights, updated_load

__all__ = ["Cadence", "LoadReporter", "Publication", "largest_change", "percent_change"]

#: Why a report is published.
Publication = Literal["forced", "interval", "change"]


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often a broker looks at its load and what makes it publish; the defaults are Pulsar's."""

    #: ms between samples; loadBalancerReportUpdateMinIntervalMillis
    min_interval_ms: int = 5_000
    #: ms after which a report is published whatever changed; loadBalancerReportUpdateMaxIntervalMinutes, in minutes
    max_interval_ms: int = 15 * 60_000
    #: percent by which a figure must have changed more; loadBalancerReportUpdateThresholdPercentage
    change_percent: float = 10.0

    def reason(
        self, published: BrokerLoadData, current: BrokerLoadData, now_ms: int, *, forced: bool = False
    ) -> Publication | None:
        """Say why the current figures are to be published, None where they are not.

        Args:
            published: what was published last; a fresh `BrokerLoadData` where nothing was.
            now_ms: ms since the epoch.
            forced: a role changed, or an operator asks.
        """
        if forced:
            return "forced"
        if now_ms - published.reported_at > self.max_interval_ms:
            return "interval"
        return "change" if largest_change(published, current) > self.change_percent else None


def percent_change(old: float, new: float) -> float:
    """Return by how much a figure changed, in percent of its old value; infinite where it was 0 and is not any more."""
    if old == 0:
        return 0.0 if new == 0 else math.inf
    return 100 * abs((old - new) / old)


def largest_change(published: BrokerLoadData, current: BrokerLoadData) -> float:
    """Return the largest change between two reports, in percent.

    The largest usage counts by points; message rate, throughput and number of bundles count relative to what was
    published.
    """
    return max(
        100 * abs(published.max_resource_usage - current.max_resource_usage),
        percent_change(published.msg_rate, current.msg_rate),
        percent_change(published.msg_throughput, current.msg_throughput),
        percent_change(published.bundle_count, current.bundle_count),
    )


@dataclass
class LoadReporter:
    """One broker's reporting in closed loop: it is handed every sample, and tells what the others see.

    Every sample moves the averages, published or not. A metrics scrape of Pulsar's takes a sample as well: hand it over
    like any other, and the averages move as upstream's do.

    Args:
        cadence: when to publish.
        weights: of resources, and the share of history.
    """

    cadence: Cadence = Cadence()
    weights: ResourceWeights = ResourceWeights()
    #: the broker's own figures as of its last sample
    current: BrokerLoadData = BrokerLoadData()
    #: what the other brokers see; a broker that never published looks full
    published: BrokerLoadData = BrokerLoadData()

    def take(self, sample: LoadSample, now_ms: int, *, forced: bool = False) -> Publication | None:
        """Take one sample in and publish where it is due; return why, None where it is not.

        Args:
            now_ms: ms since the epoch, not before that of the last sample.
        """
        self.current = updated_load(self.current, sample, now_ms, weights=self.weights)
        why = self.cadence.reason(self.published, self.current, now_ms, forced=forced)
        if why is not None:
            self.current = self.published = replace(self.current, reported_at=now_ms)
        return why
