"""Compare two policies stage by stage: filters, scores, odds, dice; the first in which their decisions differ."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ballots import TIED, Ballot, Decided
from lookup.engine.manager import Conditions, LoadManager
from lookup.engine.ownership import ASSIGNMENT, Course
from lookup.engine.policy import Instant, Policy
from lookup.model import Decision, LookupRequest, Reason, Roster

__all__ = ["Cause", "StagedBallot", "StagedDecision", "StagedManager", "Stages", "first_difference"]


@dataclass(frozen=True, slots=True, order=True)
class Cause:
    """Why a bundle has one owner under one policy and another under the other."""

    #: "filter", "score", "selector" or "dice"; "shedder" or "owner kept" if not both have decided
    stage: str
    #: the parts that differ, in words
    what: str


@dataclass(frozen=True, eq=False, slots=True)
class Stages:
    """The answers of a policy's filters and scorers to one request."""

    #: reasons of the brokers that were rejected, by their numbers
    rejected: dict[int, Reason]
    #: numbers of the brokers that are left, shape (n_candidates,)
    kept: NDArray[np.int64]
    #: weighted sum of the scorers, shape (n_candidates,)
    scores: NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class StagedDecision:
    """A decision, and the stages that led to it."""

    #: place among the decisions of the run; None if a request was declined as it had been before
    number: int | None
    stages: Stages
    decision: Decision

    @property
    def odds(self) -> Mapping[str, float]:
        """Return the odds of the brokers."""
        return self.decision.odds


@dataclass(frozen=True, eq=False, slots=True)
class StagedBallot:
    """A policy's answer to a decision key, and the stages that led to it."""

    stages: Stages
    ballot: Ballot

    @property
    def odds(self) -> Mapping[str, float]:
        """Return the odds of the brokers."""
        return self.ballot.odds


class StagedManager(LoadManager):
    """A load manager that keeps the stages of its decisions."""

    def __init__(
        self, policy: Policy, cluster: str, roster: Roster, *, seed: int = 1, conditions: Conditions | None = None
    ) -> None:
        super().__init__(policy, cluster, roster, seed=seed, conditions=conditions or Conditions())
        #: the last decision about each bundle at each instant, until they are cleared
        self.staged: dict[tuple[str, int], StagedDecision] = {}
        #: ballots that were asked for without a decision, until they are cleared
        self.balloted: list[StagedBallot] = []
        self._taken = 0
        #: stages by decision key, of one instant under one fingerprint
        self._known: dict[Hashable, Stages] = {}
        self._staged_at: tuple[Instant, str] | None = None

    def take_decisions(self) -> list[Decided]:
        """Return the decisions since the last call, and count them."""
        taken = super().take_decisions()
        self._taken += len(taken)
        return taken

    def select(self, request: LookupRequest, ts_us: int, *, course: Course = ASSIGNMENT) -> Decision | None:
        """Choose an owner, and keep the stages of the decision."""
        instant = self._prepared()
        # Before the decision: an assignment changes owners and memory, which a part may read.
        stages = self._stages(request, instant) if len(instant.offered) else None
        count = self._taken + len(self._decisions)
        decision = super().select(request, ts_us, course=course)
        if decision is not None and stages is not None:
            is_new = self._taken + len(self._decisions) > count
            self.staged[request.bundle, ts_us] = StagedDecision(count if is_new else None, stages, decision)
        return decision

    def decide(self, request: LookupRequest) -> tuple[Ballot, str]:
        """Return the ballot on a request and its fingerprint, and keep the stages."""
        found = super().decide(request)
        self.balloted.append(StagedBallot(self._stages(request, self._prepared()), found[0]))
        return found

    def _stages(self, request: LookupRequest, instant: Instant) -> Stages:
        """Ask filters and scorers, once for all requests of which a decision is taken once."""
        if "view.memory" in self.policy.reads:
            return stages_of(self.policy, request, instant)
        if self._staged_at is None or self._staged_at[0] is not instant or self._staged_at[1] != self._fingerprint:
            self._staged_at, self._known = (instant, self._fingerprint), {}
        key = self.policy.decision_key(request)
        if key not in self._known:
            self._known[key] = stages_of(self.policy, request, instant)
        return self._known[key]


def stages_of(policy: Policy, request: LookupRequest, instant: Instant) -> Stages:
    """Ask a policy's filters and scorers about a request.

    A filter that fails keeps every broker here, unless the policy says stop; the decision itself says what follows.
    """
    asked = replace(policy, on_error="skip") if policy.on_error == "fail-closed" else policy
    kept, rejected = instant.offered, dict[int, Reason]()
    for number, part in enumerate(policy.filters):
        if not len(kept):
            break
        mask = asked.admitted(number, request, kept, instant)
        rejected.update(dict.fromkeys(kept.index[~mask].tolist(), part.reason))
        kept = kept.subset(mask)
    scores = asked.scores(request, kept, instant) if len(kept) else np.zeros(0)
    return Stages(rejected, kept.index, scores)


def first_difference(policies: Sequence[Policy], decisions: Sequence[StagedDecision | StagedBallot]) -> Cause:
    """Return the first stage in which two decisions about one request differ.

    With the same odds it is the dice. Else it is the filters, if they left other brokers; the scores, if these brokers
    were scored otherwise; the selector, which made other odds of the same scores.

    Args:
        policies: two, and the decision or ballot of each.
    """
    (first, second), (one, other) = policies, decisions
    if one.odds == other.odds:
        return Cause("dice", "the odds were the same, and the dice had been rolled another number of times before")
    if not np.array_equal(one.stages.kept, other.stages.kept):
        return Cause("filter", _about_filters((first.name, second.name), (one.stages, other.stages)))
    if not np.allclose(one.stages.scores, other.stages.scores, rtol=0.0, atol=TIED):
        names = [_scorers(first), _scorers(second)]
        if names[0] == names[1]:
            return Cause("score", f"{names[0]} saw other loads or owners")
        return Cause("score", f"{names[0]} in {first.name}, {names[1]} in {second.name}")
    names = [first.selector.name, second.selector.name]
    if first.selector == second.selector:
        return Cause("selector", f"{names[0]} saw other loads or owners")
    return Cause("selector", f"{names[0]} in {first.name}, {names[1]} in {second.name}")


def _about_filters(names: tuple[str, str], stages: tuple[Stages, Stages]) -> str:
    """Say by which reasons either policy rejects what the other keeps."""
    sides = []
    for name, own, others in ((names[0], stages[0], stages[1]), (names[1], stages[1], stages[0])):
        kept = set(others.kept.tolist())
        reasons = sorted({str(reason) for number, reason in own.rejected.items() if number in kept})
        if reasons:
            sides.append(f"{name} rejects by {', '.join(reasons)}")
    return ", ".join(sides)


def _scorers(policy: Policy) -> str:
    return " + ".join(f"{term.scorer.name} × {term.weight:g}" for term in policy.scorers) or "no scorer"
