"""The split algorithm `flow-or-qps-equally-divide`: children that each stay below the limits of a bundle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Conf, Ge, Unit
from lookup.model import NamespaceBundle

__all__ = ["FlowOrQpsEquallyDivide"]

#: Bytes in the unit of `max_bandwidth_mib`.
_MIB = 1024 * 1024


@dataclass(frozen=True)
class FlowOrQpsEquallyDivide:
    """Walk the loaded topics by hash and cut before each that takes the sums since the last cut above a limit.

    Match -> Result -> Reason:
        * at most one topic, or fewer than two that carry anything -> no boundary -> there is nothing to divide
        * rate and throughput of the bundle both below (1 + `difference`) times their limit -> none -> not worth it
        * a topic takes the sum of rate or throughput above a limit -> a cut half way between the topic before and it;
          the sums begin again with its own load
        * the first topic alone exceeds a limit -> a cut half way between it and the next

    Quirk: where the first topic alone exceeds a limit, the second exceeds it again with the same neighbours, and the
    same cut is returned twice. Effect: `default-split`, which takes exactly one boundary, counts a failure and leaves
    the bundle whole; the engine would refuse boundaries that do not ascend. "intended" returns each cut once, and only
    those strictly inside the bundle.

    Source: FlowOrQpsEquallyDivideBundleSplitAlgorithm, `flow_or_qps_equally_divide` in
    `defaultNamespaceBundleSplitAlgorithm`.
    """

    name: ClassVar[str] = "flow-or-qps-equally-divide"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: messages per second, in + out, a bundle may carry
    max_msg_rate: Annotated[float, Ge(0), Conf("loadBalancerNamespaceBundleMaxMsgRate"), Unit("messages/s")] = 30_000.0
    #: MiB per second, in + out, a bundle may carry
    max_bandwidth_mib: Annotated[float, Ge(0), Conf("loadBalancerNamespaceBundleMaxBandwidthMbytes"), Unit("MiB/s")] = (
        100.0
    )
    #: by what ratio of a limit a bundle has to exceed it to be worth splitting
    difference: Annotated[float, Ge(0), Conf("flowOrQpsDifferenceThresholdPercentage", scale=0.01)] = 0.1
    #: whether the same cut may be returned twice, as in Pulsar
    quirks: Literal["upstream", "intended"] = "upstream"

    def boundaries(
        self, bundle: NamespaceBundle, topics: NDArray[np.void], positions: Sequence[int] | None
    ) -> Sequence[int]:
        """Return the cuts, ascending."""
        loaded = topics[(topics["rate"] > 0) | (topics["throughput"] > 0)]
        if len(loaded) < 2 or not self._is_worth_while(loaded):
            return ()
        cuts = self._cuts(loaded[np.argsort(loaded["hash"], kind="stable")])
        if self.quirks == "upstream":
            return cuts
        return [cut for cut in sorted(set(cuts)) if bundle.range.lower < cut < bundle.range.upper]

    def _is_worth_while(self, topics: NDArray[np.void]) -> bool:
        factor = 1.0 + self.difference
        rate, throughput = float(topics["rate"].sum()), float(topics["throughput"].sum())
        return rate >= self.max_msg_rate * factor or throughput >= self.max_bandwidth_mib * _MIB * factor

    def _cuts(self, topics: NDArray[np.void]) -> list[int]:
        hashes: list[int] = topics["hash"].tolist()
        # By place of the topic: half way to the one before it; the first has none, so to the one after it.
        middles = [before + (after - before) // 2 for before, after in pairwise(hashes)]
        middles.insert(0, middles[0])
        cuts: list[int] = []
        rate = throughput = 0.0
        for middle, one_rate, one_throughput in zip(
            middles, topics["rate"].tolist(), topics["throughput"].tolist(), strict=True
        ):
            rate, throughput = rate + one_rate, throughput + one_throughput
            if rate > self.max_msg_rate or throughput > self.max_bandwidth_mib * _MIB:
                cuts.append(middle)
                rate, throughput = one_rate, one_throughput
        return cuts
