"""Keep owners, with the broker that owns each bundle and the reasons for changes.

The manager decides when owners change, and keeps memory. Owners are numbers of the present roster, as
policies need them. Data that outlives a roster (changes, the past of a bundle) names brokers by id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookup.model.decision import CycleReason

__all__ = [
    "CAUSE_WORDS", "EVENT_WORDS", "Cause", "OwnerBook", "Ownership", "OwnershipChange", "ReportedOwnership",
]  # fmt: skip

Counts = NDArray[np.int64]
#: Namespaces below which a sweep is not worth a pass. Above, a sweep follows each doubling, so its cost is constant.
_FEWEST = 256


class Ownership:
    """Owners by bundle name, as numbers of the cluster's roster, in the form of an `OwnershipView` for policies.

    The returned arrays are read-only and follow every change at once, until the tick or the registry epoch ends.

    Args:
        ids: ids of all brokers of the roster, by number.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = tuple(ids)
        self._owners: dict[str, int] = {}
        self._counts, self._shown_counts = self._count_none_with_view()
        self._by_namespace: defaultdict[str, Counts] = defaultdict(self._count_none)
        self._sweep_above = _FEWEST

    def _count_none(self) -> Counts:
        return np.zeros(len(self.ids), dtype=np.int64)

    def _count_none_with_view(self) -> tuple[Counts, Counts]:
        # Read in every cycle and most decisions, so one view of the counts is shared by all.
        counts = self._count_none()
        return counts, _make_read_only(counts)

    def __len__(self) -> int:
        return len(self._owners)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._owners.items())

    def owner(self, bundle: str) -> int | None:
        """Find the number of the bundle's owner, None if it does not have one."""
        return self._owners.get(bundle)

    def bundles(self) -> Counts:
        """Count the bundles that each broker owns, shape (n_brokers,)."""
        return self._shown_counts

    def bundles_in(self, namespace: str) -> Counts:
        """Count the bundles of one namespace that each broker owns, shape (n_brokers,)."""
        return _make_read_only(self._by_namespace[namespace])

    def bundles_of(self, broker: int) -> list[str]:
        """List the bundles of one broker, sorted by name."""
        return sorted(bundle for bundle, owner in self._owners.items() if owner == broker)

    def give(self, bundle: str, broker: int) -> None:
        """Make a broker the owner of a bundle, and take it from the owner it had."""
        self.take(bundle)
        self._owners[bundle] = broker
        self._count(bundle, broker, 1)

    def take(self, bundle: str) -> int | None:
        """Leave a bundle without owner and return the one it had."""
        broker = self._owners.pop(bundle, None)
        if broker is not None:
            self._count(bundle, broker, -1)
        return broker

    def renumber(self, ids: Sequence[str]) -> None:
        """Change to the numbers of another roster, which must contain every broker that owns a bundle."""
        numbers = {name: number for number, name in enumerate(ids)}
        moved = [(bundle, numbers[self.ids[owner]]) for bundle, owner in self._owners.items()]
        self.ids = tuple(ids)
        self._owners, (self._counts, self._shown_counts) = dict(moved), self._count_none_with_view()
        self._by_namespace.clear()
        for bundle, owner in moved:
            self._count(bundle, owner, 1)

    def sweep(self) -> None:
        """Forget the counts of namespaces without owned bundles, once namespaces are many."""
        if len(self._by_namespace) > self._sweep_above:
            for namespace in [name for name, counts in self._by_namespace.items() if not counts.any()]:
                del self._by_namespace[namespace]
            self._sweep_above = 2 * len(self._by_namespace) + _FEWEST

    def _count(self, bundle: str, broker: int, step: int) -> None:
        # Filters read these counts in every decision, and recounting owners would cost a pass over all bundles.
        self._counts[broker] += step
        self._by_namespace[bundle.rpartition("/")[0]][broker] += step


def _make_read_only(counts: Counts) -> Counts:
    view = counts.view()
    view.flags.writeable = False
    return view


class ReportedOwnership:
    """Owners as the leader of Pulsar's modular manager knows them, in the form of an `OwnershipView` for policies.

    A bundle that a cycle has moved stays with its old owner until the next report, since the leader does not record the
    move (`ModularLoadManagerImpl.doLoadShedding`). An assignment by a lookup counts at once (`preallocateBundle`).

    Args:
        ownership: the true owners.
        moved: numbers of the old owners, by bundle.
    """

    def __init__(self, ownership: Ownership, moved: Mapping[str, int]) -> None:
        self._ownership, self._moved = ownership, moved

    def owner(self, bundle: str) -> int | None:
        """Find the number of the bundle's owner, None if it does not have one."""
        return self._moved[bundle] if bundle in self._moved else self._ownership.owner(bundle)

    def bundles(self) -> Counts:
        """Count the bundles that each broker owns, shape (n_brokers,)."""
        return self._count_with_moves(self._ownership.bundles(), self._moved)

    def bundles_in(self, namespace: str) -> Counts:
        """Count the bundles of one namespace that each broker owns, shape (n_brokers,)."""
        moved = [bundle for bundle in self._moved if bundle.rpartition("/")[0] == namespace]
        return self._count_with_moves(self._ownership.bundles_in(namespace), moved)

    def _count_with_moves(self, counts: Counts, moved: Iterable[str]) -> Counts:
        counts = counts.copy()
        for bundle in moved:
            owner = self._ownership.owner(bundle)
            if owner is not None:
                counts[owner] -= 1
            counts[self._moved[bundle]] += 1
        return _make_read_only(counts)


#: Cause of the loss of a bundle's last owner. `first` means that it had none.
Cause = Literal["first", "forced", "shed", "admin", "split"]
#: Words for the causes of moves, in the order of reports, and for one and several external events.
CAUSE_WORDS: Mapping[str, str] = {
    "forced": "broker lost",
    "shed": "unloaded by the shedder",
    "admin": "unloaded by an administrator",
    "split": "split",
}
EVENT_WORDS: Mapping[str, tuple[str, str]] = {
    "forced": ("broker was lost", "brokers were lost"),
    "admin": ("bundle was unloaded by an administrator", "bundles were unloaded by an administrator"),
    "split": ("bundle was split", "bundles were split"),
}


class OwnershipChange(NamedTuple):
    """A bundle got an owner or lost it (`broker` is None)."""

    ts_us: int
    bundle: str
    #: id of the last owner, None if it never had one
    source: str | None
    #: id of the owner
    broker: str | None
    #: why the bundle lost its last owner
    cause: Cause
    #: a policy's odds made this owner
    decided: bool = False
    #: why a shedder took the bundle away, if it distinguishes its unloads
    reason: CycleReason | None = None


class _LastOwner(NamedTuple):
    """A bundle's last owner, and why the bundle left it."""

    #: its id, None if there was none
    owner: str | None
    cause: Cause


_NO_PAST = _LastOwner(None, "first")


class OwnerBook:
    """A book of owners and their changes. A new owner is booked with the last one and the cause of its loss.

    Changes are kept until they are taken, so a book grows if its changes are never read.
    """

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._past: dict[str, _LastOwner] = {}
        self._changes: list[OwnershipChange] = []

    def give(self, bundle: str, number: int, ts_us: int, *, decided: bool = False) -> None:
        """Make a broker the owner of a bundle. `decided` marks a choice by a policy's odds."""
        source, cause = self._past.get(bundle, _NO_PAST)
        self._ownership.give(bundle, number)
        self._changes.append(OwnershipChange(ts_us, bundle, source, self._ownership.ids[number], cause, decided))

    def take(self, bundle: str, cause: Cause, ts_us: int, *, reason: CycleReason | None = None) -> bool:
        """Take a bundle from its owner. Return false if it does not have one.

        Args:
            reason: the shedder's reason, if it distinguishes its unloads.
        """
        number = self._ownership.take(bundle)
        if number is None:
            return False
        owner = self._ownership.ids[number]
        self._past[bundle] = _LastOwner(owner, cause)
        self._changes.append(OwnershipChange(ts_us, bundle, owner, None, cause, reason=reason))
        return True

    def split(self, bundle: str, children: Sequence[str]) -> None:
        """Replace a bundle by its children, which keep its owner and its past. No owner changes."""
        number, past = self._ownership.take(bundle), self._past.pop(bundle, None)
        # Children inherit the past as well, so that the first of them to lose its owner is booked like the parent.
        for child in children:
            if past is not None:
                self._past[child] = past
            if number is not None:
                self._ownership.give(child, number)

    def take_changes(self) -> list[OwnershipChange]:
        """Return the changes since the last call."""
        changes, self._changes = self._changes, []
        return changes
