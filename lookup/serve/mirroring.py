"""Give a namespace of a catalog the topics that a cluster has: compare the two, then write the difference.

Both take long for large namespaces. All questions wait for a transaction, and for none of the comparing, so what is to
be written is made ready before the transaction begins.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lookup.errors import NotFoundError
from lookup.model.catalog import TopicEntry
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import without_partition
from lookup.topics.listing.steps import differences, finished, is_among

__all__ = ["Changes", "changes_to", "mirror"]


@dataclass(frozen=True, slots=True)
class Changes:
    """What makes a namespace of a catalog that of a cluster."""

    namespace: str
    #: topics of the cluster, sorted, each once; None: it has no such namespace
    topics: Sequence[str] | None
    #: of the catalog that they were compared with
    revision: int
    #: names of the topics that the cluster does not have
    removed: Sequence[str]
    #: topics that the catalog does not have, in the order of names
    added: Sequence[TopicEntry]


def changes_to(catalog: Catalog, namespace: str, topics: Sequence[str] | None) -> Changes | None:
    """Compare a namespace with the cluster's, in steps; return what is to be changed, None if it is nothing.

    Args:
        topics: as of `Changes`.
    """
    catalog.refresh()
    revision = catalog.revision
    try:
        before: Sequence[str] | None = catalog.topics(namespace, "all")
    except NotFoundError:
        before = None
    if topics is None:
        return None if before is None else Changes(namespace, None, revision, before, ())
    removed, added = finished(differences(before or (), topics))
    if before is not None and not removed and not added:
        return None
    return Changes(namespace, topics, revision, removed, tuple(_entries(catalog, topics, added)))


def mirror(catalog: Catalog, changes: Changes) -> None:
    """Write changes in one transaction; the topics that stay keep their labels and properties."""
    namespace = changes.namespace
    with catalog.together():
        if catalog.revision != changes.revision:
            # Something else was written since, by another process perhaps. Nothing can be from now on.
            anew = changes_to(catalog, namespace, changes.topics)
            if anew is None:
                return
            changes = anew
        if changes.topics is None:
            catalog.delete_namespace(namespace, force=True)
            return
        catalog.create_namespace(namespace)
        # Removed first: a topic that was deleted and made again with partitions is another one.
        for topic in changes.removed:
            catalog.mirror(topic, None)
        for entry in changes.added:
            catalog.mirror(entry.name, entry)


def _entries(catalog: Catalog, topics: Sequence[str], added: Sequence[str]) -> Iterator[TopicEntry]:
    """Yield the entries of new topics: a new partition has the labels and properties of those that stay."""
    staying: dict[str, TopicEntry | None] = {}
    for topic in added:
        whole = without_partition(topic)
        if whole not in staying:
            staying[whole] = _partition_that_stays(catalog, topics, whole)
        like = staying[whole]
        # Beside a topic of that name it is no partition.
        if like is None or (whole != topic and is_among(whole, topics)):
            yield TopicEntry(topic, {}, {}, is_loaded=False)
        else:
            yield replace(like, name=topic, is_loaded=False)


def _partition_that_stays(catalog: Catalog, topics: Sequence[str], whole: str) -> TopicEntry | None:
    """Return a partition of a topic that is in the catalog and among some sorted names."""
    beginning = f"{whole}-partition-"
    for number in range(bisect_left(topics, beginning), len(topics)):
        name = topics[number]
        if not name.startswith(beginning):
            return None
        if without_partition(name) == whole and (entry := catalog.entry(name)) is not None:
            return entry
    return None
