"""Spreads lookups over brokers by their odds: under shared ownership each broker serves one with some probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookup.model.broker import Roster
from lookup.replay.cells import Groups, GroupSums
from lookup.replay.plan import RunPlan
from lookup.replay.stretches import Stretch, StretchCounts

__all__ = ["ExpectedTally"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ExpectedTally:
    """Adds up expectations over the stretches of one replay.

    Where `--by` asks for nothing, brokers with the same lookup properties in the same place are counted under the first
    of them: no metric of lookups can tell them apart, and there are far fewer.
    """

    def __init__(self, n_units: int, run: RunPlan) -> None:
        self.groups = GroupSums(run)
        self.logged, self.agreed = np.zeros(n_units), np.zeros(n_units)
        self._by_class = not run.by

    def add(
        self, stretch: Stretch, counts: StretchCounts, classes: tuple[Ints, Ints], odds: Floats, roster: Roster
    ) -> None:
        """Add a stretch.

        Args:
            classes: decision key and client class of each class of the counts, both of shape (n_classes,).
            odds: by key and broker, the last column for no answer, shape (n_keys, n_brokers + 1).
        """
        key_of, client_of = classes
        self._compare(counts, key_of, odds)
        spread, brokers = self._columns(odds, roster)
        keys = key_of[counts.klass]
        row, column = np.nonzero(spread[keys])
        share = spread[keys[row], column]
        self.groups.add(
            Groups(
                stretch.cell_us,
                stretch.epoch,
                unit=counts.unit[row],
                broker=brokers[column],
                client=client_of[counts.klass[row]],
                lookups=counts.lookups[row] * share,
                weight=counts.weight[row] * share,
            )
        )

    def _compare(self, counts: StretchCounts, key_of: Ints, odds: Floats) -> None:
        keys, brokers = key_of[counts.logged_class], counts.logged_broker
        same = np.where(brokers >= 0, odds[keys, brokers], 0.0) * counts.logged
        answered = (1.0 - odds[keys, -1]) * counts.logged
        self.logged += np.bincount(counts.logged_unit, weights=answered, minlength=len(self.logged))
        self.agreed += np.bincount(counts.logged_unit, weights=same, minlength=len(self.agreed))

    def _columns(self, odds: Floats, roster: Roster) -> tuple[Floats, Ints]:
        """Return odds by class of brokers, and the number of each class's first broker; -1 for no answer."""
        if not self._by_class:
            return odds, np.append(np.arange(odds.shape[1] - 1), -1)
        first: dict[object, int] = {}
        places = [first.setdefault(_looks(roster, number), len(first)) for number in range(len(roster))]
        spread = np.zeros((len(odds), len(first) + 1))
        for number, place in enumerate([*places, len(first)]):
            spread[:, place] += odds[:, number]
        return spread, np.array([*(places.index(place) for place in range(len(first))), -1])


def _looks(roster: Roster, number: int) -> object:
    broker = roster[number]
    properties = tuple(sorted(broker.lookup_data.properties.items()))
    return properties, broker.property_prefix, broker.location
