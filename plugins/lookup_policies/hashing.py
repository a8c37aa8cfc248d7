"""Choose brokers by hashes of bundle and broker, with rendezvous hashing or a ring with bounds of brokers.

With the salt of production, "", digests are plain BLAKE2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Gt
from lookup.model import Broker, Candidates, ClusterView, LookupRequest
from lookup.model.view import REQUEST_READS

__all__ = ["BoundedConsistentHash", "Rendezvous", "digest", "mix"]

FloatArray = NDArray[np.float64]
Digests = NDArray[np.uint64]


def digest(text: str, salt: str = "") -> int:
    """Compute the first 64 bits of a text's hash, which differs for each salt.

    Args:
        salt: at most 64 bytes in UTF-8. "" does not change the hash.
    """
    return int.from_bytes(blake2b(text.encode(), digest_size=8, key=salt.encode()).digest())


def mix(digests: Digests, key: int) -> Digests:
    """Mix a 64-bit key into digests. The results for different keys are practically independent of each other.

    Hashing every pair would be equivalent and take thirty times as long.

    Source: the finalizer of SplitMix64, Steele, Lea and Flood, OOPSLA 2014.
    """
    sums = digests + np.uint64(key)
    sums = (sums ^ (sums >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    sums = (sums ^ (sums >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    sums ^= sums >> np.uint64(31)
    return sums


@dataclass(frozen=True)
class Rendezvous:
    """Choose the candidate with the greatest -weight / ln(u), u in (0, 1) being a hash of key, salt and broker.

    Each broker gets a share of the keys in proportion to its weight. When a broker leaves, only its own keys
    move, and they spread over the others. When it returns, exactly these come back. There is no memory and load
    is not read. Scores do not matter.

    Match -> Result -> Reason:
        * the greatest value -> always
        * otherwise -> never
        * the request lacks the `key` (the engine's own have only a bundle) -> the bundle's name replaces it
        * `weight_property` is set, the broker's value is not a number above 0 -> weight 1
        * it is not set, the broker's capacity is unknown -> the mean of the known capacities

    Source: Thaler and Ravishankar, IEEE/ACM ToN 6 (1998). Weights: Resch, Storage Developer Conference 2015,
    and page "Policies" of the documentation.
    """

    name: ClassVar[str] = "rendezvous"

    #: the hashed field of the request (`bundle`, `topic`, `client`, `namespace`, ...), or `properties.NAME`
    key: str = "bundle"
    #: lookup property of the brokers, without prefix, whose number is their weight, None for their capacity
    weight_property: str | None = None

    def __post_init__(self) -> None:
        # Rejected when settings are read, since a misspelt field would silently make every request hash its bundle.
        field, _, rest = self.key.partition(".")
        if field not in REQUEST_READS or (field == "properties") != bool(rest):
            fields = ", ".join(entry for entry in REQUEST_READS if entry != "properties")
            raise ValueError(f"rendezvous cannot hash key = {self.key!r}; known: {fields}, properties.NAME")

    @property
    def reads(self) -> frozenset[str]:
        """The hashed field, the bundle, which replaces a missing field, and the salt."""
        return frozenset({"bundle", self.key, "view.salt"})

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Give odds 1 to the candidate with the greatest value."""
        broker_digests = brokers.column(self.name, lambda broker: digest(broker.id)).astype(np.uint64)
        field, _, name = self.key.partition(".")
        value = request.property_of(name) if name else getattr(request, field)
        digests = mix(broker_digests, digest(value or request.bundle, view.salt))
        # Numbers in (0, 1), both ends left out: 52 bits and a half are exact in a double.
        units = ((digests >> np.uint64(12)).astype(np.float64) + 0.5) / 2**52
        values = self._find_weights(brokers, view) / -np.log(units)
        winner: NDArray[np.bool_] = values == values.max()
        return winner.astype(np.float64)

    def _find_weights(self, brokers: Candidates, view: ClusterView) -> FloatArray:
        key = self.weight_property
        if key is not None:
            weights = brokers.column((self.name, key), lambda broker: _read_weight(broker, key))
            return weights.astype(np.float64)
        capacity = view.capacity.take(brokers.index)
        is_unknown = np.isnan(capacity)
        if not np.count_nonzero(is_unknown):
            return capacity
        # Over all brokers of the run, so that no broker's weight changes when another broker comes or goes.
        known = view.capacity[~np.isnan(view.capacity)]
        return np.where(is_unknown, math.fsum(known.tolist()) / len(known) if len(known) else 1.0, capacity)


def _read_weight(broker: Broker, key: str) -> float:
    try:
        weight = float(broker.property_of(key) or "")
    except ValueError:
        return 1.0
    return weight if 0.0 < weight < math.inf else 1.0


#: Positions of the points on the ring, ascending, and the number of each point's broker, both of shape (n_points,).
_Ring = tuple[NDArray[np.uint64], NDArray[np.intp]]


@dataclass(frozen=True)
class BoundedConsistentHash:
    """Choose the first broker with room clockwise of the bundle's position on a hash ring.

    With m bundles owned by the n candidates, including the one to assign, a broker has room while it owns fewer
    than ceil((1 + `epsilon`) * m / n). A small `epsilon` balances better and moves more. Another salt gives
    another ring, and another position of each bundle on it. Scores do not matter.

    Match -> Result -> Reason:
        * the first candidate clockwise with room -> always
        * a candidate that is full -> skipped
        * otherwise -> never. Some broker always has room

    Source: Mirrokni, Thorup and Zadimoghaddam, Consistent Hashing with Bounded Loads, SODA 2018, and page
    "Policies" of the documentation.
    """

    name: ClassVar[str] = "bounded-consistent-hash"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.ownership", "view.salt"})

    #: by how much a broker may exceed its share, ratio
    epsilon: Annotated[float, Gt(0)] = 0.25
    #: points of each broker on the ring. More points spread the bundles of a lost broker more evenly
    points: Annotated[int, Ge(1)] = 100

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Give odds 1 to the first candidate with room."""
        counts = view.ownership.bundles()[brokers.index]
        # One more than the present number, since the bundle to assign counts, so some broker always has room.
        cap = math.ceil((1.0 + self.epsilon) * (int(counts.sum()) + 1) / len(brokers))
        roomy = np.zeros(len(view.brokers), dtype=np.bool_)
        roomy[brokers.index[counts < cap]] = True
        positions, owners = _build_ring(view.brokers.ids, self.points, view.salt)
        start = int(np.searchsorted(positions, np.uint64(digest(request.bundle, view.salt))))
        # The first point with room from the start on, or, past the end of the ring, from its beginning.
        ahead = np.flatnonzero(roomy[owners[start:]])
        winner = owners[start + ahead[0]] if len(ahead) else owners[np.flatnonzero(roomy[owners])[0]]
        chosen: NDArray[np.bool_] = brokers.index == winner
        return chosen.astype(np.float64)


@lru_cache(maxsize=32)
def _build_ring(broker_ids: tuple[str, ...], points: int, salt: str) -> _Ring:
    # By ids, not by roster, since brokers keep their ids when they change their lookup data.
    positions = _compute_digests(broker_ids, points)
    if salt:
        positions = mix(positions, digest("", salt))
    order = np.argsort(positions, kind="stable")
    return positions[order], np.repeat(np.arange(len(broker_ids)), points)[order]


@lru_cache(maxsize=16)
def _compute_digests(broker_ids: tuple[str, ...], points: int) -> NDArray[np.uint64]:
    # Hashed once for all salts, since mixing takes a hundredth of the time.
    positions = [digest(f"{broker_id}\0{point}") for broker_id in broker_ids for point in range(points)]
    return np.array(positions, dtype=np.uint64)
