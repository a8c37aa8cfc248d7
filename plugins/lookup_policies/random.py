"""The selector `random`: any candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model import Candidates, ClusterView, LookupRequest

__all__ = ["Random"]


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
