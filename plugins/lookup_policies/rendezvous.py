"""The selector `rendezvous`: the same key goes to the same broker as long as that broker is there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model import Broker, Candidates, ClusterView, LookupRequest
from lookup.model.view import REQUEST_READS
from lookup_policies._hashing import digest, mixed

__all__ = ["Rendezvous"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Rendezvous:
    """Choose the candidate with the greatest -weight / ln(u), u in (0, 1) being a hash of key, salt and broker.

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
    page "Policies" of the documentation.
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
        """Return the field that is hashed, the bundle, which stands in for it, and the salt."""
        return frozenset({"bundle", self.key, "view.salt"})

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Return 1 for the candidate with the greatest value."""
        own = brokers.column(self.name, lambda broker: digest(broker.id)).astype(np.uint64)
        lengths = -np.log(_units(mixed(own, digest(self._key_of(request), view.salt))))
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


def _units(digests: NDArray[np.uint64]) -> FloatArray:
    # Numbers in (0, 1), both ends left out: 52 bits and a half are exact in a double.
    return ((digests >> np.uint64(12)).astype(np.float64) + 0.5) / 2**52


def _labelled_weight(broker: Broker, key: str) -> float:
    try:
        weight = float(broker.property_of(key) or "")
    except ValueError:
        return 1.0
    return weight if 0.0 < weight < math.inf else 1.0
