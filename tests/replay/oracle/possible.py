"""What no placement of a cluster's demand surpasses, lookup by lookup: in a tick a bundle has one owner."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lookup.model.broker import Broker
from tests.replay.oracle.bundles import bundle_at, split_bundle
from tests.replay.oracle.exclusive import throughput_of
from tests.replay.oracle.reach import reaches
from tests.replay.oracle.reading import MICRO, Demand
from tests.replay.oracle.walking import Figures
from tests.replay.oracle.world import World

__all__ = ["farthest_ms", "possible"]


def possible(world: World, farthest: float) -> Figures:
    """Return every figure that is bounded.

    Args:
        farthest: the longest distance of any cluster, ms.
    """
    return _near(world) | _even(world) | _distant(world, farthest) | _overloaded(world)


def farthest_ms(worlds: Sequence[World]) -> float:
    """Return the longest distance from any client to any broker, 0.0 if none is known."""
    distances = [
        world.topology.distance(one.client_class.location, broker.location)
        for world in worlds
        for one in world.demand
        for _, roster in world.rosters()
        for broker in roster
    ]
    return max((ms for ms in distances if ms is not None), default=0.0)


class _Piece(NamedTuple):
    """What one broker serves whole; under shared ownership a lookup."""

    cell: int
    #: that may be chosen
    brokers: list[Broker]
    lookups: list[Demand]
    #: whether some namespace is kept off some broker at the time
    is_limited: bool


def _pieces(world: World) -> Iterator[_Piece]:
    known = {name: list(of_name) for name, of_name in world.first_boundaries.items()}
    present: list[Broker] = []
    for tick, allowed in zip(world.ticks, reaches(world), strict=True):
        if tick.registry is not None:
            present = [broker for broker, is_in in zip(*tick.registry, strict=True) if is_in]
        for parent, children in tick.splits:
            split_bundle(known, parent, children)
        pieces: dict[object, list[Demand]] = defaultdict(list)
        for number, one in enumerate(tick.lookups if tick.start >= world.scored_from else ()):
            is_shared = world.section.ownership == "shared"
            pieces[number if is_shared else bundle_at(one.namespace, one.hashed, known[one.namespace])].append(one)
        for lookups in pieces.values():
            brokers = [broker for broker in present if broker.id in allowed[lookups[0].namespace]]
            is_limited = any(len(ids) < len(present) for ids in allowed.values())
            yield _Piece(world.cell(tick.start), brokers, lookups, is_limited)


def _near(world: World) -> Figures:
    """Return the most lookups near a broker, by property."""
    near, counted = Counter[str](), Counter[str]()
    for _, present, lookups, _ in _pieces(world):
        for key in {key for one in world.demand for key in one.properties} if present else ():
            sent = [one.properties[key] for one in lookups if key in one.properties]
            counted[key] += len(sent)
            near[key] += max(sent.count(broker.property_of(key) or "") for broker in present)
    return {("match_ratio", key): near[key] / counted[key] for key in counted if counted[key]}


def _even(world: World) -> Figures:
    """Return the least imbalance."""
    heaviest, weight = Counter[int](), Counter[int]()
    of_sets = defaultdict[int, Counter[frozenset[str]]](Counter)
    limited = set[int]()
    for cell, brokers, lookups, is_limited in _pieces(world):
        micro = sum(one.micro for one in lookups)
        weight[cell] += micro
        of_sets[cell][frozenset(broker.id for broker in brokers)] += micro
        limited |= {cell} if is_limited else set()
        # Shared lookups are divided by odds.
        heaviest[cell] = max(heaviest[cell], 0 if world.section.ownership == "shared" else micro)
    sums = np.zeros(3)
    for (_, cell), brokers in world.registered_cells().items():
        if brokers and weight[cell]:
            # One broker has the heaviest piece, the others the rest in equal parts.
            most = max(heaviest[cell], weight[cell] / len(brokers))
            rest = [(weight[cell] - most) / max(len(brokers) - 1, 1)] * (len(brokers) - 1)
            deviation = np.std([most, *rest])
            for loads in _full_sets(world, of_sets[cell], len(brokers)) if cell in limited else ():
                most, deviation = max(most, *loads), max(deviation, np.std(loads))
            sums += most * len(brokers), deviation * len(brokers), weight[cell]
    if not sums[2]:
        return {}
    return {("imbalance_max_mean", None): sums[0] / sums[2], ("imbalance_cv", None): sums[1] / sums[2]}


def _full_sets(world: World, of_sets: Counter[frozenset[str]], n_brokers: int) -> Iterator[list[float]]:
    """Yield loads of brokers of which one, or all together, bound what is kept to sets of brokers.

    All brokers of a set have what is kept to brokers among them, the fullest sets first.
    """
    inside = {
        one: sum(micro for of, micro in of_sets.items() if of and of <= one) for one in of_sets if one and of_sets[one]
    }
    for one, micro in inside.items():
        yield [micro / len(one)]
    names = [broker.id for broker in world.roster]
    by_load = sorted(inside, key=lambda one: (-inside[one] / len(one), -len(one), [name in one for name in names]))
    loads, counted, left = list[float](), set[str](), of_sets.total()
    for one in by_load:
        others = n_brokers - len(loads)
        if one & counted:
            continue
        if len(one) >= others or inside[one] * others <= left * len(one):
            break
        counted |= one
        loads += [inside[one] / len(one)] * len(one)
        left -= inside[one]
    others = n_brokers - len(loads)
    yield [*loads, *[left / others] * others]


def _distant(world: World, farthest: float) -> Figures:
    """Return the shortest distance."""
    nearer, covered = 0.0, 0
    for _, present, lookups, _ in _pieces(world):
        ways = [_way(world, lookups, broker, farthest) for broker in present]
        nearer += max((gained for gained, _ in ways), default=0.0)
        covered += max((known for _, known in ways), default=0)
    if not farthest:
        return {}
    return {("network_ms_mean", None): farthest - nearer / covered if covered else math.nan}


def _way(world: World, lookups: Sequence[Demand], broker: Broker, farthest: float) -> tuple[float, int]:
    """Return by how many ms a broker is nearer than the farthest, times weight, and the weight whose way is known."""
    ways = [(world.topology.distance(one.client_class.location, broker.location), one.micro) for one in lookups]
    known = [(ms, micro) for ms, micro in ways if ms is not None]
    return sum((farthest - ms) * micro for ms, micro in known), sum(micro for _, micro in known)


def _overloaded(world: World) -> Figures:
    """Return the least share of broker-time that is overloaded; nothing if no usage is simulated.

    What was asked for since the last grid instant has an owner, unless something came between.
    """
    if world.assumed is not None or world.loads is not None:
        return {}
    roster, present, known = world.roster, [False] * len(world.roster), [False] * len(world.roster)
    boundaries = {name: list(of_name) for name, of_name in world.first_boundaries.items()}
    has_reports = world.bundles is not None and world.section.ownership == "exclusive"
    cells, fresh, is_over, over_s, known_s = list[list[Demand]](), list[Demand](), False, 0.0, 0.0
    for tick, allowed in zip(world.ticks, reaches(world), strict=True):
        if tick.registry is not None:
            roster, present = tick.registry
        for parent, children in tick.splits:
            split_bundle(boundaries, parent, children)
        if tick.registry is not None or tick.unloads:
            fresh, is_over = [], is_over and tick.registry is None
        if tick.is_grid:
            owned = _owned(world, tick.start, cells, fresh, boundaries)
            brokers = [broker if is_in else None for broker, is_in in zip(roster, present, strict=True)]
            there = [broker for broker in brokers if broker is not None]
            is_over = any(_is_over(world, owned, allowed, ids, there) for ids in {*allowed.values(), None})
            has_load = bool(cells) or has_reports
            known = [has_load and broker is not None and broker.capacity is not None for broker in brokers]
            cells, fresh = [*cells, []], []
        cells[-1].extend(tick.lookups)
        if tick.start >= world.scored_from:
            fresh += [one for one in tick.lookups if one.micro]
            count = sum(was and is_in for was, is_in in zip(known, present, strict=True))
            known_s += count * (tick.end - tick.start) / MICRO
            over_s += (tick.end - tick.start) / MICRO if count and is_over else 0.0
    return {("overload_ratio", None): over_s / known_s if known_s else math.nan}


def _is_over(
    world: World,
    owned: Mapping[str | None, list[float]],
    allowed: Mapping[str, frozenset[str]],
    ids: frozenset[str] | None,
    there: Sequence[Broker],
) -> bool:
    """Return whether some brokers, None for all, have no room for what is kept to them."""
    kept = [namespace for namespace in owned if ids is None or (namespace is not None and allowed[namespace] <= ids)]
    rooms = [_room(world, broker) for broker in there if ids is None or broker.id in ids]
    load = sum(sum(owned[namespace]) for namespace in kept)
    if world.section.ownership == "shared":
        # Those of all namespaces are taken together.
        return ids is None and load > sum(rooms) * (1 + 1e-9)
    heaviest = max((one for namespace in kept for one in owned[namespace]), default=0.0)
    return load > sum(rooms) * (1 + 1e-9) or heaviest > max(rooms, default=0.0) * (1 + 1e-9)


def _room(world: World, broker: Broker) -> float:
    """Return the most load that does not overload a broker."""
    return math.inf if broker.capacity is None else broker.capacity * world.section.overload_threshold


def _owned(
    world: World,
    now: int,
    cells: Sequence[Sequence[Demand]],
    fresh: Sequence[Demand],
    boundaries: Mapping[str, list[int]],
) -> dict[str | None, list[float]]:
    """Return the loads that surely weigh on brokers at a grid instant, each on one, by namespace.

    Args:
        cells: the lookups between grid instants, up to this one.
        fresh: those that surely gave their bundle an owner.
    """
    if world.section.ownership == "shared":
        return {None: [sum(one.micro for one in fresh) / MICRO / world.section.session_s]}
    loads, seconds = world.carried(now, throughput_of, boundaries), 1
    if world.bundles is None:
        seconds = world.section.session_s
        for one in (one for cell in cells[-(seconds // world.section.tick_s) :] for one in cell):
            loads[bundle_at(one.namespace, one.hashed, boundaries[one.namespace])] += one.micro
    owned = defaultdict[str | None, list[float]](list)
    for bundle in {bundle_at(one.namespace, one.hashed, boundaries[one.namespace]) for one in fresh}:
        owned[bundle.rpartition("/")[0]].append(loads[bundle] / MICRO / seconds)
    return owned
