"""The filter `anti-affinity`: namespaces of one group are spread over failure domains and brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Conf
from lookup.model import Broker, Candidates, ClusterView, LookupRequest, NamespacePolicies, Reason

__all__ = ["AntiAffinity"]


@dataclass(frozen=True)
class AntiAffinity:
    """Keep the brokers that own the fewest bundles of the namespace's anti-affinity group.

    The extensible load manager counts bundles, the modular one namespaces of which a broker owns any. With failure
    domains, only candidates of the domains with the smallest total are considered; brokers in no domain form one
    together.

    Match -> Result -> Reason:
        * the namespace has no group -> all kept
        * the broker's domain owns more bundles of the group than another candidate's -> rejected -> `anti-affinity`
        * the broker owns more bundles of the group than another one left -> rejected -> `anti-affinity`
        * otherwise -> kept
        * a shedder names no destination, and all candidates own as many of the group, at least one -> the unload is
          refused -> `anti-affinity`

    Source: AntiAffinityGroupPolicyFilter; LoadManagerShared.filterAntiAffinityGroupOwnedBrokers (Pulsar 4.0.4).
    """

    name: ClassVar[str] = "anti-affinity"
    reason: ClassVar[Reason] = Reason.ANTI_AFFINITY
    reads: ClassVar[frozenset[str]] = frozenset({"namespace", "view.ownership"})

    #: whether domains are balanced before brokers; without any domain configured it makes no difference
    failure_domains_enabled: Annotated[bool, Conf("failureDomainsEnabled")] = False
    #: what a broker owns of the group
    counts: Literal["bundles", "namespaces"] = "bundles"

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.bool_]:
        """Narrow the candidates to the emptiest domains, then to the emptiest brokers in them."""
        group = _group_of(request, view.namespaces)
        kept = np.ones(len(brokers), dtype=np.bool_)
        if not group:
            return kept
        counts = self._counts(group, view)[brokers.index]
        if self.failure_domains_enabled and view.namespaces.failure_domains:
            # Brokers in no domain form the domain "".
            domains = [view.namespaces.failure_domains.get(broker_id, "") for broker_id in brokers.ids]
            totals = dict.fromkeys(domains, 0)
            for domain, count in zip(domains, counts.tolist(), strict=True):
                totals[domain] += count
            # Candidates only: a domain whose brokers the filters before this one dropped cannot be the emptiest.
            least = min(totals.values())
            kept = np.array([totals[domain] == least for domain in domains], dtype=np.bool_)
        # The least within the emptiest domains, though brokers of other domains may own as few.
        fewest: NDArray[np.bool_] = counts == counts[kept].min()
        return kept & fewest

    def should_unload(self, request: LookupRequest, owner: Broker, brokers: Candidates, view: ClusterView) -> bool:
        """Return whether the group lets a bundle leave its owner; called if a shedder names no destination.

        Pulsar's modular manager asks this, as its shedders name no destination; the extensible one does not.

        Args:
            brokers: possible destinations, usually the owner among them.

        Returns:
            False only if every candidate owns as many bundles of the group as the owner does, and at least one: no
            broker would gain.
        """
        group = _group_of(request, view.namespaces)
        if not group:
            return True
        # Over all brokers of the run: the owner itself need not be among the candidates.
        counts = self._counts(group, view)
        least = int(counts[brokers.index].min(initial=np.iinfo(np.int64).max))
        number = view.brokers.number(owner.id)
        owned = 0 if number is None else int(counts[number])
        return least == 0 or owned > least or bool((counts[brokers.index] != least).any())

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name the group and the number of its bundles that the broker owns."""
        group = _group_of(request, view.namespaces)
        number = view.brokers.number(broker.id)
        owned = 0 if number is None else int(self._counts(group, view)[number])
        return f"owns {owned} {self.counts} of group {group}; it, or its failure domain, owns more than another"

    def _counts(self, group: str, view: ClusterView) -> NDArray[np.int64]:
        """Return what every broker owns of a group, shape (n_brokers,)."""
        counts = np.zeros(len(view.brokers), dtype=np.int64)
        for namespace in view.namespaces.group_members(group):
            owned = view.ownership.bundles_in(namespace)
            counts = counts + (owned if self.counts == "bundles" else owned > 0)
        return counts


def _group_of(request: LookupRequest, namespaces: NamespacePolicies) -> str:
    group = namespaces.anti_affinity_group.get(request.namespace, "")
    return group if group.strip() else ""
