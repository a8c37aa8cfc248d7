"""The wrapper `fallback`: the first of several selectors that answers."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Observing, Offer, Remembering, Selector, reads_of
from lookup.model import Broker, Candidates, ClusterView, LookupRequest
from lookup_policies.explore import shares_of
from lookup_policies.score_selectors import Best
from lookup_policies.strategies import LeastResourceUsage

__all__ = ["Fallback"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Fallback:
    """Ask child selectors in order and follow the first that does not decline.

    `best` with a `min_score` in front of another selector makes a preference: this rack if it has a broker, else the
    least loaded one.

    Match -> Result -> Reason:
        * a child gives some candidate odds above 0 -> its odds, those after it are not asked
        * every child declines -> declines -> `no-odds`

    Source: chains of responsibility; the custom manager in PIP-368's own test falls back to Pulsar's default selection.
    """

    name: ClassVar[str] = "fallback"

    #: the selectors, first choice first
    children: tuple[Selector, ...] = (Best(min_score=0.5), LeastResourceUsage())

    def __post_init__(self) -> None:
        if not self.children:
            raise ValueError("fallback has no children; name at least one selector")

    @property
    def reads(self) -> frozenset[str]:
        """Return what any of the children reads."""
        return frozenset[str]().union(*map(reads_of, self.children))

    @property
    def order_sensitive(self) -> bool:
        """Return whether one of the children is."""
        return any(getattr(child, "order_sensitive", False) for child in self.children)

    @property
    def remember(self) -> Callable[[MutableMapping[str, Any], LookupRequest, Broker], None]:
        """Return a function by which every child that keeps something does so; the memory is the wrapper's and shared.

        Raises:
            AttributeError: if no child keeps anything, so that the wrapper does not seem to.
        """
        remembering = [cast("Remembering", child) for child in self.children if hasattr(child, "remember")]
        if not remembering:
            raise AttributeError("no child of this fallback keeps anything")

        def remember_all(memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker) -> None:
            """Let every child that keeps something note a new owner."""
            for child in remembering:
                child.remember(memory, request, broker)

        return remember_all

    @property
    def observe(self) -> Callable[[MutableMapping[str, Any], LookupRequest, Broker, Offer], None]:
        """Return a function that lets every child observe that does, whichever child's odds an assignment came from.

        Raises:
            AttributeError: if no child observes anything.
        """
        observing = [cast("Observing", child) for child in self.children if hasattr(child, "observe")]
        if not observing:
            raise AttributeError("no child of this fallback observes anything")

        def observe_all(memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
            """Show every child that observes what was offered."""
            for child in observing:
                child.observe(memory, request, broker, offer)

        return observe_all

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Return the odds of the first child that states any."""
        # Shares, not the child's own odds, so that an answer is checked like that of a selector on its own.
        for child in self.children:
            shares = shares_of(child, request, brokers, scores, view)
            if shares.any():
                return shares
        return np.zeros(len(brokers))
