"""Replay one policy over one cluster under shared ownership: every lookup is decided alone, and counted by its odds.

Nothing is rolled: a key's lookups are spread over the brokers by the odds it was given, so every figure is an
expectation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.engine.manager import ManagerObserver
from lookup.engine.policy import Policy
from lookup.model.broker import Roster
from lookup.replay.counted import Counted, Groups, GroupSums
from lookup.replay.loads import SharedLoads
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.records import KeyDecision
from lookup.replay.stretches import (
    Classes,
    KeyCoder,
    KeyDemand,
    Stretch,
    StretchCounts,
    classes_of,
    count_clients,
    count_stretch,
    demand_by_key,
    key_text,
)  # fmt: skip
from lookup.replay.walk import PolicyWalk, Tick

__all__ = ["ExpectedTally", "SharedReplay", "StretchQuestion"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ExpectedTally:
    """Adds up expectations over the stretches of one replay.

    If `by` asks for nothing, brokers with the same lookup properties in the same place are counted under the first of
    them: to metrics of lookups they are the same, and there are far fewer.
    """

    def __init__(self, n_units: int, run: RunPlan) -> None:
        self.groups = GroupSums(run)
        self.logged, self.agreed = np.zeros(n_units), np.zeros(n_units)
        self._merges_brokers = not run.by

    def add(self, stretch: Stretch, classes: Classes, counts: StretchCounts, odds: Floats, roster: Roster) -> None:
        """Add a stretch.

        Args:
            odds: by key and broker, the last column for no answer, shape (n_keys, n_brokers + 1).
        """
        keys, logged = classes.key[counts.logged_class], counts.logged_broker
        answered = (1.0 - odds[keys, -1]) * counts.logged
        same = np.where(logged >= 0, odds[keys, logged], 0.0) * counts.logged
        self.logged += np.bincount(counts.logged_unit, weights=answered, minlength=len(self.logged))
        self.agreed += np.bincount(counts.logged_unit, weights=same, minlength=len(self.agreed))
        brokers = np.append(np.arange(odds.shape[1] - 1), -1)
        if self._merges_brokers:
            odds, brokers = _merged(odds, roster)
        keys = classes.key[counts.klass]
        row, column = np.nonzero(odds[keys])
        share = odds[keys[row], column]
        self.groups.add(
            Groups(
                stretch.cell_us,
                stretch.epoch,
                unit=counts.unit[row],
                broker=brokers[column],
                client=classes.client[counts.klass[row]],
                lookups=counts.lookups[row] * share,
                weight=counts.weight[row] * share,
            )
        )


def _merged(odds: Floats, roster: Roster) -> tuple[Floats, Ints]:
    """Return odds by class of alike brokers, and the number of each class's first broker; -1 for no answer."""
    class_of: dict[object, int] = {}
    classes = []
    for broker in roster:
        properties = tuple(sorted(broker.lookup_data.properties.items()))
        looks = properties, broker.property_prefix, broker.location
        classes.append(class_of.setdefault(looks, len(class_of)))
    merged = np.zeros((len(odds), len(class_of) + 1))
    # In the order of the roster, so that sums of floats are the same in every run.
    for number, klass in enumerate([*classes, len(class_of)]):
        merged[:, klass] += odds[:, number]
    return merged, np.array([*(classes.index(klass) for klass in range(len(class_of))), -1])


@dataclass(frozen=True, eq=False)
class StretchQuestion:
    """One stretch as a policy is asked about it: its classes with the policy's keys, their counts and demand."""

    stretch: Stretch
    classes: Classes
    counts: StretchCounts
    demand: KeyDemand
    #: keys of the policy are below it; behind them come those of brokers that answer for pinned bundles
    n_keys: int


class SharedReplay(PolicyWalk):
    """One policy, cluster and seed.

    Ticks are taken together as long as nothing happens and no key's odds can change; a policy that reads load or time
    is asked in every tick.

    Args:
        observer: looks on while the policy works.
    """

    def __init__(
        self,
        cluster: ClusterPlan,
        run: RunPlan,
        policy: Policy,
        *,
        seed: int,
        observer: ManagerObserver | None = None,
    ) -> None:
        super().__init__(cluster, run, policy, seed=seed, observer=observer)
        #: called with the answers to each stretch: the question, the odds by key and broker, the last column for no
        #: answer, and the keys that were asked about, in order; None is not called
        self.on_answers: Callable[[StretchQuestion, Floats, list[int]], None] | None = None
        self.decisions: list[KeyDecision] = []
        self._policy = policy
        self._keys = KeyCoder(cluster, policy, self._bundles)
        #: text of each key that was asked about, by code
        self._texts: dict[int, str] = {}
        self._loads = SharedLoads(cluster, run)
        self._tally = ExpectedTally(len(cluster.units[0]), run)
        self._asks_every_tick = bool(policy.reads & {"view.load", "view.now"})
        #: ticks to be replayed together
        self._pending: list[Tick] = []

    def take(self, ticks: Sequence[Tick]) -> None:
        """Replay the ticks of one slice."""
        self._loads.begin_slice(ticks[0].reports, ticks[0].start_us - self._run.tick_us)
        for tick in ticks:
            if self._pending and self._is_cut(self._pending[-1], tick):
                self._settle()
            if not self._pending:
                self.manager.begin_tick(tick.start_us)
            if tick.events.registry is not None:
                self._begin_epoch(tick, tick.events.registry)
            # In a list: `any` over a generator would skip the splits after the first that changed something.
            changed = [self._bundles.split(parent, children) for parent, children in tick.events.splits]
            if any(changed):
                self._keys.refresh()
                self._texts = {}
            self._pending.append(tick)
        self._settle()
        self._tally.groups.settle()
        self._loads.end_slice(ticks[-1].rows)

    def _is_cut(self, last: Tick, tick: Tick) -> bool:
        """Return whether a tick cannot be taken together with those before it."""
        events, cell_of = tick.events, self._run.cell_of
        return (
            self._asks_every_tick
            or events.registry is not None
            or bool(events.splits)
            or (last.start_us >= self.scored_from) != (tick.start_us >= self.scored_from)
            or (bool(self._run.by) and cell_of(last.start_us) != cell_of(tick.start_us))
        )

    def _settle(self) -> None:
        """Replay the pending ticks: load, decisions, counts."""
        ticks, self._pending = self._pending, []
        if not ticks:
            return
        registered = self._registry.registered
        if ticks[0].is_grid and self._asks_every_tick:
            load = self._loads.figures(ticks[0], self.manager.capacity, registered)
            # No broker owns a bundle.
            self._show(load, np.zeros(len(registered), np.int64), ticks[0].start_us)
        served = np.zeros((len(ticks), len(registered)))
        if ticks[-1].high > ticks[0].low:
            served = self._decide(Stretch(ticks, self._run.cell_of(ticks[0].start_us), self._registry.epoch))
        for tick, micro in zip(ticks, served, strict=True):
            if self._has_usage or self._asks_every_tick:
                if tick.is_grid:
                    self._usage = self._loads.figures(tick, self.manager.capacity, registered).usage
                self._loads.serve(tick, micro)
            if tick.start_us >= self.scored_from:
                self._add_time(tick)
                if not self._run.by:
                    self._cells.serve(tick.start_us, micro)

    def _decide(self, stretch: Stretch) -> Floats:
        """Decide every key of a stretch; return the weight each broker serves in each tick, in micro-units."""
        question = self._question(stretch)
        classes, counts, demand, n_keys = question.classes, question.counts, question.demand, question.n_keys
        n_brokers = len(self._registry.registered)
        odds = np.vstack([np.zeros((n_keys, n_brokers + 1)), np.eye(n_brokers + 1)])
        asked: list[int] = []
        if self._registry.registered.any():
            asked = self._ask(question, odds)
            if self.on_answers is not None:
                self.on_answers(question, odds, asked)
        odds[:n_keys, -1] = 1.0 - odds[:n_keys, :-1].any(axis=1)
        served = np.zeros((len(stretch.ticks), n_brokers))
        for code in [*asked, *(code for code in demand.pairs if code >= n_keys)]:
            pairs = demand.pairs[code]
            served[demand.tick[pairs]] += demand.micro[pairs, None] * odds[code, :-1]
        if stretch.ticks[0].start_us >= self.scored_from:
            self._tally.add(stretch, classes, counts, odds, self.manager.roster)
        return served

    def _question(self, stretch: Stretch) -> StretchQuestion:
        """Divide the rows of a stretch into classes, and count them."""
        by_client = self._keys.by_client
        if by_client is not None:
            classes, counts = count_clients(self._cluster, stretch)
            classes, n_keys = replace(classes, key=by_client[classes.client]), int(by_client.max()) + 1
        else:
            codes, n_keys = self._keys.codes(stretch.rows, stretch.low, stretch.high)
            classes = classes_of(self._cluster, stretch, codes)
            counts = count_stretch(self._cluster, stretch, classes)
        if (classes.pinned != -1).any():
            # A broker that answers without a policy has a key of its own, behind those of the policy: answer b has the
            # key behind by b, answer -1, no broker, the one behind all brokers.
            pinned, registered = classes.pinned, np.append(self._registry.registered, False)
            answers = np.where((pinned >= 0) & registered[np.maximum(pinned, -1)], pinned, -1).astype(np.int64)
            behind = n_keys + answers % len(registered)
            classes = replace(classes, key=np.where(pinned == -1, classes.key, behind))
        return StretchQuestion(stretch, classes, counts, demand_by_key(counts, classes.key, len(stretch.ticks)), n_keys)

    def _ask(self, question: StretchQuestion, odds: Floats) -> list[int]:
        """Ask the policy about every key; write its odds, record its decisions, and return the keys.

        Args:
            odds: by key and broker, the last column for no answer; rows of the policy's keys are written.
        """
        rows, demand = question.stretch.rows, question.demand
        firsts = np.full(len(odds), np.iinfo(np.int64).max)
        np.minimum.at(firsts, question.classes.key, question.counts.firsts)
        asked = {
            code: self._requests.request(rows, int(firsts[code])) for code in demand.pairs if code < question.n_keys
        }
        for code, request in asked.items():
            if code not in self._texts:
                self._texts[code] = key_text(self._policy, request)
        # In the order of their texts, so that sums of floats do not depend on how keys are numbered.
        codes = sorted(asked, key=self._texts.__getitem__)
        for code in codes:
            ballot, fingerprint = self.manager.decide(asked[code])
            pairs = demand.pairs[code]
            starts, weight = question.stretch.starts[demand.tick[pairs]], demand.micro[pairs] / MICRO
            self.decisions.append(
                KeyDecision(starts, self._texts[code], ballot, fingerprint, demand.lookups[pairs], weight)
            )
            if ballot.numbers:
                odds[code, list(ballot.numbers)] = list(ballot.odds.values())
            else:
                odds[code, -1] = 1.0
        return codes

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
