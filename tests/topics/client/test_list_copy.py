"""The list a client holds: every message of a watch is an edit of it."""

from __future__ import annotations

from lookup.topics.client import ListChange, ListCopy
from lookup.topics.listing import topics_hash
from lookup.topics.watching import Resync, Snapshot, Update


def _change(removed: str = "", added: str = "") -> ListChange:
    return ListChange(frozenset(removed), frozenset(added))


def test_messages_are_applied_in_turn() -> None:
    """Removed first and added then; a whole list is what it changes, and an unchanged one changes nothing."""
    topics = ListCopy()

    assert topics.take(Snapshot(1, 1, ("a", "b"), "1")) == _change(added="ab")
    assert topics.take(Update(1, ("a", "b"), ("a",), "2")) == _change("ab", "a")
    assert topics.take(Resync(1, ("c",), "3")) == _change("a", "c")
    assert topics.take(Snapshot(1, 1, (), "3", changed=False)) == _change()
    assert topics.take(Update(1, ("x",), ("c",), "3")) == _change()
    assert (topics.topics, topics.topics_hash) == ({"c"}, topics_hash(["c"]))
