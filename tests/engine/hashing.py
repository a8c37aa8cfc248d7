"""Parts that place by hash, with the salt and without."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

from lookup.hooks import Selector, reads_of
from lookup.model import Candidates, ClusterView, LookupRequest, Reason

__all__ = ["FirstName", "HashFilter", "HashScorer", "HashSelector", "HashWrapper"]


def unit(*texts: str) -> float:
    """Return a number in [0, 1) that depends on texts."""
    return int.from_bytes(blake2b("\0".join(texts).encode(), digest_size=6).digest()) / 2**48


@dataclass(frozen=True)
class _Hashing:
    """What parts that hash bundle and broker have in common."""

    #: mix the salt in, as all should
    is_salted: bool = False

    @property
    def reads(self) -> frozenset[str]:
        """Return the bundle, and the salt if it is mixed in."""
        return frozenset({"bundle", "view.salt"} if self.is_salted else {"bundle"})

    def units(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[float]:
        """Return a number in [0, 1) for each broker."""
        salt = view.salt if self.is_salted else ""
        return [unit(salt, request.bundle, broker.id) for broker in brokers]


@dataclass(frozen=True)
class HashSelector(_Hashing):
    """Choose the broker with the greatest hash."""

    name: ClassVar[str] = "hash-selector"

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> list[float]:
        """Return 1 for the greatest hash."""
        units = self.units(request, brokers, view)
        return [float(number == max(units)) for number in units]


@dataclass(frozen=True)
class HashScorer(_Hashing):
    """Score brokers by their hash."""

    name: ClassVar[str] = "hash-scorer"

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[float]:
        """Return the hashes."""
        return self.units(request, brokers, view)


@dataclass(frozen=True)
class HashFilter(_Hashing):
    """Keep the half of the brokers with the greater hashes."""

    name: ClassVar[str] = "hash-filter"
    reason: ClassVar[Reason] = Reason.FILTERED

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[bool]:
        """Compare each hash with the middle one."""
        units = self.units(request, brokers, view)
        return [number >= sorted(units)[len(units) // 2] for number in units]


@dataclass(frozen=True)
class HashWrapper:
    """Follow a child among the half of the brokers with the greater hashes, unsalted."""

    child: Selector
    name: ClassVar[str] = "hash-wrapper"

    @property
    def reads(self) -> frozenset[str]:
        """Return the bundle and what the child reads."""
        return reads_of(self.child) | {"bundle"}

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> list[float]:
        """Return the child's odds, none for the other half."""
        kept = HashFilter().admit(request, brokers, view)
        odds = self.child.odds(request, brokers, scores, view)
        return [share * is_kept for share, is_kept in zip(odds, kept, strict=True)]


@dataclass(frozen=True)
class FirstName:
    """Choose the highest score, of equal ones the first by name."""

    name: ClassVar[str] = "first-name"
    reads: ClassVar[frozenset[str]] = frozenset()

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> list[float]:
        """Return 1 for the first of the best."""
        first = min(broker.id for broker, score in zip(brokers, scores, strict=True) if score == max(scores))
        return [float(broker.id == first) for broker in brokers]
