"""The filter `even-distribution`: bundles of a namespace are spread over brokers one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model import Broker, Candidates, ClusterView, LookupRequest, Reason

__all__ = ["EvenDistribution"]


@dataclass(frozen=True)
class EvenDistribution:
    """Keep the brokers that own the fewest bundles of the bundle's own namespace.

    Part of the modular load manager while `loadBalancerDistributeBundlesEvenlyEnabled`, its default before Pulsar 5.0:
    load then counts only among brokers that own equally many, so a busy broker keeps getting bundles.

    Match -> Result -> Reason:
        * the broker owns as few bundles of the namespace as any candidate -> kept
        * another candidate owns fewer -> rejected -> `even-distribution`

    Source: LoadManagerShared.removeMostServicingBrokersForNamespace, ModularLoadManagerImpl
    (apache/pulsar at 009a9bf2).
    """

    name: ClassVar[str] = "even-distribution"
    reason: ClassVar[Reason] = Reason.EVEN_DISTRIBUTION
    reads: ClassVar[frozenset[str]] = frozenset({"namespace", "view.ownership"})

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.bool_]:
        """Compare what every candidate owns of the namespace with the least."""
        counts = view.ownership.bundles_in(request.namespace)[brokers.index]
        mask: NDArray[np.bool_] = counts == counts.min()
        return mask

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Say how many bundles of the namespace the broker owns."""
        number = view.brokers.number(broker.id)
        owned = 0 if number is None else int(view.ownership.bundles_in(request.namespace)[number])
        return f"owns {owned} bundles of {request.namespace}, another candidate fewer"
