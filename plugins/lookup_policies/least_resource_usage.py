"""The selector `least-resource-usage`: Pulsar's own default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Conf, Ge
from lookup.model import Candidates, ClusterView, LookupRequest

__all__ = ["LeastResourceUsage"]


@dataclass(frozen=True)
class LeastResourceUsage:
    """Choose at random among the candidates whose usage is clearly below the average.

    Despite its name it does not look for the least, and an overloaded broker is not excluded. Scores do not matter.
    Figures are added one by one as in Pulsar, in the order of ids: whether a broker exactly on the edge is in hangs on
    their last bits, here as there.

    Match -> Result -> Reason:
        * usage + `difference` <= mean usage of the candidates with a report -> an equal share
        * no candidate is that far below, or none has a report -> an equal share for all, unreported ones included
        * otherwise, and where others are that far below also an unreported broker -> never

    Source: LeastResourceUsageWithWeight.
    """

    name: ClassVar[str] = "least-resource-usage"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load"})

    #: how far below the mean a broker must be, as a ratio of its capacity; 1.0 makes it `random`
    difference: Annotated[
        float, Ge(0), Conf("loadBalancerAverageResourceUsageDifferenceThresholdPercentage", scale=0.01)
    ] = 0.1

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        """Return 1 for the brokers clearly below the average, or for all."""
        usage = view.load.usage[brokers.index]
        everyone = np.ones(len(usage))
        ordered = view.load.usage[np.sort(brokers.index)]
        reported = ordered[~np.isnan(ordered)]
        if not len(reported):
            return everyone
        # Not sum(), which adds in pairs: Pulsar adds one by one.
        mean = np.add.accumulate(reported)[-1] / len(reported)
        below: NDArray[np.bool_] = usage + self.difference <= mean
        return below.astype(np.float64) if below.any() else everyone
