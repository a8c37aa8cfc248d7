"""Weight in whole micro-units, so that neither the order nor the partitioning of a log can change a figure of load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.model.broker import Roster
from lookup.model.load import BundleLoad, ascending

__all__ = ["MICRO", "LazyTopBundles", "capacities"]

#: Micro-units in one unit of weight.
MICRO = 1_000_000

Floats = NDArray[np.float64]


def capacities(roster: Roster, assumed: float | None) -> Floats:
    """Return the weight per second at usage 1.0 of every broker, shape (n_brokers,), NaN if unknown, read-only.

    Args:
        assumed: that of every broker, if no broker's own is known.
    """
    given = (broker.capacity if assumed is None else assumed for broker in roster)
    column = np.array([np.nan if capacity is None else capacity for capacity in given], dtype=np.float64)
    column.flags.writeable = False
    return column


class LazyTopBundles(Sequence[Sequence[BundleLoad]]):
    """The loaded bundles by broker number, ranked for a broker when a policy first asks: most ask about a few only.

    Args:
        loads: returns the bundles of one broker, in any order.
    """

    def __init__(self, n_brokers: int, loads: Callable[[int], Iterable[BundleLoad]]) -> None:
        self._n_brokers, self._loads = n_brokers, loads
        self._ranked: dict[int, tuple[BundleLoad, ...]] = {}

    def __len__(self) -> int:
        return self._n_brokers

    def __getitem__(self, broker: Any) -> Any:
        # Past the last broker this raises IndexError, by which a loop over a sequence ends.
        number = range(self._n_brokers)[broker]
        if number not in self._ranked:
            self._ranked[number] = ascending(self._loads(number))
        return self._ranked[number]
