"""Hold what a replay hands to the score: sums of every metric by policy, cluster and seed, and counts about the input.

No log, no decisions: their size depends on the input, that of the sums does not. Sums become values, intervals and
verdicts in `lookup.score`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lookup.replay.records import Cycle

__all__ = ["LOGGED", "CycleSums", "MetricSums", "ReplayOutcome", "cycles_by_policy", "sums_of_cycles"]

#: Stands for a policy's name if the sums are those of the brokers the log says were answered.
LOGGED = "(logged)"


@dataclass(frozen=True, eq=False)
class MetricSums:
    """The sums of one metric for one policy, cluster and seed; rows are the metric's units."""

    cluster: str
    policy: str
    seed: int
    metric: str
    #: what the metric is told apart by (a property, a cause), None for the whole
    key: str | None
    #: the part of the demand these sums are about, `(("tenant", "t1"),)`; empty for all of it
    by: tuple[tuple[str, str], ...]
    #: shape (n_units, k); bundles of a cluster are numbered the same for all policies, cells are in order of time
    sums: NDArray[np.float64]
    #: for metrics over time: start of the first cell, µs since the Unix epoch
    start_us: int = 0
    #: for metrics over events: the cause of each of the last rows, which are events; the rows before are bundles
    events: tuple[str, ...] = ()
    #: for metrics over bundles: the same sums by registry epoch, over all bundles, shape (n_epochs, k), k as in `sums`
    epochs: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, eq=False)
class ReplayOutcome:
    """All sums of a run, what is known about its input, and whether the logged choices could be judged."""

    sums: Sequence[MetricSums]
    #: counts and notes for people and for `summary.json`, JSON-able: `lookups`, `redirects`, `quarantined`, `clusters`,
    #: `ticks`, `induced_ratio`, `capacity` ("assumed" or "given"), `imbalance_floor` (by cluster), ...
    inputs: Mapping[str, object] = field(default_factory=dict)
    #: why there are no sums of `LOGGED`, None if there are
    logged_reason: str | None = None
    #: names of the parts that separate equal brokers by their names and ignore the salt, by policy; replicates of such
    #: a policy share that luck
    unsalted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: policies whose shedder cannot act since it goes by rates the run does not know, with a sentence that says so;
    #: verdicts against such an incumbent mean nothing
    cannot_act: Mapping[str, str] = field(default_factory=dict)


@dataclass
class CycleSums:
    """Cycles of a policy's shedder, added up: why bundles moved, or did not."""

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
