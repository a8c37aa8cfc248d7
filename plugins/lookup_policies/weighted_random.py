"""The selector `weighted-random`: odds that grow with the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge
from lookup.model import Candidates, ClusterView, LookupRequest

__all__ = ["WeightedRandom"]


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
