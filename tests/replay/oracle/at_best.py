"""The best locality of a policy's bundles, lookup by lookup: in a tick a bundle has one owner."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lookup.model.broker import Broker
from tests.replay.oracle.bundles import bundle_at, children_of, split_bundle
from tests.replay.oracle.reading import MICRO, Demand
from tests.replay.oracle.world import World

__all__ = ["at_best"]


def at_best(worlds: Sequence[World], count: int | None) -> dict[tuple[str, str | None], float]:
    """Return every figure that is bounded, over all clusters.

    Args:
        count: bundles that the policy gives namespaces without boundaries of their own; None: the default.
    """
    near, counted = Counter[tuple[str, str | None]](), Counter[tuple[str, str | None]]()
    for world in worlds:
        published = {label for _, roster in world.rosters() for broker in roster for label in _labels(broker)}
        for present, lookups in _pieces(world, count):
            for key in {key for one in world.demand for key in one.properties}:
                if any((key, one.properties.get(key)) in published for one in world.demand):
                    sent = [one.properties[key] for one in lookups if key in one.properties]
                    counted["match_ratio", key] += len(sent)
                    near["match_ratio", key] += max(sent.count(broker.property_of(key) or "") for broker in present)
            ms = _least_ms(world, present, lookups)
            near["network_ms_mean", None] += ms[0]
            counted["network_ms_mean", None] += ms[1]
    return {name: near[name] / of for name, of in counted.items() if of}


def _labels(broker: Broker) -> list[tuple[str, str | None]]:
    keys = (name.removeprefix("lookup.") for name in broker.lookup_data.properties)
    return [(key, broker.property_of(key)) for key in keys if broker.property_of(key) is not None]


def _pieces(world: World, count: int | None) -> Iterator[tuple[list[Broker], list[Demand]]]:
    """Yield the registered brokers and the lookups of each bundle and scored tick."""
    namespaces = world.namespaces if count is None else replace(world.namespaces, default_bundles=count)
    known = {name: list(namespaces.boundaries_of(name)) for name in world.all_boundaries}
    for event in world.splits:
        if event["ts"] <= world.demand[0].ts:
            split_bundle(known, event["bundle"], children_of(event))
    present: list[Broker] = []
    for tick in world.ticks:
        if tick.registry is not None:
            present = [broker for broker, is_in in zip(*tick.registry, strict=True) if is_in]
        for parent, children in tick.splits:
            split_bundle(known, parent, children)
        pieces: dict[str, list[Demand]] = defaultdict(list)
        for one in tick.lookups if tick.start >= world.scored_from and present else ():
            pieces[bundle_at(one.namespace, one.hashed, known[one.namespace])].append(one)
        for lookups in pieces.values():
            yield present, lookups


def _least_ms(world: World, present: Sequence[Broker], lookups: Sequence[Demand]) -> tuple[float, float]:
    """Return the least weight x ms with one of the brokers, and the weight of lookups that have any distance."""
    of_lookup = {
        one.client_class.location: [
            world.topology.distance(one.client_class.location, broker.location) for broker in present
        ]
        for one in lookups
    }
    known = {home: [ms for ms in row if ms is not None] for home, row in of_lookup.items()}
    shortest = {home: min(row) for home, row in known.items() if row}
    located = [(one.micro / MICRO, one.client_class.location) for one in lookups]
    located = [(weight, home) for weight, home in located if home in shortest]
    totals = [
        sum(weight * _or(of_lookup[home][number], shortest[home]) for weight, home in located)
        for number in range(len(present))
    ]
    return min(totals), sum(weight for weight, _ in located)


def _or(ms: float | None, shortest: float) -> float:
    return shortest if ms is None else ms
