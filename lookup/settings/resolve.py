"""Convert settings to the types of engine and replay, such as brokers and their times, namespaces and labels.

Topology is converted too. Results are plain, frozen and can be pickled. Times are integers, µs since the Unix epoch.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from types import MappingProxyType

from lookup.errors import SettingsError
from lookup.model.address import host_of, ips_of
from lookup.model.broker import Broker, BrokerLookupData, Location
from lookup.model.bundles import IsolationPolicy, NamespacePolicies, equal_boundaries
from lookup.model.quoting import join_names
from lookup.model.time import to_us
from lookup.model.topology import LEVELS, Edge, Topology
from lookup.settings.base import fill_number
from lookup.settings.broker import BrokerEntry, BrokerProfile
from lookup.settings.cluster import NamespaceEntry
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.pulsar_keys import MOST_BUNDLES, Scalar
from lookup.settings.serving import ServingFile

__all__ = [
    "BrokerInterval", "ClientRule", "broker_intervals", "bundle_counts", "client_rules", "label_client",
    "load_manager_keys", "load_manager_sources", "lookup_data", "namespace_policies", "policies_of",
    "require_few_ranges", "topology",
]  # fmt: skip


@dataclass(frozen=True)
class BrokerInterval:
    """A broker and the interval of its registration, [from_us, until_us), open if None."""

    broker: Broker
    from_us: int | None
    until_us: int | None


@dataclass(frozen=True)
class ClientRule:
    """Lookup properties for the clients of a network or of a glob, of which one is set."""

    cidr: str | None
    glob: str | None
    properties: Mapping[str, str]

    def matches(self, client: str) -> bool:
        """Check whether the rule applies to a client, written in any of the forms of `host_of`."""
        host = host_of(client)
        if self.glob is not None:
            return fnmatchcase(client, self.glob) or fnmatchcase(host, self.glob)
        try:
            return self.cidr is not None and any(ip in ipaddress.ip_network(self.cidr) for ip in ips_of(client))
        except ValueError:
            return False  # a name is in no network


def broker_intervals(settings: EvaluationFile, cluster: str) -> tuple[BrokerInterval, ...]:
    """List a cluster's brokers with the times of their registration, sorted by id and time. Templates are expanded."""
    intervals = []
    for entry in settings.brokers:
        if entry.clusters is not None and cluster not in entry.clusters:
            continue
        from_us, until_us = (None if moment is None else to_us(moment) for moment in (entry.from_, entry.until))
        for turn, (number, broker_id) in enumerate(zip(entry.numbers, entry.ids, strict=True)):
            broker = _build_broker(entry, broker_id, turn, number)
            # Pulsar's brokers publish their start in milliseconds.
            data = replace(broker.lookup_data, start_timestamp=(from_us or 0) // 1000)
            intervals.append(BrokerInterval(replace(broker, lookup_data=data), from_us, until_us))
    return tuple(sorted(intervals, key=lambda interval: (interval.broker.id, interval.from_us or 0)))


def namespace_policies(settings: EvaluationFile | ServingFile) -> NamespacePolicies:
    """Collect bundles, isolation, anti-affinity and failure domains by name."""
    policies = policies_of(settings.namespaces, settings.failure_domains)
    # A decision server receives the bundle of every request.
    if isinstance(settings, ServingFile):
        return policies
    return replace(policies, default_bundles=settings.evaluation.default_bundles)


def bundle_counts(settings: EvaluationFile) -> tuple[int, ...]:
    """List the initial numbers of bundles of policies that replace the evaluation's, ascending.

    Raises:
        SettingsError: if together they divide a namespace into far too many ranges.
    """
    default = settings.evaluation.default_bundles
    counts = {policy.bundles for policy in settings.policies if policy.bundles is not None} - {default}
    require_few_ranges({default, *counts})
    return tuple(sorted(counts))


def require_few_ranges(counts: Collection[int]) -> None:
    """Refuse numbers of bundles that together divide a namespace into more ranges than the limit of bundles.

    Raises:
        SettingsError: with the number of ranges.
    """
    # Of a single number there are no more.
    ranges = len({hashed for count in counts for hashed in equal_boundaries(count)}) - 1
    if ranges > MOST_BUNDLES:
        raise SettingsError(
            f"policies have {len(counts)} numbers of bundles, {min(counts):,} to {max(counts):,}, that cut a namespace "
            f"into {ranges:,} ranges, more than {MOST_BUNDLES:,}; take powers of two, whose boundaries are in common"
        )


def policies_of(
    entries: Sequence[NamespaceEntry], failure_domains: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> NamespacePolicies:
    """Collect the entries' settings of namespaces, by name."""
    boundaries = {}
    for entry in entries:
        if entry.boundaries is not None:
            boundaries[entry.name] = tuple(int(text, 16) for text in entry.boundaries)
        elif entry.bundles is not None:
            boundaries[entry.name] = equal_boundaries(entry.bundles)
    return NamespacePolicies(
        isolation={
            entry.name: tuple(IsolationPolicy(rule.primary, rule.secondary, rule.min_limit) for rule in entry.isolation)
            for entry in entries
            if entry.isolation
        },
        anti_affinity_group={e.name: e.anti_affinity_group for e in entries if e.anti_affinity_group is not None},
        failure_domains={broker: domain for domain, brokers in failure_domains.items() for broker in brokers},
        boundaries=boundaries,
    )


def topology(settings: EvaluationFile | ServingFile) -> Topology:
    """Build the topology with distances, prices and links."""
    section = settings.topology
    # Defaults have figures for every level, including levels that the file does not use.
    levels = ("same", *section.levels)
    return Topology(
        distance_ms={level: ms for level, ms in section.distance_ms.items() if level in levels},
        price_per_gb={level: price for level, price in section.price_per_gb.items() if level in levels},
        edges=tuple(Edge(edge.a, edge.b, edge.ms, edge.price_per_gb) for edge in section.edges),
    )


def client_rules(settings: EvaluationFile) -> tuple[ClientRule, ...]:
    """List the rules by which clients are labelled, in order. The first that matches counts."""
    return tuple(ClientRule(entry.match.cidr, entry.match.client, dict(entry.properties)) for entry in settings.clients)


def label_client(rules: Sequence[ClientRule], client: str | None, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Complete a client's properties by those of the first matching rule. Its own properties take precedence."""
    matching = () if client is None else (rule for rule in rules if rule.matches(client))
    rule = next(iter(matching), None)
    return properties if rule is None else {**rule.properties, **properties}


def load_manager_keys(settings: EvaluationFile) -> Mapping[str, Scalar]:
    """Find the load manager's keys, under Pulsar's names, on which the given profiles agree.

    They may fill parameters of parts that name such a key (`Conf`). A cluster has one policy, so a key has no
    value if its brokers are configured differently. The manager is known if every broker has a profile.
    """
    by_key: dict[str, list[Scalar]] = {}
    for entry in settings.brokers:
        for key, value in entry.profile.load_balancer.items() if entry.profile else ():
            by_key.setdefault(key, []).append(value)
    managers = {entry.profile.load_manager_class_name if entry.profile else None for entry in settings.brokers}
    if None not in managers:
        by_key["loadManagerClassName"] = sorted(filter(None, managers))
    agreed = {key: values[0] for key, values in by_key.items() if values and values.count(values[0]) == len(values)}
    return dict(sorted(agreed.items()))


def load_manager_sources(settings: EvaluationFile) -> Mapping[str, str]:
    """Find the profiles that give each key of the load manager, as named in sentences."""
    profiles: dict[str, dict[str, None]] = {}
    for index, entry in enumerate(settings.brokers):
        for key in entry.profile.load_balancer if entry.profile else ():
            file = entry.profile.file if entry.profile else None
            profiles.setdefault(key, {})[file or f"brokers[{index}].profile"] = None
    return {key: join_names(files) for key, files in profiles.items()}


def lookup_data(profile: BrokerProfile, broker_id: str, properties: Mapping[str, str]) -> BrokerLookupData:
    """Build the data that a broker with a profile registers under an id, `host:port` of its web service.

    Source: `docs/pulsar/load-managers.md`.
    """
    host, colon, digits = broker_id.rpartition(":")
    port = profile.web_service_port
    if not colon or not digits.isdigit():
        host = broker_id
    elif port is not None:
        # The id of a broker without a plain web service carries the TLS port.
        port = int(digits)
    return BrokerLookupData(
        web_service_url=_build_url("http", host, port),
        web_service_url_tls=_build_url("https", host, profile.web_service_port_tls),
        pulsar_service_url=_build_url("pulsar", host, profile.broker_service_port),
        pulsar_service_url_tls=_build_url("pulsar+ssl", host, profile.broker_service_port_tls),
        persistent_topics_enabled=profile.enable_persistent_topics,
        non_persistent_topics_enabled=profile.enable_non_persistent_topics,
        load_manager_class_name=profile.load_manager_class_name,
        broker_version=profile.broker_version,
        properties={**profile.properties, **properties},
    )


def _build_broker(entry: BrokerEntry, broker_id: str, turn: int, number: int) -> Broker:
    def value_of(values: Sequence[str]) -> str:
        return fill_number(values[turn % len(values)], number)

    profile = entry.profile or BrokerProfile()
    data = lookup_data(profile, broker_id, {key: value_of(values) for key, values in entry.properties.items()})
    if entry.location is None:
        levels = [data.properties.get(entry.prefix + level) or None for level in LEVELS]
    else:
        written = (entry.location.region, entry.location.zone, entry.location.rack)
        levels = [None if values is None else value_of(values) for values in written]
    return Broker(
        id=broker_id,
        lookup_data=data,
        capacity=entry.capacity if entry.capacity is not None else profile.capacity,
        location=Location(*levels),
        property_prefix=entry.prefix,
    )


def _build_url(scheme: str, host: str, port: int | None) -> str | None:
    return None if port is None else f"{scheme}://{host}:{port}"
