"""Mean and standard deviation of the brokers' usage, kept up to date as load is moved, rounded as Pulsar rounds.

Which loads are counted, and in which order, is the caller's business: the last bits depend on it.

Source: `docs/pulsar/load-managers.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

__all__ = ["LoadStats"]


@dataclass(frozen=True, slots=True)
class LoadStats:
    """Mean and population standard deviation of some loads; moving load keeps the mean as it was."""

    #: how many loads there are
    count: int = 0
    #: sum of the squared loads
    squares: float = 0.0
    average: float = 0.0
    deviation: float = 0.0

    @classmethod
    def of(cls, loads: Iterable[float]) -> LoadStats:
        """Sum loads and their squares in the order given; all is 0 where there are none."""
        count, total, squares = 0, 0.0, 0.0
        for load in loads:
            count, total, squares = count + 1, total + load, squares + load * load
        if not count:
            return cls()
        average = total / count
        # Round-off can make this negative; Java's NaN there is never above a target, and neither is 0.
        return cls(count, squares, average, math.sqrt(max(0.0, squares / count - average * average)))

    def moved(self, source: float, destination: float, amount: float) -> LoadStats:
        """Return the figures after an amount went from one load to another; the source does not fall below 0."""
        left, raised = max(0.0, source - amount), destination + amount
        squares = self.squares - (source * source + destination * destination) + (left * left + raised * raised)
        deviation = math.sqrt(abs(squares / self.count - self.average * self.average))
        return replace(self, squares=squares, deviation=deviation)
