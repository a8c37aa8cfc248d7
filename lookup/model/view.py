"""Shows a policy one instant of a cluster: brokers, load, ownership, rules; columns are addressed by broker number.

`VIEW_READS` lists the attributes that a part has to declare in its `reads`, since they change within a registry epoch
or from run to run.
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

#: Fields of a request a part may declare; `properties` stands for all of them, `properties.rack` for one.
REQUEST_READS = ("domain", "tenant", "namespace", "bundle", "topic", "client", "listener", "properties")

#: The declaration a part needs to read an attribute of the view: for each attribute that changes within a registry
#: epoch, and for the salt, which differs between replicates of a replay.
VIEW_READS: Mapping[str, str] = {
    "load": "view.load",
    "ownership": "view.ownership",
    "unloaded": "view.ownership",
    "now_us": "view.now",
    "memory": "view.memory",
    "salt": "view.salt",
}


class OwnershipView(Protocol):
    """Owners of bundles at this moment; they follow every assignment at once."""

    def owner(self, bundle: str) -> int | None:
        """Return the number of the bundle's owner, None if it has none."""

    def bundles(self) -> NDArray[np.int64]:
        """Return how many bundles each broker owns, shape (n_brokers,)."""

    def bundles_in(self, namespace: str) -> NDArray[np.int64]:
        """Return how many bundles of one namespace each broker owns, shape (n_brokers,)."""


@dataclass(frozen=True, eq=False)
class ClusterView:
    """One instant of one cluster.

    Load is that of the last grid instant; ownership is current. Arrays are read-only.
    """

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
    #: when a shedder last unloaded a bundle, µs; only bundles it did unload
    unloaded: Mapping[str, int]
    #: what the part remembered, JSON-able
    memory: Mapping[str, Any]
    namespaces: NamespacePolicies = field(default_factory=NamespacePolicies)
    topology: Topology = field(default_factory=Topology)
    #: text that every part that hashes mixes into its hash: constant during a run, "" in production, different in each
    #: replicate (seed) of a replay; at most 64 bytes in UTF-8, so that it can be the key of a BLAKE2 hash
    salt: str = ""
