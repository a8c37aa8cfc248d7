"""Turns settings into what engine and replay work with: brokers and their times, namespaces, topology, labels.

Everything returned is plain, frozen and survives pickle. Times are integers, µs since the Unix epoch.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase

from lookup.model.broker import AdvertisedListener, Broker, BrokerLookupData, Location
from lookup.model.bundles import IsolationPolicy, NamespacePolicies, equal_boundaries
from lookup.model.quoting import listed
from lookup.model.time import to_us
from lookup.model.topology import LEVELS, Edge, Topology
from lookup.settings.base import numbered
from lookup.settings.broker import BrokerEntry, BrokerProfile, LocationEntry, Scalar
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.namespace import NamespaceEntry, parse_boundaries

__all__ = [
    "BrokerInterval",
    "ClientRule",
    "broker_intervals",
    "client_rules",
    "label_client",
    "load_manager_keys",
    "load_manager_sources",
    "lookup_data",
    "namespace_policies",
    "topology",
]


@dataclass(frozen=True)
class BrokerInterval:
    """A broker and when it is registered: in [from_us, until_us), open where None."""

    broker: Broker
    from_us: int | None
    until_us: int | None


@dataclass(frozen=True)
class ClientRule:
    """Lookup properties for the clients of a network or of a glob; one of the two is set."""

    cidr: str | None
    glob: str | None
    properties: Mapping[str, str]

    def matches(self, client: str) -> bool:
        """Tell whether a client is meant; it may be written `host`, `host:port` or `/address:port`."""
        host = _host(client)
        if self.glob is not None:
            return fnmatchcase(client, self.glob) or fnmatchcase(host, self.glob)
        return self.cidr is not None and _is_within(host, self.cidr)


def broker_intervals(settings: EvaluationFile, cluster: str) -> tuple[BrokerInterval, ...]:
    """Return a cluster's brokers with the times they are registered, templates written out, sorted by id and time."""
    entries = [entry for entry in settings.brokers if entry.clusters is None or cluster in entry.clusters]
    intervals = [interval for entry in entries for interval in _expand(entry)]
    return tuple(sorted(intervals, key=lambda interval: (interval.broker.id, interval.from_us or 0)))


def namespace_policies(settings: EvaluationFile) -> NamespacePolicies:
    """Return bundles, isolation, anti-affinity and failure domains by name."""
    entries = settings.namespaces
    domains = settings.failure_domains.items()
    return NamespacePolicies(
        isolation={entry.name: _isolation(entry) for entry in entries if entry.isolation},
        anti_affinity_group={e.name: e.anti_affinity_group for e in entries if e.anti_affinity_group is not None},
        failure_domains={broker: domain for domain, brokers in domains for broker in brokers},
        boundaries={entry.name: found for entry in entries if (found := _boundaries(entry)) is not None},
        default_bundles=settings.evaluation.default_bundles,
    )


def topology(settings: EvaluationFile) -> Topology:
    """Return distances, prices and links."""
    section = settings.topology
    kept = ("same", *section.levels)
    return Topology(
        distance_ms={level: ms for level, ms in section.distance_ms.items() if level in kept},
        price_per_gb={level: price for level, price in section.price_per_gb.items() if level in kept},
        edges=tuple(Edge(edge.a, edge.b, edge.ms, edge.price_per_gb) for edge in section.edges),
    )


def client_rules(settings: EvaluationFile) -> tuple[ClientRule, ...]:
    """Return the rules by which clients are labelled, in order; the first that matches counts."""
    return tuple(ClientRule(entry.match.cidr, entry.match.client, dict(entry.properties)) for entry in settings.clients)


def label_client(rules: Sequence[ClientRule], client: str | None, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Complete the properties a client sent by those of the first rule that matches it; what it sent itself wins."""
    matching = () if client is None else (rule for rule in rules if rule.matches(client))
    rule = next(iter(matching), None)
    return properties if rule is None else {**rule.properties, **properties}


def load_manager_keys(settings: EvaluationFile) -> Mapping[str, Scalar]:
    """Return the load manager's keys, under Pulsar's names, that profiles give and agree on.

    These may fill parameters of parts that name such a key (`Conf`). A cluster has one policy: where its brokers are
    configured differently, nobody can tell whose value would count. What every broker runs is known where each has a
    profile.
    """
    given: dict[str, list[Scalar]] = {}
    for entry in settings.brokers:
        for key, value in entry.profile.load_balancer.items() if entry.profile else ():
            given.setdefault(key, []).append(value)
    managers = {entry.profile.load_manager_class_name if entry.profile else None for entry in settings.brokers}
    if None not in managers:
        given["loadManagerClassName"] = sorted(filter(None, managers))
    agreed = {key: values[0] for key, values in given.items() if values and values.count(values[0]) == len(values)}
    return dict(sorted(agreed.items()))


def load_manager_sources(settings: EvaluationFile) -> Mapping[str, str]:
    """Return by key of the load manager the profiles that give it, as sentences name them."""
    given: dict[str, dict[str, None]] = {}
    for place, entry in enumerate(settings.brokers):
        for key in entry.profile.load_balancer if entry.profile else ():
            file = entry.profile.file if entry.profile else None
            given.setdefault(key, {})[file or f"brokers[{place}].profile"] = None
    return {key: listed(files) for key, files in given.items()}


def lookup_data(profile: BrokerProfile, broker_id: str, properties: Mapping[str, str]) -> BrokerLookupData:
    """Return what a broker with a profile registers under an id, `host:port` of its web service.

    The internal listener's addresses are the broker's own, the host of the id stands in for those it lacks.

    Source: `docs/pulsar/load-managers.md`.
    """
    host, port = _split_id(broker_id, profile)
    listeners = {name: _listener(urls) for name, urls in profile.advertised_listeners.items()}
    internal = listeners.get(profile.internal_listener_name or next(iter(listeners), ""), AdvertisedListener())
    return BrokerLookupData(
        web_service_url=internal.broker_http_url or _url("http", host, port),
        web_service_url_tls=internal.broker_https_url or _url("https", host, profile.web_service_port_tls),
        pulsar_service_url=internal.broker_service_url or _url("pulsar", host, profile.broker_service_port),
        pulsar_service_url_tls=internal.broker_service_url_tls
        or _url("pulsar+ssl", host, profile.broker_service_port_tls),
        advertised_listeners=listeners,
        protocols=dict(profile.protocols),
        persistent_topics_enabled=profile.enable_persistent_topics,
        non_persistent_topics_enabled=profile.enable_non_persistent_topics,
        load_manager_class_name=profile.load_manager_class_name,
        broker_version=profile.broker_version,
        properties={**profile.properties, **properties},
    )


def _expand(entry: BrokerEntry) -> Iterator[BrokerInterval]:
    profile = entry.profile or BrokerProfile()
    for place, (number, broker_id) in enumerate(zip(entry.numbers, entry.ids, strict=True)):
        own = {key: _turn(values, place, number) for key, values in entry.properties.items()}
        data = lookup_data(_member(profile, number) if entry.count else profile, broker_id, own)
        data = replace(data, start_timestamp=(_microseconds(entry.from_) or 0) // 1000)
        broker = Broker(
            id=broker_id,
            lookup_data=data,
            capacity=entry.capacity if entry.capacity is not None else profile.capacity,
            location=_location(entry.location, data.properties, entry.prefix, (place, number)),
            property_prefix=entry.prefix,
        )
        yield BrokerInterval(broker, _microseconds(entry.from_), _microseconds(entry.until))


def _turn(values: Sequence[str], place: int, number: int) -> str:
    return numbered(values[place % len(values)], number)


def _member(profile: BrokerProfile, number: int) -> BrokerProfile:
    listeners = {
        name: tuple(numbered(url, number) for url in urls) for name, urls in profile.advertised_listeners.items()
    }
    return profile.model_copy(update={"advertised_listeners": listeners})


def _location(
    entry: LocationEntry | None, properties: Mapping[str, str], prefix: str, turn: tuple[int, int]
) -> Location:
    if entry is None:
        return Location(*(properties.get(prefix + level) or None for level in LEVELS))
    levels = (entry.region, entry.zone, entry.rack)
    return Location(*(None if values is None else _turn(values, *turn) for values in levels))


def _listener(urls: Sequence[str]) -> AdvertisedListener:
    by_scheme = {url.partition("://")[0]: url for url in urls}
    return AdvertisedListener(*(by_scheme.get(scheme) for scheme in ("pulsar", "pulsar+ssl", "http", "https")))


def _split_id(broker_id: str, profile: BrokerProfile) -> tuple[str, int | None]:
    host, colon, port = broker_id.rpartition(":")
    if not colon or not port.isdigit():
        return broker_id, profile.web_service_port
    # The id of a broker without a plain web service carries the TLS port.
    return host, int(port) if profile.web_service_port is not None else None


def _url(scheme: str, host: str, port: int | None) -> str | None:
    return None if port is None else f"{scheme}://{host}:{port}"


def _microseconds(moment: datetime | None) -> int | None:
    return None if moment is None else to_us(moment)


def _isolation(entry: NamespaceEntry) -> tuple[IsolationPolicy, ...]:
    return tuple(IsolationPolicy(policy.primary, policy.secondary, policy.min_limit) for policy in entry.isolation)


def _boundaries(entry: NamespaceEntry) -> tuple[int, ...] | None:
    if entry.boundaries is not None:
        return parse_boundaries(entry.boundaries)
    return None if entry.bundles is None else equal_boundaries(entry.bundles)


def _host(client: str) -> str:
    """Strip a leading slash, as Java prints addresses, and a port; IPv6 addresses with a port stand in brackets."""
    address = client.removeprefix("/")
    if address.startswith("["):
        return address[1:].partition("]")[0]
    host, colon, port = address.rpartition(":")
    return host if colon and port.isdigit() and ":" not in host else address


def _is_within(host: str, cidr: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(cidr)
    except ValueError:
        return False
