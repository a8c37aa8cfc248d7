"""Copy the topics of a cluster into a namespace of a catalog."""

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
    """Check whether a namespace already has the topics of the cluster, so that no write is needed.

    Args:
        topics: of the cluster, sorted, each once, None if it does not have such a namespace.
    """
    catalog.refresh()
    return _list_known(catalog, namespace) == topics


def mirror(catalog: Catalog, namespace: str, topics: tuple[str, ...] | None) -> None:
    """Write the difference in one transaction. Topics that stay keep their labels and properties."""
    # They are compared in the transaction, before which others may have been written. Queries do not wait for it.
    with catalog.together():
        before = _list_known(catalog, namespace)
        if topics is None:
            if before is not None:
                catalog.delete_namespace(namespace)
            return
        removed, added = differences(before or (), topics)
        catalog.create_namespace(namespace)
        # Topics are removed first, since a topic that was deleted and created again with partitions is another topic.
        for topic in removed:
            catalog.mirror(topic, None)
        for entry in _build_entries(catalog, topics, added):
            catalog.mirror(entry.name, entry)


def make_anew(catalog: Catalog, topics: Sequence[str]) -> None:
    """Delete topics and create them again in one transaction, without their old labels and properties."""
    with catalog.together():
        for topic in topics:
            catalog.mirror(topic, None)
            catalog.mirror(topic, TopicEntry(topic, {}, {}))


def _list_known(catalog: Catalog, namespace: str) -> tuple[str, ...] | None:
    try:
        return tuple(catalog.topics(namespace, "all"))
    except NotFoundError:
        return None


def _build_entries(catalog: Catalog, topics: Sequence[str], added: Sequence[str]) -> Iterator[TopicEntry]:
    """Yield the entries of new topics. A new partition has the labels and properties of the partitions that stay."""
    staying: dict[str, TopicEntry | None] = {}
    for topic in added:
        whole = without_partition(topic)
        if whole not in staying:
            entries = map(catalog.entry, partitions_among(topics, whole))
            staying[whole] = next((entry for entry in entries if entry is not None), None)
        like = staying[whole]
        # It is no partition beside a topic of that name.
        if like is None or (whole != topic and is_among(whole, topics)):
            yield TopicEntry(topic, {}, {})
        else:
            yield replace(like, name=topic)
