"""Every lookup asks the load manager for the owner of its bundle; loads are sums over lookups."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from lookup.engine.ownership import OwnershipChange
from lookup.engine.policy import Policy
from lookup.model.decision import Assigned
from lookup.model.load import BundleLoad, Load
from lookup.model.load_data import NamespaceBundleStats
from lookup.model.names import pinned_broker
from lookup.model.request import LookupOptions
from tests.replay.oracle.bundles import bundle_at, ends_of, split_bundle
from tests.replay.oracle.reading import MICRO, Demand, Row
from tests.replay.oracle.walking import Told, Walk, counted
from tests.replay.oracle.world import Tick, World
from tests.score.oracle import Change, measure_all

__all__ = ["ExclusiveWalk", "throughput_of"]


class ExclusiveWalk(Walk):
    """Every lookup asks the load manager for the owner of its bundle."""

    def __init__(self, world: World, policy: Policy, seed: int) -> None:
        super().__init__(world, policy, seed)
        self.owners: list[Row] = []
        #: row of OWNERS that lasts, by bundle with an owner
        self.held: dict[str, Row] = {}
        self.changes: list[Change] = []
        self.weights: dict[str, float] = {}
        self.answers: list[str | None] = []
        self.decided: list[Any] = []
        self.cycles: list[Row] = []
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
        rows = [_decision_row(entry.ts_us, entry.decision, entry.count) for entry in self.decided]
        figures = measure_all(self.happenings(self.lookups, self.changes, None))
        return Told(rows, self.owners, figures, self.parts(by, self.changes), self.answers, self.cycles)

    def _events(self, tick: Tick) -> None:
        self.manager.begin_tick(tick.start)
        self.register(tick)
        self._follow(tick)
        for parent, children in tick.splits:
            if split_bundle(self.boundaries, parent, children):
                self.manager.split(parent, children)
                held = self._end(parent, tick.start, "split")
                for child in children if held is not None else ():
                    self._begin(child, held["broker"], tick.start)
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

    def _grid_instant(self, tick: Tick) -> None:
        if tick.start > self.world.start:
            self.cells.append(self.open)
            self.open = []
        self.last_grid = tick.start
        names = [bundle_at(space, low, known) for space, known in self.boundaries.items() for low in known[:-1]]
        owners = [self.manager.ownership.owner(bundle) for bundle in names]
        bundles = [owners.count(number) for number in range(len(self.world.roster))]
        self.show(self._load(tick.start), bundles, tick.start)
        report = self.manager.shed()
        self._follow(tick)
        if report is not None:
            outcome = report.outcome
            row = {"ts": tick.start, "role": "shedder", "label": str(outcome.label), "reason": str(outcome.reason)}
            row |= {"average": outcome.average, "deviation": outcome.deviation}
            row |= {"modelled_deviation": outcome.modelled_deviation, "over": outcome.over, "excess": outcome.excess}
            row |= {"accepted": len(report.accepted)}
            refused = sorted((str(reason), count) for reason, count in report.rejected.items())
            self.cycles.append(row | {"rejected": refused})

    def _load(self, now: int) -> Load:
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
            return Load(nothing, nothing, np.array(topics), [()] * count)
        rates = self._bundle_rates(now)
        unit: Any = "weight/s" if self.world.bundles is None else "bytes/s"
        # Nobody has looked up a bundle without weight, which says nothing; one without bytes is idle.
        shown = {bundle: weight for bundle, weight in self.weights.items() if weight > 0}
        if unit == "bytes/s":
            every = [bundle_at(space, low, known) for space, known in self.boundaries.items() for low in known[:-1]]
            owners |= {bundle: self._owner(bundle) for bundle in every}
            shown = {**dict.fromkeys(every, 0.0), **shown}
        top = [_top(owner, owners, shown, rates or {}) for owner in range(count)]
        if self.world.loads is not None:
            return self._rated(replace(self.reported_at(now, topics), top_bundles=top, bundle_unit=unit), rates)
        sums = [sum(micro[bundle] for bundle in micro if owners[bundle] == number) for number in range(count)]
        carried = [sums[n] / (MICRO * seconds) if self.registered[n] else float("nan") for n in range(count)]
        usage = [carried[n] / float(self.manager.capacity[n]) for n in range(count)]
        arrays = map(np.array, (usage, carried, topics))
        figures = Load(*arrays, top, self.demand_by_label(), bundle_unit=unit)
        if rates is not None:
            micros = self.world.carried(now, _rate_of, self.boundaries)
            sent = [sum(micros[bundle] for bundle in micros if self._owner(bundle) == n) / MICRO for n in range(count)]
            figures = replace(figures, rates=np.where(np.array(self.registered), sent, float("nan")))
        return self._rated(figures, rates)

    def _rated(self, figures: Load, rates: Mapping[str, float] | None) -> Load:
        """Let brokers and bundles be compared in one unit: in messages where both are known, else in loads."""
        if figures.rates is None:
            loads = {bundle: load for bundle, load in self.weights.items() if load > 0}
            return replace(figures, long_term_bundle_rates=loads)
        if rates is None:
            return replace(figures, rates=None, long_term_rates=figures.rates)
        return replace(figures, long_term_bundle_rates={bundle: rate for bundle, rate in rates.items() if rate > 0})

    def _bundle_rates(self, now: int) -> dict[str, float] | None:
        rows = [row for row in self.world.bundles or () if self.world.is_known(row)]
        if not any({"msgRateIn", "msgRateOut"} & json.loads(row["stats"]).keys() for row in rows):
            return None
        return {bundle: micro / MICRO for bundle, micro in self.world.carried(now, _rate_of, self.boundaries).items()}

    def _bundle_loads(self, now: int) -> tuple[dict[str, int], float]:
        loads: dict[str, int] = defaultdict(int)
        if self.world.bundles is None:
            for one in self.window():
                loads[self.bundle(one)] += one.micro
            return loads, float(self.world.section.session_s)
        return self.world.carried(now, throughput_of, self.boundaries), 1.0

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

    def _lookup(self, tick: Tick, one: Demand) -> None:
        bundle = self.bundle(one)
        options = LookupOptions(
            read_only=one.read_only, advertised_listener_name=one.listener, properties=one.properties
        )
        assigned = self.manager.assign(one.topic, bundle, options, client=one.client, ts_us=one.ts)
        self._follow(tick)
        self.open.append(one)
        answer = assigned.broker if isinstance(assigned, Assigned) else None
        self.answers.append(answer)
        if tick.start >= self.world.scored_from:
            number = None if answer is None else self.manager.roster.number(answer)
            broker = None if number is None else self.manager.roster[number]
            self.lookups.append(counted(self.world, one, broker))

    def _follow(self, tick: Tick) -> None:
        """Write down what changed."""
        for change in self.manager.take_changes():
            if change.broker is None:
                self._end(change.bundle, change.ts_us, change.cause, change.reason)
            else:
                self._begin(change.bundle, change.broker, change.ts_us)
            if change.broker is not None or change.cause in ("shed", "admin"):
                self._count(tick, change)

    def _count(self, tick: Tick, change: OwnershipChange) -> None:
        """Note a change for the metrics, after the warm-up."""
        if tick.start < self.world.scored_from:
            return
        self.changes.append(
            Change(
                self.world.name,
                change.ts_us,
                self.world.unit_of(change.bundle),
                change.source,
                change.broker,
                change.cause,
                change.decided,
                self._weight(change.bundle),
                change.bundle,
            )
        )

    def _weight(self, bundle: str) -> float:
        # Bundles that came of a split since the last grid instant are weighed by what lies in them.
        micro, seconds = self._bundle_loads(self.last_grid)
        return micro[bundle] / (MICRO * seconds)

    def _begin(self, bundle: str, broker: str, ts: int) -> None:
        owned: Row = {"bundle": bundle, "broker": broker, "from": ts, "to": None, "state": "Owned"}
        self.held[bundle] = {**owned, "ended_by": None, "reason": None}
        self.owners.append(self.held[bundle])

    def _end(self, bundle: str, ts: int, cause: str, reason: str | None = None) -> Row | None:
        """End the row that lasts, and return it."""
        held = self.held.pop(bundle, None)
        if held is not None:
            held |= {"to": ts, "ended_by": cause, "reason": None if reason is None else str(reason)}
        return held


def throughput_of(stats: NamespaceBundleStats) -> float:
    """Return bytes per second, both ways."""
    return stats.msg_throughput_in + stats.msg_throughput_out


def _rate_of(stats: NamespaceBundleStats) -> float:
    return stats.msg_rate_in + stats.msg_rate_out


def _top(
    owner: int, owners: Mapping[str, int | None], weights: Mapping[str, float], rates: Mapping[str, float]
) -> list[BundleLoad]:
    found = [
        BundleLoad(bundle, weight, rates.get(bundle, 0.0))
        for bundle, weight in weights.items()
        if owners[bundle] == owner
    ]
    return sorted(found, key=lambda entry: (entry.load, entry.bundle))


def _decision_row(ts: int, decision: Any, count: int) -> Row:
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
