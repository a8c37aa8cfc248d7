"""The selector `best-fit`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lookup.engine.manager import LoadManager
from lookup.engine.policy import Policy
from lookup.model import Broker, ClusterView, Roster
from lookup.testing import broker, cluster, request
from lookup_policies.best_fit import BestFit
from tests.plugins.cycles import loading
from tests.plugins.worlds import shares

RACKS = (broker("a1", capacity=100.0, rack="a"), broker("b1", capacity=100.0, rack="b"))
NEAR = BestFit(near="rack")
FROM_A = request(properties={"rack": "a"})


def _carrying(*loads: float, of: tuple[Broker, ...] = RACKS, own: float | None = 4.0) -> ClusterView:
    """Return the view of brokers with such loads; the bundle that is asked about carries some."""
    names = [one.id for one in of]
    view = cluster(*of, throughput=dict(zip(names, loads, strict=True)))
    return view if own is None else loading(view, long_term_bundle_rates={FROM_A.bundle: own})


def test_it_is_the_least_filled_with_the_bundle() -> None:
    """8 of 10 become 12 of 10; 70 of 100 become 74."""
    of = (broker("large", capacity=100.0), broker("small", capacity=10.0))

    assert shares(BestFit(), _carrying(60.0, 5.0, of=of)) == {"large": 1.0}
    assert shares(BestFit(), _carrying(60.0, 1.0, of=of)) == {"small": 1.0}
    assert shares(BestFit(), _carrying(60.0, 1.0, of=of, own=6.0)) == {"large": 1.0}


@pytest.mark.parametrize("unit", [1.0, 1e-10, 1e10])
def test_units_do_not_matter(unit: float) -> None:
    """Loads in lookups beside capacities in bytes are far below 1."""
    assert shares(BestFit(), _carrying(5.0 * unit, 4.0 * unit, own=unit)) == {"b1": 1.0}


def test_equal_ones_have_equal_odds() -> None:
    """Nothing else decides between them."""
    assert shares(BestFit(), _carrying(30.0, 30.0)) == {"a1": 0.5, "b1": 0.5}
    assert shares(BestFit(), cluster("x", "y")) == {"x": 0.5, "y": 0.5}


@pytest.mark.parametrize(("load", "broker_id"), [(48.0, "a1"), (60.0, "b1")])
def test_a_near_broker_is_preferred_while_it_is_not_too_full(load: float, broker_id: str) -> None:
    """Up to 1.2 times the mean, the bundle included; then balance decides."""
    assert shares(NEAR, _carrying(load, 35.0), asked=FROM_A) == {broker_id: 1.0}


def test_a_client_that_does_not_say_where_it_is_leaves_balance() -> None:
    """So does one whose place has no broker."""
    assert shares(NEAR, _carrying(31.0, 30.0)) == {"b1": 1.0}
    assert shares(NEAR, _carrying(31.0, 30.0), asked=request(properties={"rack": "q"})) == {"b1": 1.0}


def test_where_most_of_a_bundles_clients_are_counts_more_than_who_asks() -> None:
    """The lookups of the last minutes say more than one of them."""
    view = loading(_carrying(30.0, 30.0), origins={"rack": {FROM_A.bundle: {"a": 1.0, "b": 2.0}}})

    assert shares(NEAR, view, asked=FROM_A) == {"b1": 1.0}


def test_a_broker_without_report_comes_last() -> None:
    """It is chosen if no other is offered; without any report all are alike."""
    view = _carrying(90.0, float("nan"))

    assert shares(BestFit(), view) == {"a1": 1.0}
    assert shares(BestFit(), view, "b1") == {"b1": 1.0}


def test_a_broker_without_capacity_is_no_choice() -> None:
    """Unless nothing else is left."""
    view = replace(_carrying(90.0, 0.0), capacity=np.array([100.0, 0.0]))

    assert shares(BestFit(), view) == {"a1": 1.0}
    assert shares(BestFit(), view, "b1") == {"b1": 1.0}


def _assigned(view: ClusterView, *bundles: str) -> list[Any]:
    manager = LoadManager(Policy("p", BestFit()), "east", Roster(list(view.brokers)))
    manager.begin_tick(60)
    manager.set_registry(view.brokers, view.registered)
    manager.set_load(view.load)
    for bundle in bundles:
        manager.assign(None, bundle)
    return [manager.ownership.owner(bundle) for bundle in bundles]


def test_bundles_given_since_the_report_count() -> None:
    """Bundles that come in one go are spread out, by what they carry, or as mean ones if that is unknown."""
    names = [f"t/n{number}/0x00000000_0xffffffff" for number in range(4)]
    known = loading(_carrying(0.0, 0.0), long_term_bundle_rates=dict(zip(names, (9.0, 2.0, 3.0, 2.0), strict=True)))

    assert _assigned(known, *names)[1:] == [1 - _assigned(known, *names)[0]] * 3
    assert sorted(_assigned(_carrying(0.0, 0.0, own=None), *names)) == [0, 0, 1, 1]
