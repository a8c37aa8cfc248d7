"""Choose brokers by scores or at random, as the best, in proportion, uniformly, or the best of a few draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Gt
from lookup.model import Candidates, ClusterView, LookupRequest

__all__ = ["Best", "PowerOfTwo", "Random", "Softmax", "WeightedRandom"]

FloatArray = NDArray[np.float64]

#: Scores this close count as equal.
_TIED = 1e-9


@dataclass(frozen=True)
class Best:
    """Choose the candidate with the highest score. Candidates tied with it have equal odds.

    Match -> Result -> Reason:
        * the highest score is below `min_score` -> declines -> `no-odds`
        * the score lies within 1e-9 of the highest -> an equal share
        * otherwise -> never
    """

    name: ClassVar[str] = "best"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: the least score worth an answer, in units of the weighted sum of scores
    min_score: Annotated[float, Ge(0)] = 0.0

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Give odds 1 to the highest scores, 0 to the others."""
        top = scores.max()
        if top < self.min_score:
            return np.zeros(len(scores))
        # Weighted sums that should be equal differ in their last bits.
        tied: NDArray[np.bool_] = scores >= top - _TIED
        return tied.astype(np.float64)


@dataclass(frozen=True)
class Random:
    """Choose any candidate with equal odds. Scores do not matter.

    Match -> Result -> Reason:
        * any candidate -> an equal share

    Source: the baseline of every comparison. Its logs support the evaluation of any other policy.
    """

    name: ClassVar[str] = "random"
    reads: ClassVar[frozenset[str]] = frozenset()

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Give odds 1 to every candidate."""
        return np.ones(len(brokers))


@dataclass(frozen=True)
class WeightedRandom:
    """Choose with odds score ** `power`.

    Match -> Result -> Reason:
        * every score is 0 -> declines -> `no-odds`
        * `power` 1 -> odds in proportion to the scores
        * `power` 0 -> all candidates alike
        * large `power` -> nearly `best`

    Source: weighted random balancing, with the power of Luce's choice rule.
    """

    name: ClassVar[str] = "weighted-random"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: exponent of the scores
    power: Annotated[float, Ge(0)] = 1.0

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Raise the scores, relative to the highest one, to the power."""
        top = scores.max()
        if top <= 0.0:
            return np.zeros(len(scores))
        # Relative to the highest, so that a large power leaves at least that one's odds above 0.
        odds: FloatArray = (scores / top) ** self.power
        return odds


@dataclass(frozen=True)
class Softmax:
    """Choose with odds exp(score / `temperature`), which are above 0 for every candidate.

    Match -> Result -> Reason:
        * a score one `temperature` below another -> 1/e of its odds
        * a low `temperature` -> nearly `best`
        * a high `temperature` -> nearly `random`

    Source: Boltzmann exploration, Sutton and Barto, Reinforcement Learning, section 2.8 (second edition).
    """

    name: ClassVar[str] = "softmax"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: difference of scores, in (0, inf), over which odds fall by a factor of e
    temperature: Annotated[float, Gt(0)] = 0.1

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Exponentiate the scores' distances from the highest one."""
        # Distances are at most 0, so even a low temperature does not overflow. Ratios of odds stay the same.
        odds: FloatArray = np.exp((scores - scores.max()) / self.temperature)
        return odds


#: The reads of each measure of `power-of-two`.
_READS = {"scores": frozenset[str](), "usage": frozenset({"view.load"}), "bundles": frozenset({"view.ownership"})}


@dataclass(frozen=True)
class PowerOfTwo:
    """Choose as if `choices` candidates were drawn with replacement and the best of them taken.

    The odds are exact and not drawn. With K candidates in ranks r = 0 (best) to K-1 and d choices,

        P(rank r) = ((K-r)**d - (K-r-1)**d) / K**d,

    and candidates tied with each other share the sum over their ranks equally. A small number of choices
    prevents a burst of requests with the same old load figures from flooding the broker that looked idlest.

    Match -> Result -> Reason:
        * `by = "scores"` -> the highest score ranks best
        * `by = "usage"` -> the lowest usage ranks best, brokers without a report last
        * `by = "bundles"` -> the fewest owned bundles rank best
        * `choices` 1 -> all candidates alike

    Source: Mitzenmacher, The Power of Two Choices in Randomized Load Balancing, IEEE TPDS 12 (2001), and the
    closed form in page "Policies" of the documentation.
    """

    name: ClassVar[str] = "power-of-two"

    #: the measure by which candidates are ranked
    by: Literal["scores", "usage", "bundles"] = "scores"
    #: how many candidates are compared
    choices: Annotated[int, Ge(1)] = 2

    @property
    def reads(self) -> frozenset[str]:
        """The part of the view that the ranks come from."""
        return _READS[self.by]

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Compute the probability of each candidate's rank."""
        if self.by == "scores":
            burden = -scores
        elif self.by == "bundles":
            burden = view.ownership.bundles()[brokers.index].astype(np.float64)
        else:
            usage = view.load.usage[brokers.index]
            # Not infinity, whose differences are NaN: brokers without a report are to tie with each other.
            burden = np.where(np.isnan(usage), np.finfo(np.float64).max, usage)
        # The best candidate has the least burden.
        order = np.argsort(burden, kind="stable")
        ranked = burden[order]
        # Chains of neighbours that are tied form one group, from rank `edges[g]` up to `edges[g + 1]`.
        # "Not within" instead of "beyond", so that a NaN starts a group of its own.
        starts = np.flatnonzero(~(ranked[1:] - ranked[:-1] <= _TIED)) + 1
        edges = np.concatenate(([0], starts, [len(order)]))
        sizes = edges[1:] - edges[:-1]
        beyond = (1.0 - edges / len(order)) ** self.choices
        odds = np.empty(len(order))
        odds[order] = np.repeat((beyond[:-1] - beyond[1:]) / sizes, sizes)
        return odds
