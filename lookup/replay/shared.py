"""Replays one policy over one cluster under shared ownership: every lookup is decided alone, and counted by its odds.

Nothing is rolled: a key's lookups are spread over the brokers by the odds it was given, so every figure is an
expectation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ballots import Ballot
from lookup.engine.ledger import MICRO
from lookup.engine.policy import Policy
from lookup.replay.atoms import BundleMap
from lookup.replay.cells import CellLedger
from lookup.replay.counted import Counted
from lookup.replay.days import DayRows
from lookup.replay.expected import ExpectedTally
from lookup.replay.loads import SharedLoads
from lookup.replay.plan import ClusterPlan, RunPlan, new_manager
from lookup.replay.published import Publications
from lookup.replay.records import KeyDecision
from lookup.replay.requests import KeyCoder, RequestMaker, key_text
from lookup.replay.stretches import (
    Classes,
    KeyDemand,
    Stretch,
    StretchCounts,
    classes_of,
    count_clients,
    count_stretch,
    demand_by_key,
)
from lookup.replay.walk import Registry, Tick
from lookup.replay.work import WorkDir

__all__ = ["SharedReplay"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class SharedReplay:
    """One policy, cluster and seed.

    Ticks are taken together as long as nothing happens and no key's odds can change; a policy that reads load or time
    is asked in every tick.
    """

    def __init__(self, cluster: ClusterPlan, run: RunPlan, policy: Policy, *, seed: int, work: WorkDir) -> None:
        timeline, n_brokers = cluster.timeline, len(cluster.timeline.roster)
        self.manager = new_manager(cluster, run, policy, seed)
        self.decisions: list[KeyDecision] = []
        self._cluster, self._run, self._policy = cluster, run, policy
        self._bundles = BundleMap(cluster.words.atoms, timeline.initial_splits)
        self._requests = RequestMaker(cluster, self._bundles)
        self._keys = KeyCoder(cluster, policy, self._bundles)
        self._texts: dict[int, str] = {}
        self._registry = Registry(timeline.roster)
        self._loads = SharedLoads(cluster, run, work)
        self._reports = Publications(cluster, run, policy)
        self._usage = np.full(n_brokers, np.nan)
        #: usage means something, and is counted in every tick
        self._has_usage = cluster.assumed_capacity is None
        self._tally = ExpectedTally(len(cluster.units[0]), run)
        self._cells = CellLedger(run, n_brokers)
        self._has_pinned = bool((cluster.pinned != -1).any())
        self._asks_every_tick = bool(policy.reads & {"view.load", "view.now"})
        self._scored_from = int(timeline.bounds[0]) + run.warmup_us
        self._held: list[Tick] = []

    def day(self, ticks: Sequence[Tick]) -> None:
        """Replay the ticks of one day."""
        for tick in ticks:
            if self._held and self._is_cut(self._held[-1], tick):
                self._settle()
            if not self._held:
                self.manager.begin_tick(tick.start_us)
            self._events(tick)
            self._held.append(tick)
        self._settle()
        self._tally.groups.settle()

    def _is_cut(self, last: Tick, tick: Tick) -> bool:
        """Tell whether a tick cannot be taken together with those before it."""
        events = tick.events
        return (
            self._asks_every_tick
            or events.registry is not None
            or bool(events.splits)
            or (last.start_us >= self._scored_from) != (tick.start_us >= self._scored_from)
            or (bool(self._run.by) and self._cell(last) != self._cell(tick))
        )

    def _events(self, tick: Tick) -> None:
        if tick.events.registry is not None:
            self._registry.apply(tick.events.registry)
            self.manager.set_registry(*tick.events.registry)
            self._reports.leave(~self._registry.registered, tick.start_us)
        split = [self._bundles.split(parent, children) for parent, children in tick.events.splits]
        if any(split):
            self._keys.refresh()
            self._texts = {}

    def _settle(self) -> None:
        """Replay the held ticks: load, decisions, counts."""
        ticks, self._held = self._held, []
        if not ticks:
            return
        if ticks[0].is_grid and self._asks_every_tick:
            figures = self._loads.figures(ticks[0], self.manager.capacity, self._registry.registered)
            nothing = np.zeros(len(self._registry.registered), dtype=np.int64)
            self.manager.set_load(self._reports.shown(figures, nothing, ticks[0].start_us))
        served = np.zeros((len(ticks), len(self._registry.registered)))
        if ticks[-1].high > ticks[0].low:
            served = self._lookups(Stretch(ticks, self._cell(ticks[0]), self._registry.epoch))
        self._follow(ticks, served)

    def _lookups(self, stretch: Stretch) -> Floats:
        """Decide every key of a stretch; return the weight each broker serves in each tick, in micro-units."""
        classes, counts, n_keys = self._classes(stretch)
        if self._has_pinned:
            classes = self._with_pinned(classes, n_keys)
        demand = demand_by_key(counts, classes.key, len(stretch.ticks))
        n_brokers = len(self._registry.registered)
        odds = np.vstack([np.zeros((n_keys, n_brokers + 1)), np.eye(n_brokers + 1)])
        asked = self._asked(stretch, demand, _first_rows(classes, counts, len(odds)), n_keys)
        for code, row in asked.items():
            odds[code] = self._decided(stretch, (self._texts[code], row), demand, demand.places[code])
        odds[:n_keys, -1] = 1.0 - odds[:n_keys, :-1].any(axis=1)
        served = np.zeros((len(stretch.ticks), n_brokers))
        for code in [*asked, *(code for code in demand.places if code >= n_keys)]:
            places = demand.places[code]
            served[demand.tick[places]] += demand.micro[places, None] * odds[code, :-1]
        if stretch.ticks[0].start_us >= self._scored_from:
            self._tally.add(stretch, counts, (classes.key, classes.client), odds, self.manager.roster)
        return served

    def _classes(self, stretch: Stretch) -> tuple[Classes, StretchCounts, int]:
        """Return what a stretch's rows are told apart by, how many there are of each, and how many keys there are."""
        by_client = self._keys.by_client
        if by_client is not None:
            classes, counts = count_clients(self._cluster, stretch)
            return replace(classes, key=by_client[classes.client]), counts, int(by_client.max()) + 1
        codes, bound = self._keys.codes(stretch.rows, stretch.low, stretch.high)
        classes = classes_of(self._cluster, stretch, codes)
        return classes, count_stretch(self._cluster, stretch, classes), bound

    def _with_pinned(self, classes: Classes, n_keys: int) -> Classes:
        """Give each broker that answers without a policy a key of its own, behind those of the policy."""
        # Answer b has the key behind by b, answer -1, nobody, the one behind all brokers.
        answers = self._answers(classes.pinned) % (len(self._registry.registered) + 1)
        return replace(classes, key=np.where(classes.pinned == -1, classes.key, n_keys + answers))

    def _asked(self, stretch: Stretch, demand: KeyDemand, firsts: Ints, n_keys: int) -> dict[int, int]:
        """Return the first row of each key a policy is asked about.

        They come in order of their texts, so that sums of floats do not depend on how keys are numbered.
        """
        if not self._registry.registered.any():
            return {}
        held = {code: int(firsts[code]) for code in demand.places if code < n_keys}
        return {code: held[code] for code in sorted(held, key=lambda code: self._text(stretch.rows, code, held[code]))}

    def _text(self, rows: DayRows, code: int, row: int) -> str:
        known = self._texts.get(code)
        if known is None:
            known = self._texts[code] = key_text(self._policy, self._requests.request(rows, row))
        return known

    def _decided(self, stretch: Stretch, key: tuple[str, int], demand: KeyDemand, places: slice) -> Floats:
        """Decide one key, given by its text and first row; note its decision in every tick that has lookups of it."""
        text, row = key
        ballot, fingerprint = self.manager.decide(self._requests.request(stretch.rows, row))
        starts, weight = stretch.starts[demand.tick[places]], demand.micro[places] / MICRO
        self.decisions.append(KeyDecision(starts, text, ballot, fingerprint, demand.lookups[places], weight))
        return _spread(ballot, len(self._registry.registered))

    def _answers(self, pinned: NDArray[np.int32]) -> Ints:
        """Return who answers for bundles that are pinned: the broker itself while registered, else -1, nobody."""
        registered = np.append(self._registry.registered, False)
        return np.where((pinned >= 0) & registered[np.maximum(pinned, -1)], pinned, -1).astype(np.int64)

    def _follow(self, ticks: Sequence[Tick], served: Floats) -> None:
        """Keep the books of load and of the balance cells, tick by tick."""
        for place, tick in enumerate(ticks):
            if self._has_usage or self._asks_every_tick:
                self._follow_load(tick, served[place])
            if tick.start_us >= self._scored_from:
                usage = self._usage if self._has_usage else None
                self._cells.add(tick.start_us, tick.end_us, self._registry.registered, usage)
                if not self._run.by:
                    self._cells.serve(tick.start_us, served[place])

    def _follow_load(self, tick: Tick, served: Floats) -> None:
        if tick.is_grid:
            self._usage = self._loads.usage(tick, self.manager.capacity, self._registry.registered)
        self._loads.serve(tick, served)

    def _cell(self, tick: Tick) -> int:
        return tick.start_us // self._run.balance_us * self._run.balance_us

    def counted(self) -> Counted:
        """Return what was counted."""
        return Counted(
            cluster=self._cluster,
            run=self._run,
            rosters=self._registry.rosters,
            groups=self._tally.groups.all,
            cells=self._cells,
            changes=None,
            logged=self._tally.logged,
            agreed=self._tally.agreed,
            has_usage=self._has_usage,
        )


def _first_rows(classes: Classes, counts: StretchCounts, n_keys: int) -> Ints:
    """Return the first row of each key, shape (n_keys,); keys without a row have some number behind all rows."""
    firsts = np.full(n_keys, np.iinfo(np.int64).max)
    np.minimum.at(firsts, classes.key, counts.firsts)
    return firsts


def _spread(ballot: Ballot, n_brokers: int) -> Floats:
    """Return the odds by broker number; the last column is that of no answer."""
    odds = np.zeros(n_brokers + 1)
    if ballot.numbers:
        odds[list(ballot.numbers)] = list(ballot.odds.values())
    else:
        odds[-1] = 1.0
    return odds
