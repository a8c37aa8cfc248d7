"""The cluster a request is explained in: who is registered at a moment, with which figures; without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from lookup.commands.streams import warn
from lookup.engine.conditions import Conditions
from lookup.engine.manager import LoadManager
from lookup.engine.policy import Instant, Policy
from lookup.errors import SettingsError
from lookup.model.broker import Roster
from lookup.model.bundles import bundle_of
from lookup.model.load import Load
from lookup.model.names import TopicName
from lookup.model.quoting import suggestion
from lookup.model.request import LookupOptions, LookupRequest, request_of
from lookup.replay.timeline import ClusterEvents, Registration, build_timeline, registrations_of
from lookup.settings import EvaluationFile, broker_intervals, client_rules, label_client, namespace_policies, topology

__all__ = ["Asked", "Scene", "registrations_in", "scene_of"]


@dataclass(frozen=True)
class Asked:
    """What the flags say about the request."""

    topic: str
    properties: Mapping[str, str]
    client: str | None = None
    cluster: str | None = None
    at_us: int | None = None
    #: load / capacity by broker
    usage: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Scene:
    """A request and the cluster that is asked."""

    settings: EvaluationFile
    cluster: str
    at_us: int
    request: LookupRequest
    roster: Roster
    #: shape (n_brokers,)
    registered: NDArray[np.bool_]
    load: Load

    def instant(self, policy: Policy) -> Instant:
        """Return the view a policy would decide with, nobody owning anything yet."""
        conditions = Conditions(namespaces=namespace_policies(self.settings), topology=topology(self.settings))
        manager = LoadManager(policy, self.cluster, self.roster, conditions=conditions)
        manager.begin_tick(self.at_us)
        manager.set_registry(self.roster, self.registered)
        manager.set_load(self.load)
        return Instant(policy, manager.view())


def scene_of(settings: EvaluationFile, asked: Asked) -> Scene:
    """Set the scene.

    Raises:
        SettingsError: where cluster or broker are not known, or there are none.
        InvalidNameError: where the topic is none.
    """
    timelines = _timelines(settings)
    cluster = _cluster(timelines, asked.cluster)
    registrations = timelines.get(cluster, timelines.get("", ()))
    at_us = _default_time(registrations) if asked.at_us is None else asked.at_us
    brokers = {interval.broker.id: interval.broker for interval in broker_intervals(settings, cluster)}
    events = ClusterEvents(registrations=registrations, brokers=brokers)
    registry = build_timeline(events, first_us=at_us, last_us=at_us, tick_us=1).events[0].registry
    roster, registered = registry if registry is not None else (Roster(()), np.zeros(0, dtype=bool))
    load = _load(roster, asked.usage or {})
    return Scene(settings, cluster, at_us, _request(settings, asked), roster, registered, load)


def _request(settings: EvaluationFile, asked: Asked) -> LookupRequest:
    topic = TopicName.expand(asked.topic)
    boundaries = namespace_policies(settings).boundaries_of(str(topic.namespace))
    properties = label_client(client_rules(settings), asked.client, asked.properties)
    bundle = f"{topic.namespace}/{bundle_of(str(topic), boundaries)}"
    return request_of(str(topic), bundle, LookupOptions(properties=properties), asked.client)


def _timelines(settings: EvaluationFile) -> Mapping[str, Sequence[Registration]]:
    """Return the registry's timeline by cluster; the empty name stands for every cluster."""
    table = _table(settings)
    if table is not None:
        return table
    named = sorted({cluster for entry in settings.brokers for cluster in entry.clusters or ()})
    if not settings.brokers:
        raise SettingsError("there are no brokers: write [[brokers]], or name a BROKERS table as inputs.brokers")
    return {cluster: registrations_of(broker_intervals(settings, cluster)) for cluster in named or [""]}


def _table(settings: EvaluationFile) -> Mapping[str, Sequence[Registration]] | None:
    path = settings.inputs.brokers
    if path is None:
        return None
    if find_spec("pyarrow") is None:
        warn("inputs.brokers is not read, since pyarrow is not installed: brokers are those of [[brokers]]")
        return None
    return registrations_in(path)


def registrations_in(path: str) -> Mapping[str, Sequence[Registration]]:
    """Read a BROKERS table by cluster; it takes Arrow.

    Raises:
        InputError: where it cannot be used.
    """
    from lookup.replay.tables import registrations  # noqa: PLC0415  Arrow only where a table is read

    table = registrations(path)
    return {cluster: [row["value"] for row in table.of(cluster)] for cluster in table.rows}


def _cluster(timelines: Mapping[str, object], wanted: str | None) -> str:
    if "" in timelines:  # brokers that belong to every cluster
        return wanted or "any"
    if wanted is None and len(timelines) == 1:
        return next(iter(timelines))
    if wanted is None:
        raise SettingsError(f"which cluster? give --cluster; known: {', '.join(sorted(timelines))}")
    if wanted not in timelines:
        raise SettingsError(f"--cluster: there is no cluster {wanted!r}; {suggestion(wanted, timelines)}")
    return wanted


def _default_time(registrations: Sequence[Registration]) -> int:
    """Return when a broker was last registered or updated; the Unix epoch where all always are."""
    return max((event.ts_us for event in registrations if event.event != "unregistered" and event.ts_us > 0), default=0)


def _load(roster: Roster, usage: Mapping[str, float]) -> Load:
    known = [broker.id for broker in roster]
    for broker in usage:
        if broker not in known:
            raise SettingsError(f"--usage: there is no broker {broker!r}; {suggestion(broker, known)}")
    figures = Load.unknown(len(roster))
    if not usage:
        return figures
    used = np.array([usage.get(broker, np.nan) for broker in known])
    capacity = np.array([np.nan if broker.capacity is None else broker.capacity for broker in roster])
    return Load(used, used * capacity, figures.topics, figures.top_bundles)
