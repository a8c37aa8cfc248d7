"""Explain policies' answers to one lookup, without Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.api.arguments import names_of, require_mapping
from lookup.api.given import Table, given_tables
from lookup.api.selection import Selection, registrations_in
from lookup.engine.explain import Explanation
from lookup.engine.explain import explain as explained
from lookup.engine.ledger import capacities
from lookup.engine.ownership import Ownership
from lookup.errors import Argument, SettingsError
from lookup.model import (
    ClusterView,
    Load,
    LookupOptions,
    LookupRequest,
    NamespacePolicies,
    Roster,
    TopicName,
    bundle_of,
)  # fmt: skip
from lookup.model.names import is_internal_topic, pinned_broker
from lookup.model.quoting import suggestion
from lookup.model.request import request_of
from lookup.model.time import time_text
from lookup.replay.timeline import ClusterEvents, Registration, build_timeline, registrations_of
from lookup.settings import EvaluationFile, broker_intervals, client_rules, label_client, namespace_policies, topology

__all__ = ["ALL", "Explained", "Scene", "explain", "explain_selected"]

#: Key in `usage` for every broker without a value of its own.
ALL = "*"


@dataclass(frozen=True)
class Scene:
    """A request and the cluster that is asked."""

    settings: EvaluationFile
    cluster: str
    #: µs since the Unix epoch, 0 if all brokers are always registered
    at_us: int
    request: LookupRequest
    roster: Roster
    #: shape (n_brokers,)
    registered: NDArray[np.bool_]
    load: Load

    def view(self) -> ClusterView:
        """Build the view of the cluster for a policy before any broker owns a bundle."""
        return ClusterView(
            cluster=self.cluster,
            brokers=self.roster,
            registered=self.registered,
            capacity=capacities(self.roster, None),
            epoch_us=self.at_us,
            now_us=self.at_us,
            load=self.load.read_only(),
            ownership=Ownership(self.roster.ids),
            unloaded={},
            memory={},
            namespaces=namespace_policies(self.settings),
            topology=topology(self.settings),
        )


@dataclass(frozen=True)
class Explained:
    """Why policies answer a lookup as they do."""

    scene: Scene
    #: why policies are not evaluated, None if they are
    answered_without_policy: str | None
    #: by policy
    policies: Mapping[str, Explanation]

    def document(self) -> dict[str, Any]:
        """Convert the explanation to a JSON object."""
        request = self.scene.request
        return {
            "request": {
                "topic": request.topic,
                "bundle": request.bundle,
                "client": request.client,
                "properties": dict(sorted(request.properties.items())),
            },
            "cluster": self.scene.cluster,
            "at": time_text(self.scene.at_us),
            "answered_without_policy": self.answered_without_policy,
            "policies": [explanation.document() for explanation in self.policies.values()],
        }


def explain(  # noqa: PLR0913  what a lookup and its cluster consist of, by keyword
    settings: str | os.PathLike[str] | Mapping[str, object],
    topic: str,
    *,
    brokers: Table | None = None,
    properties: Mapping[str, str] | None = None,
    client: str | None = None,
    cluster: str | None = None,
    at_us: int | None = None,
    usage: Mapping[str, float] | None = None,
    policy: str | Sequence[str] = (),
    overrides: Mapping[str, object] | None = None,
) -> Explained:
    """Explain one lookup, policy by policy.

    Args:
        settings: path of an evaluation, or its content.
        topic: a short name is completed to one in public/default.
        brokers: times of registrations, as for `evaluate`, by default `inputs.brokers`, or `brokers`, of the settings.
        properties: lookup properties that the client sends.
        client: client for which `[[clients]]` adds properties.
        cluster: needed if there are several.
        at_us: moment of the registrations, µs since the Unix epoch, by default the last one with a broker.
        usage: load / capacity by broker, with "*" for all others.
        policy: one or several names of policies to explain, by default all.
        overrides: settings by key path, which take precedence over those given.
    """
    for name, mapping in (("properties", properties), ("usage", usage)):
        require_mapping(name, mapping)
    with given_tables({"brokers": brokers}) as inputs:
        return explain_selected(
            inputs.select(settings, overrides),
            topic,
            properties=properties or {},
            client=client,
            cluster=cluster,
            at_us=at_us,
            usage=usage or {},
            policy=names_of("policy", policy),
        )


def explain_selected(  # noqa: PLR0913  what a lookup and its cluster consist of, by keyword
    selection: Selection,
    topic: str,
    *,
    properties: Mapping[str, str],
    client: str | None,
    cluster: str | None,
    at_us: int | None,
    usage: Mapping[str, float],
    policy: Sequence[str],
    warn: Callable[[str], None] = lambda sentence: None,
) -> Explained:
    """Explain one lookup by an evaluation that was already read. Otherwise it works like `explain`."""
    by_name = {policy.name: policy for policy in selection.policies}
    for name in policy:
        if name not in by_name:
            sentence = f": there is no policy {name!r}; {suggestion(name, by_name)}"
            raise SettingsError(Argument("policy"), sentence)
    settings = selection.settings
    # Checked in this order, since a broker or a name can only be wrong for a known cluster.
    cluster_name, at_us, roster, registered = _find_registry(settings, cluster, at_us, warn)
    load = _build_load(roster, usage)
    whole = TopicName.expand(topic)
    labelled = label_client(client_rules(settings), client, properties)
    bundle = _find_bundle(namespace_policies(settings), whole)
    request = request_of(str(whole), bundle, LookupOptions(properties=labelled), client)
    scene = Scene(settings, cluster_name, at_us, request, roster, registered, load)
    special = _explain_without_policy(scene.request)
    chosen = () if special else [by_name[name] for name in dict.fromkeys(policy)] or selection.policies
    view, asked_of = scene.view(), dict.fromkeys((policy.name for policy in chosen), request)
    for entry in chosen:
        if entry.bundles is not None:
            own = _find_bundle(replace(namespace_policies(settings), default_bundles=entry.bundles), whole)
            asked_of[entry.name] = replace(request, bundle=own)
            if own != bundle:
                warn(f"policy {entry.name!r} begins with other bundles, and is asked about {own}")
    return Explained(scene, special, {policy.name: explained(policy, asked_of[policy.name], view) for policy in chosen})


def _find_bundle(namespaces: NamespacePolicies, topic: TopicName) -> str:
    boundaries = namespaces.boundaries_of(str(topic.namespace))
    return f"{topic.namespace}/{bundle_of(str(topic), boundaries)}"


def _explain_without_policy(request: LookupRequest) -> str | None:
    """Explain why policies are not evaluated, if so (see `ExtensibleLoadManagerImpl.assign` in Pulsar)."""
    if request.topic is not None and is_internal_topic(request.topic):
        return "This topic is the load manager's own; the leader serves it and no policy is asked."
    broker = pinned_broker(request.namespace)
    return None if broker is None else f"The broker in the namespace's name serves it ({broker}); no policy is asked."


def _find_registry(
    settings: EvaluationFile, cluster: str | None, at_us: int | None, warn: Callable[[str], None]
) -> tuple[str, int, Roster, NDArray[np.bool_]]:
    """Find the requested cluster, the moment, its brokers, and which of them are registered then."""
    timelines = _read_timelines(settings, warn)
    cluster_name = _choose_cluster(timelines, cluster)
    # With brokers that belong to every cluster any name will do, and their timeline has none.
    registrations = timelines.get(cluster_name, timelines.get("", ()))
    if at_us is None:
        # Time of a broker's last registration or update. Those without a beginning have a time before the epoch.
        at_us = max((row.ts_us for row in registrations if row.event != "unregistered" and row.ts_us > 0), default=0)
    brokers = {interval.broker.id: interval.broker for interval in broker_intervals(settings, cluster_name)}
    events = ClusterEvents(registrations=registrations, brokers=brokers)
    registry = build_timeline(events, first_us=at_us, last_us=at_us, tick_us=1).events[0].registry
    return cluster_name, at_us, *(registry if registry is not None else (Roster(()), np.zeros(0, dtype=bool)))


def _build_load(roster: Roster, usage: Mapping[str, float]) -> Load:
    ids = [broker.id for broker in roster]
    for broker in usage:
        if broker not in (*ids, ALL):
            sentence = f": there is no broker {broker!r}; {suggestion(broker, ids)}"
            raise SettingsError(Argument("usage"), sentence)
    load = Load.unknown(len(roster))
    if not usage:
        return load
    # NaN for brokers that are not named, which means, as in a replay, that a broker has not reported.
    used = np.array([usage.get(broker, usage.get(ALL, np.nan)) for broker in ids])
    return Load(used, used * capacities(roster, None), load.topics, load.top_bundles)


def _read_timelines(settings: EvaluationFile, warn: Callable[[str], None]) -> Mapping[str, Sequence[Registration]]:
    path = settings.inputs.brokers
    if path is not None and find_spec("pyarrow") is not None:
        return registrations_in(path)
    if path is not None:
        warn("inputs.brokers is not read, since pyarrow is not installed: only [[brokers]] count")
    if not settings.brokers:
        raise SettingsError("there are no brokers: write [[brokers]], or name a BROKERS table as inputs.brokers")
    named = sorted({cluster for entry in settings.brokers for cluster in entry.clusters or ()})
    return {cluster: registrations_of(broker_intervals(settings, cluster)) for cluster in named or [""]}


def _choose_cluster(timelines: Mapping[str, object], cluster: str | None) -> str:
    if "" in timelines:  # brokers that belong to every cluster
        return cluster or "any"
    if cluster is None and len(timelines) == 1:
        return next(iter(timelines))
    if cluster is None:
        clusters = ", ".join(sorted(timelines))
        raise SettingsError("which cluster? give ", Argument("cluster"), f"; known: {clusters}")
    if cluster not in timelines:
        sentence = f": there is no cluster {cluster!r}; {suggestion(cluster, timelines)}"
        raise SettingsError(Argument("cluster"), sentence)
    return cluster
