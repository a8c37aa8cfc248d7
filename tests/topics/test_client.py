"""A client's lists of several servers."""

from __future__ import annotations

import pytest

from lookup.errors import PatternError
from lookup.topics.client import ServerLists
from lookup.topics.listing import TopicQuery
from lookup.topics.watching import Snapshot, Trouble, Update
from tests.topics.filled import HERE, name_of

_A, _B, _C = (name_of(local) for local in "abc")
_NONE: frozenset[str] = frozenset()
_LOST = Trouble("away", is_lost=True)


def _lists(*servers: str, pattern: str = ".*") -> ServerLists:
    return ServerLists(TopicQuery(HERE, pattern=pattern), servers)


def test_a_list_is_all_that_any_server_has() -> None:
    """A topic leaves it once the last server has lost it; before all have answered it is a part."""
    lists = _lists("one", "two")

    assert lists.take("one", Snapshot("1-1", [_A, _B])) == (_NONE, {_A, _B})
    assert lists.is_partial
    assert lists.take("two", Snapshot("1-1", [_B, _C])) == (_NONE, {_C})
    assert not lists.is_partial
    assert lists.take("one", Update("2-2", [_B], [])) == (_NONE, _NONE)
    assert lists.take("two", Update("2-2", [_B], [])) == ({_B}, _NONE)
    assert lists.topics == {_A, _C}


def test_a_server_that_is_lost_keeps_its_topics() -> None:
    """The list is a part until it is back, with the changes since or with all of its topics."""
    for message in (Update("2-2", [], []), Snapshot("2-2", [_A])):
        lists = _lists("one")
        lists.take("one", Snapshot("1-1", [_A]))
        lists.take("one", Trouble("its own lister fails"))
        assert not lists.is_partial
        assert lists.take("one", _LOST) == (_NONE, _NONE)
        assert (lists.topics, lists.is_partial) == ({_A}, True)
        lists.take("one", message)
        assert (lists.topics, lists.is_partial) == ({_A}, False)


def test_topics_of_a_namespace_that_a_server_does_not_know_stay() -> None:
    """As at a server that was made anew, and has not looked at the cluster."""
    lists = _lists("one")
    lists.take("one", Snapshot("1-1", [_A]))

    assert lists.take("one", Snapshot("0-0", [], is_absent=True)) == (_NONE, _NONE)
    assert lists.topics == {_A}


def test_only_topics_that_are_watched_are_taken() -> None:
    """A faulty server names others, and Pulsar's own."""
    lists = _lists("one")
    lists.take("one", Snapshot("1-1", [_A, "persistent://t/n/a", name_of("__change_events")]))
    lists.take("one", Update("2-2", [], ["persistent://t/n/b"]))

    assert lists.topics == {_A}


def test_a_pattern_that_cannot_be_used_is_refused_at_once() -> None:
    """Before anything is asked."""
    with pytest.raises(PatternError, match="lookaround"):
        _lists("one", pattern="(?=a)")
