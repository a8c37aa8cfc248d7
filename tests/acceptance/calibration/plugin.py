"""Parts of a third party: a hash that mixes the salt in, one that does not, and a scorer that sticks to a broker."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Filter, Scorer, Selector, hookimpl
from lookup.model import Broker, Candidates, ClusterView, LookupRequest, Reason


def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


@dataclass(frozen=True)
class SaltedModulo:
    """Choose the candidate whose place is the hash of salt and bundle, modulo the candidates."""

    name: ClassVar[str] = "salted-modulo"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.salt"})

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        """Return 1 for one candidate."""
        odds = np.zeros(len(brokers))
        # By id, so that the order of the candidates does not matter.
        ranked = sorted(range(len(brokers)), key=lambda place: brokers[place].id)
        odds[ranked[_number(f"{view.salt}/{request.bundle}") % len(brokers)]] = 1.0
        return odds


@dataclass(frozen=True)
class UnsaltedModulo:
    """The same without the salt: one draw of luck, whatever the replicate."""

    name: ClassVar[str] = "unsalted-modulo"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle"})

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        """Return 1 for one candidate."""
        odds = np.zeros(len(brokers))
        ranked = sorted(range(len(brokers)), key=lambda place: brokers[place].id)
        odds[ranked[_number(request.bundle) % len(brokers)]] = 1.0
        return odds


@dataclass(frozen=True)
class Sticky:
    """Prefer the broker that a bundle had before, wherever luck had put it."""

    name: ClassVar[str] = "sticky"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.memory"})

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.float64]:
        """Return 1 for the broker that is remembered, 0.5 for the others."""
        last = view.memory.get(request.bundle)
        return np.array([1.0 if broker.id == last else 0.5 for broker in brokers])

    def remember(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker) -> None:
        """Keep the bundle's broker."""
        memory[request.bundle] = broker.id


@dataclass(frozen=True)
class OfRack:
    """Prefer the brokers of one rack, whoever asks; which of them, a hash of its own says."""

    rack: str
    name: ClassVar[str] = "of-rack"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.salt"})

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.float64]:
        """Return 0.6 and more for brokers of the rack, else less."""
        hashed = [_number(f"{view.salt}/{self.rack}/{request.bundle}/{broker.id}") / 2**64 for broker in brokers]
        return 0.6 * (brokers.labels("rack") == self.rack) + 0.4 * np.array(hashed)


@dataclass(frozen=True)
class Deaf:
    """Leave no broker to the lookups of some namespaces."""

    namespaces: tuple[str, ...]
    name: ClassVar[str] = "deaf"
    reason: ClassVar[Reason] = Reason.FILTERED
    reads: ClassVar[frozenset[str]] = frozenset({"namespace"})

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> Iterable[bool]:
        """Return for every broker whether the namespace is heard."""
        return [request.namespace.rpartition("/")[2] not in self.namespaces] * len(brokers)


@hookimpl
def lookup_register_selectors() -> tuple[type[Selector], ...]:
    """Register the hashes."""
    return (SaltedModulo, UnsaltedModulo)


@hookimpl
def lookup_register_scorers() -> tuple[type[Scorer], ...]:
    """Register the scorer."""
    return (Sticky, OfRack)


@hookimpl
def lookup_register_filters() -> tuple[type[Filter], ...]:
    """Register the filter."""
    return (Deaf,)
