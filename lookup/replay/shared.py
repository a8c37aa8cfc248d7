"""Replays one policy over one cluster under shared ownership: every lookup is decided alone, and counted by its odds.

Nothing is rolled: a key's lookups are spread over the brokers by the odds it was given, so every figure is an
expectation.

Source: `design/architecture.md` section 6.2 (shared).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO, LoadFigures, no_load
from lookup.engine.manager import LoadManager
from lookup.engine.policy import Ballot, Policy
from lookup.replay.bundle_map import BundleMap
from lookup.replay.counted import Counted
from lookup.replay.expected import ExpectedTally
from lookup.replay.keys import KeyCoder, key_text
from lookup.replay.loads import Demand, ReportedLoads
from lookup.replay.ordering import DayRows
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.requests import RequestMaker
from lookup.replay.tally import CellLedger
from lookup.replay.walk import Registry, Tick, walk_ticks
from lookup.replay.work import WorkDir

__all__ = ["KeyDecision", "SharedReplay"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyDecision:
    """What a policy said to one decision key in one tick, and to how many lookups."""

    ts_us: int
    key: str
    ballot: Ballot
    fingerprint: str
    count: int
    #: weight of these lookups
    weight: float


class SharedReplay:
    """One policy, cluster and seed."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan, policy: Policy, *, seed: int, work: WorkDir) -> None:
        timeline, n_brokers = cluster.timeline, len(cluster.timeline.roster)
        self.manager = LoadManager(
            policy,
            cluster.name,
            timeline.roster,
            seed=seed,
            namespaces=run.namespaces,
            topology=run.topology,
            assumed_capacity=cluster.assumed_capacity,
        )
        self.decisions: list[KeyDecision] = []
        self._cluster, self._run, self._work, self._policy = cluster, run, work, policy
        self._bundles = BundleMap(cluster.words.atoms, timeline.initial_splits)
        self._requests = RequestMaker(cluster, self._bundles)
        self._texts: dict[int, str] = {}
        self._keys = KeyCoder(cluster, policy, self._bundles)
        self._registry = Registry(timeline.roster)
        self._reported = None if cluster.loads is None else ReportedLoads(work.read(cluster.loads)[0], n_brokers)
        self._window: deque[Floats] = deque(maxlen=run.session_us // run.tick_us)
        self._served = np.zeros(n_brokers)
        self._usage = np.full(n_brokers, np.nan)
        self._spans: list[tuple[DayRows, int, int]] = []
        self._tally, self._cells = ExpectedTally(cluster, run), CellLedger(run, n_brokers)
        self._has_pinned = bool((cluster.pinned != -1).any())
        self._scored_from = int(timeline.bounds[0]) + run.warmup_us

    def run(self) -> Counted:
        """Walk all ticks; return what was counted."""
        for tick in walk_ticks(self._cluster, self._run, self._work):
            self._events(tick)
            if tick.is_grid:
                self._grid_instant(tick)
            is_scored = tick.start_us >= self._scored_from
            if tick.high > tick.low:
                self._lookups(tick, is_scored=is_scored)
            self._spans.append((tick.rows, tick.low, tick.high))
            if is_scored:
                self._cells.add(tick.start_us, tick.end_us, self._registry.registered, self._usage)
        return self._counted()

    def _events(self, tick: Tick) -> None:
        self.manager.begin_tick(tick.start_us)
        if tick.events.registry is not None:
            self._registry.apply(tick.events.registry)
            self.manager.set_registry(*tick.events.registry)
        split = [self._bundles.split(parent, children) for parent, children in tick.events.splits]
        if any(split):
            self._keys.refresh()
            self._texts = {}

    def _grid_instant(self, tick: Tick) -> None:
        n_brokers = len(self._registry.registered)
        if tick.number:
            self._window.append(self._served)
            self._served = np.zeros(n_brokers)
        demand = Demand(self._cluster, self._spans, self._run.tick_us / MICRO)
        self._spans = []
        if self._reported is not None:
            usage, load, topics = self._reported.at(tick.start_us)
            figures = LoadFigures(usage, load, topics, [()] * n_brokers, demand, "reported")
        elif not self._window:
            figures = no_load(n_brokers)
        else:
            micro = np.sum(self._window, axis=0)
            load = np.where(self._registry.registered, micro / self._run.session_us, np.nan)
            topics = np.zeros(n_brokers, dtype=np.int64)
            figures = LoadFigures(load / self.manager.capacity, load, topics, [()] * n_brokers, demand)
        self._usage = figures.usage
        self.manager.set_load(figures)

    def _lookups(self, tick: Tick, *, is_scored: bool) -> None:
        codes, bound = self._keys.codes(tick.rows, tick.low, tick.high)
        span, n_brokers = slice(tick.low, tick.high), len(self._registry.registered)
        weights = tick.rows.column("weight", span)
        pinned = self._cluster.pinned[tick.rows.column("atom", span)] if self._has_pinned else np.full(len(codes), -1)
        asked = pinned == -1
        counts = np.bincount(codes[asked], minlength=bound)
        micro = np.bincount(codes[asked], weights=weights[asked], minlength=bound)
        odds = np.zeros((bound, n_brokers + 1))
        firsts = tick.low + _first_rows(codes, asked, bound)
        if self._registry.registered.any():
            # In order of the keys' texts, so that sums of floats do not depend on how keys are numbered.
            present = sorted(
                np.flatnonzero(counts).tolist(), key=lambda code: self._text(tick.rows, code, int(firsts[code]))
            )
            for code in present:
                odds[code] = self._decided(tick, code, int(firsts[code]), (int(counts[code]), float(micro[code])))
            spread = micro[present, None] * odds[present, :-1]
            self._served += np.add.accumulate(spread, axis=0)[-1] if present else 0.0
        else:
            odds[counts > 0, -1] = 1.0
        for broker in self._pinned_brokers(pinned):
            self._served[broker] += weights[pinned == broker].sum()
        if is_scored:
            self._tally.add(tick, self._registry.epoch, codes, odds, self._answers(pinned))

    def _text(self, rows: DayRows, code: int, row: int) -> str:
        known = self._texts.get(code)
        if known is None:
            known = self._texts[code] = key_text(self._policy, self._requests.request(rows, row))
        return known

    def _decided(self, tick: Tick, code: int, row: int, demand: tuple[int, float]) -> Floats:
        ballot, fingerprint = self.manager.decide(self._requests.request(tick.rows, row))
        count, micro = demand
        self.decisions.append(KeyDecision(tick.start_us, self._texts[code], ballot, fingerprint, count, micro / MICRO))
        return _spread(ballot, len(self._registry.registered))

    def _pinned_brokers(self, pinned: NDArray[np.int64] | NDArray[np.int32]) -> list[int]:
        found = np.unique(pinned[pinned >= 0]).tolist() if self._has_pinned else []
        return [broker for broker in found if self._registry.registered[broker]]

    def _answers(self, pinned: NDArray[np.int64] | NDArray[np.int32]) -> Ints | None:
        """Return who answers where no policy is asked: -1 nobody, -2 a policy is asked; None: always a policy."""
        if not self._has_pinned:
            return None
        registered = np.append(self._registry.registered, False)
        known = np.where((pinned >= 0) & registered[np.maximum(pinned, -1)], pinned, -1)
        return np.where(pinned == -1, -2, known).astype(np.int64)

    def _counted(self) -> Counted:
        return Counted(
            cluster=self._cluster,
            run=self._run,
            rosters=self._registry.rosters,
            groups=self._tally.finish(),
            cells=self._cells,
            changes=None,
            logged=self._tally.logged,
            agreed=self._tally.agreed,
            has_usage=self._cluster.assumed_capacity is None,
        )


def _spread(ballot: Ballot, n_brokers: int) -> Floats:
    """Return the odds by broker number; the last column is that of no answer."""
    odds = np.zeros(n_brokers + 1)
    if ballot.numbers:
        odds[list(ballot.numbers)] = list(ballot.odds.values())
    else:
        odds[-1] = 1.0
    return odds


def _first_rows(codes: Ints, asked: NDArray[np.bool_], bound: int) -> Ints:
    """Return the place of the first row that asks with each key, shape (bound,)."""
    places = np.flatnonzero(asked)[::-1]
    firsts = np.zeros(bound, dtype=np.int64)
    firsts[codes[places]] = places
    return firsts
