"""Read Pulsar's load reports, which are `BrokerLoadData` of a broker and the statistics of its bundles.

The module has records with Pulsar's JSON names, the percentages of a broker's resources, and the order in
which Pulsar ranks bundles. The load that policies see is in `load.py`.

Source: `docs/pulsar/load-managers.md` (`BrokerLoadData`, `SystemResourceUsage`, `NamespaceBundleStats.compareTo`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lookup.model.documents import Readers, mapping, number, parsed_object, record_in, whole_number

__all__ = [
    "BrokerLoadData", "NamespaceBundleStats", "ResourceUsage", "Resources", "broker_load_from_json",
    "bundle_stats_from_json",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Usage of one resource and its limit, in the resource's own unit."""

    usage: float = 0.0
    limit: float = 0.0

    @property
    def percent_usage(self) -> float:
        """The usage in percent of the limit as Pulsar computes it in 32-bit floats, 0 without a limit.

        The result is not clamped. It is a 32-bit float widened to 64 bits, so 30 of 100 is 30.000001907348633.
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
    """A broker's load report. A broker that never reported looks full (usage 1.0)."""

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
    """Traffic of one bundle in messages and bytes per second, and the number of its connections."""

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
        """The rank by which Pulsar orders bundles. The first figure that differs noticeably decides.

        The figures have steps of 100 kB/s inbound, then outbound, of 100 messages/s, of 500 connected clients, and of
        100 kB cached. Inbound comes first, so huge outbound traffic ranks below slightly more inbound traffic.
        """
        connected = self.topics + self.consumer_count + self.producer_count
        return (
            _round(self.msg_throughput_in / 1e5),
            _round(self.msg_throughput_out / 1e5),
            _round((self.msg_rate_in + self.msg_rate_out) / 100),
            _count_steps(connected, 500),
            _count_steps(self.cache_size, 100_000),
        )


def broker_load_from_json(source: str) -> BrokerLoadData:
    """Read `BrokerLoadData` from Pulsar's JSON. Absent keys get their defaults.

    Raises:
        InputError: if the text is not a JSON object or a figure is not a finite number.
    """
    return record_in(BrokerLoadData, parsed_object(source, "broker load data"), _READERS)


def bundle_stats_from_json(source: str) -> NamespaceBundleStats:
    """Read `NamespaceBundleStats` from Pulsar's JSON. Absent keys get their defaults.

    Raises:
        InputError: if the text is not a JSON object or a figure is not a finite number.
    """
    return record_in(NamespaceBundleStats, parsed_object(source, "bundle stats"), _READERS)


def _round(value: float) -> int:
    # Java's Math.round takes halves up, Python's round takes them to the even neighbour.
    return math.floor(value + 0.5)


def _count_steps(count: int, step: int) -> int:
    # Java's division truncates, Python's rounds down.
    return abs(count) // step * (1 if count >= 0 else -1)


def _read_resource(value: object, key: str) -> ResourceUsage:
    return record_in(ResourceUsage, mapping(value, key), _READERS, f"{key}.")


_READERS: Readers = {"float": number, "int": whole_number, "ResourceUsage": _read_resource}
