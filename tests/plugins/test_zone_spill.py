"""The wrapper `zone-spill`."""

from __future__ import annotations

from typing import Any

import pytest

from lookup.hooks import reads_of
from lookup.model import ClusterView
from lookup.testing import broker, candidates, cluster, engine_request, request
from lookup_policies.hashing import Rendezvous
from lookup_policies.round_robin import RoundRobin
from lookup_policies.score_selectors import Best, Random
from lookup_policies.zone_spill import ZoneSpill
from tests.plugins.worlds import shares

FROM_X = request(properties={"zone": "x"})


def _view(demand: dict[str, float], zones: str = "xxyyzz", **figures: Any) -> ClusterView:
    brokers = [broker(f"{zone}{place}", zone=zone) for place, zone in enumerate(zones)]
    return cluster(*brokers, demand={"zone": demand}, **figures)


def _by_zone(odds: dict[str, float]) -> dict[str, float]:
    zones = sorted({broker_id[0] for broker_id in odds})
    return {zone: round(sum(share for one, share in odds.items() if one[0] == zone), 6) for zone in zones}


@pytest.mark.parametrize(
    ("demand", "expected"),
    [
        ({"x": 1.0, "y": 1.0, "z": 1.0}, {"x": 1.0}),
        ({"x": 1.0, "y": 8.0}, {"x": 1.0}),
        ({"y": 8.0}, {"x": 1.0}),
        ({"x": 6.0, "y": 3.0, "z": 3.0}, {"x": 0.666667, "y": 0.166667, "z": 0.166667}),
        ({"x": 6.0, "y": 4.0, "z": 2.0}, {"x": 0.666667, "z": 0.333333}),
        ({"x": 10.0}, {"x": 0.333333, "y": 0.333333, "z": 0.333333}),
    ],
    ids=["even", "local-has-room", "no-demand-here", "spills-evenly", "spills-where-there-is-room", "one-zoned"],
)
def test_what_a_zone_cannot_carry_is_spilled(demand: dict[str, float], expected: dict[str, float]) -> None:
    """A zone keeps its share of capacity over its share of demand; the rest goes where capacity exceeds demand."""
    assert _by_zone(shares(ZoneSpill(), _view(demand), asked=FROM_X)) == expected


def test_spilling_fills_every_zone_to_its_share_of_capacity() -> None:
    """Taken over all clients, each zone receives exactly its share of capacity where demand exceeds it."""
    demand = {"x": 7.0, "y": 2.0, "z": 1.0}
    view = _view(demand)
    received = dict.fromkeys("xyz", 0.0)
    for zone, weight in demand.items():
        for target, share in _by_zone(shares(ZoneSpill(), view, asked=request(properties={"zone": zone}))).items():
            received[target] += weight * share

    assert received == pytest.approx(dict.fromkeys("xyz", 10 / 3), abs=1e-4)


def test_capacity_counts_where_everybody_has_one() -> None:
    """A zone with half of the capacity keeps half of the demand, however few brokers it has."""
    brokers = [broker("x0", zone="x", capacity=500.0), *(broker(f"y{n}", zone="y", capacity=100.0) for n in range(5))]
    view = cluster(*brokers, demand={"zone": {"x": 1.0, "y": 1.0}})

    assert shares(ZoneSpill(), view, asked=FROM_X) == {"x0": 1.0}


def test_brokers_without_zone_are_one_zone() -> None:
    """They take part in what is spilled."""
    brokers = [broker("x0", zone="x"), *(f"n{place}" for place in range(5))]

    assert _by_zone(shares(ZoneSpill(), cluster(*brokers, demand={"zone": {"x": 1.0}}), asked=FROM_X)) == {
        "n": 0.833333,
        "x": 0.166667,
    }


def test_the_child_chooses_inside_a_zone() -> None:
    """The child sees the zone's candidates and their scores."""
    scores = {"x0": 0.1, "x1": 0.2, "y2": 0.9, "y3": 0.8, "z4": 0.5, "z5": 0.5}
    odds = shares(ZoneSpill(), _view({"x": 1.0}), asked=FROM_X, scores=scores)

    assert odds == pytest.approx({"x1": 1 / 3, "y2": 1 / 3, "z4": 1 / 6, "z5": 1 / 6})


@pytest.mark.parametrize(
    ("view", "asked"),
    [
        (_view({"x": 1.0}, zones="xxyyz"), FROM_X),
        (_view({"x": 1.0}), engine_request()),
        (_view({"x": 1.0}), request(properties={"zone": "w"})),
        (_view({}), FROM_X),
        (_view({"x": 0.0}), FROM_X),
    ],
    ids=["small-cluster", "no-zone", "nobody-in-it", "no-demand", "demand-of-zero"],
)
def test_otherwise_zones_do_not_matter(view: ClusterView, asked: Any) -> None:
    """Where the rule cannot be applied the child chooses among all."""
    assert len(set(shares(ZoneSpill(child=Random()), view, asked=asked).values())) == 1
    assert len(shares(ZoneSpill(child=Random()), view, asked=asked)) == len(view.brokers)


def test_a_zone_whose_child_declines_hands_on() -> None:
    """The other zones take over the share of one in which nobody is good enough."""
    scores = {"x0": 0.1, "x1": 0.1, "y2": 0.9, "y3": 0.9, "z4": 0.1, "z5": 0.1}
    odds = shares(ZoneSpill(child=Best(min_score=0.5)), _view({"x": 1.0}), asked=FROM_X, scores=scores)

    assert odds == {"y2": 0.5, "y3": 0.5}


def test_it_reads_the_zone_the_demand_and_what_the_child_reads() -> None:
    """Reads, order and memory are those of rule and child together."""
    part = ZoneSpill(key="az", child=Rendezvous())

    assert reads_of(part) == {"properties.az", "view.load", "bundle", "view.salt"}
    assert ZoneSpill(child=RoundRobin()).order_sensitive
    assert not part.order_sensitive


def test_a_childs_memory_is_kept() -> None:
    """A stateful child remembers through the wrapper; without one the wrapper has nothing to remember."""
    memory: dict[str, Any] = {}
    ZoneSpill(child=RoundRobin()).remember(memory, FROM_X, candidates(_view({}))[0])

    assert memory == {"counter": 1}
    assert not hasattr(ZoneSpill(), "remember")
