"""Follow over the registry epochs of a cluster on which brokers bundles may be, whichever policy of the run is at work.

A broker may have a bundle in an epoch if the filters of some policy admit it then, or did so in an epoch since which it
has been registered all the time: the bundle may have been there since. Owners from before the run pass no filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.policy import Policy
from lookup.model import LookupRequest, Roster
from lookup.model.broker import Candidates
from lookup.model.names import pinned_broker
from lookup.model.request import LookupOptions, request_of
from lookup.placement.frontier import Reach
from lookup.replay.plan import ClusterPlan, RunPlan, new_manager

__all__ = ["ReachWalk", "limiting"]

Mask = NDArray[np.bool_]


def limiting(policies: Sequence[Policy]) -> tuple[Policy, ...]:
    """Return policies of which one has each kind of limits; none if a policy has no limits, and may use any broker."""
    if not all(policy.limits for policy in policies):
        return ()
    kinds: list[object] = []
    chosen = []
    for policy in policies:
        kind = [policy.filters[number] for number in policy.limits], policy.on_error
        # A part of a plug-in need not have a hash.
        if kind not in kinds:
            kinds.append(kind)
            chosen.append(policy)
    return tuple(chosen)


class ReachWalk:
    """The brokers that bundles of each unit may be on, epoch by epoch.

    Args:
        policies: each with limits; at least one.
    """

    def __init__(self, cluster: ClusterPlan, run: RunPlan, policies: Sequence[Policy]) -> None:
        self._is_shared = run.is_shared
        self._managers = [new_manager(cluster, run, policy, seed=0) for policy in policies]
        units = cluster.units[0]
        numbers: dict[str, int] = {}
        #: number of the namespace of each unit, shape (n_units,)
        self._namespace_of = np.array([numbers.setdefault(unit.rpartition("/")[0], len(numbers)) for unit in units])
        #: namespaces whose bundles are pinned to a broker, and pass no filter
        self._is_pinned: Mask = np.array([pinned_broker(namespace) is not None for namespace in numbers])
        #: the engine's own requests have no domain
        domains = {None, *cluster.words.extras.get("domain", ())}
        #: by namespace
        self._requests: list[list[LookupRequest]] = []
        for namespace in numbers:
            request = request_of(None, f"{namespace}/0x00000000_0xffffffff", LookupOptions())
            self._requests.append([replace(request, domain=domain) for domain in domains])
        shape = len(numbers), len(cluster.timeline.roster)
        self._restored: Mask = np.zeros(shape, dtype=bool)
        for bundle, broker in cluster.timeline.owners.items():
            place = numbers.get(bundle.rpartition("/")[0]), cluster.timeline.roster.number(broker)
            if None not in place:
                self._restored[place] = True
        self._roster: Roster | None = None
        #: who may have bundles by the filters, and who may have kept some, shape (n_namespaces, n_brokers)
        self._admitted: Mask = np.zeros(shape, dtype=bool)
        self._kept: Mask = np.zeros(shape, dtype=bool)

    def begin_epoch(self, roster: Roster, registered: Mask) -> Reach | None:
        """Return the brokers that units may be on in the epoch that begins; None if each may be on any broker.

        Raises:
            PolicyError: if a filter breaks its protocol, or raises and `on_error` is stop.
        """
        if roster is not self._roster:
            # Which brokers are registered changes no answer.
            self._roster, self._admitted = roster, self._asked(roster, registered)
        if self._is_shared:
            allowed = self._admitted & registered
        else:
            self._kept = (self._kept | self._admitted) & registered
            allowed = (self._kept | self._restored) & registered
        # Nothing is placed where no broker is admitted: what is not answered is in no bound.
        allowed[self._is_pinned | ~allowed.any(axis=1)] = registered
        if (allowed == registered).all():
            return None
        members, of_namespace = np.unique(allowed, axis=0, return_inverse=True)
        return Reach(members, of_namespace.ravel()[self._namespace_of])

    def _asked(self, roster: Roster, registered: Mask) -> Mask:
        admitted: Mask = np.zeros_like(self._admitted)
        brokers = Candidates(roster, np.arange(len(roster)))
        for manager in self._managers:
            manager.set_registry(roster, registered)
            instant = manager.instant()
            for of_namespace, requests in zip(admitted, self._requests, strict=True):
                for request in requests:
                    of_namespace |= manager.policy.may_choose(request, brokers, instant)
        return admitted
