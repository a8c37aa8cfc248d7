"""The selector `softmax`: odds that grow exponentially with the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Gt
from lookup.model import Candidates, ClusterView, LookupRequest

__all__ = ["Softmax"]


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
        odds: NDArray[np.float64] = np.exp((scores - scores.max()) / self.temperature)
        return odds
