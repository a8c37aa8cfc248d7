"""Dice, and decisions drawn from ballots."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.ballots import Ballot, Draws, roll
from lookup.model.broker import Broker, Roster
from lookup.model.decision import Reason

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


ROSTER = Roster([Broker("a"), Broker("b")])
EVEN = Ballot(numbers=(0, 1), cumulative=(0.5, 1.0), odds={"a": 0.5, "b": 0.5})
ALONE = Ballot(numbers=(1,), cumulative=(1.0,), odds={"b": 1.0})
DECLINED = Ballot(declined=Reason.NO_CANDIDATES, rejected={Reason.FILTERED: 2})


def test_each_draw_of_a_bundle_is_its_next_roll() -> None:
    """Counted by bundle, and only where dice were needed."""
    draws = Draws("p", "east", 7)
    drawn = []
    for ballot in (EVEN, ALONE, DECLINED, EVEN, EVEN):
        drawn.append(draws.decision("t/n/x", ballot, ROSTER, "f").broker)
        draws.decision("t/n/other", EVEN, ROSTER, "f")

    rolled = ["ab"[roll(7, "east", "t/n/x", rolls) >= 0.5] for rolls in range(3)]
    assert drawn == [rolled[0], "b", None, rolled[1], rolled[2]]


def test_a_decision_says_how_it_came_about() -> None:
    """What the ballot said goes with it; a declined one has no propensity."""
    draws = Draws("p", "east", 7)
    alone, declined = (draws.decision("t/n/x", ballot, ROSTER, "f") for ballot in (ALONE, DECLINED))

    assert (alone.policy, alone.bundle, alone.propensity, alone.odds, alone.fingerprint) == (
        "p",
        "t/n/x",
        1.0,
        {"b": 1.0},
        "f",
    )
    assert (declined.propensity, declined.declined, declined.rejected) == (
        None,
        Reason.NO_CANDIDATES,
        {Reason.FILTERED: 2},
    )
