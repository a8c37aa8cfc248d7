"""Keep owners: which broker owns which bundle, and why bundles change hands.

The manager decides when owners change, and keeps memory. Owners are numbers of the present roster, as policies need
them; what outlives a roster (changes, the past of a bundle) names brokers by id.
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
#: Namespaces below which a sweep is not worth a pass; beyond, one follows each doubling, so that it costs a constant.
_FEWEST = 256


class Ownership:
    """Owners by bundle name, as numbers of the cluster's roster; an `OwnershipView` for policies.

    The arrays handed out are read-only and follow every change at once, until the tick or the registry epoch ends.

    Args:
        ids: of all brokers of the roster, by number.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = tuple(ids)
        self._owners: dict[str, int] = {}
        self._counts, self._shown_counts = self._no_bundles_shown()
        self._by_namespace: defaultdict[str, Counts] = defaultdict(self._no_bundles)
        self._sweep_above = _FEWEST

    def _no_bundles(self) -> Counts:
        return np.zeros(len(self.ids), dtype=np.int64)

    def _no_bundles_shown(self) -> tuple[Counts, Counts]:
        # Every cycle and most decisions ask: one view of the counts serves them all.
        counts = self._no_bundles()
        return counts, _read_only(counts)

    def __len__(self) -> int:
        return len(self._owners)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._owners.items())

    def owner(self, bundle: str) -> int | None:
        """Return the number of the bundle's owner, None if it has none."""
        return self._owners.get(bundle)

    def bundles(self) -> Counts:
        """Return how many bundles each broker owns, shape (n_brokers,)."""
        return self._shown_counts

    def bundles_in(self, namespace: str) -> Counts:
        """Return how many bundles of one namespace each broker owns, shape (n_brokers,)."""
        return _read_only(self._by_namespace[namespace])

    def bundles_of(self, broker: int) -> list[str]:
        """Return the bundles of one broker, sorted by name."""
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
        """Go over to the numbers of another roster; every broker that owns a bundle must be in it."""
        numbers = {name: number for number, name in enumerate(ids)}
        moved = [(bundle, numbers[self.ids[owner]]) for bundle, owner in self._owners.items()]
        self.ids = tuple(ids)
        self._owners, (self._counts, self._shown_counts) = dict(moved), self._no_bundles_shown()
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
        # Filters ask for these counts in every decision; counting owners anew would cost a pass over all bundles.
        self._counts[broker] += step
        self._by_namespace[bundle.rpartition("/")[0]][broker] += step


def _read_only(counts: Counts) -> Counts:
    view = counts.view()
    view.flags.writeable = False
    return view


class ReportedOwnership:
    """Owners as the leader of Pulsar's modular manager knows them; an `OwnershipView` for policies.

    What a cycle has moved stays with its old owner until the next report, since the leader gives it away without a note
    (`ModularLoadManagerImpl.doLoadShedding`); what a lookup assigns counts at once (`preallocateBundle`).

    Args:
        ownership: the true owners.
        moved: numbers of the old owners, by bundle.
    """

    def __init__(self, ownership: Ownership, moved: Mapping[str, int]) -> None:
        self._ownership, self._moved = ownership, moved

    def owner(self, bundle: str) -> int | None:
        """Return the number of the bundle's owner, None if it has none."""
        return self._moved[bundle] if bundle in self._moved else self._ownership.owner(bundle)

    def bundles(self) -> Counts:
        """Return how many bundles each broker owns, shape (n_brokers,)."""
        return self._count_with_moves(self._ownership.bundles(), self._moved)

    def bundles_in(self, namespace: str) -> Counts:
        """Return how many bundles of one namespace each broker owns, shape (n_brokers,)."""
        moved = [bundle for bundle in self._moved if bundle.rpartition("/")[0] == namespace]
        return self._count_with_moves(self._ownership.bundles_in(namespace), moved)

    def _count_with_moves(self, counts: Counts, moved: Iterable[str]) -> Counts:
        counts = counts.copy()
        for bundle in moved:
            owner = self._ownership.owner(bundle)
            if owner is not None:
                counts[owner] -= 1
            counts[self._moved[bundle]] += 1
        return _read_only(counts)


#: Why a bundle lost its last owner; `first`: it had none.
Cause = Literal["first", "forced", "shed", "admin", "split"]
#: Words for the causes of moves, in the order of reports, and for one and several events of those that are no policy's.
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
    """Changes owners and records each change; a new owner is booked with the last one and why that lost the bundle.

    Changes are kept until they are taken: a book that nobody reads grows.
    """

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._past: dict[str, _LastOwner] = {}
        self._changes: list[OwnershipChange] = []

    def give(self, bundle: str, number: int, ts_us: int, *, decided: bool = False) -> None:
        """Make a broker the owner of a bundle; `decided` if a policy's odds made it so."""
        source, cause = self._past.get(bundle, _NO_PAST)
        self._ownership.give(bundle, number)
        self._changes.append(OwnershipChange(ts_us, bundle, source, self._ownership.ids[number], cause, decided))

    def take(self, bundle: str, cause: Cause, ts_us: int, *, reason: CycleReason | None = None) -> bool:
        """Take a bundle from its owner; false if it has none.

        Args:
            reason: why its shedder takes it, if that distinguishes its unloads.
        """
        number = self._ownership.take(bundle)
        if number is None:
            return False
        owner = self._ownership.ids[number]
        self._past[bundle] = _LastOwner(owner, cause)
        self._changes.append(OwnershipChange(ts_us, bundle, owner, None, cause, reason=reason))
        return True

    def split(self, bundle: str, children: Sequence[str]) -> None:
        """Replace a bundle by its children, which keep its owner and its past; no owner changes by that."""
        number, past = self._ownership.take(bundle), self._past.pop(bundle, None)
        # Children inherit the past as well, so that the first of them to lose its owner is booked like the parent.
        for child in children:
            if past is not None:
                self._past[child] = past
            if number is not None:
                self._ownership.give(child, number)

    def take_changes(self) -> list[OwnershipChange]:
        """Return the changes since the last call."""
        taken, self._changes = self._changes, []
        return taken
