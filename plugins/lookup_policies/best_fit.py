"""The selector `best-fit`: a bundle goes to where the placement is best with it, by the objective of `rebalance`."""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Offer
from lookup.model import Broker, Candidates, ClusterView, LookupRequest
from lookup_policies._placing import ROUND_OFF, able, capacities_of, sum_loads
from lookup_policies.strategies import give, given_since

__all__ = ["BestFit"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BestFit:
    """Choose the broker with the least load / capacity once it has the bundle; near its clients if that is even enough.

    With `near`, brokers that stay within `max_imbalance` are preferred by the share of the bundle's clients that they
    are near, of those that say where they are (`view.load.origins`); if none has yet, the client that asks counts.
    Bundles given since the last report count with their load, one of unknown load as a mean one. Scores do not matter.

    Match -> Result -> Reason:
        * of the candidates within `max_imbalance` those near most clients, of all candidates if none is within it: the
          least load / capacity, or within 1e-9 of it -> an equal share
        * no report, although another candidate has one -> never
        * otherwise -> never

    Memory: `{"at_us": time of the report, "given": {broker: {bundle: load}}}`.
    """

    name: ClassVar[str] = "best-fit"

    #: client property, as `rack`, by which bundles come near their clients; None: balance is the only aim
    near: str | None = None
    #: load / capacity of a broker, over that of the whole cluster, up to which nearness decides
    max_imbalance: Annotated[float, Ge(1)] = 1.2

    @property
    def reads(self) -> frozenset[str]:
        """The bundle, the load and the memory; with `near` what clients send too."""
        nearness = {f"properties.{self.near}", "view.load.origins"} if self.near is not None else set[str]()
        return frozenset({"bundle", "view.load", "view.now", "view.memory", *nearness})

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Floats, view: ClusterView) -> Floats:
        """Return 1 for the best candidates."""
        given = given_since(view.memory, view.now_us)
        expected = np.array([math.fsum(given.get(broker, {}).values()) for broker in view.brokers.ids])
        load, capacities, own = sum_loads(view) + expected, capacities_of(view), _load_of(view, request.bundle)
        known = able(view) & np.isfinite(load)
        if not known[brokers.index].any():
            # Without any report only what was given since counts.
            load, known = expected, able(view)
        filled = np.where(known, (load + own) / capacities, np.inf)[brokers.index]
        preferred = np.isfinite(filled)
        if not preferred.any():
            return np.ones(len(brokers))
        if self.near is not None:
            even = self.max_imbalance * (load[known].sum() + own) / capacities[known].sum()
            shares = np.where(filled <= even * (1.0 + ROUND_OFF), _shares(self.near, request, brokers, view), 0.0)
            preferred &= shares >= shares.max() - ROUND_OFF
        # What is rounded is as large as the fullest; units may be bytes beside lookups.
        least, most = filled[preferred].min(), filled[preferred].max()
        best: NDArray[np.bool_] = preferred & (filled <= least + ROUND_OFF * most)
        return best.astype(np.float64)

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Count the bundle's load for its new owner until the next report."""
        if not offer.is_assigned:
            return
        give(memory, offer.view.now_us, broker, request.bundle, _load_of(offer.view, request.bundle))


def _shares(key: str, request: LookupRequest, brokers: Candidates, view: ClusterView) -> Floats:
    """Return the share of a bundle's clients that each candidate is near, shape (n_candidates,)."""
    sent = request.properties.get(key)
    origins = view.load.origins.get(key, {}).get(request.bundle, {} if sent is None else {sent: 1.0})
    total = math.fsum(origins.values())
    return np.array([origins.get(label, 0.0) / total if total else 0.0 for label in brokers.labels(key)])


def _load_of(view: ClusterView, bundle: str) -> float:
    """Return the load of a bundle, owned or not, that of a mean one if it is unknown."""
    load = view.load
    # Without rates of messages, loads stand for them.
    by_bundle = load.long_term_bundle_rates if load.rates is None else load.long_term_bundle_throughputs
    known = by_bundle.get(bundle)
    return load.mean_bundle_load if known is None else known
