"""Load as Pulsar reports it: per broker, per bundle, and the top bundles of a broker.

Plain records with Pulsar's JSON names. The arithmetic that turns samples into these records (float32 percentages,
moving averages, top-k) is not here.

Source: `facts/loadmanager.md` sections 2.2 to 2.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from lookup.model.json_fields import mapping, number, parsed_object, whole_number

__all__ = [
    "BrokerLoadData",
    "NamespaceBundleStats",
    "ResourceUsage",
    "TopBundlesLoadData",
    "broker_load_from_json",
    "bundle_stats_from_json",
]


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Usage of one resource and its limit, in the resource's own unit."""

    usage: float = 0.0
    limit: float = 0.0


@dataclass(frozen=True, slots=True)
class BrokerLoadData:
    """A broker's load report; a broker that never reported looks full (usage 1.0)."""

    cpu: ResourceUsage = ResourceUsage()
    memory: ResourceUsage = ResourceUsage()
    direct_memory: ResourceUsage = ResourceUsage()
    bandwidth_in: ResourceUsage = ResourceUsage()
    bandwidth_out: ResourceUsage = ResourceUsage()
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


@dataclass(frozen=True, slots=True)
class TopBundlesLoadData:
    """A broker's most loaded bundles, in ascending order of load, by bundle name."""

    top_bundles_load_data: Mapping[str, NamespaceBundleStats] = field(default_factory=dict)


_Record = TypeVar("_Record", BrokerLoadData, NamespaceBundleStats, ResourceUsage)


def broker_load_from_json(source: str) -> BrokerLoadData:
    """Read `BrokerLoadData` from Pulsar's JSON; absent keys take their defaults.

    Raises:
        InputError: where the text is no JSON object or a figure is no finite number.
    """
    return _filled(BrokerLoadData, parsed_object(source, "broker load data"))


def bundle_stats_from_json(source: str) -> NamespaceBundleStats:
    """Read `NamespaceBundleStats` from Pulsar's JSON; absent keys take their defaults.

    Raises:
        InputError: where the text is no JSON object or a figure is no finite number.
    """
    return _filled(NamespaceBundleStats, parsed_object(source, "bundle stats"))


def _filled(kind: type[_Record], record: Mapping[str, Any], place: str = "") -> _Record:
    given = ((entry, _camel(entry.name)) for entry in fields(kind))
    present = ((entry, key, record[key]) for entry, key in given if record.get(key) is not None)
    return kind(**{entry.name: _READERS[str(entry.type)](value, place + key) for entry, key, value in present})


def _resource(value: object, key: str) -> ResourceUsage:
    return _filled(ResourceUsage, mapping(value, key), f"{key}.")


#: What a field has to be, by its type's name: annotations are not evaluated.
_READERS: Mapping[str, Callable[[object, str], Any]] = {
    "float": number,
    "int": whole_number,
    "ResourceUsage": _resource,
}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("EMA" if part == "ema" else part.capitalize() for part in rest)
