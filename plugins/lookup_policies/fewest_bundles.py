"""The scorer `fewest-bundles`: brokers that own little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model import Candidates, ClusterView, LookupRequest

__all__ = ["FewestBundles"]


@dataclass(frozen=True)
class FewestBundles:
    """Score brokers by 1 - owned bundles / the most that any candidate owns.

    Ownership is current even where load reports lag, so a broker that has just joined is not flooded.

    Match -> Result -> Reason:
        * no candidate owns a bundle -> 1.0 for all
        * otherwise -> 1.0 for a broker that owns none down to 0.0 for the one that owns most

    Source: least-connections balancing, with bundles for connections.
    """

    name: ClassVar[str] = "fewest-bundles"
    reads: ClassVar[frozenset[str]] = frozenset({"view.ownership"})

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.float64]:
        """Compare every candidate's bundles with the most."""
        counts = view.ownership.bundles()[brokers.index]
        scores: NDArray[np.float64] = 1.0 - counts / max(1, int(counts.max()))
        return scores
