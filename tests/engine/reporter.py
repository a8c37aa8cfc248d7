"""One broker's load reports, sample by sample, by Pulsar's records: the oracle of `ReportBoard`, and of the vectors."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

import numpy as np

from lookup.engine.reporting import Cadence, percent_change
from lookup.model.load_data import BrokerLoadData, Resources, ResourceUsage

#: Why a report is published.
Publication = Literal["interval", "change"]


@dataclass(frozen=True, slots=True)
class ResourceWeights:
    """Weights of the resources in a broker's weighted usage, and the share of history in it.

    In all of them the defaults are Pulsar's.
    """

    #: loadBalancerCPUResourceWeight
    cpu: float = 1.0
    #: loadBalancerMemoryResourceWeight
    memory: float = 0.0
    #: loadBalancerDirectMemoryResourceWeight
    direct_memory: float = 0.0
    #: loadBalancerBandwidthInResourceWeight
    bandwidth_in: float = 1.0
    #: loadBalancerBandwidthOutResourceWeight
    bandwidth_out: float = 1.0
    #: share of the value before in the next one, ratio in [0, 1]; loadBalancerHistoryResourcePercentage, which is a
    #: fraction despite its name
    history: float = 0.9


@dataclass(frozen=True, slots=True)
class SystemResourceUsage(Resources):
    """Usage of each resource at one moment; printed as Pulsar logs it, `cpu: 10.00%, memory: ...`."""

    @property
    def max_usage(self) -> float:
        """The fullest resource as a ratio, memory left out."""
        counted = (self.cpu, self.direct_memory, self.bandwidth_in, self.bandwidth_out)
        return max(resource.percent_usage for resource in counted) / 100

    def weighted_usage(self, weights: ResourceWeights) -> float:
        """Return the largest weighted usage as a ratio; memory counts by its weight."""
        weighted = (
            self.cpu.percent_usage * weights.cpu,
            self.memory.percent_usage * weights.memory,
            self.direct_memory.percent_usage * weights.direct_memory,
            self.bandwidth_in.percent_usage * weights.bandwidth_in,
            self.bandwidth_out.percent_usage * weights.bandwidth_out,
        )
        return max(weighted) / 100

    def __str__(self) -> str:
        return (
            f"cpu: {_two_decimals(self.cpu)}%, memory: {_two_decimals(self.memory)}%, "
            f"directMemory: {_two_decimals(self.direct_memory)}%, bandwidthIn: {_two_decimals(self.bandwidth_in)}%, "
            f"bandwidthOut: {_two_decimals(self.bandwidth_out)}%"
        )


def _two_decimals(resource: ResourceUsage) -> str:
    # Java's formatter rounds the shortest digits of a double, halves up.
    percent = resource.percent_usage
    return str(Decimal(str(percent)).quantize(Decimal("0.01"), ROUND_HALF_UP))


@dataclass(frozen=True, slots=True)
class LoadSample:
    """Everything a broker measures for one update of its report."""

    usage: SystemResourceUsage = SystemResourceUsage()
    #: bytes per second
    msg_throughput_in: float = 0.0
    msg_throughput_out: float = 0.0
    #: messages per second
    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    bundle_count: int = 0
    topics: int = 0


def updated_load(
    before: BrokerLoadData, sample: LoadSample, now_ms: int, *, weights: ResourceWeights = ResourceWeights()
) -> BrokerLoadData:
    """Return the report after one more sample, as `BrokerLoadData.update` leaves it.

    The first sample, if `before.updated_at` is 0, starts the averages; each later one is mixed in. `reported_at` stays
    as it was.

    Args:
        now_ms: time of the sample, ms since the epoch.
    """
    history = 0.0 if before.updated_at == 0 else weights.history
    usage = sample.usage
    return replace(
        before,
        **{entry.name: getattr(usage, entry.name) for entry in fields(usage)},
        **{entry.name: getattr(sample, entry.name) for entry in fields(sample) if entry.name != "usage"},
        max_resource_usage=usage.max_usage,
        weighted_max_ema=smoothed(before.weighted_max_ema, usage.weighted_usage(weights), history),
        msg_throughput_ema=smoothed(
            before.msg_throughput_ema, sample.msg_throughput_in + sample.msg_throughput_out, history
        ),
        updated_at=now_ms,
    )


def smoothed(before: float, now: float, history: float) -> float:
    """Return the next value of an exponential moving average; with no history the new value itself.

    Args:
        history: share of the value before, ratio in [0, 1].
    """
    return now if history == 0.0 else before * history + (1 - history) * now


def publication(
    cadence: Cadence, published: BrokerLoadData, current: BrokerLoadData, now_ms: int
) -> Publication | None:
    """Return why the current figures are to be published, None if they are not.

    Args:
        published: what was published last; a fresh `BrokerLoadData` if nothing was.
        now_ms: ms since the epoch.
    """
    if now_ms - published.reported_at > cadence.max_interval_ms:
        return "interval"
    return "change" if largest_change(published, current) > cadence.change_percent else None


def largest_change(published: BrokerLoadData, current: BrokerLoadData) -> float:
    """Return the largest change between two reports, in percent.

    The largest usage counts by points; message rate, throughput and number of bundles count relative to what was
    published.
    """
    relative = percent_change(
        np.array([published.msg_rate, published.msg_throughput, published.bundle_count]),
        np.array([current.msg_rate, current.msg_throughput, current.bundle_count]),
    )
    return max(100 * abs(published.max_resource_usage - current.max_resource_usage), float(relative.max()))


@dataclass
class LoadReporter:
    """One broker's reporting in closed loop: it takes every sample, and `published` is what the others see.

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

    def take(self, sample: LoadSample, now_ms: int) -> Publication | None:
        """Take one sample in and publish where it is due; return why, None where it is not.

        Args:
            now_ms: ms since the epoch, not before that of the last sample.
        """
        self.current = updated_load(self.current, sample, now_ms, weights=self.weights)
        why = publication(self.cadence, self.published, self.current, now_ms)
        if why is not None:
            self.current = self.published = replace(self.current, reported_at=now_ms)
        return why
