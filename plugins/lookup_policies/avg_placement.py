"""The selector `avg-placement`: bundles go where the shedder `avg` bound them, and stay bound."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model import Broker, Candidates, ClusterView, LookupRequest

__all__ = ["AvgPlacement"]


@dataclass(frozen=True)
class AvgPlacement:
    """Give a bundle to the broker it is bound to, else to any, and bind it there.

    Load does not matter here: who is to get a bundle was decided by the shedder `avg` when it took the bundle away, and
    the two share their memory, `{"bound": {bundle: broker}}` under the key `avg`. Pulsar draws among the others by the
    CRC-32 of a random number; that is as good as equal odds. Scores do not matter.

    Match -> Result -> Reason:
        * the broker the bundle is bound to is a candidate -> always
        * the bundle is not bound, or to a broker that is no candidate -> an equal share for all

    Source: AvgShedder, which is Pulsar's shedder and placement in one.
    """

    name: ClassVar[str] = "avg-placement"
    memory_key: ClassVar[str] = "avg"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.memory"})

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        """Return 1 for the broker the bundle is bound to, or for all."""
        bound: Mapping[str, str] = view.memory.get("bound", {})
        owed = bound.get(request.bundle)
        odds = np.array([broker_id == owed for broker_id in brokers.ids], dtype=np.float64)
        return odds if odds.any() else np.ones(len(brokers))

    def remember(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker) -> None:
        """Bind the bundle to its new owner."""
        memory.setdefault("bound", {})[request.bundle] = broker.id
