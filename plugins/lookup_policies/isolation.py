"""Filters by the settings of namespaces, which are permitted brokers (isolation) and anti-affinity groups."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Conf
from lookup.model import Broker, Candidates, ClusterView, LookupRequest, NamespacePolicies, Reason, Roster

__all__ = ["AntiAffinity", "Isolation"]

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Isolation:
    """Keep namespaces with isolation policies on their brokers, and all other namespaces off those.

    Patterns are matched against the whole host, the id up to its last colon. Logs often name brokers without a port,
    which Pulsar itself never does, and it would drop such an id. As in Pulsar, the kind of topic counts only for
    namespaces without policies. A request of the engine does not have a topic and counts as persistent. (In Pulsar a
    bundle counts as non-persistent from the first lookup of a non-persistent topic in it on. Here every lookup is
    judged by its own topic.) Of several policies of one namespace each adds its brokers.

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

    #: treatment of a broker whose id has no port, "drop" in Pulsar
    portless: Literal["keep", "drop"] = "keep"

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> BoolArray:
        """Apply the namespace's policies, or keep it on shared brokers that serve its kind of topic."""
        return self._apply_rules(request, brokers, view, has_primaries=True)

    def may_admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> BoolArray:
        """Evaluate the same filter with all secondaries, since other filters may leave too few primaries."""
        return self._apply_rules(request, brokers, view, has_primaries=False)

    def _apply_rules(
        self, request: LookupRequest, brokers: Candidates, view: ClusterView, *, has_primaries: bool
    ) -> BoolArray:
        if self.portless == "keep":
            return _find_allowed(request, brokers, view, has_primaries=has_primaries)
        mask: BoolArray = np.array([":" in broker_id for broker_id in brokers.ids], dtype=np.bool_)
        mask[mask] = _find_allowed(request, brokers.subset(mask), view, has_primaries=has_primaries)
        return mask

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name the cause, which is the port, the host, the domain or another namespace's claim."""
        if self.portless == "drop" and ":" not in broker.id:
            return f"id {broker.id} has no port"
        if view.namespaces.isolation.get(request.namespace):
            return f"host {broker.host} is none of those {request.namespace} may use now"
        if _matches(broker, view.namespaces.primaries):
            return f"host {broker.host} is primary for other namespaces"
        return f"does not serve {request.domain or 'persistent'} topics"


def _find_allowed(request: LookupRequest, brokers: Candidates, view: ClusterView, *, has_primaries: bool) -> BoolArray:
    """Find the brokers that may have a bundle. Without primaries, secondaries are allowed."""
    policies = view.namespaces.isolation.get(request.namespace)
    if policies:
        allowed: BoolArray = np.zeros(len(brokers), dtype=np.bool_)
        for policy in policies:
            primary: BoolArray = _match_brokers(view.brokers, policy.primary)[brokers.index]
            allowed |= primary
            # Pulsar's shouldFailoverToSecondaries() counts the primaries among the candidates, strictly fewer.
            if not has_primaries or np.count_nonzero(primary) < policy.min_limit:
                allowed |= _match_brokers(view.brokers, policy.secondary)[brokers.index]
        return allowed
    is_persistent = request.domain != "non-persistent"
    field = "persistent_topics_enabled" if is_persistent else "non_persistent_topics_enabled"
    enabled = brokers.column((Isolation.name, field), lambda broker: getattr(broker.lookup_data, field))
    serving: BoolArray = enabled.astype(np.bool_)
    claimed = view.namespaces.primaries
    return serving & ~_match_brokers(view.brokers, claimed)[brokers.index] if claimed else serving


@lru_cache(maxsize=1024)
def _match_brokers(roster: Roster, patterns: tuple[str, ...]) -> BoolArray:
    return np.array([_matches(broker, patterns) for broker in roster], dtype=np.bool_)


def _matches(broker: Broker, patterns: Iterable[str]) -> bool:
    return any(re.fullmatch(pattern, broker.host) for pattern in patterns)


@dataclass(frozen=True)
class AntiAffinity:
    """Keep the brokers that own the fewest bundles of the namespace's anti-affinity group.

    The extensible load manager counts bundles, and the modular one counts namespaces of which a broker owns
    any. With failure domains, only candidates of the domains with the smallest total are considered. Brokers
    without a domain together form one.

    Match -> Result -> Reason:
        * the namespace has no group -> all kept
        * the broker's domain owns more bundles of the group than another candidate's -> rejected ->
          `anti-affinity`
        * the broker owns more bundles of the group than another remaining one -> rejected -> `anti-affinity`
        * otherwise -> kept
        * a shedder names no destination, and all candidates own as many of the group, at least one -> the
          unload is rejected -> `anti-affinity`

    Source: AntiAffinityGroupPolicyFilter, LoadManagerShared.filterAntiAffinityGroupOwnedBrokers (Pulsar 4.0.4).
    """

    name: ClassVar[str] = "anti-affinity"
    reason: ClassVar[Reason] = Reason.ANTI_AFFINITY
    reads: ClassVar[frozenset[str]] = frozenset({"namespace", "view.ownership"})

    #: whether domains are balanced before brokers. Without any configured domain it has no effect
    failure_domains_enabled: Annotated[bool, Conf("failureDomainsEnabled")] = False
    #: the unit of the group that a broker's ownership counts
    counts: Literal["bundles", "namespaces"] = "bundles"

    def is_idle(self, namespaces: NamespacePolicies) -> bool:
        """Check whether no namespace is in a group."""
        return not any(group.strip() for group in namespaces.anti_affinity_group.values())

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.bool_]:
        """Narrow the candidates to the emptiest domains, then to the emptiest brokers in them."""
        group = _group_of(request, view.namespaces)
        mask = np.ones(len(brokers), dtype=np.bool_)
        if not group:
            return mask
        counts = self._count_group(group, view)[brokers.index]
        if self.failure_domains_enabled and view.namespaces.failure_domains:
            # Brokers in no domain form the domain "".
            domains = [view.namespaces.failure_domains.get(broker_id, "") for broker_id in brokers.ids]
            totals = dict.fromkeys(domains, 0)
            for domain, count in zip(domains, counts.tolist(), strict=True):
                totals[domain] += count
            # Candidates only, since a domain whose brokers the earlier filters dropped cannot be the emptiest.
            least = min(totals.values())
            mask = np.array([totals[domain] == least for domain in domains], dtype=np.bool_)
        # The least within the emptiest domains, though brokers of other domains may own as few.
        fewest: NDArray[np.bool_] = counts == counts[mask].min()
        return mask & fewest

    def should_unload(self, request: LookupRequest, owner: Broker, brokers: Candidates, view: ClusterView) -> bool:
        """Check whether a bundle of the group may leave its owner, for a shedder that does not name a destination.

        Pulsar's modular manager makes this check, as its shedders do not name a destination. The extensible one
        does not.

        Args:
            brokers: possible destinations, usually including the owner.

        Returns:
            False only if every candidate owns as many bundles of the group as the owner, and at least one, so that
                no broker would gain.
        """
        group = _group_of(request, view.namespaces)
        if not group:
            return True
        # Over all brokers of the run, since the owner itself need not be among the candidates.
        counts = self._count_group(group, view)
        least = int(counts[brokers.index].min(initial=np.iinfo(np.int64).max))
        number = view.brokers.number(owner.id)
        owned = 0 if number is None else int(counts[number])
        return least == 0 or owned > least or bool((counts[brokers.index] != least).any())

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name the group and the number of its bundles that the broker owns."""
        group = _group_of(request, view.namespaces)
        number = view.brokers.number(broker.id)
        owned = 0 if number is None else int(self._count_group(group, view)[number])
        return f"owns {owned} {self.counts} of group {group}; it, or its failure domain, owns more than another"

    def _count_group(self, group: str, view: ClusterView) -> NDArray[np.int64]:
        """Count the bundles or namespaces of a group that every broker owns, shape (n_brokers,)."""
        counts = np.zeros(len(view.brokers), dtype=np.int64)
        for namespace in view.namespaces.group_members(group):
            owned = view.ownership.bundles_in(namespace)
            counts = counts + (owned if self.counts == "bundles" else owned > 0)
        return counts


def _group_of(request: LookupRequest, namespaces: NamespacePolicies) -> str:
    group = namespaces.anti_affinity_group.get(request.namespace, "")
    return group if group.strip() else ""
