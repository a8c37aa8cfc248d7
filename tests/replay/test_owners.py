"""Intervals of ownership."""

from __future__ import annotations

from dataclasses import astuple

from lookup.engine.booking import OwnerChange
from lookup.model.broker import Broker, Roster
from lookup.replay.owners import OwnerIntervals

ROSTER = Roster([Broker("a:1"), Broker("b:1")])


def test_an_interval_ends_for_a_reason_or_not_at_all() -> None:
    """A loss ends the open interval; the next owner begins another, which lasts."""
    intervals = OwnerIntervals(ROSTER)
    intervals.note(OwnerChange(5, "x", None, 0, "first"))
    intervals.note(OwnerChange(9, "x", 0, None, "forced"))
    intervals.note(OwnerChange(9, "x", 0, 1, "forced"))

    assert [astuple(one) for one in intervals.all] == [("x", "a:1", 5, 9, "forced"), ("x", "b:1", 9, None, None)]


def test_children_of_a_split_go_on_with_the_owner() -> None:
    """A split ends the parent's interval and begins one for each child; without owner nothing begins."""
    intervals = OwnerIntervals(ROSTER)
    intervals.note(OwnerChange(5, "x", None, 0, "first"))
    intervals.split("x", ("y", "z"), 7)
    intervals.split("unowned", ("v", "w"), 7)

    assert [astuple(one) for one in intervals.all] == [
        ("x", "a:1", 5, 7, "split"),
        ("y", "a:1", 7, None, None),
        ("z", "a:1", 7, None, None),
    ]
