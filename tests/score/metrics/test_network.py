"""Distances and costs by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lookup.hooks import Metric
from lookup.model.batch import ClientClass
from lookup.model.broker import Location
from lookup.model.topology import Edge, Topology
from lookup.score.metrics import NetworkCost, NetworkCoveredRatio, NetworkMsMean, NetworkMsP95
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


def test_the_mean_is_weighted() -> None:
    """Weight 3 at 0.05 ms and weight 1 at 30 ms are 7.5375 ms on average."""
    assert value(NetworkMsMean(), [(NEAR, 3.0), (FAR, 1.0)]) == pytest.approx((3 * 0.05 + 30.0) / 4)


def test_unknown_places_are_not_covered() -> None:
    """They are left out of the mean and lower the covered share."""
    clients = [(FAR, 1.0), (LOST, 3.0)]

    assert value(NetworkMsMean(), clients) == 30.0
    assert value(NetworkCoveredRatio(), clients) == 0.25


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


def test_costs_need_bytes() -> None:
    """Without `bytes_per_weight` there is no such figure."""
    world = Happenings([], (), {("c", 0): frozenset()}, HOUR)

    assert NetworkCost().keys(batch_of(world, [HERE])) == ()


@pytest.mark.parametrize("metric", [NetworkMsMean(), NetworkMsP95(), NetworkCost()], ids=lambda metric: metric.name)
def test_without_places_there_is_nothing_to_measure(metric: Metric) -> None:
    """No distance is not the same as no cost."""
    assert math.isnan(value(metric, [(LOST, 1.0)], bytes_per_weight=1.0))


def test_an_empty_topology_has_a_distance() -> None:
    """A topology that says nothing puts everybody at 0 ms."""
    assert value(NetworkMsP95(), [(FAR, 1.0)], topology=Topology({}, {})) == 0.0
    assert np.isclose(value(NetworkMsMean(), [(FAR, 1.0)], topology=Topology({}, {})), 0.0)
