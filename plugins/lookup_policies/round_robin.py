"""The selector `round-robin`, which chooses one broker after the other."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Offer
from lookup.model import Broker, Candidates, ClusterView, LookupRequest

__all__ = ["RoundRobin"]

FloatArray = NDArray[np.float64]

#: Pulsar's counter is a Java int that starts over before it overflows.
_WRAP = 2**31 - 1


@dataclass(frozen=True)
class RoundRobin:
    """Choose the candidates in turn, each time at the position counter modulo number of candidates.

    The counter grows with every assignment and is shared by all requests, for any candidates. The list of candidates is
    remembered while their number stays the same, as in Pulsar, whose set of candidates has no order. Here they are
    sorted by id. So if one broker has since replaced another, turns still follow the old list as long as it names
    candidates.

    It begins with the first position under every salt. It does not hash, and another order would only exchange brokers.

    Match -> Result -> Reason:
        * the broker at the counter's position in the remembered list -> always
        * that list has another length than the candidates, or its broker is none of them -> the present candidates are
          the list -> the one at the counter's place, always
        * otherwise -> not this time

    Source: RoundRobinBrokerSelector.
    """

    name: ClassVar[str] = "round-robin"
    reads: ClassVar[frozenset[str]] = frozenset({"view.memory"})
    #: it uses positions in the list of candidates
    order_sensitive: ClassVar[bool] = True

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Give odds 1 to the candidate whose turn it is."""
        ids = brokers.ids
        odds = np.zeros(len(ids))
        turn, listed = _find_turn(ids, view.memory)
        odds[ids.index(listed[turn])] = 1.0
        return odds

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Keep the list of candidates that this turn used."""
        # Here and not in `remember`, which does not see the candidates.
        memory["brokers"] = list(_find_turn(offer.brokers.ids, memory)[1])

    def remember(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker) -> None:
        """Move on by one."""
        memory["counter"] = (memory.get("counter", 0) + 1) % _WRAP


def _find_turn(ids: Sequence[str], memory: Mapping[str, Any]) -> tuple[int, Sequence[str]]:
    # The position whose turn it is, and the list it belongs to.
    turn, listed = memory.get("counter", 0) % len(ids), memory.get("brokers", ())
    is_usable = len(listed) == len(ids) and listed[turn] in ids
    return turn, listed if is_usable else ids
