"""Make the cases with which policies are probed: requests of a log, on its brokers, under several states of load."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import capacities
from lookup.engine.ownership import Ownership
from lookup.model import Broker, ClusterView, Load, LookupOptions, LookupRequest, Roster
from lookup.model.request import request_of
from lookup.replay.plan import ClusterPlan, RunPlan

__all__ = ["Case", "brokers_of", "cases_of"]

#: Combinations of labels, and bundles, of a cluster with which policies are probed: those with the most lookups, and
#: some from all over the cluster.
_LABELS, _BUNDLES = 32, 4


@dataclass(frozen=True)
class Case:
    """A request of the log, on the brokers of its cluster under one state of load."""

    request: LookupRequest
    view: ClusterView


def brokers_of(cluster: ClusterPlan) -> list[Broker]:
    """Return every broker of a cluster as it was last registered."""
    brokers = {broker.id: broker for broker in cluster.timeline.roster}
    for _, events in sorted(cluster.timeline.events.items()):
        if events.registry is not None:
            roster, registered = events.registry
            brokers |= {broker.id: broker for broker, there in zip(roster, registered, strict=True) if there}
    return list(brokers.values())


def cases_of(cluster: ClusterPlan, run: RunPlan) -> list[Case]:
    """Return requests of a cluster's log under each state of load."""
    views = _views(cluster, run)
    return [Case(request, view) for view in views for request in _requests(cluster)] if views else []


def _requests(cluster: ClusterPlan) -> list[LookupRequest]:
    """Return requests with the labels that most lookups carry, for bundles from all over the cluster."""
    words = cluster.words
    frequent = np.argsort(-words.by_properties, kind="stable")[:_LABELS].tolist()
    names = [bundle for bundle, _ in words.atoms.bundles]
    bundles = names[:: -(-len(names) // _BUNDLES) or 1]
    clients, listeners = words.extras.get("client", (None,)), words.extras.get("listener", (None,))
    topics = [topic for topic in words.extras.get("topic", ()) if topic is not None]
    requests = []
    for number, (code, bundle) in enumerate((code, bundle) for code in frequent for bundle in bundles):
        options = LookupOptions(
            advertised_listener_name=listeners[number % len(listeners)], properties=words.properties[code]
        )
        of_bundle = f"persistent://{bundle.rpartition('/')[0]}/probe-{number}"
        topic = topics[number % len(topics)] if topics else of_bundle
        requests.append(request_of(topic, bundle, options, clients[number % len(clients)]))
    return requests


def _views(cluster: ClusterPlan, run: RunPlan) -> list[ClusterView]:
    """Return the cluster with all its brokers, without load and with loads that tell any two brokers apart."""
    roster = Roster(brokers_of(cluster))
    count = len(roster)
    if not count:
        return []
    capacity = capacities(roster, cluster.assumed_capacity)
    unknown = Load.unknown(count)
    registered = np.ones(count, dtype=bool)
    registered.flags.writeable = False
    view = ClusterView(
        cluster=cluster.name,
        brokers=roster,
        registered=registered,
        capacity=capacity,
        epoch_us=cluster.words.first_us,
        now_us=cluster.words.last_us,
        load=unknown.read_only(),
        ownership=Ownership(roster.ids),
        unloaded={},
        memory={},
        namespaces=run.namespaces,
        topology=run.topology,
    )
    steps = (np.arange(count) + 0.5) / count
    # Once ascending by place and once in another order, so that load agrees with no label by accident.
    orders = (steps, steps[np.argsort((np.arange(count) * 7919) % max(count, 1), kind="stable")[::-1]])
    return [view, *(replace(view, load=_loaded(usage, capacity).read_only()) for usage in orders)]


def _loaded(usage: NDArray[np.float64], capacity: NDArray[np.float64]) -> Load:
    """Return a load in which every figure differs between brokers as usage does."""
    count = len(usage)
    full = np.where(np.isnan(capacity), 1.0, capacity)
    return Load(
        usage=usage,
        throughput=usage * full,
        topics=np.rint(usage * 100).astype(np.int64),
        top_bundles=[()] * count,
        resources=np.repeat(usage[:, None] * 100.0, 5, axis=1),
        rates=usage * 1000.0,
        long_term_rates=usage * 1000.0,
        updated_us=np.zeros(count, dtype=np.int64),
    )
