"""Distances and prices between places."""

from __future__ import annotations

import pytest

from lookup.model import Edge, Location, Topology

HERE = Location("eu", "a", "r1")


@pytest.mark.parametrize(
    ("there", "ms", "price"),
    [
        (HERE, 0.05, 0.0),
        (Location("eu", "a", "r2"), 0.3, 0.0),
        (Location("eu", "b", "r1"), 1.0, 0.01),
        (Location("us", "a", "r1"), 30.0, 0.02),
        (Location("us", "b", "r2"), 30.0, 0.02),
        (Location("eu", "b", "r2"), 1.0, 0.01),
        (Location(rack="r1"), 0.05, 0.0),
        (Location(rack="r9"), 0.3, 0.0),
        (Location("eu"), 0.05, 0.0),
        (Location(), None, None),
    ],
)
def test_the_first_level_that_differs_decides(there: Location, ms: float | None, price: float | None) -> None:
    """Only levels both places know are compared; without any there is no distance."""
    assert Topology().distance(HERE, there) == ms
    assert Topology().distance(there, HERE) == ms
    assert Topology().price(HERE, there) == price


def test_a_level_without_figure_costs_what_the_next_inner_one_does() -> None:
    """Down to what staying costs, and nothing below that."""
    topology = Topology(distance_ms={"same": 0.5, "region": 9.0}, price_per_gb={})

    assert topology.distance(HERE, Location("eu", "b", "r1")) == 0.5
    assert topology.distance(HERE, Location("us")) == 9.0
    assert topology.price(HERE, Location("us")) == 0.0


def test_links_replace_the_levels_figures() -> None:
    """The shortest path by latency for distances, the cheapest for prices."""
    topology = Topology(
        edges=[Edge("eu", "us", 80.0, 0.05), Edge("us", "asia", 70.0, 0.01), Edge("eu", "asia", 200.0, 0.5)]
    )

    assert topology.distance(HERE, Location("us")) == 80.0
    assert topology.distance(HERE, Location("asia")) == 150.0
    assert topology.price(HERE, Location("asia")) == pytest.approx(0.06)


def test_places_without_links_keep_the_levels_figures() -> None:
    """Whether unknown to the links or not connected."""
    topology = Topology(edges=[Edge("eu", "us", 80.0), Edge("moon", "mars", 9000.0)])

    assert topology.distance(HERE, Location("africa")) == 30.0
    assert topology.distance(HERE, Location("mars")) == 30.0
