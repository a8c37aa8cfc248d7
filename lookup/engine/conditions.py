"""Under which conditions a cluster is run: what holds there whatever policy is at work."""

from __future__ import annotations

from dataclasses import dataclass, field

from lookup.model.namespaces import NamespacePolicies
from lookup.model.topology import Topology
from lookup.settings.sections import OwnerLoss

__all__ = ["Conditions"]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds in a cluster whatever policy is at work there."""

    #: who re-assigns the bundles of a lost broker: the next lookup, or the leader at once
    owner_loss: OwnerLoss = "next-lookup"
    namespaces: NamespacePolicies = field(default_factory=NamespacePolicies)
    topology: Topology = field(default_factory=Topology)
    #: weight per second at usage 1.0 of every broker, where no broker's own is known
    assumed_capacity: float | None = None
    #: µs for which a bundle that changes hands is Releasing, Assigning or Splitting, each; lookups of it get the state
    #: channel's answer meanwhile
    handover_us: int = 0
    #: bytes that 1.0 of a broker's load, and of a bundle's, stands for, for shedders with limits in bytes
    broker_bytes: float = 1.0
    bundle_bytes: float = 1.0
    #: the view's salt; "" is production's
    salt: str = ""
