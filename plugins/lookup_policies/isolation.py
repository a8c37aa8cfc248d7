"""The filter `isolation`: namespaces that may use certain brokers only, and brokers that serve certain topics only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.model import Broker, Candidates, ClusterView, IsolationPolicy, LookupRequest, Reason, Roster

__all__ = ["Isolation"]

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Isolation:
    """Keep namespaces with isolation policies on their brokers, and all other namespaces off those.

    Patterns are matched against the whole host, the id up to its last colon. Logs often name brokers without a port,
    which Pulsar itself never does: it would drop such an id. The kind of topic counts only for namespaces without
    policies, as in Pulsar; a request of the engine has no topic and counts as persistent. (In Pulsar a bundle counts as
    non-persistent from the first lookup of a non-persistent topic in it on; here every lookup is judged by its own
    topic.) Of several policies of one namespace each adds its brokers.

    Match -> Result -> Reason:
        * the id has no colon, `portless = "drop"` -> rejected -> `isolation`
        * the namespace has policies, the host is primary -> kept
        * it has policies, the host is secondary and not primary, fewer than `min_limit` primaries among the candidates
          -> kept
        * it has policies, any other host -> rejected -> `isolation`
        * it has none, the host is primary in a policy of another namespace -> rejected -> `isolation`
        * it has none, the broker does not serve the topic's domain -> rejected -> `isolation`
        * it has none, otherwise -> kept

    Source: BrokerIsolationPoliciesFilter, IsolationPoliciesHelper.
    """

    name: ClassVar[str] = "isolation"
    reason: ClassVar[Reason] = Reason.ISOLATION
    reads: ClassVar[frozenset[str]] = frozenset({"namespace", "domain"})

    #: what happens to a broker whose id has no port; "drop" is Pulsar's
    portless: Literal["keep", "drop"] = "keep"

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> BoolArray:
        """Apply the namespace's policies, or keep it on shared brokers that serve its kind of topic."""
        if self.portless == "keep":
            return _allowed(request, brokers, view)
        kept: BoolArray = np.array([":" in broker_id for broker_id in brokers.ids], dtype=np.bool_)
        kept[kept] = _allowed(request, brokers.subset(kept), view)
        return kept

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name the cause: the port, the host, the domain or another namespace's claim."""
        if self.portless == "drop" and ":" not in broker.id:
            return f"id {broker.id} has no port"
        if view.namespaces.isolation.get(request.namespace):
            return f"host {broker.host} is none of those {request.namespace} may use now"
        if _matches(broker, _primaries(view.namespaces.isolation)):
            return f"host {broker.host} is primary for other namespaces"
        return f"does not serve {request.domain or 'persistent'} topics"


def _allowed(request: LookupRequest, brokers: Candidates, view: ClusterView) -> BoolArray:
    policies = view.namespaces.isolation.get(request.namespace)
    if policies:
        allowed: BoolArray = np.zeros(len(brokers), dtype=np.bool_)
        for policy in policies:
            primary: BoolArray = _matching(view.brokers, policy.primary)[brokers.index]
            allowed |= primary
            # Pulsar: shouldFailoverToSecondaries() counts the primaries among the candidates, strictly fewer.
            if np.count_nonzero(primary) < policy.min_limit:
                allowed |= _matching(view.brokers, policy.secondary)[brokers.index]
        return allowed
    is_persistent = request.domain != "non-persistent"
    field = "persistent_topics_enabled" if is_persistent else "non_persistent_topics_enabled"
    enabled = brokers.column((Isolation.name, field), lambda broker: getattr(broker.lookup_data, field))
    serving: BoolArray = enabled.astype(np.bool_)
    claimed = _primaries(view.namespaces.isolation)
    return serving & ~_matching(view.brokers, claimed)[brokers.index] if claimed else serving


def _primaries(isolation: Mapping[str, Iterable[IsolationPolicy]]) -> tuple[str, ...]:
    patterns = {pattern for policies in isolation.values() for policy in policies for pattern in policy.primary}
    return tuple(sorted(patterns))


@lru_cache(maxsize=1024)
def _matching(roster: Roster, patterns: tuple[str, ...]) -> BoolArray:
    return np.array([_matches(broker, patterns) for broker in roster], dtype=np.bool_)


def _matches(broker: Broker, patterns: Iterable[str]) -> bool:
    return any(re.fullmatch(pattern, broker.host) for pattern in patterns)
