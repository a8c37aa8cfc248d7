"""Chooses by hashes of bundle and broker: rendezvous hashing, and a ring on which brokers have bounds."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.model import Broker, ClusterView
from lookup.testing import broker, cluster, engine_request, request
from lookup_policies.hashing import BoundedConsistentHash, Rendezvous
from tests.plugins.worlds import shares

BUNDLES = [f"public/default/{place:#010x}_{place + 1:#010x}" for place in range(3000)]
IDS = ("b1", "b2", "b3", "b4")


def _owners(part: Rendezvous, view: ClusterView, *broker_ids: str) -> dict[str, str]:
    return {bundle: next(iter(shares(part, view, *broker_ids, asked=engine_request(bundle)))) for bundle in BUNDLES}


def test_only_the_keys_of_a_lost_broker_move() -> None:
    """When a broker goes, every bundle of the others stays where it is."""
    view = cluster(*IDS)
    before, after = _owners(Rendezvous(), view), _owners(Rendezvous(), view, "b1", "b2", "b3")

    assert all(after[bundle] == owner for bundle, owner in before.items() if owner != "b4")


@pytest.mark.parametrize(
    ("brokers", "part"),
    [
        ([broker("b1", capacity=100.0), broker("b2", capacity=300.0)], Rendezvous()),
        ([broker("b1", weight="1"), broker("b2", weight="3")], Rendezvous(weight_property="weight")),
        ([broker("b1", weight="heavy"), broker("b2", weight="3")], Rendezvous(weight_property="weight")),
        ([broker("b1", weight="-2"), broker("b2", weight="3")], Rendezvous(weight_property="weight")),
    ],
    ids=["capacity", "property", "no-number-is-1", "negative-is-1"],
)
def test_shares_follow_the_weights(brokers: list[Broker], part: Rendezvous) -> None:
    """A broker of three times the weight owns three times the bundles."""
    owned = Counter(_owners(part, cluster(*brokers)).values())

    assert owned["b2"] / len(BUNDLES) == pytest.approx(0.75, abs=0.03)


def test_an_unknown_capacity_counts_as_the_mean() -> None:
    """A broker nobody described gets an average share."""
    view = cluster(broker("b1", capacity=100.0), broker("b2", capacity=300.0), "b3")
    owned = Counter(_owners(Rendezvous(), view).values())

    assert owned["b3"] / len(BUNDLES) == pytest.approx(1 / 3, abs=0.03)


def test_equal_keys_meet() -> None:
    """Bundles of clients with the same value of a property go to one broker."""
    part, view = Rendezvous(key="properties.team"), cluster(*IDS)
    asked = [request(f"persistent://public/default/t{place}", properties={"team": "red"}) for place in range(20)]

    assert len({tuple(shares(part, view, asked=one)) for one in asked}) == 1


@pytest.mark.parametrize("key", ["topic", "client", "properties.team"])
def test_a_missing_key_is_replaced_by_the_bundle(key: str) -> None:
    """A request of the engine goes where its bundle's name says."""
    view = cluster(*IDS)
    asked = [engine_request(bundle) for bundle in BUNDLES[:20]]

    assert [shares(Rendezvous(key=key), view, asked=one) for one in asked] == [
        shares(Rendezvous(), view, asked=one) for one in asked
    ]


def test_production_places_as_it_always_did() -> None:
    """Without a salt the owners of some bundles never change, or an upgrade would move them."""
    owners = _owners(Rendezvous(), cluster(*IDS))

    assert "".join(owners[bundle][1] for bundle in BUNDLES[:24]) == "443442223124214333444311"


@pytest.mark.parametrize("key", ["colour", "properties", "bundle.name", "properties."])
def test_a_key_nobody_has_is_refused(key: str) -> None:
    """A misspelt key is a sentence that lists the known ones."""
    with pytest.raises(ValueError, match=f"rendezvous cannot hash key = '{key}'; known: domain, tenant, .*, listener"):
        Rendezvous(key=key)


RING_IDS = ("b1", "b2", "b3", "b4", "b5")


def _bundle(place: int) -> str:
    return f"public/default/{place:#010x}_{place + 1:#010x}"


def _placed(
    part: BoundedConsistentHash, count: int, *ids: str, start: dict[str, str] | None = None, salt: str = ""
) -> dict[str, str]:
    owned = dict(start or {})
    for bundle in (_bundle(place) for place in range(count)):
        if bundle not in owned:
            view = cluster(*RING_IDS, owned=owned, salt=salt)
            (owned[bundle],) = shares(part, view, *ids, asked=engine_request(bundle))
    return owned


@settings(max_examples=20)
@given(st.floats(0.01, 2.0), st.integers(1, 60))
def test_nobody_owns_more_than_the_cap(epsilon: float, count: int) -> None:
    """Placed one after the other, no broker exceeds its share by more than epsilon."""
    owned = Counter(_placed(BoundedConsistentHash(epsilon), count, *RING_IDS).values())

    assert max(owned.values()) <= math.ceil((1 + epsilon) * count / len(RING_IDS))


def test_few_bundles_move_when_a_broker_leaves() -> None:
    """Without a bound that bites, only the lost broker's bundles find new owners."""
    part = BoundedConsistentHash(epsilon=100.0)
    before, after = _placed(part, 200, *RING_IDS), _placed(part, 200, *RING_IDS[:-1])

    assert all(after[bundle] == owner for bundle, owner in before.items() if owner != "b5")


def test_with_many_points_the_ring_is_nearly_even() -> None:
    """Without a bound that bites, 500 points per broker keep everybody within a fifth of the mean."""
    owned = Counter(_placed(BoundedConsistentHash(epsilon=100.0, points=500), 400, *RING_IDS).values())

    assert max(owned.values()) < 1.2 * 400 / len(RING_IDS)


def test_production_places_on_the_ring_as_it_always_did() -> None:
    """Without a salt the owners of some bundles never change, or an upgrade would move them."""
    owners = _placed(BoundedConsistentHash(), 24, *RING_IDS)

    assert "".join(owner[1] for owner in owners.values()) == "534232511532423413145345"
