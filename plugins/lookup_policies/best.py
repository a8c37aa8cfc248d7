"""The selector `best`: whoever has the highest score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge
from lookup.model import Candidates, ClusterView, LookupRequest

__all__ = ["Best"]

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
        tied: NDArray[np.bool_] = scores >= top - _TIED
        return tied.astype(np.float64)
