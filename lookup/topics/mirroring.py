"""Give a namespace of a catalog the topics that a cluster has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lookup.errors import NotFoundError
from lookup.model.catalog import TopicEntry
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import partitions_among, without_partition
from lookup.topics.listing.topic_list import differences, is_among

__all__ = ["is_mirrored", "make_anew", "mirror"]


def is_mirrored(catalog: Catalog, namespace: str, topics: tuple[str, ...] | None) -> bool:
    """Return whether a namespace has the topics that the cluster has, so that no write need be waited for.

    Args:
        topics: of the cluster, sorted, each once; None: it has no such namespace.
    """
    catalog.refresh()
    return _list_known(catalog, namespace) == topics


def mirror(catalog: Catalog, namespace: str, topics: tuple[str, ...] | None) -> None:
    """Write the difference in one transaction; topics that stay keep their labels and properties."""
    # Compared in the transaction, before which something else may have been written; questions do not wait for it.
    with catalog.together():
        before = _list_known(catalog, namespace)
        if topics is None:
            if before is not None:
                catalog.delete_namespace(namespace)
            return
        removed, added = differences(before or (), topics)
        catalog.create_namespace(namespace)
        # Removed first: a topic that was deleted and made again with partitions is another one.
        for topic in removed:
            catalog.mirror(topic, None)
        for entry in _entries(catalog, topics, added):
            catalog.mirror(entry.name, entry)


def make_anew(catalog: Catalog, topics: Sequence[str]) -> None:
    """Let topics go and come in one transaction: what hung on the old ones is gone."""
    with catalog.together():
        for topic in topics:
            catalog.mirror(topic, None)
            catalog.mirror(topic, TopicEntry(topic, {}, {}))


def _list_known(catalog: Catalog, namespace: str) -> tuple[str, ...] | None:
    try:
        return tuple(catalog.topics(namespace, "all"))
    except NotFoundError:
        return None


def _entries(catalog: Catalog, topics: Sequence[str], added: Sequence[str]) -> Iterator[TopicEntry]:
    """Yield the entries of new topics: a new partition has the labels and properties of those that stay."""
    staying: dict[str, TopicEntry | None] = {}
    for topic in added:
        whole = without_partition(topic)
        if whole not in staying:
            entries = map(catalog.entry, partitions_among(topics, whole))
            staying[whole] = next((entry for entry in entries if entry is not None), None)
        like = staying[whole]
        # Beside a topic of that name it is no partition.
        if like is None or (whole != topic and is_among(whole, topics)):
            yield TopicEntry(topic, {}, {})
        else:
            yield replace(like, name=topic)
