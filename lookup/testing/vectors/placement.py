"""Areas of placement: filters, strategies, anti-affinity, and what a lookup's properties have to do with it.

Sections 5 and 6 of the vectors' README. Parts are asked as parts of a policy, alone or in a load manager; where the
order of candidates matters a part is asked itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from lookup.engine.build import build_policies
from lookup.engine.ledger import LoadFigures
from lookup.engine.manager import LoadManager
from lookup.engine.plugins import Registry, load_plugins, registry_of
from lookup.engine.policy import Instant, Policy
from lookup.errors import PolicyError
from lookup.hooks.protocols import Filter, Offer, Selector
from lookup.model.broker import Broker, BrokerLookupData, Candidates, Roster, published_properties
from lookup.model.bundles import bundle_of
from lookup.model.decision import Assigned, Reason
from lookup.model.load import BrokerLoadData
from lookup.model.load_data import updated_load
from lookup.model.namespaces import IsolationPolicy, NamespacePolicies
from lookup.model.request import LookupOptions, LookupRequest, request_of
from lookup.model.view import ClusterView
from lookup.settings.policy import PolicySpec
from lookup.testing.clusters import candidates, cluster
from lookup.testing.vectors.loads import load_sample, resource_weights
from lookup.testing.vectors.reading import Handler, NotUnderstood, configuration, only

__all__ = ["AREAS"]

_NAMESPACE = "tenant/ns"
_UNIT = f"{_NAMESPACE}/0x00000000_0xffffffff"
_ENGINE_REQUEST = request_of(None, _UNIT, LookupOptions())
_DIFFERENCE = "loadBalancerAverageResourceUsageDifferenceThresholdPercentage"
_MAX_TOPICS = "loadBalancerBrokerMaxTopics"
_RESOURCES = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
#: Keys of a configuration that do not matter where usages are given as they are.
_OF_UPDATES = (
    "loadBalancerCPUResourceWeight",
    "loadBalancerMemoryResourceWeight",
    "loadBalancerDirectMemoryResourceWeight",
    "loadBalancerBandwidthInResourceWeight",
    "loadBalancerBandwidthOutResourceWeight",
    "loadBalancerHistoryResourcePercentage",
)


@lru_cache
def _registry() -> Registry:
    return load_plugins()


def _part(kind: str, name: str, **parameters: Any) -> Any:
    return _registry().find(kind, name)(**parameters)


def _roster_view(brokers: Mapping[str, BrokerLookupData], **figures: Any) -> ClusterView:
    return cluster(*(Broker(name, data) for name, data in brokers.items()), **figures)


# Filters


def _kept(part: Filter, view: ClusterView, request: LookupRequest = _ENGINE_REQUEST) -> Mapping[str, Any]:
    policy = Policy("vector", _part("selectors", "random"), filters=(part,))
    return {"kept": list(policy.ballot(request, Instant(policy, view)).odds)}


def _load_manager_class(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "own_loadManagerClassName", "brokers")
    only(expected, "kept")
    brokers = {name: BrokerLookupData(load_manager_class_name=own) for name, own in given["brokers"].items()}
    own = given["own_loadManagerClassName"]
    return _kept(_part("filters", "load-manager-class", class_name=own), _roster_view(brokers))


def _max_topic_count(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, _MAX_TOPICS, "config", "topics_in_load_data")
    only(expected, "kept")
    topics = {name: count for name, count in given["topics_in_load_data"].items() if count is not None}
    limit = configuration(given, _MAX_TOPICS)[_MAX_TOPICS]
    return _kept(
        _part("filters", "max-topics", max_topics=limit), cluster(*given["topics_in_load_data"], topics=topics)
    )


def _version(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "preferLaterVersions", "config", "brokers")
    only(expected, "kept", "error", "map_unchanged")
    brokers = {name: BrokerLookupData(broker_version=version) for name, version in given["brokers"].items()}
    prefers = configuration(given, "preferLaterVersions")["preferLaterVersions"]
    part, view = _part("filters", "version", prefer_later=prefers, unreadable="fail"), _roster_view(brokers)
    try:
        return _kept(part, view)
    except PolicyError as error:
        # Upstream goes on with whoever the filter left when it failed, which is what "skip" stands for.
        policy = Policy("vector", _part("selectors", "random"), filters=(part,), on_error="skip")
        left = policy.ballot(_ENGINE_REQUEST, Instant(policy, view)).odds
        return {"error": error, "map_unchanged": set(left) == set(brokers)}


def _isolation(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(expected, "kept")
    part = _part("filters", "isolation", portless="drop")
    if given.get("policies_present"):
        only(given, "policies_present", "namespace", "policy", "available")
        return _kept(part, *_isolated(given))
    only(given, "policies_present", "every_broker_shared", "bundle_has_non_persistent_topic", "brokers", "namespace")
    if not given.get("every_broker_shared", True):
        raise NotUnderstood("every_broker_shared")
    domain = "non-persistent" if given.get("bundle_has_non_persistent_topic") else "persistent"
    brokers = {name: _serving(kinds) for name, kinds in given["brokers"].items()}
    topic = f"{domain}://{_NAMESPACE}/topic"
    return _kept(part, _roster_view(brokers), request_of(topic, _UNIT, LookupOptions()))


def _isolated(given: Mapping[str, Any]) -> tuple[ClusterView, LookupRequest]:
    policy, namespace = given["policy"], given.get("namespace", _NAMESPACE)
    only(policy, "primary", "secondary", "shared", "min_limit")
    primary, secondary = (tuple(map(re.escape, policy.get(kind) or ())) for kind in ("primary", "secondary"))
    isolation = {namespace: (IsolationPolicy(primary, secondary, policy.get("min_limit", 1)),)}
    view = cluster(*given["available"], namespaces=NamespacePolicies(isolation=isolation))
    return view, request_of(None, f"{namespace}/0x00000000_0xffffffff", LookupOptions())


def _serving(kinds: Mapping[str, bool]) -> BrokerLookupData:
    only(kinds, "persistentTopicsEnabled", "nonPersistentTopicsEnabled")
    return BrokerLookupData(
        persistent_topics_enabled=kinds.get("persistentTopicsEnabled", True),
        non_persistent_topics_enabled=kinds.get("nonPersistentTopicsEnabled", True),
    )


# Anti-affinity


def _anti_affinity(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "failureDomainsEnabled", "candidates", "owned_count", "domains")
    only(expected, "kept")
    part = _part("filters", "anti-affinity", failure_domains_enabled=given.get("failureDomainsEnabled", False))
    return _kept(part, _group_view(given))


def _should_unload(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "current", "candidates", "owned_count")
    only(expected, "should_unload")
    view = _group_view(given)
    owner = candidates(view, given["current"])[0]
    offered = candidates(view, *given["candidates"]) if given["candidates"] else candidates(view, given["current"])
    part = _part("filters", "anti-affinity")
    return {"should_unload": part.should_unload(_ENGINE_REQUEST, owner, offered, view)}


def _group_view(given: Mapping[str, Any]) -> ClusterView:
    owned: Mapping[str, int] | None = given.get("owned_count")
    groups = {} if owned is None else {_NAMESPACE: "Group", "tenant/other": "group"}
    names = dict.fromkeys([*given["candidates"], *(owned or {}), *filter(None, [given.get("current")])])
    return cluster(
        *names,
        registered=given["candidates"],
        # Of another namespace of the group: which of them a bundle belongs to does not matter.
        owned={f"tenant/other/{name}.{place}": name for name, count in (owned or {}).items() for place in range(count)},
        namespaces=NamespacePolicies(anti_affinity_group=groups, failure_domains=given.get("domains") or {}),
    )


# Strategies


def _least_resource_usage(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    part = _part("selectors", "least-resource-usage", difference=configuration(given, _DIFFERENCE)[_DIFFERENCE] / 100)
    if "steps" in given:
        return _steps(part, given, expected)
    only(given, "config", _DIFFERENCE, "weightedMaxEMA", "candidates", *_OF_UPDATES)
    only(expected, "selected_one_of", "selected")
    pool = _pool(part, given["weightedMaxEMA"], given["candidates"])
    return {"selected_one_of": pool, "selected": pool[0] if len(pool) == 1 else None}


def _steps(part: Selector, given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "config", "steps", _DIFFERENCE, *_OF_UPDATES)
    only(expected, "selected", "weightedMaxEMA_after")
    weights = resource_weights(given)
    store: dict[str, BrokerLoadData] = {}
    selected, after = [], []
    for now_ms, step in enumerate(given["steps"], start=1):
        only(step, "do", "candidates")
        only(step["do"], "replace_with_fresh", "update_in_place")
        for how, broker, percent in _updates(step["do"]):
            before = BrokerLoadData() if how == "replace_with_fresh" else store.get(broker, BrokerLoadData())
            sample = load_sample({name: [percent, 100] for name in _RESOURCES})
            store[broker] = updated_load(before, sample, now_ms, weights=weights)
        usage = {broker: data.weighted_max_ema for broker, data in store.items()}
        pool = _pool(part, usage, step["candidates"])
        selected.append(pool[0] if len(pool) == 1 else pool or None)
        after.append(usage)
    return {"selected": selected, "weightedMaxEMA_after": after}


def _updates(do: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, str, float]]:
    for how in ("replace_with_fresh", "update_in_place"):
        for broker, percent in do.get(how, {}).items():
            yield how, broker, percent


def _pool(part: Selector, usage: Mapping[str, float | None], offered: Sequence[str]) -> list[str]:
    """Return who shares the odds; a usage of None is no load data."""
    reported = {name: used for name, used in usage.items() if used is not None}
    view = cluster(*dict.fromkeys([*usage, *offered]), usage=reported, registered=offered)
    policy = Policy("vector", part)
    return list(policy.ballot(_ENGINE_REQUEST, Instant(policy, view)).odds)


def _round_robin(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "candidate_calls")
    only(expected, "selected")
    part, memory = _part("selectors", "round-robin"), dict[str, Any]()
    view = replace(cluster(*{name: None for call in given["candidate_calls"] for name in call}), memory=memory)
    return {"selected": [_turn(part, memory, view, call) for call in given["candidate_calls"]]}


def _turn(part: Any, memory: dict[str, Any], view: ClusterView, call: Sequence[str]) -> str | None:
    # Without candidates no selector is asked: the policy declines before.
    if not call:
        return None
    offered = candidates(view, *call)
    broker = offered[int(np.argmax(part.odds(_ENGINE_REQUEST, offered, np.ones(len(offered)), view)))]
    part.observe(memory, _ENGINE_REQUEST, broker, Offer(offered, view))
    part.remember(memory, _ENGINE_REQUEST, broker)
    return broker.id


@dataclass(frozen=True)
class _Smallest:
    """Selects the first broker in order of ids: a strategy of somebody's own."""

    name: ClassVar[str] = "vector-smallest"
    reads: ClassVar[frozenset[str]] = frozenset()

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> list[float]:
        """Return 1 for the smallest id."""
        smallest = min(brokers.ids)
        return [float(broker_id == smallest) for broker_id in brokers.ids]


def _custom_strategy(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "override")
    only(expected, "selected")
    registry = registry_of({"selectors": [_Smallest]})
    [policy] = build_policies(registry, [PolicySpec.model_validate({"name": "own", "selector": _Smallest.name})])
    sets = [["b:1"], ["b:3", "b:1", "b:2"], ["b:2", "b:10"], ["z:1", "a:9", "m:5", "a:10"]]
    return {"selected": all(_answer(_manager(policy, names)) == min(names) for names in sets)}


# Assigning


def _manager(policy: Policy, brokers: Sequence[str | Broker], **figures: Any) -> LoadManager:
    """Return a load manager in a cluster where everybody is registered and has reported something."""
    view = cluster(*brokers, **figures)
    manager = LoadManager(policy, "vector", view.brokers)
    manager.set_registry(view.brokers, view.registered)
    usage = np.full(len(view.brokers), 0.5)
    manager.set_load(LoadFigures(usage, usage * 100.0, view.topics, view.top_bundles))
    return manager


def _answer(manager: LoadManager, **options: Any) -> str | None:
    found: Assigned | None = manager.assign(None, _UNIT, LookupOptions(**options))
    return None if found is None else found.broker


@dataclass(frozen=True)
class _Removing:
    """Removes some brokers, then perhaps fails: a filter of somebody's own."""

    name: ClassVar[str] = "vector-removing"
    reason: ClassVar[Reason] = Reason.FILTERED
    reads: ClassVar[frozenset[str]] = frozenset()

    removes: tuple[str, ...] = ()
    removes_count: int = 0
    fails: bool = False

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> Iterator[bool]:
        """Reject the named brokers and the first so many others."""
        for place, broker_id in enumerate(brokers.ids):
            yield broker_id not in self.removes and place >= self.removes_count
        if self.fails:
            raise RuntimeError("the filter fails after it has removed brokers")


def _assign_filter(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "brokers", "pipeline", "filters")
    only(expected, "assigned")
    for entry in given["filters"]:
        only(entry, "removes", "removes_count", "fails")
    filters = tuple(
        _Removing(tuple(entry.get("removes") or ()), entry.get("removes_count", 0), entry.get("fails", False))
        for entry in given["filters"]
    )
    policy = Policy("vector", _part("selectors", "least-resource-usage"), filters=filters, on_error="skip")
    manager = _manager(policy, given["brokers"])
    found = _answer(manager)
    if str(expected.get("assigned", "")).startswith("present"):
        return {"assigned": "present" if found is not None and _is_left(filters, found, given["brokers"]) else found}
    return {"assigned": found}


def _is_left(filters: Sequence[_Removing], broker: str, brokers: Sequence[str]) -> bool:
    left = sorted(brokers)
    for part in filters:
        left = [name for place, name in enumerate(left) if name not in part.removes and place >= part.removes_count]
    return broker in left


def _no_candidates(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "brokers_after_filters")
    only(expected, "result")
    everybody = _Removing(("b:1", "b:2"))
    policy = Policy("vector", _part("selectors", "least-resource-usage"), filters=(everybody,), on_error="skip")
    found = _answer(_manager(policy, ["b:1", "b:2", *given["brokers_after_filters"]]))
    return {"result": "empty" if found is None else found}


def _read_only(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "readOnly", "bundle_owner")
    only(expected, "result")
    owner = given.get("bundle_owner")
    manager = _manager(Policy("vector", _part("selectors", "least-resource-usage")), ["other:1", *_first_word(owner)])
    manager.restore(dict.fromkeys([_UNIT], owner.split()[0]) if owner else {})
    manager.take_changes()
    found = _answer(manager, read_only=given["readOnly"])
    if found is None:
        return {"result": "empty" if not manager.take_changes() else "something was written"}
    return {"result": found}


def _first_word(text: str | None) -> list[str]:
    return (text or "").split()[:1]


# Lookup properties


def _broker_side(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "lookupPropertyPrefix", "broker_properties")
    only(expected, "BrokerLookupData.properties")
    prefix = configuration(given, "lookupPropertyPrefix")["lookupPropertyPrefix"]
    data = BrokerLookupData(properties=published_properties(given["broker_properties"], prefix))
    return {"BrokerLookupData.properties": dict(BrokerLookupData.from_json(data.to_json()).properties)}


class _Recording(LoadManager):
    """A manager of somebody's own that looks at the properties of every lookup."""

    seen: list[str | None]

    def assign(self, topic: str | None, bundle: str, options: LookupOptions | None = None, **said: Any) -> Any:
        """Note `broker.id`, then answer as usual."""
        self.seen.append((options or LookupOptions()).properties.get("broker.id"))
        return super().assign(topic, bundle, options, **said)


def _concurrent(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "same_topic", "concurrent_lookups_with_broker.id", "client_property_map")
    only(expected, "assign_calls_seen_in_order")
    roster = Roster([Broker("b:1")])
    manager = _Recording(Policy("vector", _part("selectors", "random")), "vector", roster)
    manager.seen = []
    manager.set_registry(roster, np.ones(1, dtype=bool))
    sent: dict[str, str] = {}
    for place, value in enumerate(given["concurrent_lookups_with_broker.id"]):
        sent["broker.id"] = value
        topic = f"persistent://{_NAMESPACE}/topic" + ("" if given.get("same_topic", True) else str(place))
        manager.assign(topic, _UNIT, LookupOptions(properties=sent))
        sent["broker.id"] = "changed after the call"
    return {"assign_calls_seen_in_order": manager.seen}


def _select(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(
        given,
        "brokers",
        "client_lookup_properties",
        "custom_manager",
        "topic_partitions",
        "namespace_bundles",
        "precondition",
    )
    only(expected, "all_16_partitions_connect_to")
    brokers = [Broker(name, BrokerLookupData(properties=published)) for name, published in given["brokers"].items()]
    chain = {"use": "fallback", "children": [{"use": "best", "min_score": 1.0}, "least-resource-usage"]}
    scorers = [{"use": "property-match", "key": "broker.id"}]
    spec = PolicySpec.model_validate({"name": "vector", "scorers": scorers, "selector": chain})
    manager = _manager(build_policies(_registry(), [spec])[0], brokers)
    bundles = NamespacePolicies(default_bundles=given.get("namespace_bundles", 4)).boundaries_of(_NAMESPACE)
    found = {
        _located(manager, f"persistent://{_NAMESPACE}/topic-partition-{place}", bundles, given)
        for place in range(given.get("topic_partitions", 1))
    }
    return {"all_16_partitions_connect_to": found.pop() if len(found) == 1 else ", ".join(sorted(map(str, found)))}


def _located(manager: LoadManager, topic: str, boundaries: Sequence[int], given: Mapping[str, Any]) -> str | None:
    bundle = f"{_NAMESPACE}/{bundle_of(topic, tuple(boundaries))}"
    answer = manager.assign(topic, bundle, LookupOptions(properties=given["client_lookup_properties"]))
    return None if answer is None else answer.broker


AREAS: Mapping[str, Handler] = {
    "anti_affinity.filter": _anti_affinity,
    "anti_affinity.should_unload": _should_unload,
    "assign.filter": _assign_filter,
    "assign.no_candidates": _no_candidates,
    "assign.read_only": _read_only,
    "custom_selection_strategy": _custom_strategy,
    "filter.isolation": _isolation,
    "filter.load_manager_class": _load_manager_class,
    "filter.max_topic_count": _max_topic_count,
    "filter.version": _version,
    "lookup_properties.broker_side": _broker_side,
    "lookup_properties.concurrent": _concurrent,
    "lookup_properties.select": _select,
    "strategy.least_resource_usage": _least_resource_usage,
    "strategy.round_robin": _round_robin,
}
