"""Areas of placement at work: what a load manager makes of filters, of options, of a lookup's properties.

Section 5 of the vectors' README as far as placement is concerned; parts alone are in `placement.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lookup.engine.build import build_policies
from lookup.engine.manager import LoadManager
from lookup.engine.plugins import registry_of
from lookup.engine.policy import Policy
from lookup.model.broker import Broker, BrokerLookupData, Candidates, Roster, published_properties
from lookup.model.bundles import NamespacePolicies, bundle_of
from lookup.model.decision import Assigned, Reason
from lookup.model.load import Load
from lookup.model.request import LookupOptions, LookupRequest
from lookup.model.view import ClusterView
from lookup.settings.policy import PolicySpec
from lookup.testing.clusters import cluster
from tests.vectors.parts import named_part, registry
from tests.vectors.reading import Handler, configuration, only

__all__ = ["AREAS"]

_NAMESPACE = "tenant/ns"
_UNIT = f"{_NAMESPACE}/0x00000000_0xffffffff"


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
    own = registry_of({"selectors": [_Smallest]})
    [policy] = build_policies(own, [PolicySpec.model_validate({"name": "own", "selector": _Smallest.name})])
    sets = [["b:1"], ["b:3", "b:1", "b:2"], ["b:2", "b:10"], ["z:1", "a:9", "m:5", "a:10"]]
    return {"selected": all(_answer(_manager(policy, names)) == min(names) for names in sets)}


# Assigning


def _manager(policy: Policy, brokers: Sequence[str | Broker], **figures: Any) -> LoadManager:
    """Return a load manager in a cluster where everybody is registered and has reported something."""
    view = cluster(*brokers, **figures)
    manager = LoadManager(policy, "vector", view.brokers)
    manager.set_registry(view.brokers, view.registered)
    usage = np.full(len(view.brokers), 0.5)
    manager.set_load(Load(usage, usage * 100.0, view.load.topics, view.load.top_bundles))
    return manager


def _answer(manager: LoadManager, **options: Any) -> str | None:
    found = manager.assign(None, _UNIT, LookupOptions(**options))
    return found.broker if isinstance(found, Assigned) else None


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
    policy = Policy("vector", named_part("selectors", "least-resource-usage"), filters=filters, on_error="skip")
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
    policy = Policy("vector", named_part("selectors", "least-resource-usage"), filters=(everybody,), on_error="skip")
    found = _answer(_manager(policy, ["b:1", "b:2", *given["brokers_after_filters"]]))
    return {"result": "empty" if found is None else found}


def _read_only(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "readOnly", "bundle_owner")
    only(expected, "result")
    owner = given.get("bundle_owner")
    manager = _manager(
        Policy("vector", named_part("selectors", "least-resource-usage")), ["other:1", *_first_word(owner)]
    )
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
    manager = _Recording(Policy("vector", named_part("selectors", "random")), "vector", roster)
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
    manager = _manager(build_policies(registry(), [spec])[0], brokers)
    bundles = NamespacePolicies(default_bundles=given.get("namespace_bundles", 4)).boundaries_of(_NAMESPACE)
    found = {
        _located(manager, f"persistent://{_NAMESPACE}/topic-partition-{place}", bundles, given)
        for place in range(given.get("topic_partitions", 1))
    }
    return {"all_16_partitions_connect_to": found.pop() if len(found) == 1 else ", ".join(sorted(map(str, found)))}


def _located(manager: LoadManager, topic: str, boundaries: Sequence[int], given: Mapping[str, Any]) -> str | None:
    bundle = f"{_NAMESPACE}/{bundle_of(topic, tuple(boundaries))}"
    answer = manager.assign(topic, bundle, LookupOptions(properties=given["client_lookup_properties"]))
    return answer.broker if isinstance(answer, Assigned) else None


AREAS: Mapping[str, Handler] = {
    "assign.filter": _assign_filter,
    "assign.no_candidates": _no_candidates,
    "assign.read_only": _read_only,
    "custom_selection_strategy": _custom_strategy,
    "lookup_properties.broker_side": _broker_side,
    "lookup_properties.concurrent": _concurrent,
    "lookup_properties.select": _select,
}
