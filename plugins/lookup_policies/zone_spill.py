"""The wrapper `zone-spill`: stay in the client's zone while it suffices, spill the rest where there is room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Selector, reads_of
from lookup.model import Candidates, ClusterView, LookupRequest
from lookup_policies.explore import ChildAsking, shares_of
from lookup_policies.score_selectors import Best

__all__ = ["ZoneSpill"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
#: Share by zone, in [0, 1]; None is the zone of brokers that publish none.
_Shares = dict[str | None, float]


@dataclass(frozen=True)
class ZoneSpill(ChildAsking):
    """Keep clients in their zone as far as its share of capacity covers its share of demand.

    A zone's origin share is its part of the demand, in weight of the last grid cell by the clients' property; its
    capacity share is its part of the candidates' capacity, or of their number where one of them has no known capacity.
    Brokers that publish no zone form one together. Inside a zone the child selector chooses among that zone's
    candidates; if it declines, the other zones take over that zone's share.

    Match -> Result -> Reason:
        * fewer candidates than `min_cluster_size` -> the child's odds over all candidates
        * the client sent no zone, no candidate is in it, or no demand is known -> the child's odds over all candidates
        * origin share of the client's zone <= its capacity share -> all to the zone
        * otherwise -> capacity share / origin share to the zone; the rest to the other zones in proportion to what
          their capacity share exceeds their origin share by

    Source: Envoy, zone aware routing; page "Policies" of the documentation.
    """

    name: ClassVar[str] = "zone-spill"

    #: the client property that names a zone, without prefix
    key: str = "zone"
    #: candidates below which zones are too small to be told apart (Envoy: min_cluster_size)
    min_cluster_size: Annotated[int, Ge(1)] = 6
    #: the selector inside a zone
    child: Selector = Best()

    @property
    def reads(self) -> frozenset[str]:
        """Return the client's zone, the demand, and what the child reads."""
        return reads_of(self.child) | {f"properties.{self.key}", "view.load"}

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Spread the request over zones, and in each as the child says."""
        zones = brokers.labels(self.key)
        local = request.property_of(self.key)
        demand = view.load.demand.get(self.key, {})
        total = sum(demand.values())
        # Empty if no demand is known.
        origin: _Shares = {zone: weight / total for zone, weight in demand.items()} if total > 0 else {}
        if len(brokers) < self.min_cluster_size or not origin or local is None or local not in set(zones.tolist()):
            return shares_of(self.child, request, brokers, scores, view)
        odds = np.zeros(len(brokers))
        capacity = view.capacity[brokers.index]
        if np.isnan(capacity).any():
            # With one capacity unknown the others cannot be compared with it: brokers count alike.
            capacity = np.ones(len(brokers))
        room: _Shares = {}
        # Sums in one order, whatever the order of the candidates, are the same to the last bit.
        pairs = sorted(zip(zones.tolist(), capacity.tolist(), strict=True), key=lambda pair: (pair[0] or "", pair[1]))
        for zone, amount in pairs:
            room[zone] = room.get(zone, 0.0) + amount
        whole = sum(room.values())
        shares = _spill(local, origin, {zone: amount / whole for zone, amount in room.items()})
        for zone, share in shares.items():
            inside: BoolArray = np.equal(zones, np.array(zone, dtype=object))
            odds[inside] = share * shares_of(self.child, request, brokers.subset(inside), scores[inside], view)
        return odds


def _spill(local: str, origin: _Shares, capacity: _Shares) -> _Shares:
    # Share of the client's requests by zone, summing to 1.
    if origin.get(local, 0.0) <= capacity[local]:
        return {local: 1.0}
    stay = capacity[local] / origin[local]
    room = {zone: max(0.0, share - origin.get(zone, 0.0)) for zone, share in capacity.items() if zone != local}
    total = sum(room.values())
    # No other zone has room: the local one is overfull, but so would any other be.
    if total <= 0.0:
        return {local: 1.0}
    return {local: stay} | {zone: (1.0 - stay) * spare / total for zone, spare in room.items() if spare > 0.0}
