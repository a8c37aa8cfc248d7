"""Sums of a shedder's cycles, and the sentence on why nothing moved."""

from __future__ import annotations

import math

from lookup.engine.cycle_sums import CycleSums
from lookup.engine.cycles import CycleReport
from lookup.model import CycleLabel, CycleOutcome, CycleReason, Reason, Shortfall, Unload


def _idle(reason: CycleReason, short: Shortfall | None = None, refused: int = 0) -> CycleReport[Unload]:
    outcome = CycleOutcome(CycleLabel.SKIP, reason, excess=0.0, short=short)
    return CycleReport(outcome, (), {Reason.OWNER_CHOSEN: refused} if refused else {})


def _to_unload(figure: float, limit: float = 10.0) -> Shortfall:
    return Shortfall(figure, "MiB/s to unload", limit)


def test_the_cycle_that_came_nearest_is_told() -> None:
    """For each reason, over all runs; what is no number does not count."""
    sums = CycleSums.of("threshold", [_idle(CycleReason.TOO_LITTLE, _to_unload(figure)) for figure in (2, 8, math.nan)])
    sums.add(CycleSums.of("threshold", [_idle(CycleReason.TOO_LITTLE, _to_unload(5)), _idle(CycleReason.HIT_COUNT)]))

    assert sums.idleness is not None
    assert " 5 cycles " in sums.idleness
    assert sums.idleness.endswith("too little to offload 4 (at most 8 MiB/s to unload, minimum 10), balanced 1")


def test_refusals_say_why_bundles_stayed() -> None:
    """Where a shedder named bundles, and none was unloaded."""
    sums = CycleSums.of("threshold", [_idle(CycleReason.NO_BUNDLES, refused=2), _idle(CycleReason.NO_BUNDLES)])

    assert sums.idleness is not None
    assert sums.idleness.endswith(" 2 (2 proposals refused: owner-chosen)")


def test_who_unloads_or_never_ran_needs_no_sentence() -> None:
    """One unload in all cycles is enough."""
    done = CycleReport(CycleOutcome(CycleLabel.SUCCESS, CycleReason.OVERLOADED), (Unload("t/n/b", "a"),), {})

    assert CycleSums.of("avg", [_idle(CycleReason.HIT_COUNT), done]).idleness is None
    assert CycleSums.of("avg", []).idleness is None
