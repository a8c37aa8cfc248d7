"""The wrapper `explore`: now and then any broker, so that logs can judge other policies later.

With it, what wrappers around one child have in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from lookup.errors import ContractError
from lookup.hooks import Ge, Le, Observing, Offer, Remembering, Selector, reads_of
from lookup.model import Broker, Candidates, ClusterView, LookupRequest
from lookup_policies.score_selectors import Best

__all__ = ["ChildAsking", "Explore", "shares_of"]

FloatArray = NDArray[np.float64]


class ChildAsking:
    """A selector with one child: it is order sensitive, and keeps something if its child does."""

    #: declared by the wrapper, with its default
    child: Selector

    @property
    def order_sensitive(self) -> bool:
        """Return whether the child is."""
        return getattr(self.child, "order_sensitive", False)

    @property
    def remember(self) -> Callable[[MutableMapping[str, Any], LookupRequest, Broker], None]:
        """Return the child's own `remember`; the memory it is handed is the wrapper's.

        Raises:
            AttributeError: if the child has none, so that the wrapper does not seem to keep anything.
        """
        return cast("Remembering", self.child).remember

    @property
    def observe(self) -> Callable[[MutableMapping[str, Any], LookupRequest, Broker, Offer], None]:
        """Return the child's own `observe`; memory and offer it is handed are the wrapper's.

        Raises:
            AttributeError: if the child has none.
        """
        return cast("Observing", self.child).observe


@dataclass(frozen=True)
class Explore(ChildAsking):
    """Follow a child selector, except for a share of the decisions that any candidate gets with equal odds.

        odds = (1 - epsilon) * child + epsilon / number of candidates

    Match -> Result -> Reason:
        * the child declines -> declines -> `no-odds`
        * otherwise -> every candidate has at least `epsilon` / number of candidates

    Source: epsilon-greedy, Sutton and Barto, Reinforcement Learning, section 2.2 (second edition).
    """

    name: ClassVar[str] = "explore"

    #: share of the decisions that explore
    epsilon: Annotated[float, Ge(0), Le(1)] = 0.05
    #: the selector to follow otherwise
    child: Selector = Best()

    @property
    def reads(self) -> frozenset[str]:
        """Return what the child reads."""
        return reads_of(self.child)

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Mix the child's distribution with the uniform one."""
        shares = shares_of(self.child, request, brokers, scores, view)
        # A child that declines is not explored around: nobody may be meant to serve the request.
        if not shares.any():
            return shares
        return (1.0 - self.epsilon) * shares + self.epsilon / len(brokers)


def shares_of(
    child: Selector, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView
) -> FloatArray:
    """Ask a wrapper's child for its odds and normalise them, shape (n_candidates,); all zero if it declines.

    Raises:
        ContractError: if the child answers too many or too few odds, negative ones, NaN or infinity; in the mixture
            the engine could not notice any more.
    """
    odds = np.asarray(child.odds(request, brokers, scores, view), dtype=np.float64)
    if odds.shape != (len(brokers),):
        raise ContractError(f"selector {child.name} answered odds of shape {odds.shape} for {len(brokers)} brokers")
    if not np.isfinite(odds).all() or (odds < 0).any():
        raise ContractError(f"selector {child.name} answered odds {odds.tolist()}; odds are finite and not negative")
    # fsum: the shares do not depend on the order of the candidates.
    total = math.fsum(odds.tolist())
    return odds / total if total > 0 else odds
