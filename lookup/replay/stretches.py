"""Count the rows of a stretch of ticks by tick, bundle, class and logged broker, for shared ownership.

Lookups of one class are alike to a policy's odds and to the metrics. If it is the client class alone, the counts do not
depend on the policy: they are kept with the rows, for the next policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.replay.cells import weights_of
from lookup.replay.days import SliceRows
from lookup.replay.grouping import column_keys
from lookup.replay.plan import ClusterPlan
from lookup.replay.walk import Tick

__all__ = [
    "Classes", "KeyDemand", "Stretch", "StretchCounts", "classes_of", "count_clients", "count_stretch", "demand_by_key",
]  # fmt: skip

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Classes that most ticks lack, such as topics, are not counted into a table of all ticks and classes.
_SPARSE = 1


@dataclass(frozen=True)
class Stretch:
    """Ticks of one slice that are taken together; their rows are [low, high)."""

    ticks: Sequence[Tick]
    #: start of the balance cell its groups are counted under, µs
    cell_us: int
    #: number of the registry epoch
    epoch: int

    @property
    def rows(self) -> SliceRows:
        """Return the slice."""
        return self.ticks[0].rows

    @property
    def low(self) -> int:
        """Return the first row."""
        return self.ticks[0].low

    @property
    def high(self) -> int:
        """Return the row after the last."""
        return self.ticks[-1].high

    @cached_property
    def starts(self) -> Ints:
        """Return when each tick begins, µs."""
        return np.array([tick.start_us for tick in self.ticks], dtype=np.int64)

    @cached_property
    def sizes(self) -> Ints:
        """Return how many rows each tick has."""
        return np.array([tick.high - tick.low for tick in self.ticks], dtype=np.int64)


@dataclass(frozen=True)
class Classes:
    """The classes of a stretch, arrays of shape (n_classes,), and the class of each row."""

    #: broker a bundle is pinned to, -1: a policy is asked, -2: to a broker the roster does not know
    pinned: NDArray[np.int32]
    #: client class
    client: Ints
    #: decision key, 0 if classes were made without a policy
    key: Ints
    #: of each row, shape (n_rows,)
    codes: NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class StretchCounts:
    """Lookups and weight, in micro-units, of a stretch."""

    #: by class and tick, in this order, columns of shape (n_pairs,)
    tick_class: Ints
    tick: Ints
    counts: Floats
    micro: Floats
    #: by unit and class, columns of shape (n_groups,)
    unit: Ints
    klass: Ints
    lookups: Floats
    weight: Floats
    #: lookups with a logged broker by unit, class and broker (-2: one the roster does not know)
    logged_unit: Ints
    logged_class: Ints
    logged_broker: Ints
    logged: Floats
    #: first row of each class, shape (n_classes,)
    firsts: Ints


@dataclass(frozen=True, eq=False)
class KeyDemand:
    """Lookups and weight, in micro-units, of a stretch by key and tick; columns of shape (n_pairs,)."""

    #: the pairs of each key, in order of their ticks; keys without lookups are absent
    pairs: Mapping[int, slice]
    #: number of the tick in the stretch
    tick: Ints
    lookups: Ints
    micro: Floats


def classes_of(cluster: ClusterPlan, stretch: Stretch, keys: Ints | None = None) -> Classes:
    """Divide the rows of a stretch into classes: by client class, the broker their bundle is pinned to, decision key.

    Args:
        keys: decision key of each row; None: the same for all.
    """
    span = slice(stretch.low, stretch.high)
    n_clients, width = max(len(cluster.clients), 1), len(cluster.timeline.roster) + 2
    # Without decision keys, and in most clusters without pinned bundles, one number stands for all rows.
    pinned: Ints | np.int64 = np.int64(-1)
    if (cluster.pinned != -1).any():
        pinned = cluster.pinned.astype(np.int64)[stretch.rows.column("atom", span)]
    before = column_keys(np.zeros(1, np.int64) if keys is None else keys).by(np.asarray(pinned), size=width, low=-2)
    rows = before.by(stretch.rows.column("properties", span), size=n_clients)
    (key, of_pinned, client), codes = rows.numbered()
    return Classes(of_pinned.astype(np.int32), client, key, codes)


def count_clients(cluster: ClusterPlan, stretch: Stretch) -> tuple[Classes, StretchCounts]:
    """Count the rows of a stretch by what no policy changes, once for all policies."""

    def count() -> tuple[Classes, StretchCounts]:
        """Count them now."""
        classes = classes_of(cluster, stretch)
        return classes, count_stretch(cluster, stretch, classes)

    return stretch.rows.once(("by client", stretch.low, stretch.high, stretch.sizes.tobytes()), count)


def count_stretch(cluster: ClusterPlan, stretch: Stretch, classes: Classes) -> StretchCounts:
    """Count the rows of a stretch."""
    span, sizes, n_classes = slice(stretch.low, stretch.high), stretch.sizes, len(classes.key)
    weights, width = weights_of(stretch.rows, span), len(cluster.timeline.roster) + 2
    ticks = np.repeat(np.arange(len(sizes)), sizes)
    by_tick = column_keys(classes.codes, size=n_classes).by(ticks, size=len(sizes))
    (tick_class, tick), counts, micro = by_tick.counted(weights, sparse=_SPARSE)
    # A bundle meets few brokers in a stretch: only the pairs that occur are divided by class.
    units = cluster.units[1][stretch.rows.column("atom", span)]
    pairs = column_keys(units).by(stretch.rows.column("broker", span), size=width, low=-2)
    by_class = pairs.compacted().by(classes.codes, size=n_classes)
    (unit, broker, klass), lookups, weight = by_class.counted(weights)
    (group_unit, group_class), (group_lookups, group_weight) = (
        column_keys(unit).by(klass, size=n_classes).summed(lookups, weight)
    )
    named = broker != -1
    firsts = np.zeros(n_classes, dtype=np.int64)
    # The last assignment to an index wins, so rows are assigned backwards.
    firsts[classes.codes[::-1]] = np.arange(stretch.high - 1, stretch.low - 1, -1)
    return StretchCounts(
        tick_class=tick_class,
        tick=tick,
        counts=counts,
        micro=micro,
        unit=group_unit,
        klass=group_class,
        lookups=group_lookups,
        weight=group_weight,
        logged_unit=unit[named],
        logged_class=klass[named],
        logged_broker=broker[named],
        logged=lookups[named],
        firsts=firsts,
    )


def demand_by_key(counts: StretchCounts, keys: Ints, n_ticks: int) -> KeyDemand:
    """Add up the demand of a stretch by keys and ticks.

    Args:
        keys: of each class, shape (n_classes,).
        n_ticks: of the stretch.
    """
    by_tick = column_keys(keys[counts.tick_class]).by(counts.tick, size=n_ticks)
    (key, tick), (lookups, micro) = by_tick.summed(counts.counts, counts.micro)
    # Pairs ascend, so those of a key are neighbours.
    distinct, starts = np.unique(key, return_index=True)
    bounds = [*starts.tolist(), len(key)]
    pairs = dict(zip(distinct.tolist(), map(slice, bounds, bounds[1:]), strict=True))
    return KeyDemand(pairs, tick, lookups.astype(np.int64), micro)
