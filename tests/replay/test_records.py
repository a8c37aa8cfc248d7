"""Intervals of ownership; DECISIONS, OWNERS and CYCLES as tables."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lookup.engine.ballots import Decided
from lookup.engine.cycles import CycleReport
from lookup.engine.ownership import HandOver, HandOvers, OwnershipChange
from lookup.engine.service_unit import ServiceUnitState
from lookup.logs.schema import CYCLES, DECISIONS, OWNERS
from lookup.model.broker import Broker, Roster
from lookup.model.decision import CycleLabel, CycleOutcome, CycleReason, Decision, Reason, Unload
from lookup.replay.records import (
    Cycle,
    OwnerInterval,
    OwnerIntervals,
    RunName,
    cycle_table,
    decision_table,
    owner_table,
)
from lookup.replay.work import write_table

ROSTER = Roster([Broker("a:1"), Broker("b:1")])


def _told(intervals: OwnerIntervals, end_us: int = 1000) -> list[tuple[Any, ...]]:
    # Without the reason of a shedder, the last field.
    return [astuple(one)[:-1] for one in intervals.rows(end_us)]


def test_an_interval_ends_for_a_reason_or_not_at_all() -> None:
    """A loss ends the open interval; the next owner begins another, which lasts."""
    intervals = OwnerIntervals()
    intervals.note(OwnershipChange(5, "x", None, "a:1", "first"))
    intervals.note(OwnershipChange(9, "x", "a:1", None, "forced"))
    intervals.note(OwnershipChange(9, "x", "a:1", "b:1", "forced"))

    assert _told(intervals) == [("x", "a:1", 5, 9, "forced", "Owned"), ("x", "b:1", 9, None, None, "Owned")]


def test_children_of_a_split_go_on_with_the_owner() -> None:
    """A split ends the parent's interval and begins one for each child; without owner nothing begins."""
    intervals = OwnerIntervals()
    intervals.note(OwnershipChange(5, "x", None, "a:1", "first"))
    intervals.split("x", ("y", "z"), 7)
    intervals.split("unowned", ("v", "w"), 7)

    assert _told(intervals) == [
        ("x", "a:1", 5, 7, "split", "Owned"),
        ("y", "a:1", 7, None, None, "Owned"),
        ("z", "a:1", 7, None, None, "Owned"),
    ]


def _moved(ts_us: int, *course: str) -> HandOver | None:
    return HandOvers(10).begin("x", tuple(map(ServiceUnitState, course)), ts_us, "a:1")


def _transferred(lost_us: int | None) -> OwnerIntervals:
    """Let `x` go from a:1 to b:1 at 20, in two states of 10 each, and b:1 be lost."""
    intervals = OwnerIntervals()
    intervals.note(OwnershipChange(5, "x", None, "a:1", "first"))
    intervals.note(OwnershipChange(20, "x", "a:1", None, "shed"))
    intervals.note(OwnershipChange(20, "x", "a:1", "b:1", "shed", hand_over=_moved(20, "Releasing", "Assigning")))
    if lost_us is not None:
        intervals.note(OwnershipChange(lost_us, "x", "b:1", None, "forced"))
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
        intervals = OwnerIntervals()
        intervals.note(OwnershipChange(5, "x", None, "a:1", "first"))
        intervals.split("x", ("y", "z"), 20, _moved(20, "Splitting"))
        for child in ("y", "z") if lost_us else ():
            intervals.note(OwnershipChange(lost_us or 0, child, "a:1", None, "forced"))

        assert [(row[0], *row[2:5]) for row in _told(intervals)[1:]] == expected


def test_a_free_bundle_splits_without_a_trace() -> None:
    """What was released to nobody and has settled has no owner that could go on."""
    intervals = OwnerIntervals()
    intervals.note(OwnershipChange(5, "x", None, "a:1", "first"))
    intervals.note(OwnershipChange(20, "x", "a:1", None, "admin", hand_over=_moved(20, "Releasing")))
    intervals.split("x", ("y", "z"), 50)

    assert _told(intervals)[1:] == [("x", None, 20, 30, "settled", "Releasing")]


NAME = RunName("east", "p", 7)


def _decided(odds: dict[str, float], rejected: dict[Reason, int], broker: str | None, count: int = 1) -> Decided:
    declined = None if broker else Reason.NO_ODDS
    decision = Decision("p", "t/n/0x0", broker, declined, 0.5, odds, rejected, None, 1, "1/2")
    return Decided(5, decision, count)


def test_odds_of_shared_ballots_stand_in_every_row() -> None:
    """Mappings that are one object, equal ones, and empty ones all come out as they are."""
    shared = {"a": 0.25, "b": 0.75}
    odds = [shared, {}, dict(shared), shared]
    made = [_decided(one, {Reason.VERSION: 2}, "b" if one else None) for one in odds]
    table = decision_table(NAME, made)

    assert table.schema == DECISIONS
    assert [dict(row) for row in table.column("odds").to_pylist()] == odds
    assert [dict(row) for row in table.column("rejected").to_pylist()] == [{str(Reason.VERSION): 2}] * 4
    assert table.column("declined").to_pylist() == [None, str(Reason.NO_ODDS), None, None]


def test_every_row_says_which_replay_it_is_of() -> None:
    """Cluster, policy and seed stand in each row; counts and times are those of the decision."""
    row = decision_table(NAME, [_decided({"a": 1.0}, {}, "a", 3)]).to_pylist()[0]

    assert (row["cluster"], row["policy"], row["seed"], row["count"], row["key"]) == ("east", "p", 7, 3, None)


def test_no_decision_is_a_table_without_rows() -> None:
    """Empty tables have the same columns."""
    assert decision_table(NAME, []).schema == DECISIONS
    assert owner_table(NAME, []).num_rows == 0


def test_intervals_are_written_with_their_end(tmp_path: Path) -> None:
    """An interval that lasts has no end; a table of another run lies in a file of its own."""
    intervals = [
        OwnerInterval("x", "a", 1, 2, "shed", reason=CycleReason.UNDERLOADED),
        OwnerInterval("y", "a", 1),
    ]
    write_table(owner_table(NAME, intervals), str(tmp_path / "owners"), "0.parquet")
    table = pq.read_table(tmp_path / "owners")

    assert table.schema.names == OWNERS.names
    assert table.column("ended_by").to_pylist() == ["shed", None]
    assert table.column("reason").to_pylist() == ["underloaded", None]
    assert table.column("to").cast("int64").to_pylist() == [2, None]


def test_cycles_are_written_with_what_the_shedder_did_not_say_as_null() -> None:
    """A part of a third party need not say how far brokers were over."""
    rejected = {Reason.GRACE_PERIOD: 2, Reason.IN_FLIGHT: 1}
    outcomes = [
        CycleOutcome(CycleLabel.SUCCESS, CycleReason.OVERLOADED, 0.5, 0.2, 0.1, over=1, excess=0.25),
        CycleOutcome(CycleLabel.SKIP, CycleReason.HIT_COUNT),
    ]
    reports = [
        CycleReport(outcomes[0], (Unload("t/n/x", "a"),), rejected),
        CycleReport[Unload](outcomes[1], (), {}),
    ]
    first, second = cycle_table(NAME, [Cycle(5, report) for report in reports]).to_pylist()

    assert cycle_table(NAME, []).schema == CYCLES
    assert (first["policy"], first["role"], first["label"], first["reason"]) == (
        "p",
        "shedder",
        "success",
        "overloaded",
    )
    assert (first["over"], first["excess"], first["accepted"]) == (1, 0.25, 1)
    assert dict(first["rejected"]) == {"grace-period": 2, "in-flight": 1}
    assert (second["average"], second["over"], second["excess"], second["accepted"]) == (None, None, None, 0)
