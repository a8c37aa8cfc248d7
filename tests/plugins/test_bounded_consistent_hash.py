"""The selector `bounded-consistent-hash`."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.testing import cluster, engine_request
from lookup_policies._hashing import digest
from lookup_policies.bounded_consistent_hash import BoundedConsistentHash
from tests.plugins.worlds import shares

IDS = ("b1", "b2", "b3", "b4", "b5")


def _bundle(place: int) -> str:
    return f"public/default/{place:#010x}_{place + 1:#010x}"


def _placed(
    part: BoundedConsistentHash, count: int, *ids: str, start: dict[str, str] | None = None, salt: str = ""
) -> dict[str, str]:
    owned = dict(start or {})
    for bundle in (_bundle(place) for place in range(count)):
        if bundle not in owned:
            view = cluster(*IDS, owned=owned, salt=salt)
            (owned[bundle],) = shares(part, view, *ids, asked=engine_request(bundle))
    return owned


@settings(max_examples=20)
@given(st.floats(0.01, 2.0), st.integers(1, 60))
def test_nobody_owns_more_than_the_cap(epsilon: float, count: int) -> None:
    """Placed one after the other, no broker exceeds its share by more than epsilon."""
    owned = Counter(_placed(BoundedConsistentHash(epsilon), count, *IDS).values())

    assert max(owned.values()) <= math.ceil((1 + epsilon) * count / len(IDS))


def test_a_full_broker_is_passed_over_clockwise() -> None:
    """Where the first broker on the ring is full, the bundle goes to another, and always to the same one."""
    part, asked = BoundedConsistentHash(), engine_request()
    (first,) = shares(part, cluster(*IDS), asked=asked)
    full = cluster(*IDS, owned={_bundle(place): first for place in range(4)})
    (second,) = shares(part, full, asked=asked)

    assert second != first
    assert shares(part, cluster(*IDS), *(one for one in IDS if one != first), asked=asked) == {second: 1.0}


def test_the_ring_is_closed() -> None:
    """With one point per broker a bundle goes to the nearest clockwise, past the end of the ring to its beginning."""
    ring = {one: digest(f"{one}\0{0}") for one in IDS}

    def nearest(bundle: str) -> str:
        return min(IDS, key=lambda one: (ring[one] - digest(bundle)) % 2**64)

    expected = {bundle: nearest(bundle) for bundle in map(_bundle, range(100))}
    assert _placed(BoundedConsistentHash(epsilon=1000.0, points=1), 100, *IDS) == expected


def test_few_bundles_move_when_a_broker_leaves() -> None:
    """Without a bound that bites, only the lost broker's bundles find new owners."""
    part = BoundedConsistentHash(epsilon=100.0)
    before, after = _placed(part, 200, *IDS), _placed(part, 200, *IDS[:-1])

    assert all(after[bundle] == owner for bundle, owner in before.items() if owner != "b5")


def test_with_many_points_the_ring_is_nearly_even() -> None:
    """Without a bound that bites, 500 points per broker keep everybody within a fifth of the mean."""
    owned = Counter(_placed(BoundedConsistentHash(epsilon=100.0, points=500), 400, *IDS).values())

    assert max(owned.values()) < 1.2 * 400 / len(IDS)


def test_each_salt_is_another_ring() -> None:
    """Two salts agree about as many bundles as chance alone would have it, and arcs have other lengths."""
    part = BoundedConsistentHash(epsilon=1000.0, points=1)
    first, second = (_placed(part, 500, *IDS, salt=salt) for salt in ("1", "2"))
    before, after = Counter(first.values()), Counter(second.values())

    assert sum(second[bundle] == owner for bundle, owner in first.items()) < 0.5 * 500
    assert max(abs(before[one] - after[one]) for one in IDS) > 0.1 * 500


def test_production_places_as_it_always_did() -> None:
    """Without a salt the owners of some bundles never change, or an upgrade would move them."""
    owners = _placed(BoundedConsistentHash(), 24, *IDS)

    assert "".join(owner[1] for owner in owners.values()) == "534232511532423413145345"
