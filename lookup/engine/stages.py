"""Compare two policies stage by stage: filters, scores, odds, dice; the first in which their decisions differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ballots import TIED
from lookup.engine.policy import Instant, Policy
from lookup.model import LookupRequest, Reason

__all__ = ["Cause", "Stages", "first_difference", "stages_of"]


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


def first_difference(
    policies: Sequence[Policy], stages: Sequence[Stages], odds: Sequence[Mapping[str, float]]
) -> Cause:
    """Return the first stage in which the answers of two policies to one request differ.

    With the same odds it is the dice. Else it is the filters, if they left other brokers; the scores, if these brokers
    were scored otherwise; the selector, which made other odds of the same scores.

    Args:
        policies: two, and of each its stages and the odds of the brokers.
    """
    (first, second), (one, other) = policies, stages
    if odds[0] == odds[1]:
        return Cause("dice", "the odds were the same, and the dice had been rolled another number of times before")
    if not np.array_equal(one.kept, other.kept):
        return Cause("filter", _about_filters((first.name, second.name), (one, other)))
    if not np.allclose(one.scores, other.scores, rtol=0.0, atol=TIED):
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
