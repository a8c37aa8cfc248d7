"""Cycles of shedders: what came of each, and added up by policy why bundles moved, or did not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lookup.engine.cycles import CycleReport
from lookup.model.decision import Unload

__all__ = ["Cycle", "CycleSums", "cycles_by_policy", "sums_of_cycles"]


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle of a shedder, and when it took place."""

    ts_us: int
    report: CycleReport[Unload]


@dataclass
class CycleSums:
    """What the cycles of a policy's shedder came to."""

    shedder: str
    cycles: int = 0
    #: cycles by the reason with which they ended
    reasons: Counter[str] = field(default_factory=Counter)
    #: unloads that took place, and proposals and probes that were refused, by reason
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    #: the largest excess of a cycle by the same reasons; absent if the shedder never says
    excess: dict[str, float] = field(default_factory=dict)

    def add(self, other: CycleSums) -> None:
        """Add the cycles of another run."""
        self.cycles += other.cycles
        self.reasons += other.reasons
        self.accepted += other.accepted
        self.refused += other.refused
        for reason, excess in other.excess.items():
            self.excess[reason] = max(excess, self.excess.get(reason, excess))


def sums_of_cycles(shedder: str, cycles: Sequence[Cycle]) -> CycleSums:
    """Add up the cycles of one run.

    Args:
        shedder: name of the part.
    """
    sums = CycleSums(shedder, len(cycles))
    for cycle in cycles:
        outcome, rejected = cycle.report.outcome, cycle.report.rejected
        reason = str(outcome.reason)
        sums.reasons[reason] += 1
        sums.accepted += len(cycle.report.accepted)
        sums.refused.update({str(why): count for why, count in rejected.items()})
        # A third party's part may divide by zero; JSON has no word for what comes of that.
        if outcome.excess is not None and math.isfinite(outcome.excess):
            sums.excess[reason] = max(float(outcome.excess), sums.excess.get(reason, 0.0))
    return sums


def cycles_by_policy(runs: Iterable[tuple[str, CycleSums | None]]) -> dict[str, dict[str, object]]:
    """Return by policy with a shedder, JSON-able, what its cycles came to over all clusters and seeds.

    Args:
        runs: policy and sums of each run, None for a policy without shedder.
    """
    by_policy: dict[str, CycleSums] = {}
    for policy, sums in runs:
        if sums is not None:
            by_policy.setdefault(policy, CycleSums(sums.shedder)).add(sums)
    return {
        policy: {
            "shedder": sums.shedder,
            "cycles": sums.cycles,
            "reasons": dict(sorted(sums.reasons.items())),
            "accepted": sums.accepted,
            "refused": dict(sorted(sums.refused.items())),
            "excess": dict(sorted(sums.excess.items())),
        }
        for policy, sums in by_policy.items()
    }
