"""Count the rows of a stretch of ticks by tick, bundle, class and logged broker, for shared ownership.

A decision key is what the odds of a lookup depend on, apart from the instant: the values of the fields a policy reads.

Lookups of one class are alike to a policy's odds and to the metrics. If it is the client class alone, the counts do not
depend on the policy: they are kept with the rows, for the next policy.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.engine.policy import Policy
from lookup.model.request import LookupRequest
from lookup.replay.atoms import BundleMap
from lookup.replay.coding import EXTRA_FIELDS
from lookup.replay.counted import weights_of
from lookup.replay.days import SliceRows
from lookup.replay.grouping import column_keys, compacted
from lookup.replay.plan import ClusterPlan
from lookup.replay.walk import Tick

__all__ = [
    "Classes", "KeyCoder", "KeyDemand", "Stretch", "StretchCounts", "classes_of", "count_clients", "count_stretch",
    "demand_by_key", "key_text",
]  # fmt: skip

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Classes that most ticks lack, such as topics, are not counted into a table of all ticks and classes.
_SPARSE = 1
#: Above this many combinations of codes, decision keys are numbered as they occur.
_SMALL = 1 << 16


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


class KeyCoder:
    """Numbers the decision keys of one policy's lookups."""

    def __init__(self, cluster: ClusterPlan, policy: Policy, bundles: BundleMap) -> None:
        self._reads = policy.request_reads
        self._bundles = bundles
        labels = [name for name in self._reads if name.startswith("properties")]
        # "properties" stands for all labels, "properties.rack" for one of them.
        self._by_properties = _numbered(
            tuple(sorted(properties.items()))
            if "properties" in labels
            else tuple(properties.get(name.partition(".")[2]) for name in labels)
            for properties in cluster.words.properties
        )
        #: how many texts each coded field has that the policy reads
        self._extras = {
            name: len(cluster.words.extras.get(name, ())) or 1 for name in EXTRA_FIELDS if name in self._reads
        }
        #: number of each key so far, if there may be too many to use the packed codes themselves
        self._seen: dict[int, int] = {}
        self.refresh()

    @property
    def by_client(self) -> Ints | None:
        """Return the key of each client class if nothing else makes a difference, else None."""
        is_alone = not self._extras and not (self._by_atom.size and self._by_atom.max())
        return self._by_properties if is_alone and self._by_properties.size else None

    def refresh(self) -> None:
        """Number the bundles again after a split."""
        levels = [name for name in ("bundle", "namespace", "tenant") if name in self._reads]
        keys = []
        for bundle in map(str, self._bundles.names if levels else ()):
            namespace = bundle.rpartition("/")[0]
            names = {"bundle": bundle, "namespace": namespace, "tenant": namespace.partition("/")[0]}
            keys.append(tuple(names[level] for level in levels))
        self._by_atom = _numbered(keys)

    def codes(self, rows: SliceRows, low: int, high: int) -> tuple[Ints, int]:
        """Return the key of each row, shape (n_rows,), and a bound above all keys so far."""
        span = slice(low, high)
        keys = column_keys(np.zeros(high - low, dtype=np.int64), size=1)
        for name, numbers in (("properties", self._by_properties), ("atom", self._by_atom)):
            if numbers.size and numbers.max():
                keys = keys.by(numbers[rows.column(name, span)], size=int(numbers.max()) + 1)
        for name, size in self._extras.items():
            keys = keys.by(rows.column(name, span), size=size)
        if keys.bound is not None and keys.bound <= _SMALL:
            return keys.rows.astype(np.int64, copy=False), keys.bound
        # Topics and clients make millions of combinations, of which few occur: odds are a table by key.
        occurring, of_row = compacted(keys.rows)
        numbers = np.array([self._seen.setdefault(code, len(self._seen)) for code in occurring.tolist()], np.int64)
        return numbers[of_row], len(self._seen)


def key_text(policy: Policy, request: LookupRequest) -> str:
    """Write a decision key as JSON: the fields the policy reads and their values."""
    return json.dumps(dict(zip(policy.request_reads, policy.decision_key(request), strict=True)), ensure_ascii=False)


def _numbered(keys: Iterable[Hashable]) -> Ints:
    """Return a number for each key, the same for equal ones, in order of first occurrence."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)
