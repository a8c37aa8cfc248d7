"""Shared ownership: every lookup is decided alone, and those of one tick and decision key are told together."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lookup.engine.policy import Policy
from lookup.model.load import Load
from lookup.model.names import pinned_broker
from lookup.model.request import LookupOptions, request_of
from tests.replay.oracle.bundles import split_bundle
from tests.replay.oracle.reading import MICRO, Demand
from tests.replay.oracle.walking import Told, Walk, counted
from tests.replay.oracle.world import Tick, World
from tests.score.oracle import measure_all

__all__ = ["SharedWalk"]


class SharedWalk(Walk):
    """Every lookup is decided alone; those of one tick and decision key are told together."""

    def __init__(self, world: World, policy: Policy, seed: int) -> None:
        super().__init__(world, policy, seed)
        #: expected micro-units served by broker in each complete cell, and in the open one
        self.served: list[list[float]] = []
        self.serving = [0.0] * len(world.roster)

    def told(self, by: Sequence[str]) -> Told:
        """Walk and tell."""
        for tick in self.world.ticks:
            self.manager.begin_tick(tick.start)
            self.register(tick)
            for parent, children in tick.splits:
                split_bundle(self.boundaries, parent, children)
            if tick.is_grid:
                self._grid_instant(tick)
            self._lookups(tick)
            if tick.start >= self.world.scored_from:
                self.note_usage(tick)
        return Told(self.decisions, [], measure_all(self.happenings(self.lookups, None, None)), self.parts(by, None))

    def _grid_instant(self, tick: Tick) -> None:
        count = len(self.world.roster)
        if tick.start > self.world.start:
            self.cells.append(self.open)
            self.served.append(self.serving)
            self.open, self.serving = [], [0.0] * count
        self.show(self._load(tick.start), [0] * count, tick.start)

    def _load(self, now: int) -> Load:
        count, nothing = len(self.world.roster), [()] * len(self.world.roster)
        if self.world.loads is not None:
            found = self.reported_at(now, [0] * count)
            return replace(found, rates=None, long_term_rates=found.rates)
        if not self.served:
            unknown = np.full(count, np.nan)
            return Load(unknown, unknown, np.zeros(count, np.int64), nothing)
        section = self.world.section
        micro = [0.0] * count
        for cell in self.served[-(section.session_s // section.tick_s) :]:
            micro = [a + b for a, b in zip(micro, cell, strict=True)]
        carried = [micro[n] / (section.session_s * MICRO) if self.registered[n] else float("nan") for n in range(count)]
        usage = [carried[n] / float(self.manager.capacity[n]) for n in range(count)]
        return Load(np.array(usage), np.array(carried), np.zeros(count, np.int64), nothing, self.demand_by_label())

    def _lookups(self, tick: Tick) -> None:
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

    def _group(self, tick: Tick, key: str, group: Sequence[tuple[Demand, Any, str]]) -> None:
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

    def _pinned(self, tick: Tick, one: Demand, pinned: str) -> None:
        number = self.world.roster.number(pinned)
        is_in = number is not None and self.registered[number]
        self._spread(tick, one, {pinned: 1.0} if is_in else {})

    def _spread(self, tick: Tick, one: Demand, odds: Mapping[str, float]) -> None:
        if tick.start < self.world.scored_from:
            return
        if not odds:
            self.lookups.append(counted(self.world, one, None, 1.0))
        for broker, count in odds.items():
            number = self.manager.roster.number(broker)
            assert number is not None
            self.lookups.append(counted(self.world, one, self.manager.roster[number], count))
