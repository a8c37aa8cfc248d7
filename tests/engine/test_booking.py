"""Decisions drawn from ballots, and the book of owners."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.ballot import Ballot
from lookup.engine.booking import Draws, OwnerBook, OwnerChange
from lookup.engine.dice import roll
from lookup.engine.ownership import Ownership
from lookup.model.broker import Broker, Roster
from lookup.model.decision import Reason

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


def test_a_new_owner_is_booked_with_the_last_one() -> None:
    """And with why that one lost the bundle; the first owner has none before it."""
    book = OwnerBook(Ownership(2))
    book.give("t/n/x", 0, 1, decided=True)
    book.take("t/n/x", "shed", 2)
    book.give("t/n/x", 1, 3, decided=False)

    assert book.take_changes() == [
        OwnerChange(1, "t/n/x", None, 0, "first", decided=True),
        OwnerChange(2, "t/n/x", 0, None, "shed"),
        OwnerChange(3, "t/n/x", 0, 1, "shed", decided=False),
    ]
    assert book.take_changes() == []


def test_nothing_is_taken_from_nobody() -> None:
    """Neither an owner nor a change, and no past."""
    book = OwnerBook(Ownership(2))

    assert not book.take("t/n/x", "admin", 1)
    book.give("t/n/x", 1, 2, decided=True)
    assert book.take_changes() == [OwnerChange(2, "t/n/x", None, 1, "first", decided=True)]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 1)), max_size=12))
def test_changes_tell_the_owners(steps: list[tuple[bool, int, int]]) -> None:
    """Who reads the changes in their order knows who owns what."""
    ownership = Ownership(2)
    book = OwnerBook(ownership)
    for gives, bundle, broker in steps:
        book.take(f"t/n/{bundle}", "forced", 0)
        if gives:
            book.give(f"t/n/{bundle}", broker, 0, decided=True)

    told = {change.bundle: change.broker for change in book.take_changes()}
    assert {bundle: broker for bundle, broker in told.items() if broker is not None} == dict(ownership)
