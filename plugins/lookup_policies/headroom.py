"""The scorer `headroom`: brokers with room to spare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Le
from lookup.model import Candidates, ClusterView, LookupRequest

__all__ = ["Headroom"]


@dataclass(frozen=True)
class Headroom:
    """Score brokers by 1 - usage.

    Match -> Result -> Reason:
        * usage is reported -> 1.0 when idle down to 0.0 when full or overfull
        * no report -> `unreported`; the default prefers idle brokers to unknown ones and unknown ones to busy ones,
          0.0 makes an unknown broker look full, as Pulsar's load data does before the first report

    Source: usage is Pulsar's weightedMaxEMA or what stands in for it (BrokerLoadData.update).
    """

    name: ClassVar[str] = "headroom"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load"})

    #: score of a broker without a load report
    unreported: Annotated[float, Ge(0), Le(1)] = 0.5

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.float64]:
        """Turn every candidate's usage into a score."""
        usage = view.load.usage[brokers.index]
        room = 1.0 - np.minimum(np.maximum(usage, 0.0), 1.0)
        return np.where(np.isnan(usage), self.unreported, room)
