"""Chooses by scores alone, or by nothing: the best, any in proportion to its score, any at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Gt
from lookup.model import Candidates, ClusterView, LookupRequest

__all__ = ["Best", "Random", "Softmax", "WeightedRandom"]

#: Scores this close count as equal.
_TIED = 1e-9


@dataclass(frozen=True)
class Best:
    """Choose the candidate with the highest score; those tied with it have equal odds.

    Match -> Result -> Reason:
        * the highest score is below `min_score` -> declines -> `no-odds`
        * the score lies within 1e-9 of the highest -> an equal share
        * otherwise -> never
    """

    name: ClassVar[str] = "best"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: the least score worth an answer, in units of the weighted sum of scores
    min_score: Annotated[float, Ge(0)] = 0.0

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        """Return 1 for the highest scores, 0 for the others."""
        top = scores.max()
        if top < self.min_score:
            return np.zeros(len(scores))
        # Weighted sums that should be equal differ in their last bits.
        tied: NDArray[np.bool_] = scores >= top - _TIED
        return tied.astype(np.float64)


@dataclass(frozen=True)
class Random:
    """Choose any candidate with equal odds; scores do not matter.

    Match -> Result -> Reason:
        * any candidate -> an equal share

    Source: the baseline of every comparison; its logs support the evaluation of any other policy.
    """

    name: ClassVar[str] = "random"
    reads: ClassVar[frozenset[str]] = frozenset()

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        """Return 1 for every candidate."""
        return np.ones(len(brokers))


@dataclass(frozen=True)
class WeightedRandom:
    """Choose with odds score ** `power`.

    Match -> Result -> Reason:
        * every score is 0 -> declines -> `no-odds`
        * `power` 1 -> odds in proportion to the scores; 0 -> all candidates alike; large -> nearly `best`

    Source: weighted random balancing; the power is that of Luce's choice rule.
    """

    name: ClassVar[str] = "weighted-random"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: exponent of the scores
    power: Annotated[float, Ge(0)] = 1.0

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        """Raise the scores, relative to the highest one, to the power."""
        top = scores.max()
        if top <= 0.0:
            return np.zeros(len(scores))
        # Relative to the highest, so that a large power leaves at least that one's odds above 0.
        odds: NDArray[np.float64] = (scores / top) ** self.power
        return odds


@dataclass(frozen=True)
class Softmax:
    """Choose with odds exp(score / `temperature`); every candidate keeps some.

    Match -> Result -> Reason:
        * a score one `temperature` below another -> 1/e of its odds
        * a low `temperature` -> nearly `best`; a high one -> nearly `random`

    Source: Boltzmann exploration, Sutton and Barto, Reinforcement Learning, section 2.8 (second edition).
    """

    name: ClassVar[str] = "softmax"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: difference of scores, in (0, inf), over which odds fall by a factor of e
    temperature: Annotated[float, Gt(0)] = 0.1

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        """Exponentiate the scores' distances from the highest one."""
        # Distances are at most 0, so nothing overflows however low the temperature is; ratios of odds stay the same.
        odds: NDArray[np.float64] = np.exp((scores - scores.max()) / self.temperature)
        return odds
