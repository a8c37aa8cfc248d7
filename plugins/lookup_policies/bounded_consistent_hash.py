"""The selector `bounded-consistent-hash`: a hash ring on which no broker may own much more than its share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Gt
from lookup.model import Candidates, ClusterView, LookupRequest, Roster

__all__ = ["BoundedConsistentHash"]

FloatArray = NDArray[np.float64]
#: Places of the points on the ring, ascending, and the number of the broker each belongs to; shape (n_points,).
_Ring = tuple[NDArray[np.uint64], NDArray[np.intp]]


@dataclass(frozen=True)
class BoundedConsistentHash:
    """Choose the first broker clockwise of the bundle's place on a hash ring that has room.

    With m bundles owned by the n candidates, the one to assign included, a broker has room while it owns fewer than
    ceil((1 + `epsilon`) * m / n). A small `epsilon` balances better and moves more. Scores do not matter.

    Match -> Result -> Reason:
        * the first candidate clockwise with room -> always
        * a candidate that is full -> passed over
        * otherwise -> never; somebody always has room

    Source: Mirrokni, Thorup and Zadimoghaddam, Consistent Hashing with Bounded Loads, SODA 2018;
    `facts/evaluation.md` section 4.
    """

    name: ClassVar[str] = "bounded-consistent-hash"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.ownership"})

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
        chosen: NDArray[np.bool_] = brokers.index == self._clockwise(request.bundle, view.brokers, roomy)
        return chosen.astype(np.float64)

    def _clockwise(self, bundle: str, roster: Roster, roomy: NDArray[np.bool_]) -> int:
        places, owners = _ring(roster, self.points)
        start = int(np.searchsorted(places, np.uint64(_place(bundle))))
        # The first point with room from the start on, or, past the end of the ring, from its beginning.
        ahead = np.flatnonzero(roomy[owners[start:]])
        return int(owners[start + ahead[0]] if len(ahead) else owners[np.flatnonzero(roomy[owners])[0]])


def _place(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


@lru_cache(maxsize=64)
def _ring(roster: Roster, points: int) -> _Ring:
    return _ring_of(tuple(broker.id for broker in roster), points)


@lru_cache(maxsize=16)
def _ring_of(broker_ids: tuple[str, ...], points: int) -> _Ring:
    # Brokers keep their ids when they change their lookup data, so a ring outlives the roster it was made for.
    places = [_place(f"{broker_id}\0{point}") for broker_id in broker_ids for point in range(points)]
    owners = np.repeat(np.arange(len(broker_ids)), points)
    order = np.argsort(np.array(places, dtype=np.uint64), kind="stable")
    return np.array(places, dtype=np.uint64)[order], owners[order]
