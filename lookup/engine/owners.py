"""Keep the owners of all bundles with their changes, the policies' view of them, and a name for every state.

Changes are numbered within a series that begins without owners, so a record of the series contains every state.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lookup.engine.ownership import Ownership
from lookup.model.recent import Recent

__all__ = ["OwnerChange", "Owners"]

#: Rosters whose owners are counted, since some clients see brokers come and go sooner than others.
_MOST_ROSTERS = 8
#: Changes that can be taken back, to explain a decision.
_MOST_UNDONE = 10_000
#: Changes of a series beyond those of its beginning. Repeating a decision applies the whole series.
_LONGEST = 100_000


class OwnerChange(NamedTuple):
    """A change of a bundle's owner, possibly to none, with its number in a series."""

    series: str
    number: int
    bundle: str
    broker: str | None


class Owners:
    """Owners of bundles by broker id, with views for policies by the numbers of a roster.

    Args:
        name: makes the names of series differ between runs of a server.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._owners: dict[str, str] = {}
        self._series, self._number, self._digest, self._begun_with = f"{name}-1", 0, 0, 0
        self._count = 1
        #: as the rosters number brokers, by the ids of a roster
        self._seen: Recent[tuple[str, ...], tuple[Ownership, dict[str, int]]] = Recent(_MOST_ROSTERS)
        #: reference before a change, its bundle and the owner before
        self._undone: deque[tuple[str, str, str | None]] = deque(maxlen=_MOST_UNDONE)

    def __len__(self) -> int:
        return len(self._owners)

    @property
    def reference(self) -> str:
        """The name of the present state, from series, number of its last change, and digest of the owners."""
        return f"{self._series}.{self._number}.{self._digest:016x}"

    @property
    def is_long(self) -> bool:
        """Whether it is time to begin another series."""
        return self._number - self._begun_with > _LONGEST

    def apply(self, bundle: str, broker: str | None) -> OwnerChange:
        """Give a bundle an owner, or none, and return the change as it is numbered."""
        before = self._owners.pop(bundle, None)
        self._undone.append((self.reference, bundle, before))
        # Of a set of pairs, so that it depends neither on their order nor on how they came about.
        if before is not None:
            self._digest ^= _digest_of(bundle, before)
        if broker is not None:
            self._owners[bundle] = broker
            self._digest ^= _digest_of(bundle, broker)
        for ownership, numbers in self._seen.values():
            if broker in numbers:
                ownership.give(bundle, numbers[broker])
            else:
                ownership.take(bundle)
            ownership.sweep()
        self._number += 1
        return OwnerChange(self._series, self._number, bundle, broker)

    def begin_series(self) -> Iterator[OwnerChange]:
        """Begin another series, and return the changes that lead to the present state."""
        self._undone.append((self.reference, "", None))
        self._count += 1
        self._series, self._number = f"{self._name}-{self._count}", len(self._owners)
        self._begun_with = self._number
        return (
            OwnerChange(self._series, number, bundle, broker)
            for number, (bundle, broker) in enumerate([*self._owners.items()], start=1)
        )

    def seen_by(self, ids: Sequence[str]) -> Ownership:
        """Build the view of the owners for a policy, which follows every change.

        Brokers of other rosters do not own anything in it.

        Args:
            ids: ids of the brokers of a roster, by number.
        """
        ids = tuple(ids)
        if ids not in self._seen:
            self._seen.put(ids, _number_owners(self._owners, ids))
        return self._seen[ids][0]

    def at(self, reference: str, ids: Sequence[str]) -> Ownership | None:
        """Build the owners of an earlier state in the form of `seen_by`, None if it is too long ago."""
        owners, present = dict(self._owners), self.reference
        for before, bundle, broker in reversed(self._undone):
            if present == reference:
                break
            present = before
            owners.pop(bundle, None)
            if broker is not None:
                owners[bundle] = broker
        return _number_owners(owners, tuple(ids))[0] if present == reference else None


def _number_owners(owners: dict[str, str], ids: tuple[str, ...]) -> tuple[Ownership, dict[str, int]]:
    ownership, numbers = Ownership(ids), {broker: number for number, broker in enumerate(ids)}
    for bundle, broker in owners.items():
        if broker in numbers:
            ownership.give(bundle, numbers[broker])
    return ownership, numbers


def _digest_of(bundle: str, broker: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{bundle}\x1f{broker}".encode(), digest_size=8).digest(), "big")
