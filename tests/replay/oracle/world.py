"""What of a cluster is the same for every policy: its ticks and events, brokers, boundaries, facts of the log."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lookup.model.broker import Broker, BrokerLookupData, Location, Roster
from lookup.model.load_data import NamespaceBundleStats, bundle_stats_from_json
from lookup.model.time import to_us
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.resolve import broker_intervals, namespace_policies, topology
from tests.replay.oracle.bundles import bundle_at, children_of, ends_of, holds, split_bundle
from tests.replay.oracle.reading import MICRO, Demand, Row, read_table
from tests.score.oracle import Change, Happenings, Lookup

__all__ = ["Tick", "World", "is_usable"]


@dataclass
class Tick:
    """A stretch of time, what happens at its start, and its lookups."""

    start: int
    end: int
    is_grid: bool
    lookups: list[Demand] = field(default_factory=list)
    registry: tuple[Roster, list[bool]] | None = None
    splits: list[tuple[str, list[str]]] = field(default_factory=list)
    unloads: list[str] = field(default_factory=list)
    restores: bool = False


class World:
    """One cluster: its ticks, brokers, events and reported loads."""

    def __init__(self, settings: EvaluationFile, name: str, demand: list[Demand]) -> None:
        self.settings, self.name, self.demand = settings, name, demand
        self.section = settings.evaluation
        self.namespaces, self.topology = namespace_policies(settings), topology(settings)
        self.tick_us = self.section.tick_s * MICRO
        first, last = demand[0].ts, demand[-1].ts
        self.start, self.end = first // self.tick_us * self.tick_us, (last // self.tick_us + 1) * self.tick_us
        self.scored_from = self.start + self.section.warmup_s * MICRO
        if self.section.scored_from is not None:
            self.scored_from = max(self.scored_from, to_us(self.section.scored_from))
        self.history = [event for event in self._table(settings.inputs.ownership) if is_usable(event)]
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

    def _ticks(self, first: int) -> list[Tick]:
        exogenous = [event for event in self.history if _is_exogenous(event) and first < event["ts"] < self.end]
        registry = [event for event in self.registrations if event["ts"] < self.end]
        cuts = {event["ts"] for event in exogenous} | {event["ts"] for event in registry if event["ts"] >= self.start}
        starts = sorted({*range(self.start, self.end, self.tick_us), *cuts})
        ticks = [
            Tick(start, end, start % self.tick_us == 0)
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

    def _epochs(self, registry: Sequence[Row], ticks: Sequence[Tick], starts: Sequence[int]) -> None:
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

    def rosters(self) -> Iterator[tuple[Tick, Roster]]:
        """Yield every tick with the roster that holds in it."""
        roster = self.roster
        for tick in self.ticks:
            roster = tick.registry[0] if tick.registry else roster
            yield tick, roster

    def happenings(
        self,
        lookups: Sequence[Lookup],
        registered: Mapping[tuple[str, int], frozenset[str]],
        *,
        changes: Sequence[Change] | None = None,
        usage_s: Sequence[tuple[float, float]] | None = None,
    ) -> Happenings:
        """Put together what metrics are about."""
        return Happenings(
            lookups=lookups,
            changes=changes,
            registered=registered,
            cell_us=self.section.balance_s * MICRO,
            topology=self.topology,
            bytes_per_weight=self.section.bytes_per_weight,
            window_s=self.section.window_s,
            usage_s=usage_s,
            isolation=self.namespaces.isolation,
        )

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
        return one.namespace == namespace and {low, high} <= known and holds(low, high, one.hashed)

    def carried(
        self, now: int, figure: Callable[[NamespaceBundleStats], float], boundaries: Mapping[str, list[int]]
    ) -> Counter[str]:
        """Return what the latest rows of BUNDLES say that bundles carry, in millionths.

        Args:
            boundaries: of the bundles of that moment, by namespace.
        """
        loads, points = Counter[str](), dict[tuple[str, int], int]()
        for row in self.bundles or ():
            namespace, (low, high) = row["bundle"].rpartition("/")[0], ends_of(row["bundle"])
            if row["ts"] <= now and self.is_known(row):
                points = {at: v for at, v in points.items() if at[0] != namespace or not low <= at[1] < high}
                points[namespace, low] = round(figure(bundle_stats_from_json(row["stats"])) * MICRO)
        for (namespace, hashed), micro in points.items():
            loads[bundle_at(namespace, hashed, boundaries[namespace])] += micro
        return loads

    def is_known(self, row: Row) -> bool:
        """Return whether a row of BUNDLES is of a bundle that occurs."""
        namespace, ends = row["bundle"].rpartition("/")[0], ends_of(row["bundle"])
        return set(ends) <= self.all_boundaries.get(namespace, set())


def is_usable(event: Row) -> bool:
    """Tell whether a row of OWNERSHIP says anything: a split leaves two, an owner has a name."""
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
