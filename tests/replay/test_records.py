"""Intervals of ownership; DECISIONS, OWNERS and CYCLES as tables."""

from __future__ import annotations

from lookup.engine.cycles import CycleReport
from lookup.logs.schema import CYCLES
from lookup.model.decision import CycleLabel, CycleOutcome, CycleReason, Reason, Unload
from lookup.replay.records import Cycle, RunName, cycle_table

NAME = RunName("east", "p", 7)


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
