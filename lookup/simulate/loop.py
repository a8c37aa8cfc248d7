"""The closed loop: minute by minute a policy places, sheds and splits, and its own doing is the next minute's load.

A minute is: events, load reports, the shedder, the splitter, then a lookup for every bundle without owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import LoadFigures
from lookup.engine.manager import LoadManager
from lookup.engine.policy import Policy
from lookup.model.broker import Broker, BrokerLookupData, Roster
from lookup.model.request import LookupOptions
from lookup.model.view import BundleLoad
from lookup.simulate.averages import LongRun
from lookup.simulate.bundles import BundleTable, MinuteLoad
from lookup.simulate.load import MIB
from lookup.simulate.reports import reports_of
from lookup.simulate.scenario import Scenario
from lookup.simulate.trend import Sample, Trend

__all__ = ["run_policy"]

_MINUTE_US = 60 * 1_000_000
#: Long enough after the epoch that no grace period reaches back beyond it.
_START_US = 24 * 60 * _MINUTE_US

Floats = NDArray[np.float64]


def run_policy(scenario: Scenario, policy: Policy) -> Trend:
    """Run a scenario against one policy.

    Raises:
        PolicyError: where a part of the policy fails and it says stop, or breaks its protocol.
    """
    return Trend(policy.name, scenario.window, tuple(_Loop(scenario, policy).samples()))


def _at_us(minute: int) -> int:
    return _START_US + minute * _MINUTE_US


class _Loop:
    def __init__(self, scenario: Scenario, policy: Policy) -> None:
        self._scenario = scenario
        self._table = BundleTable(scenario.namespaces, scenario.seed, with_topics=policy.splitter is not None)
        groups = [(name, group) for group in scenario.brokers for name in group.ids]
        self._roster = Roster(
            [
                Broker(name, BrokerLookupData(properties=group.properties), group.capacity * MIB)
                for name, group in groups
            ]
        )
        self._away = {name for name, group in groups if not group.present}
        self._manager = LoadManager(policy, "scenario", self._roster, seed=scenario.seed)
        self._busy = np.array([group.busy for _, group in groups])
        self._long_run = LongRun()
        self._options = LookupOptions(properties=scenario.properties)
        self._reports = reports_of(scenario, policy, _START_US)

    def samples(self) -> Iterator[Sample]:
        """Yield what every minute came to."""
        manager = self._manager
        manager.begin_tick(_START_US)
        manager.set_registry(self._roster, self._registered())
        manager.restore(self._first_owners())
        manager.take_changes()
        for minute in range(self._scenario.minutes):
            manager.begin_tick(_at_us(minute))
            self._happen(minute)
            load = self._table.at(minute)
            self._long_run.take(load.rates)
            manager.set_load(self._reports.shown(self._figures(load), manager.ownership.bundles(), _at_us(minute)))
            shed, split = manager.shed(), manager.split_bundles()
            splits = () if split is None else split.accepted
            for one in splits:
                self._table.split(one)
            unowned = self._look_up(load, has_split=bool(splits))
            sheds = 0 if shed is None else len(shed.accepted)
            yield self._sample(minute, load, sheds=sheds, splits=len(splits), unowned=unowned)

    def _happen(self, minute: int) -> None:
        due = [event for event in self._scenario.events if event.at == minute]
        for event in due:
            self._away = (self._away | set(event.leave)) - set(event.join)
            for topics in self._table.topics:
                topics.change(event)
        if any(event.leave or event.join for event in due):
            self._manager.set_registry(self._roster, self._registered())

    def _registered(self) -> NDArray[np.bool_]:
        return np.array([broker.id not in self._away for broker in self._roster], dtype=np.bool_)

    def _first_owners(self) -> Mapping[str, str]:
        owners = (broker for broker, count in self._scenario.owners.items() for _ in range(count))
        return dict(zip(self._table.names(), owners, strict=False))

    def _look_up(self, load: MinuteLoad, *, has_split: bool) -> int:
        # Answers how many bundles nobody serves; only a minute with splits has other bundles than its load says.
        names = self._table.names() if has_split else load.loads
        unowned = [name for name in names if self._manager.ownership.owner(name) is None]
        answers = [self._manager.assign(load.examples.get(name), name, self._options) for name in unowned]
        return answers.count(None)

    def _figures(self, load: MinuteLoad) -> LoadFigures:
        count = len(self._roster)
        loads, rates, lasting, topics = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count, np.int64)
        long_run = self._long_run.rates
        bundles: list[list[tuple[float, str]]] = [[] for _ in range(count)]
        for name, carried in load.loads.items():
            owner = self._manager.ownership.owner(name)
            if owner is not None:
                loads[owner] += carried
                rates[owner] += load.rates[name]
                lasting[owner] += long_run.get(name, 0.0)
                topics[owner] += load.topics[name]
                bundles[owner].append((carried, name))
        registered = self._manager.registered
        broker_load, message_rate, long_rate = np.where(registered, (loads, rates, lasting), np.nan)
        return LoadFigures(
            usage=broker_load / self._manager.capacity + self._busy,
            broker_load=broker_load,
            topics=topics,
            top_bundles=[
                [BundleLoad(name, carried, load.rates[name]) for carried, name in sorted(owned) if carried > 0]
                for owned in bundles
            ],
            source="reported",
            traffic=load.traffic,
            message_rate=message_rate,
            long_term_rate=long_rate,
            long_term_bundle_rates=long_run,
        )

    def _matched(self, figures: LoadFigures) -> float:
        wanted = self._scenario.properties
        carried = np.nan_to_num(figures.broker_load)
        if not wanted or not carried.sum():
            return float("nan")
        has_all = [all(one.property_of(key) == value for key, value in wanted.items()) for one in self._roster]
        return float(carried[np.array(has_all)].sum() / carried.sum())

    def _sample(self, minute: int, load: MinuteLoad, *, sheds: int, splits: int, unowned: int) -> Sample:
        manager = self._manager
        figures = self._figures(self._table.at(minute))
        changes = manager.take_changes()
        # A bundle that was taken and given again within the minute moved once; `source` is the owner before.
        owners = ((change.bundle, change.source, change.broker) for change in changes)
        moved = [(name, old, new) for name, old, new in owners if None not in (old, new) and old != new]
        return Sample(
            minute=minute,
            usage=figures.usage[manager.registered],
            moved=tuple((old, new) for _, old, new in moved if old is not None and new is not None),
            sheds=sheds,
            # Of bundles as the minute began: one that moved may have been split since, and its children did not move.
            moved_load=sum(load.loads[name] for name, _, _ in moved) / MIB,
            splits=splits,
            unowned=unowned,
            idle=int((figures.broker_load == 0.0).sum()),
            matched=self._matched(figures),
            by_broker=dict(zip(self._roster.ids, figures.usage.tolist(), strict=True)),
        )
