"""Build the fixed parts of a synthetic log, which are topics and their popularity, racks, clients, and brokers.

Rows of the log have numbers only. The names here become the dictionaries of the Parquet columns.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
from numpy.typing import NDArray

from lookup.logs.generator.settings import GenerateSettings
from lookup.model.broker import AdvertisedListener, BrokerLookupData

__all__ = [
    "HEARTBEAT_SHARE", "POPULARITY_BITS", "BrokerSite", "Clients", "GeneratedCluster", "Software", "Topics",
    "cluster_names", "make_world", "rack_name",
]  # fmt: skip

Ints = NDArray[np.int32]

#: The popularity of topics is a table of 2**20 slots, each with the number of a topic, so one gather draws a topic.
POPULARITY_BITS = 20
#: Share of the lookups that are brokers looking up their own heartbeat topic.
HEARTBEAT_SHARE = 0.002
#: Partitions a topic may have, and their frequencies, where 0 is a topic without partitions.
_PARTITIONS = ((0, 4, 8, 16), (0.6, 0.2, 0.15, 0.05))
#: The share of topics so popular that they have the most partitions.
_POPULAR_SHARE = 0.02
_NON_PERSISTENT_SHARE = 0.08
#: Frequency with which the topics of a namespace are in the namespace's own rack. The others are anywhere.
_HOME_SHARE = 0.75
_WORDS = ("orders", "clicks", "metrics", "payments", "audit", "sensor", "inventory", "sessions")
_CLUSTERS = ("east", "west", "north", "south")


@dataclass(frozen=True, eq=False)
class Topics:
    """The topics of one cluster. Heartbeat topics, one per broker, come after the ordinary ones."""

    names: tuple[str, ...]
    #: `tenant/namespace` by number
    namespaces: tuple[str, ...]
    #: number of the namespace, -1 for heartbeat topics, shape (n_topics,)
    namespace: Ints
    #: CRC-32 of the name, shape (n_topics,)
    hashes: NDArray[np.int64]
    #: rack of the topic's team, shape (n_topics,)
    home: Ints
    #: topic by slot, shape (2**20,)
    popularity: Ints
    #: how many topics are ordinary
    ordinary: int


@dataclass(frozen=True, eq=False)
class Clients:
    """The clients of one cluster, sorted by rack, brokers' own heartbeat clients behind them."""

    #: addresses
    ids: tuple[str, ...]
    #: shape (n_clients,)
    rack: Ints
    #: number of the property set, shape (n_clients,)
    properties: Ints
    #: the property sets as canonical JSON
    property_sets: tuple[str, ...]
    #: first client and number of clients by rack, shape (n_racks,)
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    #: how many clients are no brokers
    ordinary: int


@dataclass(frozen=True)
class Software:
    """The software that brokers report."""

    load_manager: str
    #: release, like 4.2.4
    version: str


@dataclass(frozen=True)
class BrokerSite:
    """One broker, with its id, its rack by number and its registered data."""

    id: str
    rack: int
    data: BrokerLookupData


@dataclass(frozen=True, eq=False)
class GeneratedCluster:
    """The fixed parts of one cluster."""

    cluster: str
    brokers: tuple[BrokerSite, ...]
    topics: Topics
    clients: Clients


def make_world(
    settings: GenerateSettings, cluster: str, number: int, software: Software, dice: np.random.Generator
) -> GeneratedCluster:
    """Make the fixed parts of a cluster by its name and number."""
    brokers = _make_brokers(settings, cluster, software)
    topics = _make_topics(settings, brokers, dice)
    return GeneratedCluster(cluster, brokers, topics, _make_clients(settings, number, brokers, dice))


def cluster_names(count: int) -> tuple[str, ...]:
    """Name the clusters east, west, north, south, and then by numbers."""
    return (*_CLUSTERS[:count], *(f"cluster-{number}" for number in range(5, count + 1)))


def rack_name(rack: int) -> str:
    """Name a rack a, b, c, ..."""
    return chr(ord("a") + rack)


def _zone_name(rack: int) -> str:
    return f"z{1 + rack // 2}"


def _compute_shares(count: int, exponent: float = 1.0) -> NDArray[np.float64]:
    """Compute shares that fall like 1, 1/2, 1/3, ... raised to an exponent, shape (count,), with a sum of 1."""
    shares = 1.0 / np.arange(1, count + 1) ** exponent
    return np.asarray(shares / shares.sum())


def _make_brokers(settings: GenerateSettings, cluster: str, software: Software) -> tuple[BrokerSite, ...]:
    digits = max(2, len(str(settings.brokers)))
    start_ms = settings.start_us // 1000
    sites = []
    for number in range(settings.brokers):
        host, rack = f"{cluster}-broker-{number + 1:0{digits}}", number % settings.racks
        listener = AdvertisedListener(broker_service_url=f"pulsar://{host}.example.com:6650")
        data = BrokerLookupData(
            web_service_url=f"http://{host}:8080",
            pulsar_service_url=f"pulsar://{host}:6650",
            advertised_listeners={"external": listener},
            load_manager_class_name=software.load_manager,
            # The day before the log, a second apart.
            start_timestamp=start_ms - 86_400_000 + number * 1_000,
            broker_version=software.version,
            properties={"lookup.rack": rack_name(rack), "lookup.zone": _zone_name(rack)},
        )
        sites.append(BrokerSite(f"{host}:8080", rack, data))
    return tuple(sites)


def _make_topics(settings: GenerateSettings, brokers: tuple[BrokerSite, ...], dice: np.random.Generator) -> Topics:
    """Make topics over tenants and namespaces, popular ones first in rank but anywhere in number."""
    tenants = [f"tenant-{number:02}" for number in range(1, settings.tenants + 1)]
    turns = islice(cycle(tenants), settings.namespaces)
    namespaces = tuple(f"{tenant}/ns-{number // settings.tenants + 1:02}" for number, tenant in enumerate(turns))
    partitions, ranks = _draw_partitions(settings, dice)
    namespace_of = dice.choice(
        len(namespaces), p=dice.permutation(_compute_shares(len(namespaces), 0.5)), size=len(partitions)
    )
    # The first base topics, which have no partitions, see to it that no namespace is empty.
    namespace_of[: len(namespaces)] = np.arange(len(namespaces))
    # A few are not persistent.
    domains = np.where(dice.random(len(partitions)) < _NON_PERSISTENT_SHARE, "non-persistent", "persistent").tolist()
    bases = [
        f"{domain}://{namespaces[namespace]}/{_WORDS[number % len(_WORDS)]}-{number:06}"
        for number, (domain, namespace) in enumerate(zip(domains, namespace_of.tolist(), strict=True))
    ]
    names = [
        f"{base}-partition-{partition}" if count else base
        for base, count in zip(bases, partitions.tolist(), strict=True)
        for partition in range(max(count, 1))
    ]
    # The base topic of every topic. The last base may have more partitions than fit.
    base = np.repeat(np.arange(len(bases)), np.maximum(partitions, 1))[: settings.topics]
    shares = 1.0 / ranks.astype(np.float64) ** settings.zipf / np.maximum(partitions, 1)
    namespace = np.concatenate([namespace_of[base], np.full(len(brokers), -1)]).astype(np.int32)
    heartbeats = [f"persistent://pulsar/{broker.id}/healthcheck" for broker in brokers]
    names = [*names[: settings.topics], *heartbeats]
    # The rack of a topic's team is mostly its namespace's, and otherwise any.
    racks = _compute_shares(settings.racks)
    home_of_namespace = dice.choice(settings.racks, p=racks, size=settings.namespaces)
    anywhere = dice.choice(settings.racks, p=racks, size=len(namespace))
    is_at_home = dice.random(len(namespace)) < _HOME_SHARE
    return Topics(
        names=tuple(names),
        namespaces=namespaces,
        namespace=namespace,
        hashes=np.array([zlib.crc32(name.encode()) for name in names], dtype=np.int64),
        home=np.where(is_at_home, home_of_namespace[namespace], anywhere).astype(np.int32),
        popularity=_divide_slots(shares[base], len(brokers)),
        ordinary=settings.topics,
    )


def _draw_partitions(
    settings: GenerateSettings, dice: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the partitions of base topics and their ranks by popularity, as many as give enough topics.

    Popular topics have many partitions, as operators would choose. The first topics, one for each namespace, have none.
    """
    partitions = dice.choice(_PARTITIONS[0], p=_PARTITIONS[1], size=settings.topics)
    ranks = dice.permutation(settings.topics) + 1
    partitions[ranks <= max(1, round(_POPULAR_SHARE * settings.topics))] = max(_PARTITIONS[0])
    partitions[: settings.namespaces] = 0
    enough = int(np.searchsorted(np.cumsum(np.maximum(partitions, 1)), settings.topics)) + 1
    return partitions[:enough], ranks[:enough]


def _divide_slots(weights: NDArray[np.float64], heartbeats: int) -> Ints:
    """Divide the slots among the topics by weight. Each has at least one, and the most popular gets the rounding."""
    # Slots take 4 MiB, and one index draws a topic, without a search in the sums of weights for every row.
    slots = 1 << POPULARITY_BITS
    weights = weights / weights.sum()
    shares = np.concatenate([weights * (1.0 - HEARTBEAT_SHARE), np.full(heartbeats, HEARTBEAT_SHARE / heartbeats)])
    counts = np.maximum(1, np.floor(shares * (slots - len(shares))).astype(np.int64))
    counts[np.argmax(counts)] += slots - counts.sum()
    return np.repeat(np.arange(len(shares), dtype=np.int32), counts)


def _make_clients(
    settings: GenerateSettings, cluster: int, brokers: tuple[BrokerSite, ...], dice: np.random.Generator
) -> Clients:
    sets = _list_property_sets(settings)
    count = np.maximum(1, np.floor(_compute_shares(settings.racks) * settings.clients).astype(np.int64))
    count[0] += settings.clients - count.sum()
    chosen = []
    for rack, size in enumerate(count.tolist()):
        share = np.array([part if only in (None, rack) else 0.0 for _, only, part in sets])
        chosen.append(dice.choice(len(sets), p=share / share.sum(), size=size))
    subnet = cluster * settings.racks
    ids = [_address(subnet + rack, host) for rack, size in enumerate(count) for host in range(size)]
    # Behind all that 50,000 clients of one rack may have.
    ids += [_address(subnet + broker.rack, 60_000 + number) for number, broker in enumerate(brokers)]
    unlabelled = next(number for number, (labels, *_) in enumerate(sets) if not labels)
    return Clients(
        ids=tuple(ids),
        rack=np.concatenate([np.repeat(np.arange(settings.racks), count), [broker.rack for broker in brokers]]).astype(
            np.int32
        ),
        properties=np.concatenate([*chosen, np.full(len(brokers), unlabelled)]).astype(np.int32),
        property_sets=tuple(json.dumps(labels, sort_keys=True, separators=(",", ":")) for labels, *_ in sets),
        first=np.concatenate([[0], np.cumsum(count)[:-1]]),
        count=count,
        ordinary=settings.clients,
    )


def _list_property_sets(settings: GenerateSettings) -> list[tuple[Mapping[str, str], int | None, float]]:
    """List the properties that clients may send.

    These are nothing, rack, rack and zone, zone alone, a rack without brokers, and an application.

    Returns:
        Labels, the only rack whose clients send them, None for all, and their share among the sets open to a client.
    """
    racks = range(settings.racks)
    zones = sorted({_zone_name(rack) for rack in racks})
    sets: list[tuple[Mapping[str, str], int | None, float]] = [
        ({}, None, 0.18),
        *(({"rack": rack_name(rack)}, rack, 0.40) for rack in racks),
        *(({"rack": rack_name(rack), "zone": _zone_name(rack)}, rack, 0.25) for rack in racks),
        *(({"zone": zone}, None, 0.04) for zone in zones),
        ({"rack": "lab"}, None, 0.02),
    ]
    for number in range(settings.property_sets - len(sets)):
        rack = number % settings.racks
        labels = {"app": f"app-{1 + number // settings.racks}", "rack": rack_name(rack)}
        sets.append((labels, rack, 0.10))
    return sets[: settings.property_sets]


def _address(subnet: int, host: int) -> str:
    return f"10.{subnet}.{host // 250}.{1 + host % 250}"
