"""The selector `power-of-two`: the best of a few candidates drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge
from lookup.model import Candidates, ClusterView, LookupRequest

__all__ = ["PowerOfTwo"]

FloatArray = NDArray[np.float64]

#: Scores this close count as equal.
_TIED = 1e-9
_READS = {"scores": frozenset[str](), "usage": frozenset({"view.load"}), "bundles": frozenset({"view.ownership"})}


@dataclass(frozen=True)
class PowerOfTwo:
    """Choose as if `choices` candidates were drawn with replacement and the best of them taken.

    The odds are exact, nothing is drawn: with K candidates in ranks r = 0 (best) to K-1 and d choices,

        P(rank r) = ((K-r)**d - (K-r-1)**d) / K**d,

    and candidates tied with each other share the sum over their ranks equally. Drawing few keeps a burst of requests
    with the same stale load figures from flooding the one broker that looked idlest.

    Match -> Result -> Reason:
        * `by = "scores"` -> the highest score ranks best
        * `by = "usage"` -> the lowest usage ranks best, brokers without a report last
        * `by = "bundles"` -> the fewest owned bundles rank best
        * `choices` 1 -> all candidates alike

    Source: Mitzenmacher, The Power of Two Choices in Randomized Load Balancing, IEEE TPDS 12 (2001); the closed form in
    page "Policies" of the documentation.
    """

    name: ClassVar[str] = "power-of-two"

    #: what candidates are ranked by
    by: Literal["scores", "usage", "bundles"] = "scores"
    #: how many candidates are compared
    choices: Annotated[int, Ge(1)] = 2

    @property
    def reads(self) -> frozenset[str]:
        """Return the part of the view that the ranks come from."""
        return _READS[self.by]

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Return the probability of each candidate's rank."""
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
