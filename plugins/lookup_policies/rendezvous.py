"""The selector `rendezvous`: the same key goes to the same broker as long as that broker is there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model import Broker, Candidates, ClusterView, LookupRequest
from lookup.model.view import REQUEST_READS

__all__ = ["Rendezvous"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Rendezvous:
    """Choose the candidate with the greatest -weight / ln(u), u in (0, 1) being a hash of key and broker.

    Each broker gets a share of the keys in proportion to its weight. When a broker leaves only its own keys move, and
    they spread over the others; when it returns exactly these come back. Nothing is remembered and no load is read.
    Scores do not matter.

    Match -> Result -> Reason:
        * the greatest value -> always
        * otherwise -> never
        * the request lacks the `key` (the engine's own have only a bundle) -> the bundle's name stands in for it
        * `weight_property` is set, the broker's value is no number above 0 -> weight 1
        * it is not set, the broker's capacity is unknown -> the mean of the known capacities

    Source: Thaler and Ravishankar, IEEE/ACM ToN 6 (1998); weights: Resch, Storage Developer Conference 2015;
    `facts/evaluation.md` section 4.
    """

    name: ClassVar[str] = "rendezvous"

    #: what is hashed: a field of the request (`bundle`, `topic`, `client`, `namespace`, ...), or `properties.NAME`
    key: str = "bundle"
    #: lookup property of the brokers, without prefix, whose number is their weight; None: their capacity is
    weight_property: str | None = None

    def __post_init__(self) -> None:
        field, _, rest = self.key.partition(".")
        if field not in REQUEST_READS or (field == "properties") != bool(rest):
            known = ", ".join(entry for entry in REQUEST_READS if entry != "properties")
            raise ValueError(f"rendezvous cannot hash key = {self.key!r}; known: {known}, properties.NAME")

    @property
    def reads(self) -> frozenset[str]:
        """Return the field that is hashed, and the bundle, which stands in for it."""
        return frozenset({"bundle", self.key})

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Return 1 for the candidate with the greatest value."""
        own = brokers.column(self.name, lambda broker: _digest(broker.id)).astype(np.uint64)
        lengths = -np.log(_units(_digest(self._key_of(request)), own))
        values = self._weights(brokers, view) / lengths
        winner: NDArray[np.bool_] = values == values.max()
        return winner.astype(np.float64)

    def _key_of(self, request: LookupRequest) -> str:
        field, _, name = self.key.partition(".")
        value = request.property_of(name) if name else getattr(request, field)
        return value or request.bundle

    def _weights(self, brokers: Candidates, view: ClusterView) -> FloatArray:
        wanted = self.weight_property
        if wanted is not None:
            weights = brokers.column((self.name, wanted), lambda broker: _labelled_weight(broker, wanted))
            return weights.astype(np.float64)
        capacity = view.capacity[brokers.index]
        known = view.capacity[~np.isnan(view.capacity)]
        # Over all brokers of the run, so that nobody's weight changes when another broker comes or goes.
        return np.where(np.isnan(capacity), math.fsum(known.tolist()) / len(known) if len(known) else 1.0, capacity)


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def _units(key: int, brokers: NDArray[np.uint64]) -> FloatArray:
    """Mix the digest of a key with each broker's into numbers in (0, 1), both ends left out.

    A digest of every pair would do as well and take thirty times as long. Source: the finalizer of SplitMix64, Steele,
    Lea and Flood, OOPSLA 2014.
    """
    mixed = brokers + np.uint64(key)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    # 52 bits and a half are exact in a double.
    return ((mixed >> np.uint64(12)).astype(np.float64) + 0.5) / 2**52


def _labelled_weight(broker: Broker, key: str) -> float:
    try:
        weight = float(broker.property_of(key) or "")
    except ValueError:
        return 1.0
    return weight if 0.0 < weight < math.inf else 1.0
