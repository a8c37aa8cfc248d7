"""The selector `bounded-consistent-hash`: a hash ring on which no broker may own much more than its share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Gt
from lookup.model import Candidates, ClusterView, LookupRequest, Roster
from lookup_policies._hashing import digest, mixed

__all__ = ["BoundedConsistentHash"]

FloatArray = NDArray[np.float64]
#: Places of the points on the ring, ascending, and the number of the broker each belongs to; shape (n_points,).
_Ring = tuple[NDArray[np.uint64], NDArray[np.intp]]


@dataclass(frozen=True)
class BoundedConsistentHash:
    """Choose the first broker clockwise of the bundle's place on a hash ring that has room.

    With m bundles owned by the n candidates, the one to assign included, a broker has room while it owns fewer than
    ceil((1 + `epsilon`) * m / n). A small `epsilon` balances better and moves more. Another salt is another ring, and
    another place of each bundle on it. Scores do not matter.

    Match -> Result -> Reason:
        * the first candidate clockwise with room -> always
        * a candidate that is full -> passed over
        * otherwise -> never; somebody always has room

    Source: Mirrokni, Thorup and Zadimoghaddam, Consistent Hashing with Bounded Loads, SODA 2018;
    page "Policies" of the documentation.
    """

    name: ClassVar[str] = "bounded-consistent-hash"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.ownership", "view.salt"})

    #: by how much a broker may exceed its share, ratio
    epsilon: Annotated[float, Gt(0)] = 0.25
    #: points each broker has on the ring; more spread the bundles of a lost broker more evenly
    points: Annotated[int, Ge(1)] = 100

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Return 1 for the first candidate with room."""
        counts = view.ownership.bundles()[brokers.index]
        cap = math.ceil((1.0 + self.epsilon) * (int(counts.sum()) + 1) / len(brokers))
        roomy = np.zeros(len(view.brokers), dtype=np.bool_)
        roomy[brokers.index[counts < cap]] = True
        chosen: NDArray[np.bool_] = brokers.index == self._clockwise(request.bundle, view, roomy)
        return chosen.astype(np.float64)

    def _clockwise(self, bundle: str, view: ClusterView, roomy: NDArray[np.bool_]) -> int:
        places, owners = _ring(view.brokers, self.points, view.salt)
        start = int(np.searchsorted(places, np.uint64(digest(bundle, view.salt))))
        # The first point with room from the start on, or, past the end of the ring, from its beginning.
        ahead = np.flatnonzero(roomy[owners[start:]])
        return int(owners[start + ahead[0]] if len(ahead) else owners[np.flatnonzero(roomy[owners])[0]])


@lru_cache(maxsize=64)
def _ring(roster: Roster, points: int, salt: str) -> _Ring:
    # Brokers keep their ids when they change their lookup data, so a ring outlives the roster it was made for.
    return _ring_of(roster.ids, points, salt)


@lru_cache(maxsize=32)
def _ring_of(broker_ids: tuple[str, ...], points: int, salt: str) -> _Ring:
    places = _digests(broker_ids, points)
    if salt:
        places = mixed(places, digest("", salt))
    order = np.argsort(places, kind="stable")
    return places[order], np.repeat(np.arange(len(broker_ids)), points)[order]


@lru_cache(maxsize=16)
def _digests(broker_ids: tuple[str, ...], points: int) -> NDArray[np.uint64]:
    # Hashed once for all salts: mixing takes a hundredth of the time.
    places = [digest(f"{broker_id}\0{point}") for broker_id in broker_ids for point in range(points)]
    return np.array(places, dtype=np.uint64)
