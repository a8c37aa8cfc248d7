"""A replay the slow way: rows as dictionaries, one call of the load manager per lookup, books in plain Python.

Nothing of `lookup.replay` is used but the names of columns, so that whatever the fast replay gets wrong shows as a
difference. It knows no atoms, no codes, no partitions: a bundle is found by the topic's CRC-32 among the boundaries of
the moment, a load is a sum over the lookups of the last cells. Figures are those of `tests.score.oracle`.

Source: `design/architecture.md` sections 3 and 6.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow.parquet as pq

from lookup.engine.build import build_policies
from lookup.engine.ledger import LoadFigures
from lookup.engine.manager import LoadManager
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.errors import InvalidNameError
from lookup.model.batch import ClientClass
from lookup.model.broker import Broker, BrokerLookupData, Location, Roster
from lookup.model.load import BrokerLoadData, broker_load_from_json, bundle_stats_from_json
from lookup.model.names import TopicName, is_internal_topic, is_system_namespace, looks_like_pattern, pinned_broker
from lookup.model.request import LookupOptions, request_of
from lookup.model.view import BundleLoad
from lookup.replay.schema import RESULTS
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.resolve import broker_intervals, client_rules, label_client, namespace_policies, topology
from tests.score.oracle import Change, Happenings, Lookup, measure_all

MICRO = 1_000_000
HASH_END = 0xFFFFFFFF
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row = dict[str, Any]
Figures = dict[tuple[str, str | None], float]


@dataclass(frozen=True)
class Demand:
    """One lookup that asks for a broker."""

    ts: int
    topic: str
    namespace: str
    hashed: int
    client: str | None
    properties: Mapping[str, str]
    logged: str | None
    read_only: bool
    listener: str | None
    #: micro-units of weight
    micro: int

    @property
    def client_class(self) -> ClientClass:
        """Return what metrics know of the client."""
        return ClientClass(self.properties, Location(*(self.properties.get(key) for key in ("region", "zone", "rack"))))


@dataclass
class Log:
    """The demand of one cluster in total order, and what was left out of it."""

    demand: list[Demand] = field(default_factory=list)
    redirects: int = 0
    internal: int = 0


@dataclass
class Told:
    """What one policy with one seed did in one cluster."""

    decisions: list[Row]
    owners: list[Row]
    figures: Figures
    #: by part of the demand, `(("tenant", "t1"),)`
    parts: dict[tuple[tuple[str, str], ...], Figures] = field(default_factory=dict)
    #: broker of each lookup, None for unanswered, as one line per lookup; empty under shared ownership
    answers: list[str | None] = field(default_factory=list)


@dataclass
class Tale:
    """Everything an evaluation is about."""

    #: by cluster, policy, seed
    runs: dict[tuple[str, str, int], Told]
    #: by cluster; empty where too few lookups carry a broker
    logged: dict[str, Figures]
    quarantined: dict[str, int]
    facts: dict[str, Any]


def tell(settings: EvaluationFile, *, by: Sequence[str] = ()) -> Tale:
    """Replay every policy of an evaluation, cluster by cluster and seed by seed."""
    quarantined: dict[str, int] = defaultdict(int)
    if settings.inputs.ownership is not None:
        refused = [event for event in read_table(settings.inputs.ownership) if not _is_usable(event)]
        quarantined["a row of OWNERSHIP"] = len(refused)
    logs = {name: log for name, log in sorted(read_log(settings, quarantined).items()) if log.demand}
    worlds = [_World(settings, name, log.demand) for name, log in logs.items()]
    policies = build_policies(load_plugins(settings.plugin_files), settings.policies)
    walk = _Shared if settings.evaluation.ownership == "shared" else _Exclusive
    runs = {
        (world.name, policy.name, seed): walk(world, policy, seed).told(by)
        for world in worlds
        for policy in policies
        for seed in settings.evaluation.seeds
    }
    known = sum(world.roster_id(one.logged) is not None for world in worlds for one in world.demand)
    lookups = sum(len(world.demand) for world in worlds)
    logged = {world.name: _of_the_log(world) for world in worlds} if known >= 0.95 * lookups else {}
    facts = {
        "lookups": lookups,
        "ticks": {world.name: len(world.ticks) for world in worlds},
        "induced": sum(world.induced() for world in worlds),
        "floor": {world.name: world.floor() for world in worlds},
        "assumed": any(world.assumed is not None for world in worlds),
    }
    return Tale(runs, logged, dict(quarantined), facts)


# Reading.


def read_table(path: str) -> Iterator[Row]:
    """Yield the rows of every Parquet file below a path, with `_place` = (path, row) and the cluster the path names."""
    root = Path(path)
    files = [root] if root.is_file() else [file for file in root.rglob("*.parquet") if file.is_file()]
    for file in sorted(files, key=str):
        named = [unquote(part[8:]) for part in file.relative_to(root).parts if part.startswith("cluster=")]
        with pq.ParquetFile(file) as parquet:
            rows = parquet.read().to_pylist()
        for number, row in enumerate(rows, start=1):
            row["ts"] = _micros(row["ts"])
            yield {**row, **({"cluster": named[0]} if named else {}), "_place": (str(file), number)}


def read_log(settings: EvaluationFile, quarantined: dict[str, int]) -> dict[str, Log]:
    """Read LOOKUPS, cluster by cluster; what cannot be used is counted by reason."""
    logs: dict[str, Log] = defaultdict(Log)
    rules = client_rules(settings)
    ordered: dict[str, list[tuple[Any, Demand]]] = defaultdict(list)
    for row in read_table(str(settings.inputs.lookups)):
        reason = _refused(row)
        if reason is not None:
            quarantined[reason] += 1
        elif (row.get("result") or "unknown") == "redirect":
            logs[row["cluster"]].redirects += 1
        elif is_internal_topic(row["topic"]):
            logs[row["cluster"]].internal += 1
        else:
            seq = row.get("seq")
            place = (row["ts"], seq is not None, seq or 0, row["_place"])
            properties = label_client(rules, row.get("client"), json.loads(row.get("properties") or "{}"))
            ordered[row["cluster"]].append((place, _demand(row, properties)))
    for cluster, found in ordered.items():
        logs[cluster].demand = [demand for _, demand in sorted(found, key=lambda entry: entry[0])]
    return logs


def _refused(row: Row) -> str | None:
    topic = row.get("topic")
    if row.get("cluster") is None:
        return "the cluster is missing"
    if row["ts"] is None:
        return "the timestamp is missing"
    if topic is None:
        return "the topic is missing"
    if looks_like_pattern(topic):
        return "the topic is a regular expression, which topic list watchers look up"
    try:
        TopicName.parse(topic)
    except InvalidNameError as error:
        return str(error)
    if not _are_properties(row.get("properties")):
        return "properties is not a JSON object of texts"
    if row.get("result") is not None and row["result"] not in RESULTS:
        return f"result {row['result']!r} is none of {', '.join(RESULTS)}"
    weight = row.get("weight")
    if weight is not None and not 0.0 <= weight < float("inf"):
        return f"weight {weight} is not a finite number of at least 0"
    return None


def _are_properties(text: str | None) -> bool:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return False
    return isinstance(found, dict) and all(isinstance(value, str) for value in found.values())


def _demand(row: Row, properties: Mapping[str, str]) -> Demand:
    weight = row.get("weight")
    return Demand(
        ts=row["ts"],
        topic=row["topic"],
        namespace=str(TopicName.parse(row["topic"]).namespace),
        hashed=zlib.crc32(row["topic"].encode()),
        client=row.get("client"),
        properties=dict(sorted(properties.items())),
        logged=row.get("broker"),
        read_only=bool(row.get("read_only")),
        listener=row.get("listener"),
        micro=round((1.0 if weight is None else weight) * MICRO),
    )


def _micros(ts: Any) -> int | None:
    if ts is None or isinstance(ts, int):
        return ts
    aware = ts if ts.tzinfo is not None else ts.replace(tzinfo=UTC)
    return int((aware - _EPOCH) // timedelta(microseconds=1))


# What is the same for every policy.


@dataclass
class _Tick:
    start: int
    end: int
    is_grid: bool
    lookups: list[Demand] = field(default_factory=list)
    registry: tuple[Roster, list[bool]] | None = None
    splits: list[tuple[str, list[str]]] = field(default_factory=list)
    unloads: list[str] = field(default_factory=list)
    restores: bool = False


class _World:
    """One cluster: its ticks, brokers, events and reported loads."""

    def __init__(self, settings: EvaluationFile, name: str, demand: list[Demand]) -> None:
        self.settings, self.name, self.demand = settings, name, demand
        self.section = settings.evaluation
        self.namespaces, self.topology = namespace_policies(settings), topology(settings)
        self.tick_us = self.section.tick_s * MICRO
        first, last = demand[0].ts, demand[-1].ts
        self.start, self.end = first // self.tick_us * self.tick_us, (last // self.tick_us + 1) * self.tick_us
        self.scored_from = self.start + self.section.warmup_s * MICRO
        self.history = [event for event in self._table(settings.inputs.ownership) if _is_usable(event)]
        self.registrations = sorted(self._registrations(), key=_registry_order)
        self.topics = {(one.topic, one.namespace, one.hashed) for one in demand}
        self.splits = [event for event in self.history if event["event"] == "split"]
        self.all_boundaries = self._all_boundaries()
        self.first_boundaries = {name: list(self.namespaces.boundaries_of(name)) for name in self.all_boundaries}
        for event in self.splits:
            if event["ts"] <= first:
                split_bundle(self.first_boundaries, event["bundle"], children_of(event))
        self.ticks = self._ticks(first)
        self.roster: Roster = self.ticks[0].registry[0] if self.ticks[0].registry else Roster(())
        self.broker_ids = self._broker_ids()
        self.initial = self._initial_owners(first)
        self.assumed = self._assumed()
        self.loads = self._table(settings.inputs.loads) if self.section.load == "reported" else None
        self.bundles = None if settings.inputs.bundles is None else self._table(settings.inputs.bundles)

    def _table(self, path: str | None) -> list[Row]:
        rows = [] if path is None else [row for row in read_table(path) if row["cluster"] == self.name]
        return sorted(rows, key=lambda row: int(row["ts"]))

    def _registrations(self) -> Iterator[Row]:
        if self.settings.inputs.brokers is not None:
            for row in self._table(self.settings.inputs.brokers):
                text = row.get("lookup_data")
                yield {**row, "data": None if text is None else BrokerLookupData.from_json(text), "described": None}
            return
        for interval in broker_intervals(self.settings, self.name):
            base = {"broker": interval.broker.id, "data": interval.broker.lookup_data, "described": interval.broker}
            yield {**base, "ts": -(10**18) if interval.from_us is None else interval.from_us, "event": "registered"}
            if interval.until_us is not None:
                yield {**base, "ts": interval.until_us, "event": "unregistered", "data": None, "described": None}

    def _all_boundaries(self) -> dict[str, set[int]]:
        found = {one.namespace: set(self.namespaces.boundaries_of(one.namespace)) for one in self.demand}
        for event in self.splits:
            namespace = event["bundle"].rpartition("/")[0]
            if namespace in found:
                found[namespace].update(ends_of(child)[0] for child in children_of(event)[1:])
        return found

    def _ticks(self, first: int) -> list[_Tick]:
        exogenous = [event for event in self.history if _is_exogenous(event) and first < event["ts"] < self.end]
        registry = [event for event in self.registrations if event["ts"] < self.end]
        cuts = {event["ts"] for event in exogenous} | {event["ts"] for event in registry if event["ts"] >= self.start}
        starts = sorted({*range(self.start, self.end, self.tick_us), *cuts})
        ticks = [
            _Tick(start, end, start % self.tick_us == 0)
            for start, end in zip(starts, [*starts[1:], self.end], strict=True)
        ]
        for event in exogenous:
            tick = ticks[starts.index(event["ts"])]
            if event["event"] == "split":
                tick.splits.append((event["bundle"], children_of(event)))
            else:
                tick.unloads.append(event["bundle"])
        for one in self.demand:
            ticks[bisect_right(starts, one.ts) - 1].lookups.append(one)
        ticks[bisect_right(starts, first) - 1].restores = True
        self._epochs(registry, ticks, starts)
        return ticks

    def _epochs(self, registry: Sequence[Row], ticks: Sequence[_Tick], starts: Sequence[int]) -> None:
        described = {interval.broker.id: interval.broker for interval in broker_intervals(self.settings, self.name)}
        names = sorted({event["broker"] for event in registry} | set(described))
        first: dict[str, Row] = {}
        for event in registry:
            if event["data"] is not None:
                first.setdefault(event["broker"], event)
        known = {name: described.get(name, Broker(name)) for name in names}
        known = {name: _updated(known[name], first[name]) if name in first else known[name] for name in names}
        registered = dict.fromkeys(names, False)
        ticks[0].registry = Roster(list(known.values())), list(registered.values())
        for event in registry:
            if event["event"] != "updated":
                registered[event["broker"]] = event["event"] == "registered"
            known[event["broker"]] = _updated(known[event["broker"]], event)
            tick = ticks[max(bisect_right(starts, event["ts"]) - 1, 0)]
            tick.registry = Roster(list(known.values())), [registered[name] for name in names]

    def _initial_owners(self, first: int) -> dict[str, str]:
        owners: dict[str, str] = {}
        for event in self.history:
            if event["ts"] <= first:
                owner = owners.pop(event["bundle"], None)
                if event["event"] == "owned" and event.get("broker") is not None:
                    owners[event["bundle"]] = event["broker"]
                elif event["event"] == "split" and owner is not None:
                    owners.update(dict.fromkeys(children_of(event), owner))
        return owners

    def _assumed(self) -> float | None:
        broker_us, registered = 0, 0
        for tick in self.ticks:
            if tick.registry is not None:
                if any(broker.capacity is not None for broker in tick.registry[0]):
                    return None
                registered = sum(tick.registry[1])
            broker_us += registered * (tick.end - tick.start)
        micro = sum(one.micro for one in self.demand)
        return 2 * micro / broker_us if micro and broker_us else 1.0

    def roster_id(self, name: str | None) -> str | None:
        """Return the id of the broker a log calls by a name: its id or one of its addresses."""
        return None if name is None else self.broker_ids.get(name)

    def _broker_ids(self) -> dict[str, str]:
        found: dict[str, str] = {broker.id: broker.id for broker in self.roster}
        for broker in [broker for tick in self.ticks if tick.registry for broker in tick.registry[0]]:
            data = broker.lookup_data
            urls = (
                data.pulsar_service_url,
                data.pulsar_service_url_tls,
                data.web_service_url,
                data.web_service_url_tls,
            )
            for url in filter(None, urls):
                found.setdefault(url, broker.id)
        return found

    def unit_of(self, bundle: str) -> str:
        """Return the bundle of the run's beginning that a bundle lies in."""
        namespace = bundle.rpartition("/")[0]
        return bundle_at(namespace, ends_of(bundle)[0], self.first_boundaries[namespace])

    def unit(self, one: Demand) -> str:
        """Return the bundle of the run's beginning that a lookup is about."""
        return bundle_at(one.namespace, one.hashed, self.first_boundaries[one.namespace])

    def cell(self, ts: int) -> int:
        """Return the start of the balance cell of an instant."""
        return ts // (self.section.balance_s * MICRO) * self.section.balance_s * MICRO

    def registered_cells(self) -> dict[tuple[str, int], frozenset[str]]:
        """Return who was registered at any time in each scored balance cell."""
        found: dict[tuple[str, int], set[str]] = defaultdict(set)
        present: set[str] = set()
        for tick in self.ticks:
            if tick.registry is not None:
                roster, mask = tick.registry
                present = {broker.id for broker, is_in in zip(roster, mask, strict=True) if is_in}
            if tick.start >= self.scored_from:
                found[self.name, self.cell(tick.start)] |= present
        return {cell: frozenset(ids) for cell, ids in found.items()}

    def rosters(self) -> Iterator[tuple[_Tick, Roster]]:
        """Yield every tick with the roster that holds in it."""
        roster = self.roster
        for tick in self.ticks:
            roster = tick.registry[0] if tick.registry else roster
            yield tick, roster

    def induced(self) -> int:
        """Count the lookups within `reconnect_s` after the log says that their bundle lost its owner."""
        losses: list[tuple[int, str]] = []
        owners: dict[str, str] = {}
        left = [event for event in self.registrations if event["event"] == "unregistered"]
        for event in sorted([*self.history, *left], key=lambda event: int(event["ts"])):
            if event["event"] == "unregistered":
                orphans = [bundle for bundle, owner in owners.items() if owner == event["broker"]]
                losses += [(event["ts"], bundle) for bundle in orphans]
                owners = {bundle: owner for bundle, owner in owners.items() if bundle not in orphans}
            elif event["event"] == "owned" and event.get("broker") is not None:
                owners[event["bundle"]] = event["broker"]
            elif event["event"] == "unloaded":
                owners.pop(event["bundle"], None)
                losses.append((event["ts"], event["bundle"]))
            elif event["event"] == "split":
                owner = owners.pop(event["bundle"], None)
                owners.update({} if owner is None else dict.fromkeys(children_of(event), owner))
        span = self.section.reconnect_s * MICRO
        return sum(
            any(ts <= one.ts < ts + span and self._is_in(one, bundle) for ts, bundle in losses) for one in self.demand
        )

    def _is_in(self, one: Demand, bundle: str) -> bool:
        namespace, (low, high) = bundle.rpartition("/")[0], ends_of(bundle)
        known = self.all_boundaries.get(namespace, set())
        return one.namespace == namespace and {low, high} <= known and _holds(low, high, one.hashed)

    def floor(self) -> float | None:
        """Return the imbalance of a round-robin over the registered brokers, lookup by lookup."""
        served: dict[int, list[int]] = defaultdict(list)
        for tick in self.ticks:
            if tick.start >= self.scored_from:
                served[self.cell(tick.start)] += [one.micro for one in tick.lookups]
        above = below = 0
        for (_, cell), brokers in self.registered_cells().items():
            if brokers and sum(served[cell]):
                sums = [sum(served[cell][turn :: len(brokers)]) for turn in range(len(brokers))]
                above, below = above + max(sums) * len(brokers), below + sum(sums)
        return above / below if below else None


def _both(data: BrokerLookupData, name: str) -> list[str]:
    return [url for url in (getattr(data, name), getattr(data, f"{name}_tls")) if url is not None]


def _is_usable(event: Row) -> bool:
    if event["event"] == "split":
        return len(children_of(event)) > 1
    return event["event"] != "owned" or event.get("broker") is not None


def _registry_order(event: Row) -> tuple[int, int, str]:
    return event["ts"], ("unregistered", "updated", "registered").index(event["event"]), event["broker"]


def _is_exogenous(event: Row) -> bool:
    return event["event"] == "split" or (event["event"] == "unloaded" and event.get("by") == "admin")


def _updated(broker: Broker, event: Row) -> Broker:
    """Return a broker after a registry event; where settings do not place it, its labels tell where it is."""
    if event["described"] is not None:
        return event["described"]  # type: ignore[no-any-return]  # a Broker
    if event["data"] is None:
        return broker
    is_placed = broker.location and broker.location != _labelled_place(broker)
    changed = replace(broker, lookup_data=event["data"])
    return changed if is_placed else replace(changed, location=_labelled_place(changed))


def _labelled_place(broker: Broker) -> Location:
    return Location(*(broker.property_of(level) for level in ("region", "zone", "rack")))


# Bundles, by their names alone.


def ends_of(bundle: str) -> tuple[int, int]:
    """Return the hashes a bundle lies between."""
    low, _, high = bundle.rpartition("/")[2].partition("_")
    return int(low, 16), int(high, 16)


def bundle_at(namespace: str, hashed: int, boundaries: Sequence[int]) -> str:
    """Return the bundle that holds a hash."""
    place = min(bisect_right(boundaries, hashed), len(boundaries) - 1) - 1
    return f"{namespace}/0x{boundaries[place]:08x}_0x{boundaries[place + 1]:08x}"


def children_of(event: Row) -> list[str]:
    """Return what a split leaves."""
    namespace, (low, high) = event["bundle"].rpartition("/")[0], ends_of(event["bundle"])
    inside = sorted({int(text, 16) for text in event["boundaries"] if low < int(text, 16) < high})
    points = [low, *inside, high]
    return [f"{namespace}/0x{a:08x}_0x{b:08x}" for a, b in pairwise(points)]


def split_bundle(boundaries: dict[str, list[int]], bundle: str, children: Sequence[str]) -> bool:
    """Split a bundle if there is such a bundle now and the split leaves at least two; tell whether it did."""
    namespace, (low, high) = bundle.rpartition("/")[0], ends_of(bundle)
    known = boundaries.get(namespace, [])
    if len(children) < 2 or (low, high) not in pairwise(known):
        return False
    boundaries[namespace] = sorted({*known, *(end for child in children for end in ends_of(child))})
    return True


def _holds(low: int, high: int, hashed: int) -> bool:
    return low <= hashed < high or hashed == high == HASH_END


# The walk.


class _Walk:
    """One policy, cluster and seed; what both ownership modes share."""

    def __init__(self, world: _World, policy: Policy, seed: int) -> None:
        self.world, self.policy, self.seed = world, policy, seed
        section = world.section
        self.manager = LoadManager(
            policy,
            world.name,
            world.roster,
            seed=seed,
            owner_loss=section.owner_loss,
            namespaces=world.namespaces,
            topology=world.topology,
            assumed_capacity=world.assumed,
        )
        self.boundaries = {name: list(known) for name, known in world.first_boundaries.items()}
        #: lookups of the complete cells, newest last, and of the open one
        self.cells: list[list[Demand]] = []
        self.open: list[Demand] = []
        self.lookups: list[Lookup] = []
        self.usage = [float("nan")] * len(world.roster)
        self.usage_s: dict[tuple[int, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.decisions: list[Row] = []
        self.registered: list[bool] = [False] * len(world.roster)
        #: the last report of each broker, and those to come, the next one last
        self.reports: dict[str, BrokerLoadData] = {}
        self.unread = list(reversed(world.loads or ()))

    def bundle(self, one: Demand) -> str:
        """Return the bundle of a lookup as of now."""
        return bundle_at(one.namespace, one.hashed, self.boundaries[one.namespace])

    def note_usage(self, tick: _Tick) -> None:
        """Book a tick's broker-time."""
        for number, broker in enumerate(self.manager.roster):
            if self.registered[number] and self.usage[number] == self.usage[number]:
                booked = self.usage_s[self.world.cell(tick.start), broker.id]
                seconds = (tick.end - tick.start) / MICRO
                booked[0] += seconds
                booked[1] += seconds * (self.usage[number] > self.world.section.overload_threshold)

    def demand_by_label(self) -> dict[str, dict[str, float]]:
        """Return the weight per second of the last cell by value of every label."""
        sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for one in self.cells[-1] if self.cells else ():
            for key, value in one.properties.items():
                sums[key][value] += one.micro
        per_second = {
            key: {
                value: micro / (MICRO * self.world.section.tick_s) for value, micro in sorted(values.items()) if micro
            }
            for key, values in sums.items()
        }
        return {key: values for key, values in per_second.items() if values}

    def reported_at(self, now: int) -> tuple[list[float], list[float], list[int]]:
        """Return usage, load and topics by broker as last reported."""
        while self.unread and self.unread[-1]["ts"] <= now:
            row = self.unread.pop()
            self.reports[row["broker"]] = broker_load_from_json(row["load"])
        found = [self.reports.get(broker.id) for broker in self.world.roster]
        return (
            [float("nan") if data is None else data.weighted_max_ema for data in found],
            [float("nan") if data is None else data.msg_throughput_in + data.msg_throughput_out for data in found],
            [0 if data is None else data.topics for data in found],
        )

    def window(self) -> list[Demand]:
        """Return the lookups of the last `session_s`."""
        size = self.world.section.session_s // self.world.section.tick_s
        return [one for cell in self.cells[-size:] for one in cell]

    def happenings(self, lookups: Sequence[Lookup], changes: Sequence[Change] | None, hour: int | None) -> Happenings:
        """Put together what metrics are about."""
        world = self.world
        cells = {cell: ids for cell, ids in world.registered_cells().items() if hour is None or _hour(cell[1]) == hour}
        usage = [
            (known, over) for (cell, _), (known, over) in self.usage_s.items() if hour is None or _hour(cell) == hour
        ]
        return Happenings(
            lookups=lookups,
            changes=changes,
            registered=cells,
            cell_us=world.section.balance_s * MICRO,
            topology=world.topology,
            bytes_per_weight=world.section.bytes_per_weight,
            window_s=world.section.window_s,
            usage_s=None if world.assumed is not None else usage,
        )

    def parts(self, by: Sequence[str], changes: Sequence[Change] | None) -> dict[Any, Figures]:
        """Return the figures of every part of the demand."""
        return {
            ((dimension, value),): _figures_of(self, dimension, value, changes)
            for dimension in by
            for value in sorted({_value_of(dimension, one) for one in self.lookups} - {None})
        }


def _hour(ts: int) -> int:
    return ts // (3600 * MICRO)


def _value_of(dimension: str, one: Lookup | Change) -> Any:
    if dimension == "hour":
        return datetime.fromtimestamp(_hour(one.ts) * 3600, tz=UTC).strftime("%Y-%m-%dT%H:00Z")
    if dimension == "rack":
        return one.client.properties.get("rack") if isinstance(one, Lookup) else None
    namespace = one.bundle.rpartition("/")[0]
    return namespace if dimension == "namespace" else namespace.partition("/")[0]


def _figures_of(walk: _Walk, dimension: str, value: Any, changes: Sequence[Change] | None) -> Figures:
    lookups = [one for one in walk.lookups if _value_of(dimension, one) == value]
    kept = None if changes is None or dimension == "rack" else [c for c in changes if _value_of(dimension, c) == value]
    hour = _hour(lookups[0].ts) if dimension == "hour" else None
    figures = measure_all(walk.happenings(lookups, kept, hour))
    if dimension in ("rack", "hour"):
        figures.pop(("agreement_ratio", None))
    if dimension != "hour":
        figures.pop(("overload_ratio", None), None)
    return figures


class _Exclusive(_Walk):
    """Every lookup asks the load manager for the owner of its bundle."""

    def __init__(self, world: _World, policy: Policy, seed: int) -> None:
        super().__init__(world, policy, seed)
        self.owners: list[Row] = []
        self.held: dict[str, Row] = {}
        self.changes: list[Change] = []
        self.weights: dict[str, float] = {}
        self.answers: list[str | None] = []
        self.decided: list[Any] = []
        #: the last grid instant whose load is in the books
        self.last_grid = -(10**18)

    def told(self, by: Sequence[str]) -> Told:
        """Walk and tell."""
        for tick in self.world.ticks:
            self._events(tick)
            if tick.is_grid:
                self._grid_instant(tick)
            for one in tick.lookups:
                self._lookup(tick, one)
            if tick.start >= self.world.scored_from:
                self.note_usage(tick)
            self.decided += self.manager.take_decisions()
        rows = [_decision_row(self, entry.ts_us, entry.decision, entry.count) for entry in self.decided]
        figures = measure_all(self.happenings(self.lookups, self.changes, None))
        return Told(rows, self.owners, figures, self.parts(by, self.changes), self.answers)

    def _events(self, tick: _Tick) -> None:
        self.manager.begin_tick(tick.start)
        if tick.registry is not None:
            roster, self.registered = tick.registry
            self.manager.set_registry(roster, np.array(self.registered))
            self._follow(tick)
        for parent, children in tick.splits:
            if split_bundle(self.boundaries, parent, children):
                self.manager.split(parent, children)
                held = self._end(parent, tick.start, "split")
                for child in children if held else ():
                    self._begin(child, str(held and held["broker"]), tick.start)
        for bundle in tick.unloads:
            if self.manager.ownership.owner(bundle) is not None:
                self.manager.unload(bundle)
                self._follow(tick)
        if tick.restores:
            self.manager.restore({name: broker for name, broker in self.world.initial.items() if self._exists(name)})
            self._follow(tick)

    def _exists(self, bundle: str) -> bool:
        namespace = bundle.rpartition("/")[0]
        known = self.boundaries.get(namespace, [])
        return ends_of(bundle) in list(pairwise(known))

    def _grid_instant(self, tick: _Tick) -> None:
        if tick.start > self.world.start:
            self.cells.append(self.open)
            self.open = []
        self.last_grid = tick.start
        figures = self._load(tick.start)
        self.usage = figures.usage.tolist()
        self.manager.set_load(figures)
        self.manager.shed()
        self._follow(tick)

    def _load(self, now: int) -> LoadFigures:
        """Say what every broker carries by the books of this moment."""
        count = len(self.world.roster)
        micro, seconds = self._bundle_loads(now)
        self.weights = {bundle: load / (MICRO * seconds) for bundle, load in micro.items()}
        owners = {bundle: self._owner(bundle) for bundle in {*micro, *self._topic_bundles()}}
        topics = [0] * count
        for bundle, found in self._topic_bundles().items():
            owner = owners[bundle]
            if owner is not None:
                topics[owner] += found
        is_known = bool(self.cells) or self.world.bundles is not None
        if self.world.loads is None and not is_known:
            nothing = np.full(count, np.nan)
            return LoadFigures(nothing, nothing, np.array(topics), [()] * count)
        top = [_top(owner, owners, self.weights) for owner in range(count)]
        if self.world.loads is not None:
            usage, load, reported = self.reported_at(now)
            return LoadFigures(
                np.array(usage), np.array(load), np.array(reported), top, self.demand_by_label(), "reported"
            )
        sums = [sum(micro[bundle] for bundle in micro if owners[bundle] == number) for number in range(count)]
        carried = [sums[n] / (MICRO * seconds) if self.registered[n] else float("nan") for n in range(count)]
        usage = [carried[n] / float(self.manager.capacity[n]) for n in range(count)]
        return LoadFigures(np.array(usage), np.array(carried), np.array(topics), top, self.demand_by_label())

    def _bundle_loads(self, now: int) -> tuple[dict[str, int], float]:
        loads: dict[str, int] = defaultdict(int)
        if self.world.bundles is None:
            for one in self.window():
                loads[self.bundle(one)] += one.micro
            return loads, float(self.world.section.session_s)
        points: dict[tuple[str, int], int] = {}
        for row in self.world.bundles:
            namespace, (low, high) = row["bundle"].rpartition("/")[0], ends_of(row["bundle"])
            if row["ts"] <= now and {low, high} <= self.world.all_boundaries.get(namespace, set()):
                points = {at: v for at, v in points.items() if at[0] != namespace or not low <= at[1] < high}
                stats = bundle_stats_from_json(row["stats"])
                points[namespace, low] = round((stats.msg_throughput_in + stats.msg_throughput_out) * MICRO)
        for (namespace, hashed), micro in points.items():
            loads[bundle_at(namespace, hashed, self.boundaries[namespace])] += micro
        return loads, 1.0

    def _topic_bundles(self) -> dict[str, int]:
        found: dict[str, int] = defaultdict(int)
        for _, namespace, hashed in self.world.topics:
            found[bundle_at(namespace, hashed, self.boundaries[namespace])] += 1
        return found

    def _owner(self, bundle: str) -> int | None:
        pinned = pinned_broker(bundle.rpartition("/")[0])
        if pinned is None:
            return self.manager.ownership.owner(bundle)
        number = self.world.roster.number(pinned)
        return number if number is not None and self.registered[number] else None

    def _lookup(self, tick: _Tick, one: Demand) -> None:
        bundle = self.bundle(one)
        options = LookupOptions(
            read_only=one.read_only, advertised_listener_name=one.listener, properties=one.properties
        )
        assigned = self.manager.assign(one.topic, bundle, options, client=one.client, ts_us=one.ts)
        self._follow(tick)
        self.open.append(one)
        answer = None if assigned is None else assigned.broker
        self.answers.append(answer)
        if tick.start >= self.world.scored_from:
            number = None if answer is None else self.manager.roster.number(answer)
            broker = None if number is None else self.manager.roster[number]
            self.lookups.append(_counted(self.world, one, broker, 1.0))

    def _follow(self, tick: _Tick) -> None:
        for change in self.manager.take_changes():
            if change.broker is None:
                self._end(change.bundle, change.ts_us, change.cause)
                continue
            broker = self.world.roster[change.broker].id
            self._begin(change.bundle, broker, change.ts_us)
            if tick.start >= self.world.scored_from:
                source = None if change.source is None else self.world.roster[change.source].id
                unit, weight = self.world.unit_of(change.bundle), self._weight(change.bundle)
                self.changes.append(
                    Change(self.world.name, change.ts_us, unit, source, broker, change.cause, change.decided, weight)
                )

    def _weight(self, bundle: str) -> float:
        # Bundles that came of a split since the last grid instant are weighed by what lies in them.
        micro, seconds = self._bundle_loads(self.last_grid)
        return micro[bundle] / (MICRO * seconds)

    def _begin(self, bundle: str, broker: str, ts: int) -> None:
        self.held[bundle] = {"bundle": bundle, "broker": broker, "from": ts, "to": None, "ended_by": None}
        self.owners.append(self.held[bundle])

    def _end(self, bundle: str, ts: int, cause: str) -> Row | None:
        held = self.held.pop(bundle, None)
        if held is not None:
            held["to"], held["ended_by"] = ts, cause
        return held


def _top(owner: int, owners: Mapping[str, int | None], weights: Mapping[str, float]) -> list[BundleLoad]:
    found = [
        BundleLoad(bundle, weight)
        for bundle, weight in weights.items()
        if weight > 0 and owners[bundle] == owner and not is_system_namespace(bundle.rpartition("/")[0])
    ]
    return sorted(found, key=lambda entry: (entry.load, entry.bundle))


def _counted(world: _World, one: Demand, broker: Broker | None, count: float) -> Lookup:
    logged = world.roster_id(one.logged) or one.logged
    return Lookup(
        world.name, one.ts, world.unit(one), broker, one.client_class, one.micro / MICRO, logged=logged, count=count
    )


def _decision_row(walk: _Walk, ts: int, decision: Any, count: int) -> Row:
    return {
        "ts": ts,
        "bundle": decision.bundle,
        "key": None,
        "broker": decision.broker,
        "propensity": decision.propensity,
        "declined": None if decision.declined is None else str(decision.declined),
        "count": count,
        "weight": None,
        "odds": sorted(decision.odds.items()),
        "rejected": sorted((str(reason), found) for reason, found in decision.rejected.items()),
        "margin": decision.margin,
        "ties": decision.ties,
        "fingerprint": decision.fingerprint,
    }


class _Shared(_Walk):
    """Every lookup is decided alone; those of one tick and decision key are told together."""

    def __init__(self, world: _World, policy: Policy, seed: int) -> None:
        super().__init__(world, policy, seed)
        #: expected micro-units served by broker in each complete cell, and in the open one
        self.served: list[list[float]] = []
        self.serving = [0.0] * len(world.roster)

    def told(self, by: Sequence[str]) -> Told:
        """Walk and tell."""
        for tick in self.world.ticks:
            self.manager.begin_tick(tick.start)
            if tick.registry is not None:
                roster, self.registered = tick.registry
                self.manager.set_registry(roster, np.array(self.registered))
            for parent, children in tick.splits:
                split_bundle(self.boundaries, parent, children)
            if tick.is_grid:
                self._grid_instant(tick)
            self._lookups(tick)
            if tick.start >= self.world.scored_from:
                self.note_usage(tick)
        return Told(self.decisions, [], measure_all(self.happenings(self.lookups, None, None)), self.parts(by, None))

    def _grid_instant(self, tick: _Tick) -> None:
        count = len(self.world.roster)
        if tick.start > self.world.start:
            self.cells.append(self.open)
            self.served.append(self.serving)
            self.open, self.serving = [], [0.0] * count
        figures = self._load(tick.start)
        self.usage = figures.usage.tolist()
        self.manager.set_load(figures)

    def _load(self, now: int) -> LoadFigures:
        count, nothing = len(self.world.roster), [()] * len(self.world.roster)
        if self.world.loads is not None:
            usage, load, topics = self.reported_at(now)
            arrays = np.array(usage), np.array(load), np.array(topics)
            return LoadFigures(*arrays, nothing, self.demand_by_label(), "reported")
        if not self.served:
            unknown = np.full(count, np.nan)
            return LoadFigures(unknown, unknown, np.zeros(count, np.int64), nothing)
        section = self.world.section
        micro = [0.0] * count
        for cell in self.served[-(section.session_s // section.tick_s) :]:
            micro = [a + b for a, b in zip(micro, cell, strict=True)]
        carried = [micro[n] / (section.session_s * MICRO) if self.registered[n] else float("nan") for n in range(count)]
        usage = [carried[n] / float(self.manager.capacity[n]) for n in range(count)]
        return LoadFigures(
            np.array(usage), np.array(carried), np.zeros(count, np.int64), nothing, self.demand_by_label()
        )

    def _lookups(self, tick: _Tick) -> None:
        groups: dict[str, list[tuple[Demand, Any, str]]] = defaultdict(list)
        for one in tick.lookups:
            self.open.append(one)
            pinned = pinned_broker(one.namespace)
            if pinned is not None:
                self._pinned(tick, one, pinned)
            elif not any(self.registered):
                self._spread(tick, one, {})
            else:
                ballot, key, fingerprint = self._decide(one)
                groups[key].append((one, ballot, fingerprint))
                self._spread(tick, one, ballot.odds)
        total = [0.0] * len(self.serving)
        for key in sorted(groups):
            self._group(tick, key, groups[key])
            micro, odds = sum(one.micro for one, _, _ in groups[key]), groups[key][0][1].odds
            # Sums of floats depend on their order, and the order is that of the keys.
            total = [
                sum_ + micro * odds.get(broker.id, 0.0) for sum_, broker in zip(total, self.world.roster, strict=True)
            ]
        self.serving = [a + b for a, b in zip(self.serving, total, strict=True)]
        for number, broker in enumerate(self.world.roster):
            if self.registered[number]:
                self.serving[number] += sum(
                    one.micro for one in tick.lookups if pinned_broker(one.namespace) == broker.id
                )

    def _decide(self, one: Demand) -> tuple[Any, str, str]:
        options = LookupOptions(
            read_only=one.read_only, advertised_listener_name=one.listener, properties=one.properties
        )
        request = request_of(one.topic, self.bundle(one), options, one.client)
        ballot, fingerprint = self.manager.decide(request)
        fields = dict(zip(self.policy.request_reads, self.policy.decision_key(request), strict=True))
        return ballot, json.dumps(fields, ensure_ascii=False), fingerprint

    def _group(self, tick: _Tick, key: str, group: Sequence[tuple[Demand, Any, str]]) -> None:
        ballot, fingerprint = group[0][1], group[0][2]
        assert all(other == ballot for _, other, _ in group)
        self.decisions.append(
            {
                "ts": tick.start,
                "bundle": None,
                "key": key,
                "broker": None,
                "propensity": None,
                "declined": None if ballot.declined is None else str(ballot.declined),
                "count": len(group),
                "weight": sum(one.micro for one, _, _ in group) / MICRO,
                "odds": sorted(ballot.odds.items()),
                "rejected": sorted((str(reason), found) for reason, found in ballot.rejected.items()),
                "margin": ballot.margin,
                "ties": ballot.ties,
                "fingerprint": fingerprint,
            }
        )

    def _pinned(self, tick: _Tick, one: Demand, pinned: str) -> None:
        number = self.world.roster.number(pinned)
        is_in = number is not None and self.registered[number]
        self._spread(tick, one, {pinned: 1.0} if is_in else {})

    def _spread(self, tick: _Tick, one: Demand, odds: Mapping[str, float]) -> None:
        if tick.start < self.world.scored_from:
            return
        if not odds:
            self.lookups.append(_counted(self.world, one, None, 1.0))
        for broker, count in odds.items():
            number = self.manager.roster.number(broker)
            assert number is not None
            self.lookups.append(_counted(self.world, one, self.manager.roster[number], count))


def _of_the_log(world: _World) -> Figures:
    """Return the figures of the brokers the log says were answered."""
    lookups: list[Lookup] = []
    for tick, roster in world.rosters():
        for one in tick.lookups if tick.start >= world.scored_from else ():
            number = roster.number(world.roster_id(one.logged) or "")
            lookups.append(_counted(world, one, None if number is None else roster[number], 1.0))
    cells = world.registered_cells()
    everyone = dict.fromkeys(cells, frozenset(broker.id for broker in world.roster))
    # The log may name a broker that was not registered; only balance is about registered ones alone.
    registered = [
        one for one in lookups if one.broker is None or one.broker.id in cells[world.name, world.cell(one.ts)]
    ]
    figures = measure_all(_log_happenings(world, lookups, everyone))
    balance = measure_all(_log_happenings(world, registered, cells))
    figures.update({name: value for name, value in balance.items() if name[0].startswith("imbalance")})
    figures.pop(("agreement_ratio", None))
    return figures


def _log_happenings(
    world: _World, lookups: Sequence[Lookup], cells: Mapping[tuple[str, int], frozenset[str]]
) -> Happenings:
    return Happenings(
        lookups=lookups,
        changes=None,
        registered=cells,
        cell_us=world.section.balance_s * MICRO,
        topology=world.topology,
        bytes_per_weight=world.section.bytes_per_weight,
        window_s=world.section.window_s,
    )
