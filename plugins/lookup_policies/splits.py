"""Choose the boundaries of splits in the middle, between topics, at given positions, or by the load of topics.

Source: "Load managers" in the documentation (split algorithms, `defaultNamespaceBundleSplitAlgorithm`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.errors import InputError
from lookup.hooks import Conf, Ge, Unit
from lookup.model import NamespaceBundle

__all__ = ["FlowOrQpsEquallyDivide", "RangeEquallyDivide", "SpecifiedPositionsDivide", "TopicCountEquallyDivide"]

#: Bytes in the unit of `max_bandwidth_mib`.
_MIB = 1024 * 1024


@dataclass(frozen=True)
class RangeEquallyDivide:
    """Divide at lower + (upper - lower) // 2, independently of topics. This is Pulsar's default.

    The halves are of hashes, not of load, so all topics may end up in one child.

    Match -> Result -> Reason:
        * any bundle -> one boundary. For a bundle of a single hash it is its lower end, which the engine
          rejects

    Source: RangeEquallyDivideBundleSplitAlgorithm, `range_equally_divide` in `defaultNamespaceBundleSplitAlgorithm`.
    """

    name: ClassVar[str] = "range-equally-divide"
    reads: ClassVar[frozenset[str]] = frozenset()

    def boundaries(
        self, bundle: NamespaceBundle, topics: NDArray[np.void], positions: Sequence[int] | None
    ) -> Sequence[int]:
        """Compute the middle of the range."""
        lower, upper = bundle.range.lower, bundle.range.upper
        return (lower + (upper - lower) // 2,)


@dataclass(frozen=True)
class TopicCountEquallyDivide:
    """Divide half way between the two middle topics of the bundle, by hash.

    Match -> Result -> Reason:
        * at most one topic -> no boundary -> there is nothing to divide
        * otherwise -> a + (b - a) // 2 of the hashes a and b of the two topics in the middle
        * with `quirks = "intended"`, a boundary at the lower end of the bundle -> none

    Quirk: if both middle topics have the hash at the lower end of the bundle, the boundary is that end. The
    split then fails when it is carried out (NamespaceBundleFactory: positions lie strictly inside). Effect: the
    attempt counts as made and nothing changes. "intended" leaves the bundle whole.

    Source: TopicCountEquallyDivideBundleSplitAlgorithm,
    `topic_count_equally_divide` in `defaultNamespaceBundleSplitAlgorithm`.
    """

    name: ClassVar[str] = "topic-count-equally-divide"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: whether a boundary that cannot be one is returned as Pulsar does
    quirks: Literal["upstream", "intended"] = "upstream"

    def boundaries(
        self, bundle: NamespaceBundle, topics: NDArray[np.void], positions: Sequence[int] | None
    ) -> Sequence[int]:
        """Compute the middle between the two middle topics."""
        hashes: list[int] = np.sort(topics["hash"]).tolist()
        if len(hashes) <= 1:
            return ()
        before, after = hashes[len(hashes) // 2 - 1], hashes[len(hashes) // 2]
        boundary = before + (after - before) // 2
        is_kept = self.quirks == "upstream" or bundle.range.lower < boundary < bundle.range.upper
        return (boundary,) if is_kept else ()


@dataclass(frozen=True)
class SpecifiedPositionsDivide:
    """Divide at the given positions that lie strictly inside the bundle.

    A splitter's cycle does not give positions, so nothing is ever split automatically under this algorithm.

    Match -> Result -> Reason:
        * no positions -> an error -> an administrator forgot them
        * at most one topic -> no boundary -> there is nothing to divide
        * otherwise -> the positions strictly inside, ascending, possibly none

    Quirk: a position given twice is returned twice, and the split fails when it is carried out, as boundaries
    have to ascend. Effect: nothing is split. "intended" returns it once.

    Source: SpecifiedPositionsBundleSplitAlgorithm, `specified_positions_divide` in
    `defaultNamespaceBundleSplitAlgorithm`.
    """

    name: ClassVar[str] = "specified-positions-divide"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: whether a position given twice is a boundary twice, as in Pulsar
    quirks: Literal["upstream", "intended"] = "upstream"

    def boundaries(
        self, bundle: NamespaceBundle, topics: NDArray[np.void], positions: Sequence[int] | None
    ) -> Sequence[int]:
        """List the positions inside the bundle, ascending, or raise InputError if none is given."""
        # Before topics are counted, as in Pulsar, since an empty bundle must not hide forgotten positions.
        if not positions:
            raise InputError(f"to split {bundle} at specified positions, at least one position has to be given")
        if len(topics) <= 1:
            return ()
        distinct = positions if self.quirks == "upstream" else set(positions)
        return tuple(sorted(boundary for boundary in distinct if bundle.range.lower < boundary < bundle.range.upper))


@dataclass(frozen=True)
class FlowOrQpsEquallyDivide:
    """Visit the loaded topics by hash and divide before each that takes the sums since the last cut above a limit.

    Match -> Result -> Reason:
        * at most one topic, or fewer than two that carry anything -> no boundary -> there is nothing to divide
        * rate and throughput of the bundle both below (1 + `difference`) times their limit -> none -> not worth
          it
        * a topic takes the sum of rate or throughput above a limit -> a cut half way between the topic before
          and it, with `rule = "from-second"` one hash further. The sums begin again with its own load
        * the first topic alone exceeds a limit -> with `rule = "from-first"` a cut half way between it and the
          next

    Quirk: by `rule = "from-first"`, if the first topic alone exceeds a limit, the second exceeds it again with
    the same neighbours, and the same cut is returned twice. Effect: `default-split`, which accepts exactly one
    boundary, counts a failure and leaves the bundle whole. The engine would reject boundaries that do not
    ascend. "intended" returns each cut once, and only those strictly inside the bundle.

    Source: FlowOrQpsEquallyDivideBundleSplitAlgorithm, `flow_or_qps_equally_divide` in
    `defaultNamespaceBundleSplitAlgorithm`. Its rule "from-second" is that of Pulsar 4.0.4 and 4.2.4.
    """

    name: ClassVar[str] = "flow-or-qps-equally-divide"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: messages per second, in + out, a bundle may carry
    max_msg_rate: Annotated[float, Ge(0), Conf("loadBalancerNamespaceBundleMaxMsgRate"), Unit("messages/s")] = 30_000.0
    #: MiB per second, in + out, a bundle may carry
    max_bandwidth_mib: Annotated[float, Ge(0), Conf("loadBalancerNamespaceBundleMaxBandwidthMbytes"), Unit("MiB/s")] = (
        100.0
    )
    #: ratio by which a bundle has to exceed a limit to be split
    difference: Annotated[float, Ge(0), Conf("flowOrQpsDifferenceThresholdPercentage", scale=0.01)] = 0.1
    #: the first topic that may take the sums above a limit, "from-second" for a value from a `broker.conf`
    rule: Literal["from-first", "from-second"] = "from-first"
    #: whether the same cut may be returned twice, as in Pulsar
    quirks: Literal["upstream", "intended"] = "upstream"

    def boundaries(
        self, bundle: NamespaceBundle, topics: NDArray[np.void], positions: Sequence[int] | None
    ) -> Sequence[int]:
        """Compute the cuts, ascending."""
        loaded = topics[(topics["rate"] > 0) | (topics["throughput"] > 0)]
        # Idle topics do not count, neither for how many there are nor as neighbours of a cut.
        factor, most = 1.0 + self.difference, self.max_bandwidth_mib * _MIB
        sums = float(loaded["rate"].sum()), float(loaded["throughput"].sum())
        if len(loaded) < 2 or not (sums[0] >= self.max_msg_rate * factor or sums[1] >= most * factor):
            return ()
        ordered = loaded[np.argsort(loaded["hash"], kind="stable")]
        hashes: list[int] = ordered["hash"].tolist()
        beyond = 1 if self.rule == "from-second" else 0
        # By place of the topic, half way to the one before it. The first has none before it, so half way to the next,
        # or no cut.
        middles: list[int | None] = [before + (after - before) // 2 + beyond for before, after in pairwise(hashes)]
        middles.insert(0, None if beyond else middles[0])
        cuts: list[int] = []
        rate = throughput = 0.0
        carried = zip(middles, ordered["rate"].tolist(), ordered["throughput"].tolist(), strict=True)
        for middle, topic_rate, topic_throughput in carried:
            rate, throughput = rate + topic_rate, throughput + topic_throughput
            if rate > self.max_msg_rate or throughput > most:
                cuts += [] if middle is None else [middle]
                # The topic that exceeded the limit is the first of the next child.
                rate, throughput = topic_rate, topic_throughput
        if self.quirks == "upstream":
            return cuts
        return [boundary for boundary in sorted(set(cuts)) if bundle.range.lower < boundary < bundle.range.upper]
