"""Brokers with their registered data (`BrokerLookupData`) and locations, and the numbered roster of a cluster.

A broker does not hold load. Changing figures are in columns of `ClusterView`, addressed by the broker's number.

Source: `docs/pulsar/load-managers.md`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.model.documents import (
    Readers,
    flag,
    json_fields,
    mapping,
    parsed_object,
    record_in,
    text,
    texts,
    whole_number,
)

__all__ = [
    "EXTENSIBLE_MANAGER", "AdvertisedListener", "Broker", "BrokerLookupData", "Candidates", "Location", "Roster",
    "published_properties",
]  # fmt: skip

BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.intp]
LabelArray = NDArray[np.object_]

#: Class name of the manager under which lookup properties have a meaning.
EXTENSIBLE_MANAGER = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"


@dataclass(frozen=True, slots=True)
class AdvertisedListener:
    """Addresses of one named listener, each of which may be absent."""

    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None
    # The names of these two are marked unverified in `docs/pulsar/load-managers.md`.
    broker_http_url: str | None = None
    broker_https_url: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerLookupData:
    """The record a broker keeps in the registry, with Pulsar's thirteen fields.

    `properties` keep the configured prefix in their keys (`lookup.rack`), as Pulsar publishes them.
    """

    web_service_url: str | None = None
    web_service_url_tls: str | None = None
    pulsar_service_url: str | None = None
    pulsar_service_url_tls: str | None = None
    advertised_listeners: Mapping[str, AdvertisedListener] = field(default_factory=dict)
    protocols: Mapping[str, str] = field(default_factory=dict)
    persistent_topics_enabled: bool = True
    non_persistent_topics_enabled: bool = True
    load_manager_class_name: str | None = None
    #: ms since the epoch, 0 if an old broker did not report it
    start_timestamp: int = 0
    broker_version: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    #: host and port, which brokers write from 5.0 on
    broker_id: str | None = None

    @classmethod
    def from_json(cls, source: str) -> BrokerLookupData:
        """Read Pulsar's JSON. Missing keys of older brokers get their defaults, and unknown keys are ignored.

        Raises:
            InputError: if the text is not a JSON object, or the type of a value differs from Pulsar's.
        """
        # Null and absent are equivalent, since brokers of different versions write one or the other.
        return record_in(cls, parsed_object(source, "broker lookup data"), _READERS)

    def to_json(self) -> str:
        """Write Pulsar's JSON, keys sorted, without the id that brokers before 5.0 do not write if there is none."""
        record: dict[str, Any] = {key: getattr(self, name) for name, key, _ in json_fields(BrokerLookupData)}
        if self.broker_id is None:
            del record["brokerId"]
        record["advertisedListeners"] = {
            name: {key: getattr(entry, attribute) for attribute, key, _ in json_fields(AdvertisedListener)}
            for name, entry in self.advertised_listeners.items()
        }
        return json.dumps(record, sort_keys=True)


def published_properties(configuration: Mapping[str, object], prefix: str = "lookup.") -> dict[str, str]:
    """Select the properties of a broker's configuration that it publishes, as texts with the prefix in their keys.

    Args:
        prefix: Pulsar's lookupPropertyPrefix.
    """
    return {key: value for key, value in configuration.items() if key.startswith(prefix) and isinstance(value, str)}


def _read_listeners(value: object, key: str) -> dict[str, AdvertisedListener]:
    entries = {name: mapping(entry, f"{key}.{name}") for name, entry in mapping(value, key).items()}
    return {name: record_in(AdvertisedListener, entry, _READERS, f"{key}.{name}.") for name, entry in entries.items()}


_READERS: Readers = {
    "str | None": text,
    "bool": flag,
    "int": whole_number,
    "Mapping[str, str]": texts,
    "Mapping[str, AdvertisedListener]": _read_listeners,
}


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the topology, outermost level first. Unknown levels are None."""

    region: str | None = None
    zone: str | None = None
    rack: str | None = None

    def __bool__(self) -> bool:
        return (self.region, self.zone, self.rack) != (None, None, None)


@dataclass(frozen=True)
class Broker:
    """One broker with its id (`host:port`), its registered data, its capacity and its location."""

    id: str
    lookup_data: BrokerLookupData = field(default_factory=BrokerLookupData)
    #: weight per second at usage 1.0, None if unknown
    capacity: float | None = None
    location: Location = Location()
    #: prefix under which the broker publishes lookup properties (Pulsar: lookupPropertyPrefix)
    property_prefix: str = "lookup."

    def property_of(self, key: str) -> str | None:
        """Find the broker's value of a client property. For `rack` it is `lookup.rack`, None if it is absent."""
        return self.lookup_data.properties.get(self.property_prefix + key)

    @property
    def host(self) -> str:
        """The id without its port. Isolation policies match hosts, and an IPv6 address keeps its brackets."""
        return self.id if self.id.endswith("]") else self.id.rpartition(":")[0] or self.id


class Roster:
    """All brokers of a cluster in one registry epoch, sorted by id.

    A broker's position is its number in all columns. Numbers are assigned once for a whole run, so a roster
    also holds brokers that are not registered at the moment.
    """

    __slots__ = ("_brokers", "_columns", "_ids", "_numbers")

    def __init__(self, brokers: Sequence[Broker]) -> None:
        # Sorted by id, not by arrival, so that numbers and figures do not depend on the order of a table's rows.
        self._brokers = tuple(sorted(brokers, key=lambda broker: broker.id))
        self._ids = tuple(broker.id for broker in self._brokers)
        self._numbers = {name: number for number, name in enumerate(self._ids)}
        self._columns: dict[Hashable, LabelArray] = {}

    def __len__(self) -> int:
        return len(self._brokers)

    def __getitem__(self, number: int) -> Broker:
        return self._brokers[number]

    def __iter__(self) -> Iterator[Broker]:
        return iter(self._brokers)

    def number(self, broker_id: str) -> int | None:
        """Find a broker's number, None for an id that the cluster does not know."""
        return self._numbers.get(broker_id)

    @property
    def ids(self) -> tuple[str, ...]:
        """The brokers' ids, by number."""
        return self._ids

    def labels(self, key: str) -> LabelArray:
        """List every broker's value of a client property, shape (n_brokers,), None where it is absent."""
        # Cached per roster, since filters and scorers need the same labels in every decision.
        return self.column((Broker.property_of, key), lambda broker: broker.property_of(key))

    def column(self, key: Hashable, compute: Callable[[Broker], object]) -> LabelArray:
        """Compute a value for every broker, shape (n_brokers,), once per roster and key.

        The key contains everything that the value depends on apart from the broker, for example `("max-len", 3)`.
        """
        values = self._columns.get(key)
        if values is None:
            # Filled after creation, since `np.array` would make a second axis of values that are sequences themselves.
            values = np.empty(len(self), dtype=object)
            values[:] = [compute(broker) for broker in self._brokers]
            values.flags.writeable = False
            self._columns[key] = values
        return values


class Candidates:
    """The brokers that a part receives, a sequence of `Broker` sorted by id.

    `index` holds their numbers, shape (n_candidates,). `view.load.usage[brokers.index]` is the usage of each.
    """

    __slots__ = ("_roster", "index")

    def __init__(self, roster: Roster, index: IndexArray) -> None:
        self._roster = roster
        self.index = index

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, position: int) -> Broker:
        return self._roster[int(self.index[position])]

    def __iter__(self) -> Iterator[Broker]:
        return (self._roster[number] for number in self.index.tolist())

    @property
    def ids(self) -> tuple[str, ...]:
        """The candidates' ids."""
        return self.ids_at(slice(None))

    def ids_at(self, positions: slice | IndexArray) -> tuple[str, ...]:
        """List the ids of some of the candidates by their positions."""
        ids = self._roster.ids
        return tuple([ids[number] for number in self.index[positions].tolist()])

    def labels(self, key: str) -> LabelArray:
        """List each candidate's value of a client property, shape (n_candidates,), None where it is absent."""
        labels: LabelArray = self._roster.labels(key)[self.index]
        return labels

    def column(self, key: Hashable, compute: Callable[[Broker], object]) -> LabelArray:
        """Compute a value for each candidate, shape (n_candidates,), once per roster and key."""
        values: LabelArray = self._roster.column(key, compute)[self.index]
        return values

    def subset(self, kept: BoolArray) -> Candidates:
        """Select the candidates for which a mask of shape (n_candidates,) is true."""
        return Candidates(self._roster, self.index[kept])
