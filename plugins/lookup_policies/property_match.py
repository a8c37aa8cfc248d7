"""The scorer `property-match`: brokers whose lookup properties agree with the client's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Gt, Le
from lookup.model import Candidates, ClusterView, LookupRequest

__all__ = ["PropertyMatch"]

FloatArray = NDArray[np.float64]
_DEFAULT_KEY = "rack"


@dataclass(frozen=True)
class PropertyMatch:
    """Score brokers by whether they publish the value the client sent: `rack=a` is met by `lookup.rack=a`.

    With several keys the score is the mean of their scores, by weight. Values are compared as they are, case included.

    Match -> Result -> Reason, for each key:
        * both have it, values equal -> 1.0
        * both have it, values differ -> 0.0
        * the client sent it, the broker has none -> `unlabelled`
        * the client sent none, whatever the broker has -> `unasked` for every broker, so the key prefers nobody

    Source: PIP-368; its worked example compares a client's `rack` with a broker's `lookup.rack`.
    """

    name: ClassVar[str] = "property-match"

    #: the client property to compare, without prefix
    key: str = _DEFAULT_KEY
    #: several properties with their weights, in place of `key`
    keys: Mapping[str, Annotated[float, Gt(0)]] = field(default_factory=dict)
    #: score of a broker that lacks what the client sent; 0.5 treats it as neither match nor mismatch
    unlabelled: Annotated[float, Ge(0), Le(1)] = 0.0
    #: score of every broker where the client sent nothing
    unasked: Annotated[float, Ge(0), Le(1)] = 0.5

    def __post_init__(self) -> None:
        if self.keys and self.key != _DEFAULT_KEY:
            raise ValueError(f"property-match has both key = {self.key!r} and keys; leave one of them out")

    @property
    def reads(self) -> frozenset[str]:
        """Return the client properties that are compared."""
        return frozenset(f"properties.{key}" for key in self.keys or (self.key,))

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> FloatArray:
        """Return the weighted mean of the keys' scores."""
        if not self.keys:
            return self._matches(self.key, request, brokers)
        # In sorted order: equal parts score equally to the last bit, however their keys are listed.
        terms = [weight * self._matches(key, request, brokers) for key, weight in sorted(self.keys.items())]
        means: FloatArray = np.sum(terms, axis=0) / sum(self.keys[key] for key in sorted(self.keys))
        return np.minimum(means, 1.0)

    def _matches(self, key: str, request: LookupRequest, brokers: Candidates) -> FloatArray:
        wanted = request.property_of(key)
        if wanted is None:
            return np.full(len(brokers), self.unasked)
        scores: FloatArray = np.equal(brokers.labels(key), wanted).astype(np.float64)
        if self.unlabelled:
            bare = brokers.column((self.name, key), lambda broker: broker.property_of(key) is None)
            scores[bare.astype(np.bool_)] = self.unlabelled
        return scores
