"""Cycles of shedders, added up."""

from __future__ import annotations

import json
import math

from lookup.engine.cycle_sums import CycleSums
from lookup.engine.cycles import CycleReport
from lookup.model.decision import CycleLabel, CycleOutcome, CycleReason, Reason, Unload
from lookup.replay.outcome import cycles_by_policy


def _cycle(
    reason: CycleReason, accepted: int = 0, refused: int = 0, excess: float | None = None
) -> CycleReport[Unload]:
    outcome = CycleOutcome(CycleLabel.SUCCESS if accepted else CycleLabel.SKIP, reason, excess=excess)
    rejected = {Reason.GRACE_PERIOD: refused} if refused else {}
    return CycleReport(outcome, (Unload("t/n/x", "a"),) * accepted, rejected)


def test_cycles_are_pooled_by_policy() -> None:
    """Reasons, unloads and refusals are added, of excesses the largest of each reason is kept."""
    one = CycleSums.of("avg", [_cycle(CycleReason.OVERLOADED, 2, 1, 0.25), _cycle(CycleReason.HIT_COUNT, excess=0.0)])
    other = CycleSums.of("avg", [_cycle(CycleReason.OVERLOADED, 1, 4, 0.5)])
    found = cycles_by_policy([("p", one), ("q", None), ("p", other)])

    assert found["p"].document() == {
        "shedder": "avg",
        "cycles": 3,
        "reasons": {"hit-count": 1, "overloaded": 2},
        "accepted": 3,
        "refused": {"grace-period": 5},
        "excess": {"hit-count": 0.0, "overloaded": 0.5},
        "short": {},
    }
    assert found.keys() == {"p"}


def test_what_a_shedder_does_not_say_is_left_out() -> None:
    """As is what is no number: the sums are JSON."""
    cycles = [_cycle(CycleReason.OVERLOADED, 1), _cycle(CycleReason.NO_BUNDLES, excess=math.nan)]
    found = CycleSums.of("mine", cycles).document()

    assert found["excess"] == {}
    assert json.loads(json.dumps(found, allow_nan=False)) == found
