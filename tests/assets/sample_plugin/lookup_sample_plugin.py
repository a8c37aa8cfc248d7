"""A third party's plug-in: keep drained brokers out, prefer a tenant's home, keep a tenant where it went last."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Le, hookimpl
from lookup.model import Broker, Candidates, ClusterView, LookupRequest, Reason

__all__ = ["NotDrained", "StickyTenant", "TenantHome"]


@dataclass(frozen=True)
class NotDrained:
    """Reject brokers that publish `lookup.drain`, so that maintenance needs no other switch."""

    name: ClassVar[str] = "not-drained"
    reason: ClassVar[Reason] = Reason.FILTERED
    reads: ClassVar[frozenset[str]] = frozenset()

    #: the lookup property, without prefix, that marks a broker
    key: str = "drain"

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> Iterator[bool]:
        """Keep brokers without the mark."""
        return (broker.property_of(self.key) is None for broker in brokers)

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Quote the mark."""
        return f"is marked {self.key}={broker.property_of(self.key)}"


@dataclass(frozen=True)
class TenantHome:
    """Score brokers that publish the request's tenant as their `lookup.home` 1, those without a home `open_house`."""

    name: ClassVar[str] = "tenant-home"
    reads: ClassVar[frozenset[str]] = frozenset({"tenant"})

    #: score of a broker that is nobody's home
    open_house: Annotated[float, Ge(0), Le(1)] = 0.5

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> Sequence[float]:
        """Compare every broker's home with the tenant."""
        at_home = {None: self.open_house, request.tenant: 1.0}
        return [at_home.get(broker.property_of("home"), 0.0) for broker in brokers]


@dataclass(frozen=True)
class StickyTenant:
    """Choose the broker a tenant was given last while it is a candidate, else one with the highest score."""

    name: ClassVar[str] = "sticky-tenant"
    reads: ClassVar[frozenset[str]] = frozenset({"tenant", "view.memory"})

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        """Return 1 for the remembered broker, or for the best."""
        last = np.array([broker.id == view.memory.get(request.tenant) for broker in brokers])
        chosen = last if last.any() else scores >= scores.max() - 1e-9
        return chosen.astype(np.float64)

    def remember(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker) -> None:
        """Note where the tenant went."""
        memory[request.tenant] = broker.id


@hookimpl
def lookup_register_filters() -> tuple[type, ...]:
    """Return the plug-in's filter."""
    return (NotDrained,)


@hookimpl
def lookup_register_scorers() -> tuple[type, ...]:
    """Return the plug-in's scorer."""
    return (TenantHome,)


@hookimpl
def lookup_register_selectors() -> tuple[type, ...]:
    """Return the plug-in's selector."""
    return (StickyTenant,)
