"""Run the closed loop. A policy places, sheds and splits each minute, and so changes the next minute's load.

A minute consists of events, load reports, the shedder, the splitter, then a lookup for every bundle without owner. The
publication of load by brokers is in `lookup.engine.reporting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.cycle_sums import CycleSums
from lookup.engine.cycles import CycleReport
from lookup.engine.leader import BundleMeans, TrafficRates
from lookup.engine.ledger import LazyTopBundles
from lookup.engine.manager import LoadManager
from lookup.engine.policy import Policy
from lookup.engine.reporting import ReportBoard
from lookup.model import Assigned, Broker, BrokerLookupData, Load, LookupOptions, Roster, Unanswered, Unload
from lookup.simulation.load import MIB, BundleTable, MinuteLoad
from lookup.simulation.scenario import Scenario
from lookup.simulation.trend import MinuteSample, Trend

__all__ = ["MINUTE_US", "START_US", "ClosedLoop", "FreshReports", "reports_of", "run_policy"]

MINUTE_US = 60 * 1_000_000
#: Long enough after the epoch that no grace period reaches back beyond it.
START_US = 24 * 60 * MINUTE_US

Floats = NDArray[np.float64]


def reports_of(scenario: Scenario, policy: Policy, start_us: int) -> FreshReports | ReportBoard:
    """Build the reports of a scenario's brokers under a policy.

    The interval of reports is the policy's cadence, and the weight of history is the scenario's.

    Args:
        start_us: time of the first minute, µs since the Unix epoch.
    """
    n_brokers = len(scenario.broker_ids)
    if scenario.reports == "fresh":
        return FreshReports(n_brokers, scenario.history)
    return ReportBoard(n_brokers, start_us, replace(policy.cadence, history=scenario.history))


class FreshReports:
    """Reports of brokers that publish in every minute. Usage is smoothed over the minutes before.

    Args:
        n_brokers: brokers of the scenario, registered or not.
        history: share of the previous usage in the next, ratio in [0, 1].
    """

    def __init__(self, n_brokers: int, history: float) -> None:
        self._usage: Floats = np.full(n_brokers, np.nan)
        self._history = history

    def shown(self, figures: Load, bundles: NDArray[np.int64], now_us: int) -> Load:
        """Build the visible figures of this minute.

        Args:
            bundles: number of bundles each broker owns, shape (n_brokers,).
            now_us: µs since the Unix epoch, later than in the call before.
        """
        smoothed = self._history * self._usage + (1.0 - self._history) * figures.usage
        # A broker that comes back starts without history, since the usage of absent brokers is NaN.
        self._usage = np.where(np.isnan(self._usage), figures.usage, smoothed)
        return replace(figures, usage=self._usage.copy(), max_usage=figures.usage)


def run_policy(scenario: Scenario, policy: Policy) -> Trend:
    """Run a scenario against one policy.

    Raises:
        PolicyError: if a part of the policy fails and its `on_error` is to stop, or it breaks its protocol.
    """
    loop = ClosedLoop(scenario, policy)
    samples = tuple(loop.samples())
    cycles = None if policy.shedder is None else CycleSums.of(policy.shedder.name, loop.cycles)
    return Trend(policy.name, scenario.window, samples, cycles, loop.manager.failures)


class ClosedLoop:
    """A run's brokers, bundles and load manager driven by the policy. A minute is `report`, `change`, `look_up`."""

    def __init__(self, scenario: Scenario, policy: Policy) -> None:
        self._scenario = scenario
        self.table = BundleTable(scenario.namespaces, scenario.seed, with_topics=policy.splitter is not None)
        groups = [(name, group) for group in scenario.brokers for name in group.ids]
        self._roster = Roster(
            [
                Broker(name, BrokerLookupData(properties=group.properties), group.capacity * MIB)
                for name, group in groups
            ]
        )
        self._away = {name for name, group in groups if not group.present}
        self.manager = LoadManager(policy, "scenario", self._roster, seed=scenario.seed)
        self._busy = np.array([group.busy for _, group in groups])
        # Only the modular manager drops bundles that no report names, and only its shedders use a bundle's short mean.
        self._is_modular = policy.destination_first
        self._means = BundleMeans(forgets=self._is_modular)
        #: of the policy's shedder, one a minute
        self.cycles: list[CycleReport[Unload]] = []
        self._options = LookupOptions(properties=scenario.properties)
        #: properties of clients, if the policy reads the origins of lookups. All clients of a scenario are in one place
        self._sent = scenario.properties if policy.asks_origins else {}
        self._reports = reports_of(scenario, policy, START_US)
        manager = self.manager
        manager.begin_tick(START_US)
        self._register()
        first_owners = (broker for broker, count in self._scenario.owners.items() for _ in range(count))
        # The zip is not strict, since bundles without an owner in the scenario are looked up in the first minute.
        manager.restore(dict(zip(self.table.names(), first_owners, strict=False)))
        # Owners at the start are no moves.
        manager.take_changes()

    def samples(self) -> Iterator[MinuteSample]:
        """Run minute by minute and yield a sample of each."""
        for minute in range(self._scenario.minutes):
            load = self.report(minute)
            unloads, splits = self.change()
            # Only a minute with splits has other bundles than its load names.
            answers = self.look_up(load, self.table.names() if splits else load.loads)
            unowned = sum(isinstance(answer, Unanswered) for answer in answers)
            yield self._sample_minute(minute, load, unloads=unloads, splits=splits, unowned=unowned)

    def report(self, minute: int) -> MinuteLoad:
        """Begin a minute, apply its events, and show the manager its load."""
        manager, now_us = self.manager, START_US + minute * MINUTE_US
        manager.begin_tick(now_us)
        self._apply_events(minute)
        load = self.table.at(minute)
        self._report_bundles(load)
        manager.set_load(self._reports.shown(self._compute_figures(load), manager.ownership.bundles(), now_us))
        return load

    def change(self) -> tuple[int, int]:
        """Let the policy shed and split, and return how many bundles it has unloaded, and how many it has split."""
        manager = self.manager
        shed, split = manager.shed(), manager.split_bundles()
        unloads, splits = 0, () if split is None else split.accepted
        if shed is not None:
            self.cycles.append(shed)
            unloads = len(shed.accepted)
        for accepted in splits:
            self.table.split(accepted)
            # Bundles that the policy unloads have no owner now.
            unloads += sum(manager.ownership.owner(child) is None for child in accepted.children)
        return unloads, len(splits)

    def look_up(self, load: MinuteLoad, bundles: Iterable[str]) -> list[Assigned | Unanswered]:
        """Look up every bundle that has no owner, in the order given."""
        waiting = [name for name in bundles if self.manager.ownership.owner(name) is None]
        return [self.manager.assign(load.examples.get(name), name, self._options) for name in waiting]

    def _apply_events(self, minute: int) -> None:
        events = [event for event in self._scenario.events if event.at == minute]
        for event in events:
            self._away = (self._away | set(event.leave)) - set(event.join)
            for topics in self.table.topics:
                topics.change(event)
        # Done once, after all events, since a broker that leaves and joins in the same minute has not been away.
        if any(event.leave or event.join for event in events):
            self._register()

    def _register(self) -> None:
        registered = np.array([broker.id not in self._away for broker in self._roster], dtype=np.bool_)
        self.manager.set_registry(self._roster, registered)

    def _report_bundles(self, load: MinuteLoad) -> None:
        owned = self.manager.ownership
        self._means.take(
            {
                name: TrafficRates(load.rates[name], carried)
                for name, carried in load.loads.items()
                if not self._is_modular or owned.owner(name) is not None
            }
        )

    def _compute_figures(self, load: MinuteLoad) -> Load:
        count = len(self._roster)
        loads, rates, long_rates = np.zeros(count), np.zeros(count), np.zeros(count)
        topics = np.zeros(count, np.int64)
        means = self._means
        bundles: list[list[tuple[float, str, float]]] = [[] for _ in range(count)]
        for name, carried in load.loads.items():
            owner = self.manager.ownership.owner(name)
            if owner is not None:
                loads[owner] += carried
                rates[owner] += load.rates[name]
                topics[owner] += load.traffic.stats[name].topics
                mean = means.long.get(name)
                if mean is not None:
                    long_rates[owner] += mean.messages
                traffic = means.short.get(name) if self._is_modular else TrafficRates(load.rates[name], carried)
                # A bundle that came since the last report is not known yet.
                if traffic is not None:
                    bundles[owner].append((traffic.bytes, name, traffic.messages))
        registered = self.manager.registered
        throughput, rates, long_rates = np.where(registered, (loads, rates, long_rates), np.nan)
        return Load(
            usage=throughput / self.manager.capacity + self._busy,
            throughput=throughput,
            topics=topics,
            # Bundles are ranked when read, since figures are added up twice a minute, and only shedders read bundles.
            top_bundles=LazyTopBundles(count, bundles.__getitem__),
            origins={
                key: {name: {value: carried} for name, carried in load.loads.items()}
                for key, value in self._sent.items()
            },
            source="reported",
            traffic=load.traffic,
            bundle_unit="bytes/s",
            rates=rates,
            long_term_rates=long_rates,
            long_term_bundle_rates={name: mean.messages for name, mean in means.long.items()},
            long_term_bundle_throughputs={name: mean.bytes for name, mean in means.long.items()},
        )

    def _measure_matches(self, figures: Load) -> float:
        """Compute the share of the load on brokers with the same properties as clients, NaN if they send none."""
        sent = self._scenario.properties
        carried = np.nan_to_num(figures.throughput)
        if not sent or not carried.sum():
            return float("nan")
        has_all = [all(broker.property_of(key) == value for key, value in sent.items()) for broker in self._roster]
        return float(carried[np.array(has_all)].sum() / carried.sum())

    def _sample_minute(self, minute: int, load: MinuteLoad, *, unloads: int, splits: int, unowned: int) -> MinuteSample:
        manager = self.manager
        # The table is read again, since splits and moves of this minute have changed the loads of brokers.
        after = self.table.at(minute)
        figures = self._compute_figures(after)
        changes = manager.take_changes()
        # A bundle that was taken and given again within the minute moved once, and `source` is its owner before.
        numbers = {broker: number for number, broker in enumerate(self._roster.ids)}
        moved = [
            (change.bundle, numbers[change.source], numbers[change.broker])
            for change in changes
            if change.source is not None and change.broker is not None and change.source != change.broker
        ]
        return MinuteSample(
            minute=minute,
            usage=figures.usage[manager.registered],
            moved=tuple((old, new) for _, old, new in moved),
            unloads=unloads,
            # Bundles as the minute began, one of which may have been split since it moved, or children of a split.
            moved_load=sum(load.loads.get(name, after.loads.get(name, 0.0)) for name, _, _ in moved) / MIB,
            splits=splits,
            unowned=unowned,
            idle=int((figures.throughput == 0.0).sum()),
            matched=self._measure_matches(figures),
            by_broker=dict(zip(self._roster.ids, figures.usage.tolist(), strict=True)),
        )
