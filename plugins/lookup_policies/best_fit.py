"""The selector `best-fit`, which places a bundle for the best resulting placement by the aims of `rebalance`."""

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
    """Choose the broker with the least load / capacity after the placement, near the clients if balance permits.

    With `near`, brokers that stay within `max_imbalance` are preferred by the share of the bundle's clients
    near them, among the clients with a location (`view.load.origins`). If there are none yet, the requesting
    client counts. Bundles placed since the last report count with their load, and a bundle of unknown load
    counts as a mean one. Scores do not matter.

    Match -> Result -> Reason:
        * of the candidates within `max_imbalance` the ones near most clients, of all candidates if none is
          within it. Among them the least load / capacity, or within 1e-9 of it -> an equal share
        * no report, although another candidate has one -> never
        * otherwise -> never

    Memory: `{"at_us": time of the report, "given": {broker: {bundle: load}}}`.
    """

    name: ClassVar[str] = "best-fit"

    #: client property, as `rack`, by which bundles come near their clients, or None to aim only for balance
    near: str | None = None
    #: load / capacity of a broker, over that of the whole cluster, up to which nearness decides
    max_imbalance: Annotated[float, Ge(1)] = 1.2

    @property
    def reads(self) -> frozenset[str]:
        """The bundle, the load and the memory, and with `near` also the properties of clients."""
        nearness = {f"properties.{self.near}", "view.load.origins"} if self.near is not None else set[str]()
        return frozenset({"bundle", "view.load", "view.now", "view.memory", *nearness})

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Floats, view: ClusterView) -> Floats:
        """Give odds 1 to the best candidates."""
        loads = given_since(view.memory, view.now_us)
        expected = np.array([math.fsum(loads.get(broker, {}).values()) for broker in view.brokers.ids])
        load, capacities, own = sum_loads(view) + expected, capacities_of(view), _load_of(view, request.bundle)
        known = able(view) & np.isfinite(load)
        if not known[brokers.index].any():
            # Without any report only the bundles placed since then count.
            load, known = expected, able(view)
        filled = np.where(known, (load + own) / capacities, np.inf)[brokers.index]
        preferred = np.isfinite(filled)
        if not preferred.any():
            return np.ones(len(brokers))
        if self.near is not None:
            even = self.max_imbalance * (load[known].sum() + own) / capacities[known].sum()
            shares = np.where(
                filled <= even * (1.0 + ROUND_OFF), _compute_shares(self.near, request, brokers, view), 0.0
            )
            preferred &= shares >= shares.max() - ROUND_OFF
        # Rounding errors grow with the fullest broker, and units may be bytes or lookups.
        least, most = filled[preferred].min(), filled[preferred].max()
        best: NDArray[np.bool_] = preferred & (filled <= least + ROUND_OFF * most)
        return best.astype(np.float64)

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Count the bundle's load for its new owner until the next report."""
        if not offer.is_assigned:
            return
        give(memory, offer.view.now_us, broker, request.bundle, _load_of(offer.view, request.bundle))


def _compute_shares(key: str, request: LookupRequest, brokers: Candidates, view: ClusterView) -> Floats:
    """Compute the share of a bundle's clients near each candidate, shape (n_candidates,)."""
    sent = request.properties.get(key)
    origins = view.load.origins.get(key, {}).get(request.bundle, {} if sent is None else {sent: 1.0})
    total = math.fsum(origins.values())
    return np.array([origins.get(label, 0.0) / total if total else 0.0 for label in brokers.labels(key)])


def _load_of(view: ClusterView, bundle: str) -> float:
    """Find the load of a bundle, owned or not, by default that of a mean bundle."""
    load = view.load
    # Without rates of messages, loads replace them.
    by_bundle = load.long_term_bundle_rates if load.rates is None else load.long_term_bundle_throughputs
    weight = by_bundle.get(bundle)
    return load.mean_bundle_load if weight is None else weight
