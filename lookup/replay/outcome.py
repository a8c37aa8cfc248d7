"""Hold the results that a replay passes to the score.

They are sums of metrics by policy, cluster and seed, and counts of the input. They do not include the log or decisions,
whose size depends on the input, unlike that of the sums. `lookup.score` turns sums into values, intervals and verdicts.
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
    #: describes the problem and the right setting, without full stop
    sentence: str
    #: number of lookups, or of the sentence's other objects, that are concerned, 0 for a setting that never applies
    count: int


#: Replaces a policy's name if the sums are those of the logged brokers.
LOGGED = "(logged)"


@dataclass(frozen=True, eq=False)
class MetricSums:
    """The sums of one metric for one policy, cluster and seed. Rows are the metric's units."""

    cluster: str
    policy: str
    seed: int
    metric: str
    #: the metric's subdivision (a property, a cause), None for the whole
    key: str | None
    #: the part of the demand with these sums, `(("tenant", "t1"),)`, empty for all of it
    by: tuple[tuple[str, str], ...]
    #: shape (n_units, k). Bundles of a cluster have the same numbers for all policies, and cells are in order of time
    sums: NDArray[np.float64]
    #: start of the first cell, µs since the Unix epoch, for metrics over time
    start_us: int = 0
    #: causes of the last rows, which are events, for metrics over events. The rows before are bundles
    events: tuple[str, ...] = ()
    #: the same sums by registry epoch, over all bundles, shape (n_epochs, k), k as in `sums`, for metrics over bundles
    epochs: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    #: sums over all cells without each share of senders, shape (n_shares, k), for metrics over time, no rows if unknown
    without: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, slots=True)
class AtBest:
    """The best value of a figure of locality that owners can reach in one cluster, see `lookup.replay.at_best`."""

    cluster: str
    metric: str
    key: str | None
    #: number of first bundles of the policies to which it applies, None for the default
    bundles: int | None
    #: matched lookups, or milliseconds x weight
    best: float
    #: lookups, or weight, that count
    counted: float


#: A figure, or NaN, which is null in JSON, if it is missing.
Number = Annotated[float, WrapValidator(lambda value, read: math.nan if value is None else read(value))]
#: µs since the Unix epoch, in the calendar.
_Instant = Annotated[int, Field(ge=FIRST_US, le=LAST_US)]


@dataclass(frozen=True)
class InputFacts:
    """Counts and notes on the input of a replay, for people and for `inputs` of `summary.json`.

    None or empty means unknown, since earlier versions did not record everything. Fields are in the order of the file.
    """

    rows: int | None = None
    #: lookups that need a broker, which the replay answers
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
    #: brokers without a capacity, by cluster in which others have one, None if there are none
    without_capacity: Mapping[str, int] | None = None
    decisions: int | None = None
    #: failures that `on_error` allowed, by policy
    failures: Mapping[str, int] = field(default_factory=dict)
    first_failure: str | None = None
    load: str | None = None
    #: by policy with a shedder, over all clusters and seeds, after the warm-up
    cycles: Mapping[str, CycleSums] = field(default_factory=dict)
    #: None if there are none
    findings: tuple[Finding, ...] | None = None

    def document(self) -> dict[str, object]:
        """Convert the facts to JSON, without absent facts that only some runs have."""
        facts: dict[str, object] = {each.name: getattr(self, each.name) for each in fields(self)}
        facts["cycles"] = {policy: sums.document() for policy, sums in self.cycles.items()}
        absent = {name for name in ("without_capacity", "findings") if facts[name] is None}
        return {name: value for name, value in facts.items() if name not in absent}


@dataclass(frozen=True, eq=False)
class ReplayOutcome:
    """All sums of a run, the facts about its input, and whether the logged choices could be evaluated."""

    sums: Sequence[MetricSums]
    inputs: InputFacts = InputFacts()
    #: why there are no sums of `LOGGED`, None if there are
    logged_reason: str | None = None
    #: names of parts that separate equal brokers by name, without salt, by policy, whose replicates are not independent
    unsalted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: policies whose shedder cannot act since it needs rates that the run does not know, with a sentence about it.
    #: Verdicts against such an incumbent have no meaning
    cannot_act: Mapping[str, str] = field(default_factory=dict)
    #: policies whose runs differ each time even with the same seed, so their replicates are not paired with others'
    unpaired: frozenset[str] = frozenset()
    #: the best that owners can make of figures of locality, by policy, metric and key
    at_best: Mapping[tuple[str, str, str | None], float] = field(default_factory=dict)
    #: seeds of the replicates, as given or as drawn for the log
    seeds: tuple[int, ...] = ()
    #: who sends to the bundles, by cluster
    senders: Mapping[str, Senders] = field(default_factory=dict)
    #: the property that a tenant's namespaces share, which makes tenants the units of demand, None if namespaces are
    label_of_tenants: str | None = None


def cycles_by_policy(runs: Iterable[tuple[str, CycleSums | None]]) -> dict[str, CycleSums]:
    """Add up the cycles of each policy with a shedder over all clusters and seeds.

    Args:
        runs: policy and sums of each run, None for a policy without shedder.
    """
    by_policy: dict[str, CycleSums] = {}
    for policy, sums in runs:
        if sums is not None:
            by_policy.setdefault(policy, CycleSums(sums.shedder)).add(sums)
    return by_policy
