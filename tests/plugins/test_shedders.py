"""What every registered shedder keeps in random clusters, cycle after cycle in the engine.

After the OptimizationVerifier of LinkedIn's Cruise Control: whatever a shedder is, some things are never to happen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.engine.cycles import CycleReport
from lookup.engine.ledger import LoadFigures
from lookup.engine.manager import LoadManager
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.hooks import Shedder
from lookup.model import (
    Broker,
    BundleLoad,
    Candidates,
    ClusterView,
    CycleLabel,
    CycleOutcome,
    CycleReason,
    LookupOptions,
    LookupRequest,
    Probe,
    Reason,
    Roster,
    Ruling,
    Unload,
)
from lookup.model.request import request_of
from lookup_policies.random import Random
from lookup_policies.transfer import Transfer

TICK_US = 60_000_000
CAPACITY = 100.0
#: Sums of loads in another order differ in their last bits.
MARGIN = 1e-6

SHEDDERS: list[Shedder] = [found() for _, found in sorted(load_plugins().classes["shedders"].items())]
#: The same without the patience that would let most cycles of a short run pass.
OTHERS: list[Shedder] = [
    Transfer(hit_count=0, cool_down_s=0, target_std=0.05),
    Transfer(hit_count=0, cool_down_s=0, target_std=0.05, debug=True),
    Transfer(hit_count=0, cool_down_s=0, target_std=0.0, quirks="intended"),
    Transfer(hit_count=0, cool_down_s=0, transfer=False, target_std=0.1),
]


@dataclass(frozen=True)
class Only:
    """A filter that keeps a broker for the namespaces it is open to."""

    name: ClassVar[str] = "only"
    reason: ClassVar[Reason] = Reason.FILTERED
    reads: ClassVar[frozenset[str]] = frozenset({"namespace"})

    closed: frozenset[tuple[str, str]] = frozenset()

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[bool]:
        """Look it up."""
        return [(broker.id, request.namespace) not in self.closed for broker in brokers]


@dataclass(frozen=True)
class Restless:
    """A shedder that would move every bundle to every broker, twice."""

    name: ClassVar[str] = "restless"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load"})

    def propose(
        self, view: ClusterView, memory: MutableMapping[str, Any]
    ) -> Generator[Unload | Probe, Ruling, CycleOutcome]:
        """Propose whatever can be written down."""
        moved = 0
        bundles = [entry.bundle for top in view.top_bundles for entry in top]
        for bundle, source, destination in product(
            bundles, view.brokers.ids, [*view.brokers.ids, "nobody:1", None] * 2
        ):
            yield Probe(Unload(bundle, source, destination))
            moved += (yield Unload(bundle, source, destination)).accepted
        label = CycleLabel.SUCCESS if moved else CycleLabel.SKIP
        return CycleOutcome(label, CycleReason.OVERLOADED if moved else CycleReason.NO_BUNDLES)


@dataclass(frozen=True)
class Heard:
    """A shedder that notes what another one proposes, and what it is told."""

    name: ClassVar[str] = "heard"

    inner: Shedder
    said: list[tuple[Unload | Probe, Ruling]] = field(default_factory=list, compare=False)

    @property
    def reads(self) -> frozenset[str]:
        """Return what the other reads."""
        return frozenset(getattr(self.inner, "reads", ()))

    def propose(
        self, view: ClusterView, memory: MutableMapping[str, Any]
    ) -> Generator[Unload | Probe, Ruling, CycleOutcome]:
        """Propose what the other proposes."""
        cycle = self.inner.propose(view, memory)
        try:
            proposal = next(cycle)
            while True:
                ruling = yield proposal
                self.said.append((proposal, ruling))
                proposal = cycle.send(ruling)
        except StopIteration as ended:
            outcome: CycleOutcome = ended.value
            return outcome


@dataclass(frozen=True)
class Town:
    """A cluster and what its bundles weigh, tick by tick; bundles without owner get one before every tick."""

    n_brokers: int
    registered: tuple[bool, ...]
    #: namespace and first owner by bundle's number
    bundles: tuple[tuple[str, int], ...]
    #: weight per second by tick, then bundle
    loads: tuple[tuple[float, ...], ...]
    closed: frozenset[tuple[str, str]]
    #: brokers without report in the first tick
    silent: frozenset[int] = frozenset()
    capacities: tuple[float, ...] = ()
    seed: int = 1

    @property
    def roster(self) -> Roster:
        """Return the brokers."""
        return Roster([Broker(f"b{number}:8080") for number in range(self.n_brokers)])

    def names(self) -> list[str]:
        """Return the bundles' names."""
        return [f"{namespace}/{place:#010x}_{place + 1:#010x}" for place, (namespace, _) in enumerate(self.bundles)]

    def figures(self, tick: int, manager: LoadManager) -> LoadFigures:
        """Return what brokers report of the bundles they own."""
        tops: list[list[BundleLoad]] = [[] for _ in range(self.n_brokers)]
        for load, bundle in sorted(zip(self.loads[tick], self.names(), strict=True)):
            owner = manager.ownership.owner(bundle)
            if owner is not None and load:
                tops[owner].append(BundleLoad(bundle, load))
        sums = np.array([math.fsum(entry.load for entry in top) for top in tops])
        sums[~manager.registered] = np.nan
        if tick == 0:
            sums[list(self.silent)] = np.nan
        capacities = np.array(self.capacities or [CAPACITY] * self.n_brokers)
        return LoadFigures(sums / capacities, sums, np.zeros(self.n_brokers, dtype=np.int64), tops)

    def managed(self, shedder: Shedder) -> LoadManager:
        """Return a load manager at work here."""
        policy = Policy("tested", Random(), filters=(Only(self.closed),), shedder=shedder)
        manager = LoadManager(policy, "town", self.roster, seed=self.seed)
        manager.set_registry(self.roster, np.array(self.registered))
        owners = zip(self.names(), self.bundles, strict=True)
        manager.restore({name: f"b{first}:8080" for name, (_, first) in owners})
        return manager


@st.composite
def towns(draw: st.DrawFn, *, alike: bool = False, everybody: bool = False) -> Town:
    """Draw a town: brokers that are away, silent or closed to a namespace, bundles of very different weight.

    Args:
        alike: all brokers have one capacity.
        everybody: all brokers are registered and report.
    """
    n_brokers = draw(st.integers(1, 7))
    numbers = st.integers(0, n_brokers - 1)
    bundles = draw(st.lists(st.tuples(st.sampled_from(["t/a", "t/b", "pulsar/system"]), numbers), max_size=25))
    weights = st.sampled_from([0.0, 1.0, 5.0]) | st.floats(0, 60)
    one = st.lists(weights, min_size=len(bundles), max_size=len(bundles)).map(tuple)
    closed = st.frozensets(st.tuples(numbers.map("b{}:8080".format), st.sampled_from(["t/a", "t/b"])), max_size=4)
    flags = st.just(True) if everybody else st.sampled_from([True, True, True, False])
    return Town(
        n_brokers,
        tuple(draw(flags) for _ in range(n_brokers)),
        tuple(bundles),
        tuple(draw(st.lists(one, min_size=1, max_size=4))),
        draw(closed),
        frozenset() if everybody else draw(st.frozensets(numbers, max_size=1)),
        () if alike else tuple(draw(st.sampled_from([20.0, 100.0, 400.0])) for _ in range(n_brokers)),
        draw(st.integers(0, 3)),
    )


@st.composite
def pairs(draw: st.DrawFn) -> Town:
    """Draw two or three brokers, all rather full of bundles that hardly fit: swaps are what helps, or does not."""
    n_brokers = draw(st.integers(2, 3))
    bundles = [("t/a", number) for number in range(n_brokers) for _ in range(draw(st.integers(1, 4)))]
    loads = draw(st.lists(st.integers(1, 60).map(float), min_size=len(bundles), max_size=len(bundles)))
    sums = [
        math.fsum(load for load, (_, owner) in zip(loads, bundles, strict=True) if owner == number)
        for number in range(n_brokers)
    ]
    capacities = tuple(total / draw(st.floats(0.6, 1.0)) for total in sums)
    return Town(n_brokers, (True,) * n_brokers, tuple(bundles), (tuple(loads),), frozenset(), capacities=capacities)


def _alike(town: Town) -> Town:
    return replace(town, capacities=())


@dataclass(frozen=True)
class Told:
    """What happened in one cycle."""

    report: CycleReport[Unload]
    said: Sequence[tuple[Unload | Probe, Ruling]]
    figures: LoadFigures
    owners: dict[str, str | None]


def _run(town: Town, shedder: Shedder) -> tuple[LoadManager, list[Told]]:
    heard = Heard(shedder)
    manager = town.managed(heard)
    told: list[Told] = []
    for tick in range(len(town.loads)):
        manager.begin_tick(tick * TICK_US)
        for name in town.names():
            if manager.ownership.owner(name) is None:
                manager.select(request_of(None, name, LookupOptions()), tick * TICK_US)
        figures = town.figures(tick, manager)
        manager.set_load(figures)
        before = len(heard.said)
        owners = _owners(town, manager)
        report = manager.shed()
        assert report is not None
        told.append(Told(report, heard.said[before:], figures, owners))
    return manager, told


def _owners(town: Town, manager: LoadManager) -> dict[str, str | None]:
    numbers = ((name, manager.ownership.owner(name)) for name in town.names())
    return {name: None if number is None else town.roster[number].id for name, number in numbers}


def _accepted(said: Iterable[tuple[Unload | Probe, Ruling]]) -> tuple[Unload, ...]:
    return tuple(proposal for proposal, ruling in said if isinstance(proposal, Unload) and ruling.accepted)


every_shedder = pytest.mark.parametrize("shedder", [*SHEDDERS, *OTHERS, Restless()], ids=repr)


@every_shedder
@settings(max_examples=60)
@given(town=towns())
def test_every_proposal_is_accepted_or_rejected_and_counted(shedder: Shedder, town: Town) -> None:
    """What was said adds up to what the report has."""
    for told in _run(town, shedder)[1]:
        asked = [ruling for proposal, ruling in told.said if isinstance(proposal, Probe) and ruling.accepted]

        assert told.report.accepted == _accepted(told.said)
        assert len(told.said) == len(told.report.accepted) + sum(told.report.rejected.values()) + len(asked)
        assert (told.report.outcome.label is CycleLabel.SUCCESS) is bool(told.report.accepted)


@every_shedder
@settings(max_examples=60)
@given(town=towns())
def test_no_bundle_moves_twice_in_a_cycle_and_only_its_owner_gives_it_up(shedder: Shedder, town: Town) -> None:
    """Nor are bundles of system namespaces touched, nor those that were moved within the last half hour."""
    moved_before: set[str] = set()
    for told in _run(town, shedder)[1]:
        moved = [unload.bundle for unload in told.report.accepted]

        assert len(moved) == len(set(moved))
        assert not moved_before & set(moved)
        assert not any(bundle.startswith("pulsar/system/") for bundle in moved)
        assert all(told.owners[unload.bundle] == unload.source for unload in told.report.accepted)
        moved_before.update(moved)


@every_shedder
@settings(max_examples=60)
@given(town=towns())
def test_nothing_lands_on_a_broker_that_is_away_or_filtered(shedder: Shedder, town: Town) -> None:
    """Neither by a shedder's transfer nor by the lookup after an unload."""
    manager, run = _run(town, shedder)
    homes = [(unload.bundle, unload.destination) for told in run for unload in told.report.accepted]
    ended = _owners(town, manager)
    moved = {bundle for bundle, _ in homes}
    away = {f"b{number}:8080" for number in range(town.n_brokers) if not town.registered[number]}

    for bundle, broker in [*homes, *((bundle, ended[bundle]) for bundle in moved)]:
        assert broker not in away
        assert (broker, bundle.rpartition("/")[0]) not in town.closed


@every_shedder
@settings(max_examples=30)
@given(town=towns())
def test_equal_seeds_give_equal_runs(shedder: Shedder, town: Town) -> None:
    """Reports, owners and memory; and what is remembered survives JSON."""
    one, other = _run(town, shedder), _run(town, shedder)

    assert [told.report for told in one[1]] == [told.report for told in other[1]]
    assert _owners(town, one[0]) == _owners(town, other[0])
    assert one[0].memory == other[0].memory == json.loads(json.dumps(one[0].memory))


def _deviation(figures: LoadFigures, unloads: Iterable[Unload], ids: Sequence[str]) -> float:
    """Return the deviation of usage of brokers alike once the unloads took place, by the loads of what moved."""
    loads = {entry.bundle: entry.load for top in figures.top_bundles for entry in top}
    load = figures.broker_load.copy()
    for unload in unloads:
        load[ids.index(unload.source)] -= loads[unload.bundle]
        load[ids.index(str(unload.destination))] += loads[unload.bundle]
    return float(np.std(load / CAPACITY))


@pytest.mark.parametrize("shedder", OTHERS[:3], ids=repr)
@settings(max_examples=200)
@given(town=towns(alike=True, everybody=True) | pairs().map(_alike))
def test_transfers_between_brokers_alike_even_usage_out(shedder: Transfer, town: Town) -> None:
    """Whatever the model says of it, quirks or not: usage by the loads that moved deviates no more than before."""
    for told in _run(town, shedder)[1]:
        before = _deviation(told.figures, (), town.roster.ids)
        after = _deviation(told.figures, told.report.accepted, town.roster.ids)

        assert after <= before + MARGIN


@pytest.mark.parametrize("quirks", ["upstream", "intended"])
@settings(max_examples=200)
@given(town=towns() | pairs(), most=st.integers(1, 3))
def test_an_accepted_transfer_never_raises_the_modelled_deviation(quirks: Any, town: Town, most: int) -> None:
    """In any cluster as intended; in Pulsar's way where brokers are alike and debug mode makes the model complete."""
    shedder = replace(OTHERS[2], quirks=quirks, debug=True, brokers_per_cycle=most)  # type: ignore[type-var]  # a dataclass
    if quirks == "upstream":
        town = _alike(town)
    for told in _run(town, shedder)[1]:
        outcome = told.report.outcome
        if outcome.deviation is not None and outcome.modelled_deviation is not None:
            assert outcome.modelled_deviation <= outcome.deviation + MARGIN


def test_the_suite_knows_every_shedder() -> None:
    """It takes them from the registry."""
    assert {"transfer", "threshold"} <= {shedder.name for shedder in SHEDDERS}


def test_towns_do_shed() -> None:
    """The tests above are about something: in a town like theirs each shedder without patience moves bundles."""
    town = Town(3, (True,) * 3, (("t/a", 0),) * 6, ((20.0,) * 6,) * 2, frozenset())

    assert all(sum(len(told.report.accepted) for told in _run(town, shedder)[1]) for shedder in OTHERS)
