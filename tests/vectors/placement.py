"""Areas of placement: filters, strategies, anti-affinity, and what a lookup's properties have to do with it.

Sections 5 and 6 of the vectors' README. Parts are asked as parts of a policy, alone or in a load manager; where the
order of candidates matters a part is asked itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lookup.engine.policy import Instant, Policy
from lookup.errors import PolicyError
from lookup.hooks.protocols import Filter, Offer, Selector
from lookup.model.broker import Broker, BrokerLookupData
from lookup.model.bundles import IsolationPolicy, NamespacePolicies
from lookup.model.load_data import BrokerLoadData
from lookup.model.request import LookupOptions, LookupRequest, request_of
from lookup.model.view import ClusterView
from lookup.testing.clusters import candidates, cluster
from tests.engine.reporter import updated_load
from tests.vectors.loads import RESOURCES, UPDATE_KEYS, load_sample, resource_weights
from tests.vectors.parts import named_part
from tests.vectors.reading import Handler, NotUnderstood, configuration, only

__all__ = ["AREAS"]

_NAMESPACE = "tenant/ns"
_UNIT = f"{_NAMESPACE}/0x00000000_0xffffffff"
_ENGINE_REQUEST = request_of(None, _UNIT, LookupOptions())
_DIFFERENCE = "loadBalancerAverageResourceUsageDifferenceThresholdPercentage"
_MAX_TOPICS = "loadBalancerBrokerMaxTopics"


def _roster_view(brokers: Mapping[str, BrokerLookupData], **figures: Any) -> ClusterView:
    return cluster(*(Broker(name, data) for name, data in brokers.items()), **figures)


# Filters


def _kept(part: Filter, view: ClusterView, request: LookupRequest = _ENGINE_REQUEST) -> Mapping[str, Any]:
    policy = Policy("vector", named_part("selectors", "random"), filters=(part,))
    return {"kept": list(policy.ballot(request, Instant(policy, view)).odds)}


def _load_manager_class(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "own_loadManagerClassName", "brokers")
    only(expected, "kept")
    brokers = {name: BrokerLookupData(load_manager_class_name=own) for name, own in given["brokers"].items()}
    own = given["own_loadManagerClassName"]
    return _kept(named_part("filters", "load-manager-class", class_name=own), _roster_view(brokers))


def _max_topic_count(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, _MAX_TOPICS, "config", "topics_in_load_data")
    only(expected, "kept")
    topics = {name: count for name, count in given["topics_in_load_data"].items() if count is not None}
    limit = configuration(given, _MAX_TOPICS)[_MAX_TOPICS]
    return _kept(
        named_part("filters", "max-topics", max_topics=limit), cluster(*given["topics_in_load_data"], topics=topics)
    )


def _version(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "preferLaterVersions", "config", "brokers")
    only(expected, "kept", "error", "map_unchanged")
    brokers = {name: BrokerLookupData(broker_version=version) for name, version in given["brokers"].items()}
    prefers = configuration(given, "preferLaterVersions")["preferLaterVersions"]
    part, view = named_part("filters", "version", prefer_later=prefers, unreadable="fail"), _roster_view(brokers)
    try:
        return _kept(part, view)
    except PolicyError as error:
        # Upstream goes on with whoever the filter left when it failed, which is what "skip" stands for.
        policy = Policy("vector", named_part("selectors", "random"), filters=(part,), on_error="skip")
        left = policy.ballot(_ENGINE_REQUEST, Instant(policy, view)).odds
        return {"error": error, "map_unchanged": set(left) == set(brokers)}


def _isolation(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(expected, "kept")
    part = named_part("filters", "isolation", portless="drop")
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
    part = named_part("filters", "anti-affinity", failure_domains_enabled=given.get("failureDomainsEnabled", False))
    return _kept(part, _group_view(given))


def _should_unload(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "current", "candidates", "owned_count")
    only(expected, "should_unload")
    view = _group_view(given)
    owner = candidates(view, given["current"])[0]
    offered = candidates(view).subset(np.isin(candidates(view).ids, given["candidates"]))
    part = named_part("filters", "anti-affinity")
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
    part = named_part(
        "selectors", "least-resource-usage", difference=configuration(given, _DIFFERENCE)[_DIFFERENCE] / 100
    )
    if "steps" in given:
        return _steps(part, given, expected)
    # The keys of updates do not matter where usages are given as they are.
    only(given, "config", _DIFFERENCE, "weightedMaxEMA", "candidates", *UPDATE_KEYS)
    only(expected, "selected_one_of", "selected")
    pool = _pool(part, given["weightedMaxEMA"], given["candidates"])
    return {"selected_one_of": pool, "selected": pool[0] if len(pool) == 1 else None}


def _steps(part: Selector, given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "config", "steps", _DIFFERENCE, *UPDATE_KEYS)
    only(expected, "selected", "weightedMaxEMA_after")
    weights = resource_weights(given)
    store: dict[str, BrokerLoadData] = {}
    selected, after = [], []
    for now_ms, step in enumerate(given["steps"], start=1):
        only(step, "do", "candidates")
        only(step.get("do", {}), "replace_with_fresh", "update_in_place")
        for how, broker, percent in _updates(step.get("do", {})):
            before = BrokerLoadData() if how == "replace_with_fresh" else store.get(broker, BrokerLoadData())
            sample = load_sample({name: [percent, 100] for name in RESOURCES})
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
    part, memory = named_part("selectors", "round-robin"), dict[str, Any]()
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


AREAS: Mapping[str, Handler] = {
    "anti_affinity.filter": _anti_affinity,
    "anti_affinity.should_unload": _should_unload,
    "filter.isolation": _isolation,
    "filter.load_manager_class": _load_manager_class,
    "filter.max_topic_count": _max_topic_count,
    "filter.version": _version,
    "strategy.least_resource_usage": _least_resource_usage,
    "strategy.round_robin": _round_robin,
}
