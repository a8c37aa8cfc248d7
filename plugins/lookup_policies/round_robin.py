"""The selector `round-robin`: one broker after the other."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model import Broker, Candidates, ClusterView, LookupRequest

__all__ = ["RoundRobin"]

#: Pulsar's counter is a Java int that starts over before it overflows.
_WRAP = 2**31 - 1


@dataclass(frozen=True)
class RoundRobin:
    """Choose the candidates in turn: the one at place counter modulo number of candidates.

    The counter grows with every assignment and is shared by all requests, whoever their candidates are. Pulsar also
    remembers the list of candidates while their number stays the same, because the set it is given has no order; here
    candidates are sorted by id, so the present ones are gone through. The two differ only where one broker has taken
    another's place since the list was remembered.

    Match -> Result -> Reason:
        * the candidate at the counter's place -> always
        * otherwise -> not this time

    Source: RoundRobinBrokerSelector (`facts/loadmanager.md` 7.2).
    """

    name: ClassVar[str] = "round-robin"
    reads: ClassVar[frozenset[str]] = frozenset({"view.memory"})
    #: it goes by places in the list of candidates
    order_sensitive: ClassVar[bool] = True

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        """Return 1 for the candidate whose turn it is."""
        odds = np.zeros(len(brokers))
        odds[view.memory.get("counter", 0) % len(brokers)] = 1.0
        return odds

    def remember(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker) -> None:
        """Move on by one."""
        memory["counter"] = (memory.get("counter", 0) + 1) % _WRAP
