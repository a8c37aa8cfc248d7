"""Ballots: what a policy said to a request, made from the answers of its scorers and its selector."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookup.model.broker import Candidates
from lookup.model.decision import Reason

__all__ = ["TIED", "Ballot", "Kept", "tallied"]

#: Scores this close to the best are tied.
TIED = 1e-9
#: Odds are divided by the greatest above this, so that no sum of them overflows.
_HUGE = 1e290


class Kept(NamedTuple):
    """Who is left after some filters."""

    brokers: Candidates
    #: how many each reason took
    rejected: Mapping[Reason, int]
    #: a filter failed, and the policy went on without its answer
    is_unsure: bool = False


@dataclass(frozen=True, slots=True)
class Ballot:
    """What a policy said to one decision key at one instant: a distribution over brokers, or why there is none."""

    #: brokers with odds above 0, ascending by number; empty where the policy declined
    numbers: tuple[int, ...] = ()
    cumulative: tuple[float, ...] = ()
    #: normalised odds by broker id
    odds: Mapping[str, float] = field(default_factory=dict)
    rejected: Mapping[Reason, int] = field(default_factory=dict)
    declined: Reason | None = None
    margin: float | None = None
    ties: int = 0
    #: whom the filters left; only where a part observes that
    offered: Candidates | None = field(default=None, compare=False, repr=False)

    def after(self, rejected: Mapping[Reason, int]) -> Ballot:
        """Return the same ballot with what filters rejected before it."""
        # Written out: every decision comes by here, and `dataclasses.replace` takes four times as long.
        return Ballot(
            self.numbers, self.cumulative, self.odds, rejected, self.declined, self.margin, self.ties, self.offered
        )

    def pick(self, rolled: float) -> int:
        """Return the number of the broker a roll in [0, 1] falls on."""
        return self.numbers[min(bisect_right(self.cumulative, rolled), len(self.numbers) - 1)]


def tallied(
    brokers: Candidates,
    scores: NDArray[np.float64],
    odds: NDArray[np.float64],
    *,
    are_scored: bool,
) -> Ballot:
    """Make a ballot of what scorers and selector answered, arrays of shape (n_candidates,).

    Args:
        are_scored: whether the policy has scorers; without, there is no margin and all are tied.
    """
    peak = float(odds.max())
    if peak == 0.0:
        return Ballot(declined=Reason.NO_ODDS)
    if peak > _HUGE:
        odds = odds / peak
    margin, ties = _margin(scores) if are_scored else (None, len(scores))
    shares = odds / odds.sum()
    places = np.flatnonzero(shares)
    probabilities: list[float] = shares[places].tolist()
    return Ballot(
        numbers=tuple(brokers.index[places].tolist()),
        cumulative=tuple(accumulate(probabilities)),
        odds=dict(zip(brokers.ids_at(places), probabilities, strict=True)),
        margin=margin,
        ties=ties,
    )


def _margin(scores: NDArray[np.float64]) -> tuple[float | None, int]:
    best = float(scores.max())
    tied = scores >= best - TIED
    ties = int(np.count_nonzero(tied))
    return (None if ties == len(scores) else best - float(scores[~tied].max())), ties
