"""Hold what a replay hands to the score: sums of every metric by policy, cluster and seed, and counts about the input.

No log, no decisions: their size depends on the input, that of the sums does not. Sums become values, intervals and
verdicts in `lookup.score`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lookup.engine.cycle_sums import CycleSums

__all__ = ["LOGGED", "MetricSums", "ReplayOutcome", "cycles_by_policy"]

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
    #: seeds of the replicates, as given or as drawn for the log
    seeds: tuple[int, ...] = ()


def cycles_by_policy(runs: Iterable[tuple[str, CycleSums | None]]) -> dict[str, dict[str, object]]:
    """Return by policy with a shedder, JSON-able, what its cycles came to over all clusters and seeds.

    Args:
        runs: policy and sums of each run, None for a policy without shedder.
    """
    by_policy: dict[str, CycleSums] = {}
    for policy, sums in runs:
        if sums is not None:
            by_policy.setdefault(policy, CycleSums(sums.shedder)).add(sums)
    return {policy: sums.document() for policy, sums in by_policy.items()}
