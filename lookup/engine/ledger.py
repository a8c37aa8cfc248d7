"""Weight in whole micro-units, so that neither the order nor the partitioning of a log can change a figure of load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.model.broker import Roster
from lookup.model.load import BundleLoad

__all__ = ["MICRO", "LazyTopBundles", "capacities"]

#: Micro-units in one unit of weight.
MICRO = 1_000_000

Floats = NDArray[np.float64]


def capacities(roster: Roster, assumed: float | None) -> Floats:
    """Compute the weight per second at usage 1.0 of every broker, shape (n_brokers,), NaN if unknown, read-only.

    Args:
        assumed: the value for every broker, if it is unknown for all of them.
    """
    values = (broker.capacity if assumed is None else assumed for broker in roster)
    column = np.array([np.nan if capacity is None else capacity for capacity in values], dtype=np.float64)
    column.flags.writeable = False
    return column


class LazyTopBundles(Sequence[Sequence[BundleLoad]]):
    """The loaded bundles by broker number, ranked at first access, since most policies read only a few brokers.

    Args:
        loads: returns load, name and rate of the bundles of one broker, in any order.
    """

    def __init__(self, n_brokers: int, loads: Callable[[int], Iterable[tuple[float, str, float]]]) -> None:
        self._n_brokers, self._loads = n_brokers, loads
        self._ranked: dict[int, Ranked] = {}

    def __len__(self) -> int:
        return self._n_brokers

    def __getitem__(self, broker: Any) -> Any:
        # Past the last broker this raises IndexError, by which a loop over a sequence ends.
        number = range(self._n_brokers)[broker]
        if number not in self._ranked:
            self._ranked[number] = Ranked(self._loads(number))
        return self._ranked[number]


class Ranked(Sequence[BundleLoad]):
    """Bundles in the order of `ascending`, created at access, since a shedder reads only the first of many.

    Args:
        rows: load, name and rate of each, in any order.
    """

    def __init__(self, rows: Iterable[tuple[float, str, float]]) -> None:
        self._rows = sorted(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return tuple(self)[place]

    def __iter__(self) -> Iterator[BundleLoad]:
        return (BundleLoad(bundle, load, rate) for load, bundle, rate in self._rows)

    def __reversed__(self) -> Iterator[BundleLoad]:
        return (BundleLoad(bundle, load, rate) for load, bundle, rate in reversed(self._rows))
