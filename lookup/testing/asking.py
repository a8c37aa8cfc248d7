"""Call parts for the checks of `conformance.py`, to get raw answers, whole decisions, proposals, and parts as text."""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from lookup.engine.answers import exhaust_generator
from lookup.engine.ballots import Ballot
from lookup.engine.cycles import drive_proposals
from lookup.engine.manager import Conditions, LoadManager
from lookup.engine.policy import Instant, Policy, memory_key
from lookup.hooks.protocols import Filter, Scorer, Selector, Shedder, SplitAlgorithm, Splitter
from lookup.model import Candidates, ClusterView, CycleOutcome, Ruling, Split
from lookup.model.decision import Proposal
from lookup.testing.clusters import OwnedBundles
from lookup.testing.worlds import World, labelled_for

__all__ = [
    "all_parts", "answer_of", "ballot_in", "classes_of", "kind_of", "manager_in", "offered_in", "proposals_in",
    "worlds_of", "writable", "written_out",
]  # fmt: skip

_KINDS: Mapping[str, type[Any]] = {
    "filters": Filter,
    "scorers": Scorer,
    "selectors": Selector,
    # A splitter has everything that a shedder has, and also an algorithm.
    "splitters": Splitter,
    "shedders": Shedder,
    "split_algorithms": SplitAlgorithm,
}
#: A shedder that proposes more than this in a small cluster never ends.
_ENOUGH = 1000


def kind_of(part: Any) -> str | None:
    """Find the kind of a part by its name in hooks, None for anything else."""
    return next((kind for kind, protocol in _KINDS.items() if isinstance(part, protocol)), None)


def all_parts(policy: Policy) -> Iterator[Any]:
    """Yield a policy's parts, its shedder and splitter, and the children of wrappers."""
    cyclic = [part for part in (policy.shedder, policy.splitter) if part is not None]
    for part in (*policy.parts, *cyclic):
        yield from _iter_with_children(part)


def classes_of(policy: Policy) -> dict[str, list[type[Any]]]:
    """Collect the classes of all parts by kind, each once."""
    classes: dict[str, dict[type[Any], None]] = {kind: {} for kind in _KINDS}
    for part in all_parts(policy):
        classes[kind_of(part) or "selectors"][type(part)] = None
    return {kind: list(unique) for kind, unique in classes.items()}


def worlds_of(policy: Policy, worlds: Iterable[World]) -> Iterator[World]:
    """Yield the worlds with the labels the policy reads, and again after some assignments if it keeps memory."""
    for world in worlds:
        labelled = labelled_for(policy, world)
        yield labelled
        if policy.is_stateful:
            yield _run_assignments(policy, labelled)


def manager_in(policy: Policy, world: World) -> LoadManager:
    """Build a load manager in the world, at the moment of its view."""
    view = world.view
    conditions = Conditions(namespaces=view.namespaces, topology=view.topology, salt=view.salt)
    manager = LoadManager(policy, view.cluster, view.brokers, conditions=conditions)
    manager.begin_tick(view.now_us)
    manager.set_registry(view.brokers, view.registered)
    owners = view.ownership.owners if isinstance(view.ownership, OwnedBundles) else {}
    manager.restore({bundle: view.brokers[number].id for bundle, number in owners.items()})
    manager.set_load(view.load)
    return manager


def ballot_in(policy: Policy, world: World) -> Ballot:
    """Compute the ballot of a policy in a world."""
    return policy.ballot(world.request, Instant(policy, world.view))


def offered_in(world: World) -> Candidates:
    """Select the registered brokers of a world."""
    return Candidates(world.view.brokers, np.flatnonzero(world.view.registered))


def _restrict_memory(part: Any, view: ClusterView) -> ClusterView:
    return replace(view, memory=view.memory.get(memory_key(part), view.memory.get("*", {})))


def answer_of(part: Any, world: World) -> Any:
    """Call a part with all registered brokers and all fields, declared in `reads` or not."""
    brokers, view = offered_in(world), _restrict_memory(part, world.view)
    if isinstance(part, Filter):
        return exhaust_generator(part.admit(world.request, brokers, view))
    if isinstance(part, Scorer):
        return exhaust_generator(part.score(world.request, brokers, view))
    # Scores go by number, so that a broker keeps its score whatever the order. Some are equal.
    return exhaust_generator(part.odds(world.request, brokers, (brokers.index % 3) / 2.0, view))


def proposals_in(shedder: Shedder | Splitter, world: World) -> list[Proposal | Split | CycleOutcome]:
    """Run a shedder or splitter and accept everything, and return its proposals and its outcome.

    Raises:
        AssertionError: if it does not end.
    """
    proposals: list[Proposal | Split | CycleOutcome] = []
    view = _restrict_memory(shedder, world.view)

    def accept(proposal: Proposal | Split) -> Ruling:
        proposals.append(proposal)
        if len(proposals) == _ENOUGH:
            raise AssertionError(f"{shedder!r} is still proposing after {_ENOUGH} proposals: {world.name}")
        return Ruling(accepted=True)

    cycle: Generator[Any, Ruling, CycleOutcome] = shedder.propose(view, copy.deepcopy(dict(view.memory)))
    outcome = drive_proposals(cycle, accept)
    return [*proposals, outcome]


def writable(world: World) -> World:
    """Copy the world so that a part could write into it."""
    view = world.view
    columns: dict[str, Any] = {name: getattr(view.load, name).copy() for name in _COLUMNS}
    load = replace(view.load, **columns, demand=copy.deepcopy(dict(view.load.demand)))
    load = replace(load, origins=copy.deepcopy(dict(load.origins)))
    copies: dict[str, Any] = {name: getattr(view, name).copy() for name in ("registered", "capacity")}
    copies |= {name: copy.deepcopy(dict(getattr(view, name))) for name in ("unloaded", "memory")}
    request = replace(world.request, properties=dict(world.request.properties))
    return World(world.name, replace(view, load=load, **copies), request)


def written_out(world: World) -> str:
    """Write the writable content of a world as text."""
    view, load = world.view, world.view.load
    columns = {name: getattr(load, name).tolist() for name in _COLUMNS}
    columns |= {name: getattr(view, name).tolist() for name in ("registered", "capacity")}
    mappings = [
        dict(load.demand),
        dict(load.origins),
        dict(view.unloaded),
        dict(view.memory),
        list(map(list, load.top_bundles)),
    ]
    return repr((columns, mappings, view.ownership, list(view.brokers), world.request))


_COLUMNS = ("usage", "throughput", "topics")


def _iter_with_children(part: Any) -> Iterator[Any]:
    yield part
    values = [getattr(part, entry.name) for entry in fields(part)] if is_dataclass(part) else []
    for value in values:
        for child in value if isinstance(value, tuple | list) else (value,):
            if kind_of(child) is not None:
                yield from _iter_with_children(child)


def _run_assignments(policy: Policy, world: World) -> World:
    manager = manager_in(policy, world)
    for lower in range(3):
        manager.select(replace(world.request, bundle=f"{world.request.namespace}/{lower:#010x}_0xffffffff"), 0)
    view = replace(world.view, memory=copy.deepcopy(manager.memory))
    return World(f"{world.name}, some assignments later", view, world.request)
