"""Operations on a catalog as values, which read, add and remove the labels or properties of a topic.

`apply` does one. Commands read them from users, and the decision server from requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from lookup.topics.catalog.catalog import Catalog
from lookup.topics.catalog.pairs import PairKind

__all__ = ["LABELS", "PROPERTIES", "CatalogOperation", "GetPairs", "RemovePairs", "SetPairs", "apply"]

LABELS: Final = "labels"
PROPERTIES: Final = "properties"


@dataclass(frozen=True, slots=True)
class GetPairs:
    """The operation that reads a topic's labels or properties."""

    kind: PairKind
    topic: str


@dataclass(frozen=True, slots=True)
class SetPairs:
    """Add pairs to a topic's, over those with the same keys."""

    kind: PairKind
    topic: str
    pairs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemovePairs:
    """The operation that removes either some of a topic's pairs by key, or all of them."""

    kind: PairKind
    topic: str
    keys: tuple[str, ...] = ()
    everything: bool = False


CatalogOperation: TypeAlias = GetPairs | SetPairs | RemovePairs


def apply(operation: CatalogOperation, catalog: Catalog) -> Mapping[str, str] | None:
    """Apply an operation to a catalog, and return the labels or properties that it reads, None if it reads none."""
    match operation:
        case GetPairs(kind, topic):
            # Those of all partitions are the same.
            entry = catalog.describe(topic)
            return entry.labels if kind == LABELS else entry.properties
        case SetPairs(kind, topic, pairs):
            catalog.set_pairs(kind, topic, pairs)
        case RemovePairs(kind, topic, keys, everything):
            catalog.remove_pairs(kind, topic, keys, everything=everything)
    return None
