"""Brokers that no bundle can tell apart: one class of them each, which bounds need only look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.placement.problem import Bools, Floats, Ints, Problem

__all__ = ["Alike", "alike"]

#: Rows of a table that are looked at together: they stay in the processor's cache.
_ROWS = 256


@dataclass(frozen=True, eq=False)
class Alike:
    """Brokers by class: of one class are those with equal columns in `near` and `admitted`."""

    #: class of each broker, shape (n_brokers,)
    of_broker: Ints
    #: shape (n_bundles, n_classes)
    near: Floats
    admitted: Bools | None
    #: most weight of each class, shape (n_classes,)
    room: Floats

    @property
    def count(self) -> int:
        """Return how many classes there are."""
        return len(self.room)

    @cached_property
    def members(self) -> list[Ints]:
        """Return the numbers of each class's brokers, ascending."""
        order = np.argsort(self.of_broker, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.of_broker, minlength=self.count))[:-1])


def alike(problem: Problem) -> Alike:
    """Put the brokers of a problem into classes, numbered by their first brokers; `near` must be given."""
    assert problem.near is not None
    tables: list[NDArray[Any]] = [table for table in (problem.near, problem.admitted) if table is not None]
    of_broker = _classes(tables, len(problem.capacities))
    firsts = np.unique(of_broker, return_index=True)[1]
    # Without a copy if no two brokers are alike: then the tables are as large as they can be.
    are_all = len(firsts) == len(of_broker)
    near, *rest = (table if are_all else np.ascontiguousarray(table[:, firsts]) for table in tables)
    room = np.bincount(of_broker, problem.room, len(firsts)).astype(np.float64)
    return Alike(of_broker, near, rest[0] if rest else None, room)


def _classes(tables: Sequence[NDArray[Any]], n_brokers: int) -> Ints:
    """Return the class of each broker: columns that are equal in all tables, numbered by their first."""
    first = np.zeros(n_brokers, dtype=np.int64)
    for table in tables:
        for low in range(0, len(table), _ROWS):
            rows = table[low : low + _ROWS]
            odd = np.flatnonzero((rows != rows[:, first]).any(axis=0))
            # Columns that differ from the first of their class make classes of their own, by what they hold.
            key = {int(broker): (int(first[broker]), rows[:, broker].tobytes()) for broker in odd}
            for _, same in groupby(
                sorted(key, key=lambda broker: (key[broker], broker)), key=lambda broker: key[broker]
            ):
                brokers = list(same)
                first[brokers] = brokers[0]
    return np.unique(first, return_inverse=True)[1].astype(np.int64)
