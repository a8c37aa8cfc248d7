"""The difference of two policies over a log: the lookups that they answer by other brokers, by cause, with examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lookup.engine.stages import Cause

__all__ = ["CauseCount", "Difference", "Parting", "counts_by_cause"]

#: Examples that are kept of each cause: those with most lookups.
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Parting:
    """One time for which two policies had other owners of a bundle, or gave other odds to lookups of one key."""

    cluster: str
    #: None under shared ownership, in which bundles have no owner
    bundle: str | None
    from_us: int
    #: None: up to the end of the log
    to_us: int | None
    #: owners at its beginning, or the brokers that it gives more lookups than the other policy does, None for no
    #: broker; of the first policy and of the second
    brokers: tuple[str | None, str | None]
    #: numbers of the decisions with which it began; None for an owner that no decision made then, or an answer that no
    #: decision gave
    decisions: tuple[int | None, int | None]
    #: answered by other brokers; under shared ownership an expectation
    lookups: float
    weight: float
    #: under shared ownership: all that either policy reads of the requests, as JSON
    key: str | None = None


def _rank(parting: Parting) -> tuple[float, str, int, str]:
    return -parting.lookups, parting.cluster, parting.from_us, parting.bundle or parting.key or ""


@dataclass
class CauseCount:
    """All partings of one cause."""

    cause: Cause
    partings: int = 0
    lookups: float = 0
    weight: float = 0.0
    #: those with most lookups
    examples: list[Parting] = field(default_factory=list)

    def add(self, partings: Sequence[Parting], count: int, lookups: float, weight: float) -> None:
        """Add partings, given the examples among them."""
        self.partings += count
        self.lookups += lookups
        self.weight += weight
        ranked = sorted([*self.examples, *partings], key=_rank)
        self.examples = ranked[:_EXAMPLES]


def counts_by_cause(partings: Iterable[tuple[Cause, Parting]]) -> list[CauseCount]:
    """Count partings by cause."""
    by_cause: dict[Cause, list[Parting]] = defaultdict(list)
    for cause, parting in partings:
        by_cause[cause].append(parting)
    counts = []
    for cause, found in by_cause.items():
        total = CauseCount(cause)
        total.add(found, len(found), sum(one.lookups for one in found), sum(one.weight for one in found))
        counts.append(total)
    return counts


@dataclass(frozen=True)
class Difference:
    """The lookups that two policies answer by other brokers, in all clusters; under shared ownership expectations."""

    policies: tuple[str, str]
    seed: int
    #: of the log
    lookups: int
    weight: float
    #: most lookups first
    causes: tuple[CauseCount, ...]

    @property
    def parted(self) -> float:
        """Return how many lookups are answered by other brokers."""
        return sum(cause.lookups for cause in self.causes)
