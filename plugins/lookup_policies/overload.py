"""The shedder `overload`: brokers above a fixed usage give up bundles, whatever the others carry."""

from __future__ import annotations

import math
from collections.abc import Generator, MutableMapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from lookup.hooks import Conf, Ge
from lookup.model import ClusterView, CycleOutcome, CycleReason, Ruling, Unload
from lookup_policies._unloading import ended, give_up, no_figures, reported, usage_by

__all__ = ["Overload"]

#: Pulsar takes a little more than the excess away, as a ratio of capacity (OverloadShedder).
_EXTRA = 0.05
#: Every resource counts in full but memory, which Pulsar leaves out.
_WEIGHTS = (1.0, 0.0, 1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Overload:
    """Unload the most loaded bundles of brokers whose usage has reached a threshold.

    Usage is the largest one of a broker's resources without memory, unweighted and not smoothed, or the view's one
    usage where resources are not known. An overloaded broker gives up bundles, most loaded first, until their load
    reaches its load times (usage - `threshold` + 0.05), at least one; a refused bundle is passed over for the next.
    Where they go is decided by the next lookup, which may well be to another overloaded broker: where all are above the
    threshold, all give up bundles in every cycle.

    Match -> Result -> Reason:
        * no registered broker, none with a report -> nothing -> `no-brokers`, `no-load-data`
        * usage >= `threshold`, more than one bundle -> unloads -> `overloaded`
        * somebody has reached the threshold but nothing could be unloaded -> nothing -> `no-bundles`
        * nobody has -> nothing -> `hit-count`, the condition is not met

    Source: OverloadShedder.
    """

    name: ClassVar[str] = "overload"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.load.resources", "view.ownership"})

    #: usage from which on a broker is overloaded, as a ratio of capacity
    threshold: Annotated[float, Ge(0), Conf("loadBalancerBrokerOverloadedThresholdPercentage", scale=0.01)] = 0.85

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Unload, Ruling, CycleOutcome]:
        """Propose bundles of overloaded brokers, most loaded first."""
        usage = reported(view, usage_by(view, _WEIGHTS))
        if not usage:
            return no_figures(view)
        over = {number: used - self.threshold for number, used in usage.items() if used >= self.threshold}
        accepted = 0
        for number in over:
            needed = float(view.load.throughput[number]) * (usage[number] - self.threshold + _EXTRA)
            if not math.isnan(needed):
                accepted += yield from give_up(view, number, needed)
        return ended(usage, accepted, over=over, reason=CycleReason.OVERLOADED)
