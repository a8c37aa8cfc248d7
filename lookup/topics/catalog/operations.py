"""Operations on a catalog as values: read, add and remove the labels or properties of a topic, delete a namespace.

`apply` does one. Commands and servers take them from users, `lookup.topics.listing.rest` from requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from lookup.topics.catalog.catalog import Catalog
from lookup.topics.catalog.pairs import PairKind

__all__ = [
    "LABELS", "PROPERTIES", "CatalogOperation", "DeleteNamespace", "GetPairs", "RemovePairs", "SetPairs", "apply",
]  # fmt: skip


LABELS: Final = "labels"
PROPERTIES: Final = "properties"


@dataclass(frozen=True, slots=True)
class GetPairs:
    """Return a topic's labels or properties."""

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
    """Remove a topic's pairs by key, or all of them: one of the two."""

    kind: PairKind
    topic: str
    keys: tuple[str, ...] = ()
    everything: bool = False


@dataclass(frozen=True, slots=True)
class DeleteNamespace:
    """Delete a namespace."""

    namespace: str
    #: whether users' topics are deleted with it
    force: bool = False


CatalogOperation: TypeAlias = GetPairs | SetPairs | RemovePairs | DeleteNamespace


def apply(operation: CatalogOperation, catalog: Catalog) -> Mapping[str, str] | None:
    """Apply an operation to a catalog; return the labels or properties that it asks for, None if it asks for none."""
    match operation:
        case GetPairs(kind, topic):
            # Those of all partitions are the same.
            entry = catalog.described(topic)
            return entry.labels if kind == LABELS else entry.properties
        case SetPairs(kind, topic, pairs):
            (catalog.set_labels if kind == LABELS else catalog.set_properties)(topic, pairs)
        case RemovePairs(kind, topic, keys, everything):
            remove = catalog.remove_labels if kind == LABELS else catalog.remove_properties
            remove(topic, keys, everything=everything)
        case DeleteNamespace(namespace, force):
            catalog.delete_namespace(namespace, force=force)
    return None
