"""Reads, writes and updates Pulsar's load reports: `BrokerLoadData` of a broker and the statistics of its bundles.

Records with Pulsar's JSON names, the percentages of a broker's resources, the order in which Pulsar ranks bundles, and
the step from one sample of a broker's own measurements to its next report. What policies see of load is in `load.py`.

Source: `docs/pulsar/load-managers.md` (`BrokerLoadData`, `SystemResourceUsage`, `NamespaceBundleStats.compareTo`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, TypeVar

import numpy as np

from lookup.model.documents import mapping, number, parsed_object, whole_number

__all__ = [
    "BrokerLoadData", "LoadSample", "NamespaceBundleStats", "ResourceUsage", "ResourceWeights", "Resources",
    "SystemResourceUsage", "TopBundlesLoadData", "broker_load_from_json", "broker_load_to_json",
    "bundle_stats_from_json", "smoothed", "updated_load",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Usage of one resource and its limit, in the resource's own unit."""

    usage: float = 0.0
    limit: float = 0.0

    @property
    def percent_usage(self) -> float:
        """Usage in percent of the limit as Pulsar computes it: in 32-bit floats, 0 without a limit, not clamped.

        The result is a 32-bit float widened to 64 bits, so 30 of 100 is 30.000001907348633.
        """
        if self.limit <= 0:
            return 0.0
        # Numbers beyond 32 bits become infinite, as in Java.
        with np.errstate(all="ignore"):
            return float(np.float32(self.usage) / np.float32(self.limit) * np.float32(100))


@dataclass(frozen=True, slots=True)
class Resources:
    """Usage of each resource of a broker."""

    #: percent of all cores
    cpu: ResourceUsage = ResourceUsage()
    #: MiB of the heap
    memory: ResourceUsage = ResourceUsage()
    #: MiB outside the heap
    direct_memory: ResourceUsage = ResourceUsage()
    #: kbit/s
    bandwidth_in: ResourceUsage = ResourceUsage()
    bandwidth_out: ResourceUsage = ResourceUsage()


@dataclass(frozen=True, slots=True)
class BrokerLoadData(Resources):
    """A broker's load report; a broker that never reported looks full (usage 1.0)."""

    #: bytes per second
    msg_throughput_in: float = 0.0
    msg_throughput_out: float = 0.0
    #: messages per second
    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    bundle_count: int = 0
    topics: int = 0
    #: ratios, 1.0 is full
    max_resource_usage: float = 1.0
    weighted_max_ema: float = 1.0
    msg_throughput_ema: float = 0.0
    #: ms since the epoch
    updated_at: int = 0
    reported_at: int = 0

    @property
    def msg_throughput(self) -> float:
        """Bytes per second, in and out together."""
        return self.msg_throughput_in + self.msg_throughput_out

    @property
    def msg_rate(self) -> float:
        """Messages per second, in and out together."""
        return self.msg_rate_in + self.msg_rate_out


@dataclass(frozen=True, slots=True)
class NamespaceBundleStats:
    """Traffic of one bundle: messages and bytes per second, and what is connected to it."""

    msg_rate_in: float = 0.0
    msg_throughput_in: float = 0.0
    msg_rate_out: float = 0.0
    msg_throughput_out: float = 0.0
    consumer_count: int = 0
    producer_count: int = 0
    topics: int = 0
    cache_size: int = 0

    @property
    def rank(self) -> tuple[int, int, int, int, int]:
        """Rank by which Pulsar orders bundles: the first figure that differs decides, and close ones do not differ.

        Steps of 100 kB/s inbound, then outbound, of 100 messages/s, of 500 things connected, of 100 kB cached. Inbound
        comes first, so a bundle with huge outbound traffic ranks below one with a little more inbound.
        """
        connected = self.topics + self.consumer_count + self.producer_count
        return (
            _rounded(self.msg_throughput_in / 1e5),
            _rounded(self.msg_throughput_out / 1e5),
            _rounded((self.msg_rate_in + self.msg_rate_out) / 100),
            _whole_steps(connected, 500),
            _whole_steps(self.cache_size, 100_000),
        )

    def compare(self, other: NamespaceBundleStats) -> int:
        """Return -1, 0 or 1: less loaded than the other, alike, more loaded."""
        return (self.rank > other.rank) - (self.rank < other.rank)


@dataclass(frozen=True, slots=True)
class TopBundlesLoadData:
    """A broker's most loaded bundles, in ascending order of load, by bundle name."""

    top_bundles_load_data: Mapping[str, NamespaceBundleStats] = field(default_factory=dict)


_Record = TypeVar("_Record", BrokerLoadData, NamespaceBundleStats, ResourceUsage)


def broker_load_from_json(source: str) -> BrokerLoadData:
    """Read `BrokerLoadData` from Pulsar's JSON; absent keys take their defaults.

    Raises:
        InputError: if the text is no JSON object or a figure is no finite number.
    """
    return _filled(BrokerLoadData, parsed_object(source, "broker load data"))


def broker_load_to_json(data: BrokerLoadData) -> str:
    """Write `BrokerLoadData` as Pulsar's JSON, all keys."""
    return json.dumps(_written(data))


def bundle_stats_from_json(source: str) -> NamespaceBundleStats:
    """Read `NamespaceBundleStats` from Pulsar's JSON; absent keys take their defaults.

    Raises:
        InputError: if the text is no JSON object or a figure is no finite number.
    """
    return _filled(NamespaceBundleStats, parsed_object(source, "bundle stats"))


def _filled(kind: type[_Record], record: Mapping[str, Any], prefix: str = "") -> _Record:
    named = ((entry, _camel(entry.name)) for entry in fields(kind))
    present = ((entry, key, record[key]) for entry, key in named if record.get(key) is not None)
    return kind(**{entry.name: _READERS[str(entry.type)](value, prefix + key) for entry, key, value in present})


def _written(record: BrokerLoadData | ResourceUsage) -> dict[str, Any]:
    named = ((_camel(entry.name), getattr(record, entry.name)) for entry in fields(record))
    return {key: _written(value) if isinstance(value, ResourceUsage) else value for key, value in named}


def _rounded(value: float) -> int:
    # Java's Math.round takes halves up, Python's round takes them to the even neighbour.
    return math.floor(value + 0.5)


def _whole_steps(count: int, step: int) -> int:
    # Java's division truncates, Python's rounds down.
    return abs(count) // step * (1 if count >= 0 else -1)


def _resource(value: object, key: str) -> ResourceUsage:
    return _filled(ResourceUsage, mapping(value, key), f"{key}.")


#: Reader of a field, by its type's name: annotations are not evaluated.
_READERS: Mapping[str, Callable[[object, str], Any]] = {
    "float": number,
    "int": whole_number,
    "ResourceUsage": _resource,
}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("EMA" if part == "ema" else part.capitalize() for part in rest)


# From one sample to the next report


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
