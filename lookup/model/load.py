"""Load as Pulsar reports it: per broker, per bundle, and the top bundles of a broker.

Plain records with Pulsar's JSON names. The arithmetic that turns samples into these records (float32 percentages,
moving averages, top-k) is not here.

Source: `facts/loadmanager.md` sections 2.2 to 2.6.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from lookup.errors import InputError

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


_RESOURCES = ("cpu", "memory", "direct_memory", "bandwidth_in", "bandwidth_out")
_Record = TypeVar("_Record", BrokerLoadData, NamespaceBundleStats)


def broker_load_from_json(text: str) -> BrokerLoadData:
    """Read `BrokerLoadData` from Pulsar's JSON; absent keys take their defaults.

    Raises:
        InputError: where the text is no JSON object or a figure is no number.
    """
    record = _object(text, "broker load data")
    resources = {name: _resource(record.pop(_camel(name), None)) for name in _RESOURCES}
    return _filled(BrokerLoadData, record, resources)


def bundle_stats_from_json(text: str) -> NamespaceBundleStats:
    """Read `NamespaceBundleStats` from Pulsar's JSON; absent keys take their defaults.

    Raises:
        InputError: where the text is no JSON object or a figure is no number.
    """
    return _filled(NamespaceBundleStats, _object(text, "bundle stats"), {})


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except ValueError as error:
        raise InputError(f"{what} is no JSON: {error}") from None
    if not isinstance(record, dict):
        raise InputError(f"{what} is no JSON object but {type(record).__name__}")
    return record


def _resource(entry: Any) -> ResourceUsage:
    return (
        ResourceUsage(**{name: entry[name] for name in ("usage", "limit") if name in entry})
        if entry
        else ResourceUsage()
    )


def _filled(kind: type[_Record], record: Mapping[str, Any], given: Mapping[str, ResourceUsage]) -> _Record:
    values: dict[str, Any] = dict(given)
    for name in (entry.name for entry in fields(kind)):
        value = record.get(_camel(name))
        if value is not None:
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise InputError(f"{_camel(name)} is {value!r}, not a number")
            values[name] = value
    return kind(**values)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("EMA" if part == "ema" else part.capitalize() for part in rest)
