"""The view: one instant of a cluster as a policy may see it, in columns addressed by a broker's number.

Which attributes have to be declared in a part's `reads`, since they change or are another in each run, is
`VIEW_READS`. How a view is computed is the engine's and the replay's business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lookup.model.broker import Roster
from lookup.model.namespaces import NamespacePolicies
from lookup.model.topology import Topology
from lookup.model.traffic import NO_TRAFFIC, Traffic

__all__ = ["REQUEST_READS", "VIEW_READS", "BundleLoad", "ClusterView", "OwnershipView"]

#: Fields of a request a part may declare; `properties` stands for all of them, `properties.rack` for one.
REQUEST_READS = ("domain", "tenant", "namespace", "bundle", "topic", "client", "listener", "properties")

#: What a part declares to read an attribute of the view, for each that changes within a registry epoch and for the
#: salt, which is another in each replicate of a replay.
VIEW_READS: Mapping[str, str] = {
    "usage": "view.load",
    "broker_load": "view.load",
    "topics": "view.load",
    "top_bundles": "view.load",
    "demand": "view.load",
    "traffic": "view.load",
    "long_term_rate": "view.load",
    "long_term_bundle_rates": "view.load",
    "ownership": "view.ownership",
    "unloaded": "view.ownership",
    "now_us": "view.now",
    "memory": "view.memory",
    "max_usage": "view.load",
    "load_ema": "view.load",
    "updated_us": "view.load",
    "store_order": "view.load",
    "resources": "view.load",
    "message_rate": "view.load",
    "salt": "view.salt",
}


class BundleLoad(NamedTuple):
    """A bundle and its load in weight per second; Pulsar's throughput, in and out together, in bytes per second."""

    bundle: str
    load: float
    #: messages per second, in and out together; 0.0 where unknown
    rate: float = 0.0


class OwnershipView(Protocol):
    """Who owns what at this moment; it follows every assignment at once."""

    def owner(self, bundle: str) -> int | None:
        """Return the number of the bundle's owner, None where it has none."""

    def bundles(self) -> NDArray[np.int64]:
        """Return how many bundles each broker owns, shape (n_brokers,)."""

    def bundles_in(self, namespace: str) -> NDArray[np.int64]:
        """Return how many bundles of one namespace each broker owns, shape (n_brokers,)."""


@dataclass(frozen=True, eq=False)
class ClusterView:
    """One instant of one cluster.

    Load figures are those of the last grid instant; ownership is current. Arrays are read-only.
    """

    cluster: str
    #: every broker of the run, registered or not
    brokers: Roster
    #: shape (n_brokers,)
    registered: NDArray[np.bool_]
    #: weight per second at usage 1.0, shape (n_brokers,), NaN where unknown
    capacity: NDArray[np.float64]
    #: start of the registry epoch, µs since the Unix epoch
    epoch_us: int
    now_us: int
    #: load / capacity, shape (n_brokers,), 1.0 is full, NaN where there is no report
    usage: NDArray[np.float64]
    #: weight per second, shape (n_brokers,), NaN where there is no report
    broker_load: NDArray[np.float64]
    #: topics a broker serves, shape (n_brokers,); 0 where there is no report
    topics: NDArray[np.int64]
    #: by broker number: the loaded bundles it owned at the start of the tick, ascending by (load, name); system
    #: namespaces left out
    top_bundles: Sequence[Sequence[BundleLoad]]
    #: by client property, then value: weight per second of the last grid cell
    demand: Mapping[str, Mapping[str, float]]
    ownership: OwnershipView
    #: when a shedder last unloaded a bundle, µs; only bundles it did unload
    unloaded: Mapping[str, int]
    #: what the part remembered, JSON-able
    memory: Mapping[str, Any]
    load_source: Literal["simulated", "reported"] = "simulated"
    namespaces: NamespacePolicies = field(default_factory=NamespacePolicies)
    topology: Topology = field(default_factory=Topology)
    #: what bundles and topics carry; empty in a replay
    traffic: Traffic = NO_TRAFFIC
    # What a load report says besides; None where replay knows no more than the columns above.
    #: `usage` as it was measured for the report, not smoothed, shape (n_brokers,) (Pulsar: maxResourceUsage); None:
    #: `usage` itself
    max_usage: NDArray[np.float64] | None = None
    #: `broker_load` smoothed over time, shape (n_brokers,) (Pulsar: msgThroughputEMA); None: `broker_load` itself
    load_ema: NDArray[np.float64] | None = None
    #: when each broker last measured its load, µs, shape (n_brokers,) (Pulsar: updatedAt); None: all of them now
    updated_us: NDArray[np.int64] | None = None
    #: numbers of the brokers with a report in the order in which the load store lists them; None: ascending
    store_order: Sequence[int] | None = None
    #: percentages of Pulsar's resources, columns as in `RESOURCES`, shape (n_brokers, 5), NaN where there is no report;
    #: None where usage is all there is
    resources: NDArray[np.float64] | None = None
    #: messages per second, in and out together, shape (n_brokers,), NaN where there is no report; None where unknown
    message_rate: NDArray[np.float64] | None = None
    # What the modular manager's leader knows of the long run; for placement.
    #: messages per second, in + out, shape (n_brokers,), NaN where there is no report; None: `broker_load` stands in
    long_term_rate: NDArray[np.float64] | None = None
    #: the same by bundle, whoever owns it and if nobody does; of a bundle that is not named nothing is known
    long_term_bundle_rates: Mapping[str, float] = field(default_factory=dict)
    #: what a part that hashes mixes into its hash: constant during a run, "" in production, another text in each
    #: replicate (seed) of a replay; at most 64 bytes in UTF-8, so that it can be the key of a BLAKE2 hash
    salt: str = ""
