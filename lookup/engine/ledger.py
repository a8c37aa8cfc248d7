"""The ledger: what bundles weigh, and from that what each broker carries at a grid instant.

Integers in micro-units of weight come in, so that neither order nor partitioning of a log can change a figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.model.names import is_system_bundle
from lookup.model.traffic import NO_TRAFFIC, Traffic
from lookup.model.view import BundleLoad

__all__ = ["MICRO", "LazyTopBundles", "LoadFigures", "no_load", "simulated_load"]

#: Micro-units in one unit of weight.
MICRO = 1_000_000

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LoadFigures:
    """Load of one grid instant, as a view shows it; arrays of shape (n_brokers,)."""

    usage: Floats
    broker_load: Floats
    topics: Ints
    top_bundles: Sequence[Sequence[BundleLoad]]
    demand: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    source: Literal["simulated", "reported"] = "simulated"
    traffic: Traffic = NO_TRAFFIC
    #: what else load reports say, as in `ClusterView`; None where nobody reports
    max_usage: Floats | None = None
    load_ema: Floats | None = None
    updated_us: Ints | None = None
    store_order: Sequence[int] | None = None
    #: percentages by resource, shape (n_brokers, 5), and messages per second, shape (n_brokers,); None where unknown
    resources: Floats | None = None
    message_rate: Floats | None = None
    #: for placement: see the view's columns of these names
    long_term_rate: Floats | None = None
    long_term_bundle_rates: Mapping[str, float] = field(default_factory=dict)


def no_load(n_brokers: int, topics: Ints | None = None) -> LoadFigures:
    """Return the figures before the first complete cell of the grid: no broker has reported."""
    unknown = np.full(n_brokers, np.nan)
    return LoadFigures(unknown, unknown, np.zeros(n_brokers, np.int64) if topics is None else topics, [()] * n_brokers)


def simulated_load(
    micro_weights: Ints, *, seconds: float, capacity: Floats, registered: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Return usage and load of each broker from the weight its bundles brought; NaN for brokers not registered.

    Args:
        micro_weights: weight of the bundles each broker owns, in micro-units, shape (n_brokers,).
        seconds: length of the time in which it came.
        capacity: weight per second at usage 1.0, shape (n_brokers,), NaN where unknown.
    """
    load = np.where(registered, micro_weights / (MICRO * seconds), np.nan)
    return load / capacity, load


class LazyTopBundles(Sequence[Sequence[BundleLoad]]):
    """Top bundles by broker number, computed for a broker when somebody asks.

    Args:
        loads: returns the bundles of one broker, in any order.
    """

    def __init__(self, n_brokers: int, loads: Callable[[int], Iterator[BundleLoad]]) -> None:
        self._n_brokers = n_brokers
        self._loads = loads
        self._known: dict[int, tuple[BundleLoad, ...]] = {}

    def __len__(self) -> int:
        return self._n_brokers

    def __getitem__(self, broker: Any) -> Any:
        # Past the last broker this raises IndexError, by which a loop over a sequence ends.
        broker = range(self._n_brokers)[broker]
        known = self._known.get(broker)
        if known is None:
            known = self._known[broker] = _ascending(self._loads(broker))
        return known


def _ascending(loads: Iterator[BundleLoad]) -> tuple[BundleLoad, ...]:
    loaded = [one for one in loads if one.load > 0 and not is_system_bundle(one.bundle)]
    return tuple(sorted(loaded, key=attrgetter("load", "bundle")))
