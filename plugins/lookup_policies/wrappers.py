"""Wrap other selectors to explore, fall back to the next, keep requests in a zone, or separate namespaces.

The wrappers share `shares_of`, which reads the odds of a child, and a base, `Wrapper`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.errors import ContractError
from lookup.hooks import Ge, Le, Selector, reads_of
from lookup.model import Candidates, ClusterView, LookupRequest
from lookup_policies.round_robin import RoundRobin
from lookup_policies.score_selectors import Best
from lookup_policies.strategies import LeastResourceUsage

__all__ = ["ByNamespace", "Explore", "Fallback", "Wrapper", "ZoneSpill", "shares_of"]

FloatArray = NDArray[np.float64]


def shares_of(
    child: Selector, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView
) -> FloatArray:
    """Normalise the odds of a wrapper's child, shape (n_candidates,). They are all zero if it declines.

    Raises:
        ContractError: if the child returns too many or too few odds, negative ones, NaN or infinity, which the
            engine could not detect in the mixture.
    """
    odds = np.asarray(child.odds(request, brokers, scores, view), dtype=np.float64)
    if odds.shape != (len(brokers),):
        raise ContractError(f"selector {child.name} answered odds of shape {odds.shape} for {len(brokers)} brokers")
    if not np.isfinite(odds).all() or (odds < 0).any():
        raise ContractError(f"selector {child.name} answered odds {odds.tolist()}; odds are finite and not negative")
    # fsum, so that the shares do not depend on the order of the candidates.
    total = math.fsum(odds.tolist())
    return odds / total if total > 0 else odds


class Wrapper:
    """Base of wrappers, which combines the reads and the order sensitivity of the selectors inside.

    The selectors inside keep their memory in the wrapper's memory.
    """

    #: of a wrapper with one selector inside, declared by it with its default
    child: Selector

    def inside_of(self) -> tuple[Selector, ...]:
        """List the selectors inside."""
        return (self.child,)

    def noting(self, request: LookupRequest) -> tuple[Selector, ...]:
        """List the selectors that are notified of the outcome of a request, by default all of them."""
        return self.inside_of()

    @property
    def reads(self) -> frozenset[str]:
        """The combined reads of the selectors inside."""
        return frozenset[str]().union(*map(reads_of, self.inside_of()))

    @property
    def order_sensitive(self) -> bool:
        """Whether one of the selectors inside is."""
        return any(getattr(selector, "order_sensitive", False) for selector in self.inside_of())

    @property
    def remember(self) -> Callable[..., None]:
        """A function that calls `remember` of the selectors that are notified of a request, if they have it.

        Raises:
            AttributeError: if no selector inside has it, so that the wrapper does not count as one with memory.
        """
        return self._call_each("remember")

    @property
    def observe(self) -> Callable[..., None]:
        """A function that calls `observe` in the same way. It raises `AttributeError` in the same way."""
        return self._call_each("observe")

    def _call_each(self, method: str) -> Callable[..., None]:
        if not any(hasattr(selector, method) for selector in self.inside_of()):
            raise AttributeError(f"no selector inside has {method!r}")

        def call(memory: MutableMapping[str, Any], request: LookupRequest, *rest: Any) -> None:
            """Let each note it in the wrapper's memory."""
            for selector in self.noting(request):
                if hasattr(selector, method):
                    getattr(selector, method)(memory, request, *rest)

        return call


@dataclass(frozen=True)
class Explore(Wrapper):
    """Follow a child selector, except for a share of the decisions in which all candidates have equal odds.

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

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Mix the child's distribution with the uniform one."""
        shares = shares_of(self.child, request, brokers, scores, view)
        # If the child declines, so does the wrapper, since perhaps no broker should serve the request.
        if not shares.any():
            return shares
        return (1.0 - self.epsilon) * shares + self.epsilon / len(brokers)


@dataclass(frozen=True)
class Fallback(Wrapper):
    """Call child selectors in order and follow the first that does not decline.

    `best` with a `min_score` before another selector expresses a preference, such as this rack if it has a broker, else
    the least loaded one.

    Match -> Result -> Reason:
        * a child gives some candidate odds above 0 -> its odds, and later children are not called
        * every child declines -> declines -> `no-odds`

    Source: chains of responsibility. The custom manager in PIP-368's own test falls back to Pulsar's default selection.
    """

    name: ClassVar[str] = "fallback"

    #: the selectors, first choice first
    children: tuple[Selector, ...] = (Best(min_score=0.5), LeastResourceUsage())

    def __post_init__(self) -> None:
        if not self.children:
            raise ValueError("fallback has no children; name at least one selector")

    def inside_of(self) -> tuple[Selector, ...]:
        """List the children. All are notified of the outcome of a request, for any source of the odds."""
        return self.children

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Find the odds of the first child that does not decline."""
        # Shares, not the child's own odds, so that an answer is checked like that of a selector on its own.
        for child in self.children:
            shares = shares_of(child, request, brokers, scores, view)
            if shares.any():
                return shares
        return np.zeros(len(brokers))


@dataclass(frozen=True)
class ByNamespace(Wrapper):
    """Use one selector for bundles of some namespaces, and the child for all others.

    Pulsar does so with namespaces that are excluded from shedding. Bundles that will not be unloaded again are given to
    brokers in turn, for any placement strategy.

    Match -> Result -> Reason:
        * the bundle's namespace is one of `namespaces` -> the odds of `inside`
        * otherwise -> the odds of the child

    Both keep their memory in one place, under the child's key. Two selectors that choose in turn share the turn.

    Source: ModularLoadManagerImpl.selectBroker, ExtensibleLoadManagerImpl.getBrokerSelectionStrategy (PIP-380).
    """

    name: ClassVar[str] = "by-namespace"

    #: the namespaces that are asked about apart
    namespaces: tuple[str, ...] = ()
    #: the selector for these
    inside: Selector = RoundRobin()
    #: the selector for all others
    child: Selector = LeastResourceUsage()

    @property
    def memory_key(self) -> str:
        """The child's key, since it may share its memory with a shedder."""
        return str(getattr(self.child, "memory_key", self.child.name))

    @property
    def reads(self) -> frozenset[str]:
        """The namespace, and the reads of both selectors."""
        return super().reads | {"namespace"}

    def inside_of(self) -> tuple[Selector, ...]:
        """List both selectors."""
        return self.inside, self.child

    def noting(self, request: LookupRequest) -> tuple[Selector, ...]:
        """Find the selector that was used."""
        return (self._choose_selector(request),)

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Find the odds of the selector for the bundle's namespace."""
        return shares_of(self._choose_selector(request), request, brokers, scores, view)

    def _choose_selector(self, request: LookupRequest) -> Selector:
        return self.inside if request.namespace in self.namespaces else self.child


#: Share by zone, in [0, 1]. None is the zone of brokers that do not publish one.
_Shares = dict[str | None, float]


@dataclass(frozen=True)
class ZoneSpill(Wrapper):
    """Keep clients in their zone as far as its share of capacity covers its share of demand.

    A zone's origin share is its part of the demand, in weight of the last grid cell by the clients' property.
    Its capacity share is its part of the candidates' capacity, or of their number if one of them has no known
    capacity. Brokers that do not publish a zone together form one. Inside a zone the child selector chooses
    among that zone's candidates. If it declines, the other zones receive that zone's share.

    Match -> Result -> Reason:
        * fewer candidates than `min_cluster_size` -> the child's odds over all candidates
        * the client sent no zone, no candidate is in it, or no demand is known -> the child's odds over all
          candidates
        * origin share of the client's zone <= its capacity share -> all to the zone
        * otherwise -> capacity share / origin share to the zone, and the rest to the other zones in proportion
          to the excess of their capacity share over their origin share

    Source: Envoy, zone aware routing, and page "Policies" of the documentation.
    """

    name: ClassVar[str] = "zone-spill"

    #: the client property that names a zone, without prefix
    key: str = "zone"
    #: fewest candidates with which zones count (Envoy: min_cluster_size)
    min_cluster_size: Annotated[int, Ge(1)] = 6
    #: the selector inside a zone
    child: Selector = Best()

    @property
    def reads(self) -> frozenset[str]:
        """The client's zone, the demand, and the reads of the child."""
        return super().reads | {f"properties.{self.key}", "view.load"}

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Spread the request over zones, and within each by the child's odds."""
        zones = brokers.labels(self.key)
        local = request.property_of(self.key)
        demand = view.load.demand.get(self.key, {})
        total = sum(demand.values())
        # Empty if no demand is known.
        origin: _Shares = {zone: weight / total for zone, weight in demand.items()} if total > 0 else {}
        if len(brokers) < self.min_cluster_size or not origin or local is None or local not in set(zones.tolist()):
            return shares_of(self.child, request, brokers, scores, view)
        odds = np.zeros(len(brokers))
        capacity = view.capacity[brokers.index]
        if np.isnan(capacity).any():
            # With one capacity unknown the others cannot be compared with it, so brokers count equally.
            capacity = np.ones(len(brokers))
        room: _Shares = {}
        # Sums in one order, whatever the order of the candidates, are the same to the last bit.
        pairs = sorted(zip(zones.tolist(), capacity.tolist(), strict=True), key=lambda pair: (pair[0] or "", pair[1]))
        for zone, amount in pairs:
            room[zone] = room.get(zone, 0.0) + amount
        whole = sum(room.values())
        shares = _spill(local, origin, {zone: amount / whole for zone, amount in room.items()})
        for zone, share in shares.items():
            inside: NDArray[np.bool_] = np.equal(zones, np.array(zone, dtype=object))
            odds[inside] = share * shares_of(self.child, request, brokers.subset(inside), scores[inside], view)
        return odds


def _spill(local: str, origin: _Shares, capacity: _Shares) -> _Shares:
    # Share of the client's requests by zone, summing to 1.
    if origin.get(local, 0.0) <= capacity[local]:
        return {local: 1.0}
    stay = capacity[local] / origin[local]
    room = {zone: max(0.0, share - origin.get(zone, 0.0)) for zone, share in capacity.items() if zone != local}
    total = sum(room.values())
    # No other zone has room. The local one is overfull, but so would be any other.
    if total <= 0.0:
        return {local: 1.0}
    return {local: stay} | {zone: (1.0 - stay) * spare / total for zone, spare in room.items() if spare > 0.0}
