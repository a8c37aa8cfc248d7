"""The book of owners: which broker owns which bundle, kept with the counts that filters and scorers ask for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ownership"]

Counts = NDArray[np.int64]


class Ownership:
    """Owners by bundle name, as numbers of the cluster's roster; an `OwnershipView` for policies.

    The arrays handed out are read-only and follow every change at once.
    """

    def __init__(self, n_brokers: int) -> None:
        self._n_brokers = n_brokers
        self._owners: dict[str, int] = {}
        self._counts = np.zeros(n_brokers, dtype=np.int64)
        self._by_namespace: defaultdict[str, Counts] = defaultdict(lambda: np.zeros(n_brokers, dtype=np.int64))

    def __len__(self) -> int:
        return len(self._owners)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._owners.items())

    def owner(self, bundle: str) -> int | None:
        """Return the number of the bundle's owner, None where it has none."""
        return self._owners.get(bundle)

    def bundles(self) -> Counts:
        """Return how many bundles each broker owns, shape (n_brokers,)."""
        return _read_only(self._counts)

    def bundles_in(self, namespace: str) -> Counts:
        """Return how many bundles of one namespace each broker owns, shape (n_brokers,)."""
        return _read_only(self._by_namespace[namespace])

    def bundles_of(self, broker: int) -> list[str]:
        """Return the bundles of one broker, sorted by name."""
        return sorted(bundle for bundle, owner in self._owners.items() if owner == broker)

    def give(self, bundle: str, broker: int) -> None:
        """Make a broker the owner of a bundle, whoever owned it before."""
        self.take(bundle)
        self._owners[bundle] = broker
        self._count(bundle, broker, 1)

    def take(self, bundle: str) -> int | None:
        """Leave a bundle without owner and return the one it had."""
        broker = self._owners.pop(bundle, None)
        if broker is not None:
            self._count(bundle, broker, -1)
        return broker

    def _count(self, bundle: str, broker: int, step: int) -> None:
        self._counts[broker] += step
        self._by_namespace[bundle.rpartition("/")[0]][broker] += step


def _read_only(counts: Counts) -> Counts:
    view = counts.view()
    view.flags.writeable = False
    return view
