"""Distances and costs by hand."""

from __future__ import annotations

from typing import Any

import pytest

from lookup.hooks import Metric
from lookup.model.batch import ClientClass
from lookup.model.broker import Location
from lookup.model.topology import Edge, Topology
from lookup.score.metrics import NetworkCost, NetworkMsP95
from tests.score.oracle import Happenings, Lookup
from tests.score.worlds import HOUR, batch_of, labelled

NEAR, FAR, LOST = Location("eu", "z1"), Location("us", "z1"), Location()
HERE = labelled("here:8080", location=NEAR)
UNKNOWN = labelled("unknown:8080")


def value(metric: Metric, clients: list[tuple[Location, float]], **settings: Any) -> float:
    """Measure clients at places, with weights, all served by the broker `here`."""
    lookups = [Lookup("c", 0, "b0", HERE, ClientClass(location=place), weight) for place, weight in clients]
    world = Happenings(lookups, (), {("c", 0): frozenset({HERE.id})}, HOUR, **settings)
    sums = metric.accumulate(batch_of(world, [HERE, UNKNOWN]), None)
    return float(metric.value(sums if metric.resample == "none" else sums.sum(axis=0)))


@pytest.mark.parametrize(("far", "expected"), [(4.9, 0.05), (5.0, 0.05), (5.1, 30.0)])
def test_the_quantile_is_the_smallest_distance_that_reaches_95_percent(far: float, expected: float) -> None:
    """With exactly 5 % beyond, the near distance still holds 95 %."""
    assert value(NetworkMsP95(), [(NEAR, 100.0 - far), (FAR, far)]) == pytest.approx(expected)


def test_quantiles_add_over_batches() -> None:
    """The rows of two batches are the same distances, also along links and in both directions."""
    topology = Topology(edges=(Edge("eu", "us", 80.0), Edge("us", "as", 0.1)))
    asia = Location("as", "z1")

    assert value(NetworkMsP95(), [(asia, 1.0)], topology=topology) == pytest.approx(80.1)


def test_costs_are_bytes_times_price() -> None:
    """Weight 2 of 5 GB each to another region at 0.02 costs 0.2."""
    assert value(NetworkCost(), [(FAR, 2.0)], bytes_per_weight=5e9) == pytest.approx(0.2)
