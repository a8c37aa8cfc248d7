"""The view of a cluster at one instant for a policy, with brokers, load, ownership and rules.

Columns are addressed by broker number. `VIEW_READS` lists the attributes that a part has to declare in its
`reads`, since they change within a registry epoch or from run to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lookup.model.broker import Roster
from lookup.model.bundles import NamespacePolicies
from lookup.model.load import Load
from lookup.model.topology import Topology

__all__ = ["REQUEST_READS", "VIEW_READS", "ClusterView", "OwnershipView"]

#: Fields of a request that a part may declare. `properties` is all of them, and `properties.rack` a single one.
REQUEST_READS = ("domain", "tenant", "namespace", "bundle", "topic", "client", "listener", "properties")

#: The declaration that a part needs to read an attribute of the view. It covers each attribute that changes within a
#: registry epoch, and the salt, which differs between replicates of a replay.
VIEW_READS: Mapping[str, str] = {
    "load": "view.load",
    "ownership": "view.ownership",
    "unloaded": "view.ownership",
    "now_us": "view.now",
    "memory": "view.memory",
    "salt": "view.salt",
}


class OwnershipView(Protocol):
    """Owners of bundles at this moment, updated at once with every assignment."""

    def owner(self, bundle: str) -> int | None:
        """Find the number of the bundle's owner, None if it does not have one."""

    def bundles(self) -> NDArray[np.int64]:
        """Count the bundles that each broker owns, shape (n_brokers,)."""

    def bundles_in(self, namespace: str) -> NDArray[np.int64]:
        """Count the bundles of one namespace that each broker owns, shape (n_brokers,)."""


@dataclass(frozen=True, eq=False)
class ClusterView:
    """One instant of a cluster, with load of the last grid instant, current ownership and read-only arrays."""

    cluster: str
    #: every broker of the run, registered or not
    brokers: Roster
    #: shape (n_brokers,)
    registered: NDArray[np.bool_]
    #: weight per second at usage 1.0, shape (n_brokers,), NaN if unknown
    capacity: NDArray[np.float64]
    #: start of the registry epoch, µs since the Unix epoch
    epoch_us: int
    now_us: int
    #: of brokers, bundles and demand
    load: Load
    ownership: OwnershipView
    #: time of a shedder's last unload of each bundle, µs, only for bundles that it did unload
    unloaded: Mapping[str, int]
    #: the memory of the part, JSON-able
    memory: Mapping[str, Any]
    namespaces: NamespacePolicies = field(default_factory=NamespacePolicies)
    topology: Topology = field(default_factory=Topology)
    #: text that every hashing part mixes into its hash. It is constant during a run, "" in production, different in
    #: each replicate (seed) of a replay, and has at most 64 bytes in UTF-8, so that it can be the key of a BLAKE2 hash
    salt: str = ""
