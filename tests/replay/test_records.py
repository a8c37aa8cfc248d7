"""Intervals of ownership; DECISIONS, OWNERS and CYCLES as tables."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lookup.engine.ballots import Decided
from lookup.engine.cycles import CycleReport
from lookup.engine.ownership import OwnershipChange
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


def _told(intervals: OwnerIntervals) -> list[tuple[Any, ...]]:
    # Without the reason of a shedder, the last field.
    return [astuple(one)[:-1] for one in intervals.rows]


def test_an_interval_ends_for_a_reason_or_not_at_all() -> None:
    """A loss ends the open interval; the next owner begins another, which lasts."""
    intervals = OwnerIntervals()
    intervals.note(OwnershipChange(5, "x", None, "a:1", "first"))
    intervals.note(OwnershipChange(9, "x", "a:1", None, "forced"))
    intervals.note(OwnershipChange(9, "x", "a:1", "b:1", "forced"))

    assert _told(intervals) == [("x", "a:1", 5, 9, "forced"), ("x", "b:1", 9, None, None)]


def test_children_of_a_split_go_on_with_the_owner() -> None:
    """A split ends the parent's interval and begins one for each child; without owner nothing begins."""
    intervals = OwnerIntervals()
    intervals.note(OwnershipChange(5, "x", None, "a:1", "first"))
    intervals.split("x", ("y", "z"), 7)
    intervals.split("unowned", ("v", "w"), 7)

    assert _told(intervals) == [("x", "a:1", 5, 7, "split"), ("y", "a:1", 7, None, None), ("z", "a:1", 7, None, None)]


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
    intervals = [OwnerInterval("x", "a", 1, 2, "shed", reason=CycleReason.UNDERLOADED), OwnerInterval("y", "a", 1)]
    write_table(owner_table(NAME, intervals), str(tmp_path / "owners"), "0.parquet")
    table = pq.read_table(tmp_path / "owners")

    assert table.schema.names == OWNERS.names
    assert table.column("ended_by").to_pylist() == ["shed", None]
    assert table.column("reason").to_pylist() == ["underloaded", None]
    assert table.column("to").cast("int64").to_pylist() == [2, None]


def test_cycles_are_written_with_what_the_shedder_did_not_say_as_null() -> None:
    """A part of a third party need not say how far brokers were over."""
    rejected = {Reason.GRACE_PERIOD: 2, Reason.NOT_OWNER: 1}
    outcomes = [
        CycleOutcome(CycleLabel.SUCCESS, CycleReason.OVERLOADED, 0.5, 0.2, 0.1, over=1, excess=0.25),
        CycleOutcome(CycleLabel.SKIP, CycleReason.HIT_COUNT),
    ]
    reports = [CycleReport(outcomes[0], (Unload("t/n/x", "a"),), rejected), CycleReport[Unload](outcomes[1], (), {})]
    first, second = cycle_table(NAME, [Cycle(5, report) for report in reports]).to_pylist()

    assert cycle_table(NAME, []).schema == CYCLES
    assert (first["policy"], first["role"], first["label"], first["reason"]) == (
        "p",
        "shedder",
        "success",
        "overloaded",
    )
    assert (first["over"], first["excess"], first["accepted"]) == (1, 0.25, 1)
    assert dict(first["rejected"]) == {"grace-period": 2, "not-owner": 1}
    assert (second["average"], second["over"], second["excess"], second["accepted"]) == (None, None, None, 0)
