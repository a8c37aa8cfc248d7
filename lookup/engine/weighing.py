"""Weigh the resources of brokers, once for all parts of a policy that go by the fullest of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from lookup.hooks.protocols import Conf, Ge
from lookup.model import Load, weighted_usage

__all__ = ["ResourceWeights"]


@dataclass(frozen=True, slots=True)
class ResourceWeights:
    """The weight of each resource of a broker in its usage. The defaults are Pulsar's, which leaves the heap out.

    Source: LocalBrokerData.getMaxResourceUsageWithWeight of Pulsar 4.2.4.
    """

    name: ClassVar[str] = "weights"

    #: loadBalancerCPUResourceWeight
    cpu: Annotated[float, Ge(0), Conf("loadBalancerCPUResourceWeight")] = 1.0
    #: loadBalancerDirectMemoryResourceWeight
    direct_memory: Annotated[float, Ge(0), Conf("loadBalancerDirectMemoryResourceWeight")] = 0.0
    #: loadBalancerBandwidthInResourceWeight
    bandwidth_in: Annotated[float, Ge(0), Conf("loadBalancerBandwidthInResourceWeight")] = 1.0
    #: loadBalancerBandwidthOutResourceWeight
    bandwidth_out: Annotated[float, Ge(0), Conf("loadBalancerBandwidthOutResourceWeight")] = 1.0

    def weigh(self, load: Load) -> Load:
        """Compute load figures with the usage of each broker's fullest resource.

        If only one usage is known, it applies to every resource. It is 0 if none of them counts.
        """
        weights = (self.cpu, 0.0, self.direct_memory, self.bandwidth_in, self.bandwidth_out)
        if load.resources is not None:
            return replace(load, weighted_usage=weighted_usage(load.resources, weights))
        return load if any(weights) else replace(load, weighted_usage=load.measured * 0.0)
