"""A namespace of a catalog becomes that of a cluster, with the labels that its topics had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import NotFoundError
from lookup.model.catalog import TopicEntry
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import without_partition
from lookup.topics.mirroring import is_mirrored, mirror
from tests.topics.catalogs import entries

NS = "public/default"
HERE = f"persistent://{NS}/"
#: Topics, partitions of them, and what only looks like one.
NAMES = [f"{HERE}{name}{end}" for name in ("a", "b") for end in ("", "-partition-01")] + [
    f"{HERE}{name}-partition-{number}" for name in ("a", "b", "a-partition-1") for number in (0, 1, 10)
]
topics = st.none() | st.sets(st.sampled_from(NAMES)).map(sorted).map(tuple)


def filled(names: Sequence[str] | None) -> Catalog:
    """Return a catalog with topics whose labels name them, as far as they do not share them with others."""
    catalog = Catalog()
    with catalog.together():
        if names is not None:
            catalog.create_namespace(NS)
            for name in names:
                catalog.mirror(name, TopicEntry(name, {}, {}))
            for name in names:
                catalog.set_pairs("labels", name, {"of": name.removeprefix(HERE)})
    return catalog


def labels_of(catalog: Catalog) -> Mapping[str, object] | None:
    """Return the labels of all topics, None if there is no namespace."""
    try:
        return {entry.name: entry.labels for entry in entries(catalog, NS)}
    except NotFoundError:
        return None


def mirrored_one_by_one(catalog: Catalog, names: Sequence[str] | None) -> None:
    """Delete and create topics one after the other, and ask for siblings of each meanwhile."""
    before = set(labels_of(catalog) or ())
    if names is None:
        if labels_of(catalog) is not None:
            catalog.delete_namespace(NS)
        return
    catalog.create_namespace(NS)
    for topic in before.difference(names):
        catalog.mirror(topic, None)
    for topic in sorted(set(names) - before):
        whole = without_partition(topic)
        siblings = (
            [] if whole in catalog.topics(NS) else [n for n in catalog.topics(NS) if without_partition(n) == whole]
        )
        like = catalog.entry(siblings[0]) if siblings else None
        catalog.mirror(topic, replace(like or TopicEntry(topic, {}, {}), name=topic))


@given(topics, topics)
def test_all_at_once_is_as_one_by_one(before: tuple[str, ...] | None, after: tuple[str, ...] | None) -> None:
    """Topics, their labels and the namespace, whatever was there and whatever comes; then nothing is left to do."""
    catalog, expected = filled(before), filled(before)
    mirrored_one_by_one(expected, after)
    assert is_mirrored(catalog, NS, after) == (before == after)
    mirror(catalog, NS, after)

    assert labels_of(catalog) == labels_of(expected)
    assert is_mirrored(catalog, NS, after)
