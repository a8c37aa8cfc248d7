"""Operations on a catalog as values: read, add and remove the labels or properties of a topic, delete a namespace.

`apply` does one. Commands and servers take them from users, `lookup.topics.listing.rest` from requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol, TypeAlias

from lookup.model.catalog import TopicEntry
from lookup.topics.catalog.catalog import Catalog

__all__ = [
    "LABELS", "PROPERTIES", "CatalogOperation", "DeleteNamespace", "GetPairs", "PairKind", "RemovePairs", "SetPairs",
    "apply",
]  # fmt: skip


class _Removal(Protocol):
    def __call__(self, catalog: Catalog, topic: str, keys: tuple[str, ...], /, *, everything: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class PairKind:
    """Labels or properties, with the methods of a catalog that write them."""

    #: of many, as it stands in sentences
    name: str
    read: Callable[[TopicEntry], Mapping[str, str]]
    write: Callable[[Catalog, str, Mapping[str, str]], None]
    remove: _Removal


LABELS = PairKind("labels", attrgetter("labels"), Catalog.set_labels, Catalog.remove_labels)
PROPERTIES = PairKind("properties", attrgetter("properties"), Catalog.set_properties, Catalog.remove_properties)


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
    """Apply an operation to a catalog; return the labels or properties that it asks for, None if it asks for none.

    Raises:
        PulsarLookupError: as the catalog refuses.
    """
    match operation:
        case GetPairs(kind, topic):
            # Those of all partitions are the same.
            return kind.read(catalog.described(topic))
        case SetPairs(kind, topic, pairs):
            kind.write(catalog, topic, pairs)
        case RemovePairs(kind, topic, keys, everything):
            kind.remove(catalog, topic, keys, everything=everything)
        case DeleteNamespace(namespace, force):
            catalog.delete_namespace(namespace, force=force)
    return None
