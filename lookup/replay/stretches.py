"""Counts of the rows of a stretch of ticks by tick, bundle, class and logged broker, for shared ownership.

A class is what a policy's odds and the metrics can tell lookups apart by. Where that is the client class alone, the
counts do not depend on the policy: they are kept with the rows, for the next policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lookup.replay.counts import compacted, grouped, summed, weights_of
from lookup.replay.days import DayRows
from lookup.replay.plan import ClusterPlan
from lookup.replay.walk import Tick

__all__ = [
    "Classes",
    "KeyDemand",
    "Stretch",
    "StretchCounts",
    "classes_of",
    "count_clients",
    "count_stretch",
    "demand_by_key",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Classes that most ticks lack, such as topics, are not counted into a table of all ticks and classes.
_SPARSE = 1


@dataclass(frozen=True)
class Stretch:
    """Ticks of one day that are taken together; their rows are [low, high)."""

    ticks: Sequence[Tick]
    #: start of the balance cell its groups are counted under, µs
    cell_us: int
    #: number of the registry epoch
    epoch: int

    @property
    def rows(self) -> DayRows:
        """Return the day."""
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
    """What the classes of a stretch are, arrays of shape (n_classes,), and which class each row has."""

    #: broker a bundle is pinned to, -1: a policy is asked, -2: to a broker the roster does not know
    pinned: NDArray[np.int32]
    #: client class
    client: Ints
    #: decision key, 0 where classes were made without a policy
    key: Ints
    #: of each row, shape (n_rows,)
    codes: Ints


@dataclass(frozen=True, eq=False)
class StretchCounts:
    """Lookups and weight, in micro-units, of a stretch."""

    #: by class and tick, in this order, columns of shape (n_pairs,); a pair is class x n_ticks + tick
    pair: Ints
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

    #: which pairs each key has, in order of their ticks; keys without lookups are not there
    places: Mapping[int, slice]
    #: place of the tick in the stretch
    tick: Ints
    lookups: Ints
    micro: Floats


def classes_of(cluster: ClusterPlan, stretch: Stretch, keys: Ints | None = None) -> Classes:
    """Tell the rows of a stretch apart by client class, by the broker their bundle is pinned to, and by decision key.

    Args:
        keys: decision key of each row; None: not told apart.
    """
    span = slice(stretch.low, stretch.high)
    n_clients, width = max(len(cluster.clients), 1), len(cluster.timeline.roster) + 2
    codes = stretch.rows.column("properties", span).astype(np.int64)
    by_atom = (cluster.pinned.astype(np.int64) + 2) * n_clients
    codes += by_atom[stretch.rows.column("atom", span)] if (cluster.pinned != -1).any() else n_clients
    found, places = compacted(codes if keys is None else keys * (width * n_clients) + codes)
    pinned = (found // n_clients % width - 2).astype(np.int32)
    return Classes(pinned, found % n_clients, found // n_clients // width, places)


def count_clients(cluster: ClusterPlan, stretch: Stretch) -> tuple[Classes, StretchCounts]:
    """Count the rows of a stretch by what no policy changes, once for all policies."""

    def count() -> tuple[Classes, StretchCounts]:
        """Count them now."""
        classes = classes_of(cluster, stretch)
        return classes, count_stretch(cluster, stretch, classes)

    return stretch.rows.once(("by client", stretch.low, stretch.high, stretch.sizes.tobytes()), count)


def count_stretch(cluster: ClusterPlan, stretch: Stretch, classes: Classes) -> StretchCounts:
    """Count the rows of a stretch."""
    return _counted(cluster, stretch, classes.codes, len(classes.key))


def demand_by_key(counts: StretchCounts, keys: Ints, n_ticks: int) -> KeyDemand:
    """Add up what a stretch was asked for by keys and ticks.

    Args:
        keys: of each class, shape (n_classes,).
        n_ticks: of the stretch.
    """
    klass, tick = np.divmod(counts.pair, n_ticks)
    found, (lookups, micro) = summed(keys[klass] * n_ticks + tick, counts.counts, counts.micro)
    key, tick = np.divmod(found, n_ticks)
    held, starts = np.unique(key, return_index=True)
    bounds = [*starts.tolist(), len(key)]
    places = dict(zip(held.tolist(), map(slice, bounds, bounds[1:]), strict=True))
    return KeyDemand(places, tick, lookups.astype(np.int64), micro)


def _counted(cluster: ClusterPlan, stretch: Stretch, codes: Ints, n_classes: int) -> StretchCounts:
    span, sizes = slice(stretch.low, stretch.high), stretch.sizes
    weights, width = weights_of(stretch.rows, span), len(cluster.timeline.roster) + 2
    in_ticks = codes * len(sizes) + np.repeat(np.arange(len(sizes)), sizes)
    by_tick = grouped(in_ticks, weights, len(sizes) * n_classes, sparse=_SPARSE)
    # -1 for none and -2 for an unknown broker come first, so that columns start at 0. A bundle meets few brokers in a
    # stretch: only the pairs that occur are told apart by class.
    logged = (cluster.units[1] * width)[stretch.rows.column("atom", span)] + stretch.rows.column("broker", span) + 2
    pairs, pair = compacted(logged)
    found, lookups, weight = grouped(pair * n_classes + codes, weights, len(pairs) * n_classes)
    pair, klass = pairs[found // n_classes], found % n_classes
    keys, (by_class, weight) = summed(pair // width * n_classes + klass, lookups, weight)
    named = pair % width != 1
    return StretchCounts(
        *by_tick,
        keys // n_classes,
        keys % n_classes,
        by_class,
        weight,
        *(pair[named] // width, klass[named], pair[named] % width - 2, lookups[named]),
        stretch.low + _first_rows(codes, n_classes),
    )


def _first_rows(codes: Ints, bound: int) -> Ints:
    """Return the place of the first row of each code, shape (bound,)."""
    firsts = np.zeros(bound, dtype=np.int64)
    # The last assignment to an index wins, so rows are assigned backwards.
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return firsts
