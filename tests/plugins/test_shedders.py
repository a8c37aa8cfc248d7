"""What every shedder keeps with every placement in random clusters, cycle after cycle in the engine.

After the OptimizationVerifier of LinkedIn's Cruise Control: whatever a shedder is, and whatever places what it unloads,
some things are never to happen.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.engine.cycles import CycleReport
from lookup.engine.manager import LoadManager
from lookup.engine.plugins import load_plugins
from lookup.hooks import Selector, Shedder
from lookup.model import (
    Candidates,
    ClusterView,
    CycleLabel,
    CycleOutcome,
    CycleReason,
    LookupOptions,
    LookupRequest,
    Probe,
    Reason,
    Ruling,
    Unload,
)
from lookup.model.load import Load
from lookup.model.request import request_of
from lookup_policies.transfer import Transfer
from tests.plugins.towns import CAPACITY, Town, pairs, towns

TICK_US = 60_000_000
#: Sums of loads in another order differ in their last bits.
MARGIN = 1e-6

# One that asks a class in Java needs the class: `tests/java`.
SHEDDERS: list[Shedder] = [
    found() for name, found in sorted(load_plugins().classes["shedders"].items()) if name != "java"
]
#: Pulsar's strategies of both load managers, and the one without any.
PLACEMENTS: list[Selector] = [
    load_plugins().find("selectors", name)()
    for name in (
        "least-resource-usage",
        "round-robin",
        "least-long-term-message-rate",
        "least-resource-usage-with-weight",
        "avg-placement",
        "random",
    )
]
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
        bundles = [entry.bundle for top in view.load.top_bundles for entry in top]
        places = [*view.brokers.ids, "nobody:1", None]
        for bundle, source, destination, back in product(bundles, view.brokers.ids, places, (False, True)):
            unload = Unload(bundle, source, destination, in_exchange=back)
            yield Probe(unload)
            moved += (yield unload).accepted
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


def _alike(town: Town) -> Town:
    return replace(town, capacities=())


#: Ids of owners by bundle.
Owners = dict[str, str | None]


@dataclass(frozen=True)
class Told:
    """What happened in one cycle."""

    report: CycleReport[Unload]
    said: Sequence[tuple[Unload | Probe, Ruling]]
    figures: Load
    #: ids of the brokers that were registered
    there: frozenset[str]
    #: owners when the cycle began, after it, and at every step before it in the same tick
    owners: Owners
    after: Owners
    steps: Sequence[Owners]


def _run(town: Town, shedder: Shedder, placement: Selector = PLACEMENTS[-1]) -> tuple[LoadManager, list[Told]]:
    heard = Heard(shedder)
    manager = town.managed(heard, placement, Only(town.closed))
    told: list[Told] = []
    for tick in range(len(town.loads)):
        manager.begin_tick(tick * TICK_US)
        steps = [_owners(town, manager)]
        manager.set_registry(town.roster, town.there(tick))
        steps.append(_owners(town, manager))
        for name in town.names():
            if manager.ownership.owner(name) is None:
                manager.select(request_of(None, name, LookupOptions()), tick * TICK_US)
        figures = town.figures(tick, manager)
        manager.set_load(figures)
        before = len(heard.said)
        owners = _owners(town, manager)
        report = manager.shed()
        assert report is not None
        there = frozenset(one.id for one, good in zip(town.roster, manager.registered, strict=True) if good)
        steps += [owners, after := _owners(town, manager)]
        told.append(Told(report, heard.said[before:], figures, there, owners, after, steps))
    return manager, told


def _owners(town: Town, manager: LoadManager) -> Owners:
    numbers = ((name, manager.ownership.owner(name)) for name in town.names())
    return {name: None if number is None else town.roster[number].id for name, number in numbers}


def _accepted(said: Iterable[tuple[Unload | Probe, Ruling]]) -> tuple[Unload, ...]:
    return tuple(proposal for proposal, ruling in said if isinstance(proposal, Unload) and ruling.accepted)


def _named(part: Any) -> str:
    return f"{part.name}-{part.quirks}" if part in OTHERS else str(part.name)


@pytest.mark.parametrize("placement", PLACEMENTS, ids=_named)
@pytest.mark.parametrize("shedder", [*SHEDDERS, *OTHERS, Restless()], ids=_named)
@settings(max_examples=16)
@given(town=towns())
def test_every_cycle_keeps_what_must_hold(shedder: Shedder, placement: Selector, town: Town) -> None:
    """Proposals add up, bundles move once and only to where they may, and equal seeds give equal runs."""
    manager, cycles = _run(town, shedder, placement)
    again, cycles_again = _run(town, shedder, placement)
    moved_before: set[str] = set()
    for told in cycles:
        _assert_proposals_add_up(told)
        _assert_only_owners_give_up(told, moved_before)
        _assert_nothing_lands_where_it_must_not(told, town)
        moved_before |= {unload.bundle for unload in told.report.accepted}

    assert [told.report for told in cycles] == [told.report for told in cycles_again]
    assert _owners(town, manager) == _owners(town, again)
    # What is remembered survives JSON.
    assert manager.memory == again.memory == json.loads(json.dumps(manager.memory))


def _assert_proposals_add_up(told: Told) -> None:
    """Every proposal is accepted or rejected, and counted: what was said adds up to what the report has."""
    asked = [ruling for proposal, ruling in told.said if isinstance(proposal, Probe) and ruling.accepted]

    assert told.report.accepted == _accepted(told.said)
    assert len(told.said) == len(told.report.accepted) + sum(told.report.rejected.values()) + len(asked)
    assert (told.report.outcome.label is CycleLabel.SUCCESS) is bool(told.report.accepted)


def _assert_only_owners_give_up(told: Told, moved_before: set[str]) -> None:
    """No bundle moves twice in a cycle, nor, but in exchange, within half an hour; none of a system namespace does."""
    moved = [unload.bundle for unload in told.report.accepted]

    assert len(moved) == len(set(moved))
    assert not moved_before & {unload.bundle for unload in told.report.accepted if not unload.in_exchange}
    assert not any(bundle.startswith("pulsar/system/") for bundle in moved)
    assert all(told.owners[unload.bundle] == unload.source for unload in told.report.accepted)


def _assert_nothing_lands_where_it_must_not(told: Told, town: Town) -> None:
    """Nothing gets to a broker that is away or filtered: by transfer, by the lookup after an unload, or after a loss.

    Nor does anything stay on a broker that is lost, from the moment it is gone, in both ways of losing an owner.
    """
    homes = {(unload.bundle, unload.destination) for unload in told.report.accepted if unload.destination}
    for before, after in pairwise(told.steps):
        homes |= {(bundle, broker) for bundle, broker in after.items() if broker and broker != before[bundle]}

    assert not {broker for _, broker in homes} - told.there
    assert not {(broker, bundle.rpartition("/")[0]) for bundle, broker in homes} & town.closed
    for owners in told.steps[1:]:
        assert {broker for broker in owners.values() if broker} <= told.there


def _deviation(figures: Load, unloads: Iterable[Unload], ids: Sequence[str]) -> float:
    """Return the deviation of usage of brokers alike once the unloads took place, by the loads of what moved."""
    loads = {entry.bundle: entry.load for top in figures.top_bundles for entry in top}
    load = figures.throughput.copy()
    for unload in unloads:
        load[ids.index(unload.source)] -= loads[unload.bundle]
        load[ids.index(str(unload.destination))] += loads[unload.bundle]
    return float(np.std(load / CAPACITY))


@pytest.mark.parametrize("placement", PLACEMENTS, ids=_named)
@pytest.mark.parametrize("shedder", OTHERS[:3], ids=repr)
@settings(max_examples=40)
@given(town=towns(alike=True, everybody=True) | pairs().map(_alike))
def test_transfers_between_brokers_alike_even_usage_out(shedder: Transfer, placement: Selector, town: Town) -> None:
    """Whatever the model says of it, quirks or not: usage by the loads that moved deviates no more than before."""
    for told in _run(town, shedder, placement)[1]:
        before = _deviation(told.figures, (), town.roster.ids)
        after = _deviation(told.figures, told.report.accepted, town.roster.ids)

        assert after <= before + MARGIN


@pytest.mark.parametrize("placement", PLACEMENTS, ids=_named)
@pytest.mark.parametrize("quirks", ["upstream", "intended"])
@settings(max_examples=40)
@given(town=towns() | pairs(), most=st.integers(1, 3))
def test_an_accepted_transfer_never_raises_the_modelled_deviation(
    quirks: Any, placement: Selector, town: Town, most: int
) -> None:
    """In any cluster as intended; in Pulsar's way where brokers are alike and debug mode makes the model complete."""
    shedder = replace(OTHERS[2], quirks=quirks, debug=True, brokers_per_cycle=most)  # type: ignore[type-var]  # a dataclass
    if quirks == "upstream":
        town = _alike(town)
    for told in _run(town, shedder, placement)[1]:
        outcome = told.report.outcome
        if outcome.deviation is not None and outcome.modelled_deviation is not None:
            assert outcome.modelled_deviation <= outcome.deviation + MARGIN


def test_the_suite_knows_every_shedder() -> None:
    """It takes them from the registry."""
    assert {"transfer", "threshold", "overload", "uniform", "avg"} <= {shedder.name for shedder in SHEDDERS}


def test_towns_do_shed() -> None:
    """The tests above are about something: in a town like theirs each shedder without patience moves bundles."""
    town = Town(3, (True,) * 3, (("t/a", 0),) * 6, ((20.0,) * 6,) * 2, frozenset())

    assert all(sum(len(told.report.accepted) for told in _run(town, shedder)[1]) for shedder in OTHERS)
