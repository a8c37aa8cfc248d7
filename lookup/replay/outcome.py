"""Hold what a replay hands to the score: sums of every metric by policy, cluster and seed, and counts about the input.

No log, no decisions: their size depends on the input, that of the sums does not. Sums become values, intervals and
verdicts in `lookup.score`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, WrapValidator

from lookup.engine.cycle_sums import CycleSums
from lookup.model.time import FIRST_US, LAST_US
from lookup.replay.senders import Senders

__all__ = [
    "LOGGED", "AtBest", "Finding", "InputFacts", "MetricSums", "Number", "ReplayOutcome", "cycles_by_policy",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in valid settings that has no effect on a log, or is out of proportion to it."""

    #: a `LintRule`
    kind: str
    #: says what it is and what would be right, without full stop
    sentence: str
    #: how many lookups it concerns, or of what else the sentence is about; 0 of a setting that never applies
    count: int


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
    #: for metrics over time: the sums over all cells without the traffic of each share of the senders, shape
    #: (n_shares, k); no rows if they are not known
    without: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, slots=True)
class AtBest:
    """The best that owners can make of a figure of locality in one cluster; see `lookup.replay.at_best`."""

    cluster: str
    metric: str
    key: str | None
    #: number of bundles that the policies begin with of which it holds, None: the default
    bundles: int | None
    #: matched lookups, or milliseconds x weight
    best: float
    #: lookups, or weight, that count
    counted: float


#: A figure; NaN, which JSON has as null, if there is none.
Number = Annotated[float, WrapValidator(lambda value, read: math.nan if value is None else read(value))]
#: µs since the Unix epoch, in the calendar.
_Instant = Annotated[int, Field(ge=FIRST_US, le=LAST_US)]


@dataclass(frozen=True)
class InputFacts:
    """Counts and notes on what was read and replayed, for people and for `inputs` of `summary.json`.

    None or nothing stands for what is not known, as a run of an earlier version has not recorded everything. Fields are
    in the order of the file.
    """

    rows: int | None = None
    #: those that ask for a broker, which the replay answers
    lookups: int | None = None
    redirects: int | None = None
    #: lookups of the load manager's own topics
    internal: int | None = None
    quarantined: int | None = None
    clusters: tuple[str, ...] = ()
    #: by cluster, as are bundles and ticks
    brokers: Mapping[str, int] = field(default_factory=dict)
    bundles: Mapping[str, int] = field(default_factory=dict)
    ticks: Mapping[str, int] = field(default_factory=dict)
    first_us: _Instant | None = None
    last_us: _Instant | None = None
    #: share of the lookups soon after their bundle lost its owner in the log
    induced_ratio: float | None = None
    ignored_unloads: int | None = None
    #: None as well if some brokers of a cluster have none
    capacity: Literal["given", "assumed"] | None = None
    #: brokers without a capacity, by cluster in which others have one; None if there are none
    without_capacity: Mapping[str, int] | None = None
    decisions: int | None = None
    #: by policy, what `on_error` let pass
    failures: Mapping[str, int] = field(default_factory=dict)
    first_failure: str | None = None
    load: str | None = None
    #: by policy with a shedder, over all clusters and seeds, after the warm-up
    cycles: Mapping[str, CycleSums] = field(default_factory=dict)
    #: None if there are none
    findings: tuple[Finding, ...] | None = None

    def document(self) -> dict[str, object]:
        """Return the facts as JSON has them, without what only some runs have."""
        facts: dict[str, object] = {each.name: getattr(self, each.name) for each in fields(self)}
        facts["cycles"] = {policy: sums.document() for policy, sums in self.cycles.items()}
        absent = {name for name in ("without_capacity", "findings") if facts[name] is None}
        return {name: value for name, value in facts.items() if name not in absent}


@dataclass(frozen=True, eq=False)
class ReplayOutcome:
    """All sums of a run, what is known about its input, and whether the logged choices could be judged."""

    sums: Sequence[MetricSums]
    inputs: InputFacts = InputFacts()
    #: why there are no sums of `LOGGED`, None if there are
    logged_reason: str | None = None
    #: names of the parts that separate equal brokers by their names and ignore the salt, by policy; replicates of such
    #: a policy share that luck
    unsalted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: policies whose shedder cannot act since it goes by rates the run does not know, with a sentence that says so;
    #: verdicts against such an incumbent mean nothing
    cannot_act: Mapping[str, str] = field(default_factory=dict)
    #: policies whose runs are another each time, whatever the seed: their replicates are not paired with others'
    unpaired: frozenset[str] = frozenset()
    #: the best that owners can make of figures of locality, by policy, metric and key
    at_best: Mapping[tuple[str, str, str | None], float] = field(default_factory=dict)
    #: seeds of the replicates, as given or as drawn for the log
    seeds: tuple[int, ...] = ()
    #: who sends to the bundles, by cluster
    senders: Mapping[str, Senders] = field(default_factory=dict)
    #: the property that the namespaces of a tenant share, so that tenants are the units of demand; None: namespaces are
    label_of_tenants: str | None = None


def cycles_by_policy(runs: Iterable[tuple[str, CycleSums | None]]) -> dict[str, CycleSums]:
    """Return by policy with a shedder what its cycles came to over all clusters and seeds.

    Args:
        runs: policy and sums of each run, None for a policy without shedder.
    """
    by_policy: dict[str, CycleSums] = {}
    for policy, sums in runs:
        if sums is not None:
            by_policy.setdefault(policy, CycleSums(sums.shedder)).add(sums)
    return by_policy
