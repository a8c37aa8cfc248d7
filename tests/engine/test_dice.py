"""The dice: keyed numbers in [0, 1]."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.dice import roll

_TEXTS = st.text(max_size=40)


@given(st.integers(), _TEXTS, _TEXTS, st.integers(0, 10**6))
def test_a_roll_lies_between_zero_and_one(seed: int, cluster: str, bundle: str, rolls: int) -> None:
    """Whatever the key, the number is usable as a probability."""
    assert 0.0 <= roll(seed, cluster, bundle, rolls) <= 1.0


def test_a_roll_is_what_it_always_was() -> None:
    """The value for a key never changes, or old runs could not be repeated."""
    digest = hashlib.blake2b(b"1\x1feast\x1fpublic/default/0x00000000_0x40000000\x1f0").digest()

    assert roll(1, "east", "public/default/0x00000000_0x40000000", 0) == int.from_bytes(digest[:8], "big") / 2**64
    assert roll(1, "east", "public/default/0x00000000_0x40000000", 0) == 0.05560696343977981


def test_every_part_of_the_key_counts() -> None:
    """Another seed, cluster, bundle or number of rolls is another number."""
    keys = [(1, "east", "a/b/c", 0), (2, "east", "a/b/c", 0), (1, "west", "a/b/c", 0), (1, "east", "a/b/d", 0)]

    assert len({roll(*key) for key in [*keys, (1, "east", "a/b/c", 1)]}) == 5


def test_neighbouring_keys_do_not_run_together() -> None:
    """The parts of a key are kept apart, so that moving a letter from one to the next makes another key."""
    assert roll(1, "ab", "c", 0) != roll(1, "a", "bc", 0)


def test_rolls_spread_evenly() -> None:
    """Ten thousand bundles fall into ten equal parts of the unit, each within four standard deviations of its due."""
    parts = [int(roll(7, "east", f"public/default/{bundle}", 0) * 10) for bundle in range(10_000)]

    assert all(abs(parts.count(part) - 1000) < 4 * 30 for part in range(10))
