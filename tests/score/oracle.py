"""The metrics a second time, in plain Python over lists of lookups and ownership changes; slow, obvious, and no numpy.

`measure` is what tests compare `lookup.score.metrics` and whole replays with. Everything of one `Happenings` is pooled:
for the figures of one cluster hand in the happenings of that cluster.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, pairwise
from statistics import pstdev

from lookup.model.batch import ClientClass
from lookup.model.broker import Broker
from lookup.model.bundles import IsolationPolicy
from lookup.model.topology import Topology

CAUSES = ("forced", "shed", "admin", "split")


@dataclass(frozen=True)
class Lookup:
    """One lookup as it was answered."""

    cluster: str
    #: µs
    ts: int
    bundle: str
    #: with the lookup data of that moment; None: unanswered
    broker: Broker | None
    client: ClientClass
    weight: float = 1.0
    #: id of the broker the log says was answered
    logged: str | None = None


@dataclass(frozen=True)
class Change:
    """A bundle got an owner, or was unloaded."""

    cluster: str
    #: µs
    ts: int
    bundle: str
    #: id of the owner before, None for the first
    source: str | None
    #: None of an unload
    broker: str | None
    cause: str
    decided: bool = True
    weight: float = 0.0
    #: the bundle as it was then, where a split made it; `bundle` is the one it belongs to
    path: str | None = None


@dataclass(frozen=True)
class Happenings:
    """Everything the metrics are about; changes are in order of time."""

    lookups: Sequence[Lookup]
    #: None if owners are not known
    changes: Sequence[Change] | None
    #: ids of the brokers registered at any time in a cell, by cluster and start of the cell in µs
    registered: Mapping[tuple[str, int], frozenset[str]]
    cell_us: int
    topology: Topology = field(default_factory=Topology)
    bytes_per_weight: float | None = None
    window_s: int = 3600
    #: (seconds with known usage, seconds of these overloaded) of every broker and cell; None where capacity is assumed
    usage_s: Sequence[tuple[float, float]] | None = None
    #: isolation policies by namespace
    isolation: Mapping[str, Sequence[IsolationPolicy]] = field(default_factory=dict)


def measure_all(world: Happenings) -> dict[tuple[str, str | None], float]:
    """Return every figure by metric and key, NaN where there is nothing to measure, absent where it has no meaning."""
    return dict(_figures(world))


def _figures(world: Happenings) -> Iterator[tuple[tuple[str, str | None], float]]:
    answered = [lookup for lookup in world.lookups if lookup.broker is not None]
    yield ("answered_ratio", None), _ratio(len(answered), len(world.lookups))
    logged = [lookup for lookup in answered if lookup.logged is not None]
    yield ("agreement_ratio", None), _ratio(sum(_answer(one) == one.logged for one in logged), len(logged))
    if world.isolation:
        yield ("isolation_ratio", None), _isolation_ratio(world, answered)
    for key in sorted({key for lookup in world.lookups for key in lookup.client.properties}):
        yield ("match_ratio", key), _match_ratio(answered, key)
    yield from _network(world, answered)
    yield ("imbalance_max_mean", None), _over_cells(world, lambda served: max(served) / _mean(served))
    yield ("imbalance_cv", None), _over_cells(world, lambda served: pstdev(served) / _mean(served))
    yield ("load_variation", None), _variation(world)
    if world.usage_s is not None:
        known, overloaded = (sum(column) for column in zip(*world.usage_s, strict=True)) if world.usage_s else (0, 0)
        yield ("overload_ratio", None), _ratio(overloaded, known)
    if world.changes is not None:
        yield from _movement(world, world.changes)


def _weight(lookups: Iterable[Lookup]) -> float:
    return math.fsum(lookup.weight for lookup in lookups)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _answer(lookup: Lookup) -> str | None:
    return None if lookup.broker is None else lookup.broker.id


def _isolation_ratio(world: Happenings, answered: Sequence[Lookup]) -> float:
    at_home = []
    for one in answered:
        policies = world.isolation.get(one.bundle.rpartition("/")[0], ())
        patterns = [pattern for policy in policies for pattern in (*policy.primary, *policy.secondary)]
        if policies and one.broker is not None:
            at_home.append(any(re.fullmatch(pattern, one.broker.host) for pattern in patterns))
    return _ratio(sum(at_home), len(at_home))


def _match_ratio(answered: Sequence[Lookup], key: str) -> float:
    sent = [one for one in answered if one.client.properties.get(key) is not None]
    same = [one for one in sent if one.broker and one.broker.property_of(key) == one.client.properties[key]]
    return _ratio(len(same), len(sent))


def _network(world: Happenings, answered: Sequence[Lookup]) -> Iterator[tuple[tuple[str, str | None], float]]:
    """Group distances to a billionth of a millisecond: the two directions of a path may differ in the last bit."""
    weights: dict[float, float] = defaultdict(float)
    cost = 0.0
    for one in answered:
        assert one.broker is not None
        distance = world.topology.distance(one.broker.location, one.client.location)
        if distance is not None:
            weights[round(distance, 9)] += one.weight
            price = world.topology.price(one.broker.location, one.client.location) or 0.0
            cost += one.weight * (world.bytes_per_weight or 0.0) / 1e9 * price
    covered = math.fsum(weights.values())
    yield ("network_ms_mean", None), _ratio(math.fsum(ms * weight for ms, weight in weights.items()), covered)
    yield ("network_ms_p95", None), _quantile(weights, 0.95)
    yield ("network_covered_ratio", None), _ratio(covered, _weight(answered))
    if world.bytes_per_weight is not None:
        yield ("network_cost", None), cost if covered else math.nan


def _quantile(weights: Mapping[float, float], share: float) -> float:
    whole, below = math.fsum(weights.values()), 0.0
    for value in sorted(weights):
        below += weights[value]
        if weights[value] and below >= share * whole - 1e-9:
            return value
    return math.nan


def _over_cells(world: Happenings, figure: object) -> float:
    assert callable(figure)
    served: dict[tuple[str, int], dict[str, float]] = {
        cell: dict.fromkeys(brokers, 0.0) for cell, brokers in world.registered.items()
    }
    for one in world.lookups:
        if one.broker is not None:
            served[one.cluster, one.ts // world.cell_us * world.cell_us][one.broker.id] += one.weight
    cells = [list(weights.values()) for weights in served.values()]
    used = [weights for weights in cells if sum(weights) > 0]
    return _ratio(math.fsum(figure(weights) * math.fsum(weights) for weights in used), math.fsum(map(math.fsum, used)))


def _movement(world: Happenings, changes: Sequence[Change]) -> Iterator[tuple[tuple[str, str | None], float]]:
    gained = [change for change in changes if change.broker is not None]
    moves = [change for change in gained if change.source is not None and change.source != change.broker]
    yield ("assignments", None), float(sum(change.decided for change in changes))
    yield ("moves", None), float(len(moves))
    for cause in CAUSES:
        yield ("moves", cause), float(sum(move.cause == cause for move in moves))
    yield ("unloads", None), float(len(changes) - len(gained))
    yield ("moved_weight", None), math.fsum(move.weight for move in moves)
    walks: dict[tuple[str, str], list[Change]] = defaultdict(list)
    for move in moves:
        walks[move.cluster, move.path or move.bundle].append(move)
    window_us = world.window_s * 1_000_000
    yield ("redundant_moves", None), float(sum(len(_in_vain(walk, window_us)) for walk in walks.values()))
    necessary = sum(_necessary([move for move in moves if move.cluster == cluster]) for cluster in _clusters(moves))
    yield ("cycle_moves", None), float(len(moves) - necessary)
    yield ("necessary_moves", None), float(necessary)


def _in_vain(walk: Sequence[Change], window_us: int) -> set[int]:
    marked: set[int] = set()
    for place, move in enumerate(walk):
        left = [earlier for earlier in range(place) if walk[earlier].source == move.broker]
        if left and move.ts - walk[left[-1]].ts <= window_us:
            marked.update(range(left[-1], place + 1))
    return marked


def _clusters(moves: Sequence[Change]) -> list[str]:
    return sorted({move.cluster for move in moves})


def _necessary(moves: Sequence[Change]) -> int:
    """Count what is left of the moves when cycles are taken out: broker by broker, the shortest and first by names."""
    edges = Counter((move.source or "", move.broker or "") for move in moves)
    for start in sorted({source for source, _ in edges}):
        while (cycle := _cycle_through(start, edges)) is not None:
            least = min(edges[edge] for edge in cycle)
            edges.subtract(dict.fromkeys(cycle, least))
    return sum(edges.values())


def _cycle_through(start: str, edges: Mapping[tuple[str, str], int]) -> list[tuple[str, str]] | None:
    """Lengthen all ways from a broker step by step, in the order of names, until the first of them is back."""
    targets = {source: sorted(b for (a, b), count in edges.items() if a == source and count) for source, _ in edges}
    ways, seen = [[start]], {start}
    while ways:
        for way in ways:
            if len(way) > 1 and start in targets.get(way[-1], []):
                return list(pairwise([*way, start]))
        longer = []
        for way in ways:
            for target in targets.get(way[-1], []):
                if target not in seen:
                    seen.add(target)
                    longer.append([*way, target])
        ways = longer
    return None


def _variation(world: Happenings) -> float:
    """Add up how the load of every broker varies, discounted by its trend, over all weight."""
    served: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for (cluster, start), brokers in sorted(world.registered.items()):
        for broker in brokers:
            served[cluster, broker][start] = 0.0
    for one in world.lookups:
        if one.broker is not None:
            served[one.cluster, one.broker.id][one.ts // world.cell_us * world.cell_us] += one.weight
    series = [list(dropwhile(lambda load: load == 0, loads.values())) for loads in served.values()]
    return _ratio(math.fsum(map(_discounted, series)), math.fsum(map(math.fsum, series)))


def _discounted(loads: Sequence[float]) -> float:
    up = math.fsum(max(after - before, 0.0) for before, after in pairwise(loads))
    down = math.fsum(max(before - after, 0.0) for before, after in pairwise(loads))
    if not up or not down:
        return 0.0
    trend = (min(up, down) / max(up, down)) ** 0.8
    return trend * (up + down) + (1 - trend) * min(up, down)
