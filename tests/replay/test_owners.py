"""Intervals of ownership."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest

from lookup.engine.channel.service_unit import ServiceUnitState
from lookup.engine.ownership import HandOver, HandOvers, OwnerChange
from lookup.model.broker import Broker, Roster
from lookup.replay.owners import OwnerIntervals

ROSTER = Roster([Broker("a:1"), Broker("b:1")])


def _told(intervals: OwnerIntervals, end_us: int = 1000) -> list[tuple[Any, ...]]:
    return [astuple(one) for one in intervals.rows(end_us)]


def test_an_interval_ends_for_a_reason_or_not_at_all() -> None:
    """A loss ends the open interval; the next owner begins another, which lasts."""
    intervals = OwnerIntervals(ROSTER)
    intervals.note(OwnerChange(5, "x", None, 0, "first"))
    intervals.note(OwnerChange(9, "x", 0, None, "forced"))
    intervals.note(OwnerChange(9, "x", 0, 1, "forced"))

    assert _told(intervals) == [("x", "a:1", 5, 9, "forced", "Owned"), ("x", "b:1", 9, None, None, "Owned")]


def test_children_of_a_split_go_on_with_the_owner() -> None:
    """A split ends the parent's interval and begins one for each child; without owner nothing begins."""
    intervals = OwnerIntervals(ROSTER)
    intervals.note(OwnerChange(5, "x", None, 0, "first"))
    intervals.split("x", ("y", "z"), 7)
    intervals.split("unowned", ("v", "w"), 7)

    assert _told(intervals) == [
        ("x", "a:1", 5, 7, "split", "Owned"),
        ("y", "a:1", 7, None, None, "Owned"),
        ("z", "a:1", 7, None, None, "Owned"),
    ]


def _moved(ts_us: int, *course: str) -> HandOver | None:
    return HandOvers(10).begin("x", tuple(map(ServiceUnitState, course)), ts_us, 0)


def _transferred(lost_us: int | None) -> OwnerIntervals:
    """Let `x` go from a:1 to b:1 at 20, in two states of 10 each, and b:1 be lost."""
    intervals = OwnerIntervals(ROSTER)
    intervals.note(OwnerChange(5, "x", None, 0, "first"))
    intervals.note(OwnerChange(20, "x", 0, None, "shed"))
    intervals.note(OwnerChange(20, "x", 0, 1, "shed", hand_over=_moved(20, "Releasing", "Assigning")))
    if lost_us is not None:
        intervals.note(OwnerChange(lost_us, "x", 1, None, "forced"))
    return intervals


@pytest.mark.parametrize(
    ("lost_us", "rows"),
    [
        (None, [("Releasing", 20, 30, "settled"), ("Assigning", 30, 40, "settled"), ("Owned", 40, None, None)]),
        (45, [("Releasing", 20, 30, "settled"), ("Assigning", 30, 40, "settled"), ("Owned", 40, 45, "forced")]),
        (40, [("Releasing", 20, 30, "settled"), ("Assigning", 30, 40, "settled"), ("Owned", 40, 40, "forced")]),
        (39, [("Releasing", 20, 30, "settled"), ("Assigning", 30, 39, "forced")]),
        (25, [("Releasing", 20, 25, "forced")]),
    ],
)
def test_a_transfer_goes_through_states_as_far_as_it_comes(lost_us: int | None, rows: list[object]) -> None:
    """All of them are the destination's; what was to come after a loss never was."""
    told = _told(_transferred(lost_us))

    assert told[0] == ("x", "a:1", 5, 20, "shed", "Owned")
    assert [(state, begin, end, why) for _, _, begin, end, why, state in told[1:]] == rows
    assert {broker for _, broker, *_ in told[1:]} == {"b:1"}


@pytest.mark.parametrize(
    ("end_us", "rows"),
    [
        (41, [(20, 30, "settled"), (30, 40, "settled"), (40, None, None)]),
        (40, [(20, 30, "settled"), (30, None, None)]),
        (30, [(20, None, None)]),
    ],
)
def test_a_log_that_ends_knows_nothing_of_what_follows(end_us: int, rows: list[object]) -> None:
    """A state that lasts to the end of the log or beyond has no end; what begins there is left out."""
    told = [row[2:5] for row in _told(_transferred(None), end_us)]

    assert told[1:] == rows


def test_children_begin_when_their_parent_has_split() -> None:
    """The parent is Splitting as one, until its owner is lost; a child that was not yet to be leaves no row."""
    for lost_us, expected in (
        (None, [("x", 20, 30, "settled"), ("y", 30, None, None), ("z", 30, None, None)]),
        (25, [("x", 20, 25, "forced")]),
    ):
        intervals = OwnerIntervals(ROSTER)
        intervals.note(OwnerChange(5, "x", None, 0, "first"))
        intervals.split("x", ("y", "z"), 20, _moved(20, "Splitting"))
        for child in ("y", "z") if lost_us else ():
            intervals.note(OwnerChange(lost_us or 0, child, 0, None, "forced"))

        assert [(row[0], *row[2:5]) for row in _told(intervals)[1:]] == expected


def test_a_free_bundle_splits_without_a_trace() -> None:
    """What was released to nobody and has settled has no owner that could go on."""
    intervals = OwnerIntervals(ROSTER)
    intervals.note(OwnerChange(5, "x", None, 0, "first"))
    intervals.note(OwnerChange(20, "x", 0, None, "admin", hand_over=_moved(20, "Releasing")))
    intervals.split("x", ("y", "z"), 50)

    assert _told(intervals)[1:] == [("x", None, 20, 30, "settled", "Releasing")]
