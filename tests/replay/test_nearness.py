"""Distances that no placement undercuts: all placements of small logs are tried."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookup.model import Location, Topology
from lookup.placement.frontier import Multipliers
from lookup.replay.nearness import farthest_ms
from tests.replay.plans import lookup, planned
from tests.replay.test_pieces import bounds, totals
from tests.replay.worlds import MICRO

MS = {"same": 0.1, "rack": 0.4, "zone": 2.0, "region": 9.0}
TOPOLOGY = {"distance_ms": MS}
RACKS = {"a": "z1", "b": "z1", "c": "z2"}
BROKERS = [
    {"id": f"{rack}:1", "location": {"region": "eu", "zone": zone, "rack": rack}} for rack, zone in RACKS.items()
]
#: Farther than any broker of these logs is from any client.
FARTHEST = 2.0


def wanting(racks: str, minute: int, topic: str = "n", weight: float = 1.0) -> list[dict[str, Any]]:
    """Return a lookup of one bundle in one minute for each rack in which a client stands; `-` has no place."""
    places = ["{}" if rack == "-" else f'{{"region":"eu","zone":"{RACKS[rack]}","rack":"{rack}"}}' for rack in racks]
    topic = f"persistent://t/{topic}/topic"
    return [
        lookup(60 * minute + n / 10, topic=topic, properties=place, weight=weight) for n, place in enumerate(places)
    ]


#: Lookups of two bundles in three minutes, by bundle and minute.
DEMAND = {("n", 0): "aab", ("n", 1): "c", ("n", 2): "cb", ("m", 0): "c", ("m", 1): "ab", ("m", 2): "aa"}


def test_no_placement_is_nearer_than_its_bound(tmp_path: Path) -> None:
    """In distance, and in distance and balance at once, with its own moves; with free moves one reaches the bound."""
    rows = [one for (topic, minute), racks in DEMAND.items() for one in wanting(racks, minute, topic)]
    count = len(rows)
    multipliers = Multipliers.of(count, count * MICRO, 2, FARTHEST)
    found = bounds(tmp_path, rows, multipliers=multipliers, brokers=BROKERS, topology=TOPOLOGY)
    least, covered = totals(found)["network_ms_mean", None]
    bound = found.localities["network_ms_mean", None]
    assert bound.few is not None
    reached = []
    for owners in product("abc", repeat=len(DEMAND)):
        placed = dict(zip(DEMAND, owners, strict=True))
        ms = sum(_ms(client, placed[piece]) for piece, clients in DEMAND.items() for client in clients)
        served = [sum(len(DEMAND[piece]) for piece in DEMAND if placed[piece] == broker) for broker in "abc"]
        moves = sum(placed[topic, minute] != placed[topic, minute + 1] for topic in "nm" for minute in (0, 1))
        near = (FARTHEST * count - ms) * MICRO * multipliers.per_ms
        paid = np.minimum(bound.free, (bound.few + multipliers.moves * moves).min(axis=1))
        assert (near - multipliers.balance * max(served) * 3 * MICRO <= paid + 1e-6).all()
        reached.append(ms)

    assert covered == count
    assert min(reached) == pytest.approx(least)


def _ms(client: str, broker: str) -> float:
    """Return the distance between two racks."""
    if client == broker:
        return MS["same"]
    return MS["rack"] if RACKS[client] == RACKS[broker] else MS["zone"]


def test_distances_are_weighed_and_those_of_strangers_do_not_count(tmp_path: Path) -> None:
    """A client without a place is near to no broker and far from none."""
    rows = [*wanting("a-", 0, weight=3.0), *wanting("b", 0)]
    multipliers = Multipliers.of(3.0, 7.0 * MICRO, 1, FARTHEST)
    found = bounds(tmp_path, rows, multipliers=multipliers, brokers=BROKERS, topology=TOPOLOGY)

    assert totals(found)["network_ms_mean", None] == pytest.approx([3 * MS["same"] + MS["rack"], 4.0])


def test_a_broker_without_a_place_is_no_way_out(tmp_path: Path) -> None:
    """What it serves has no distance, so that nothing is gained by it."""
    multipliers = Multipliers.of(1.0, 1.0 * MICRO, 1, FARTHEST)
    brokers = [BROKERS[2], {"id": "x:1"}]
    found = bounds(tmp_path, wanting("a", 0), multipliers=multipliers, brokers=brokers, topology=TOPOLOGY)

    assert totals(found)["network_ms_mean", None] == pytest.approx([MS["zone"], 1.0])


def test_the_farthest_is_that_of_clients_and_brokers_of_the_log(tmp_path: Path) -> None:
    """Not that of the topology: else prices would be too coarse for what can differ."""
    plan = planned(tmp_path, [*wanting("a", 0), lookup(1)], brokers=BROKERS, topology=TOPOLOGY)
    rosters = [roster for roster, _ in plan.cluster.timeline.epochs]

    assert farthest_ms(plan.cluster.clients, rosters, plan.run.topology) == MS["zone"]
    assert farthest_ms(plan.cluster.clients[:0], rosters, plan.run.topology) == 0.0
    assert Topology().distance(Location(rack="a"), Location()) is None
