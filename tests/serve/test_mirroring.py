"""A namespace of a catalog becomes that of a cluster, with the labels that its topics had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import NotFoundError
from lookup.model.catalog import TopicEntry
from lookup.serve.mirroring import changes_to, mirror
from lookup.topics.catalog import Catalog

NS = "public/default"
HERE = f"persistent://{NS}/"
#: Topics, partitions of them, and what only looks like one.
NAMES = [f"{HERE}{name}{end}" for name in ("a", "b") for end in ("", "-partition-01")] + [
    f"{HERE}{name}-partition-{number}" for name in ("a", "b", "a-partition-1") for number in (0, 1, 10)
]
topics = st.none() | st.sets(st.sampled_from(NAMES)).map(sorted)


def filled(names: Sequence[str] | None) -> Catalog:
    """Return a catalog with topics whose labels name them, as far as they do not share them with others."""
    catalog = Catalog()
    if names is not None:
        catalog.create_namespace(NS)
        for name in names:
            catalog.mirror(name, TopicEntry(name, {}, {}, is_loaded=False))
        for name in names:
            catalog.set_labels(name, {"of": name.removeprefix(HERE)})
    return catalog


def labels_of(catalog: Catalog) -> Mapping[str, object] | None:
    """Return the labels of all topics, None if there is no namespace."""
    try:
        return {entry.name: entry.labels for entry in catalog.entries(NS)}
    except NotFoundError:
        return None


def mirrored_one_by_one(catalog: Catalog, names: Sequence[str] | None) -> None:
    """Delete and create topics one after the other, and ask for siblings of each meanwhile."""
    before = set(labels_of(catalog) or ())
    if names is None:
        if labels_of(catalog) is not None:
            catalog.delete_namespace(NS, force=True)
        return
    catalog.create_namespace(NS)
    for topic in before.difference(names):
        catalog.mirror(topic, None)
    for topic in sorted(set(names) - before):
        siblings = catalog.siblings(topic)
        like = catalog.entry(siblings[0]) if siblings else None
        catalog.mirror(topic, replace(like or TopicEntry(topic, {}, {}, is_loaded=False), name=topic))


@given(topics, topics)
def test_all_at_once_is_as_one_by_one(before: Sequence[str] | None, after: Sequence[str] | None) -> None:
    """Topics, their labels and the namespace, whatever was there and whatever comes; then nothing is left to do."""
    catalog, expected = filled(before), filled(before)
    mirrored_one_by_one(expected, after)
    changes = changes_to(catalog, NS, after)
    if changes is not None:
        mirror(catalog, changes)

    assert labels_of(catalog) == labels_of(expected)
    assert (changes is None) == (before == after)
    assert changes_to(catalog, NS, after) is None


def test_writes_between_comparing_and_writing_are_not_lost() -> None:
    """What was compared with an older revision is compared again: labels that were set meanwhile are inherited."""
    catalog = filled([f"{HERE}a-partition-0"])
    changes = changes_to(catalog, NS, [f"{HERE}a-partition-0", f"{HERE}a-partition-1", f"{HERE}c"])
    assert changes is not None
    catalog.set_labels(f"{HERE}a", {"of": "now"})
    catalog.create(f"{HERE}c", labels={"of": "c"})
    catalog.create(f"{HERE}d")
    mirror(catalog, changes)

    now, c = {"of": "now"}, {"of": "c"}
    assert labels_of(catalog) == {f"{HERE}a-partition-0": now, f"{HERE}a-partition-1": now, f"{HERE}c": c}


def test_namespace_that_went_meanwhile_is_no_failure() -> None:
    """Two processes may see that a cluster has it no more."""
    catalog = filled([f"{HERE}a"])
    changes = changes_to(catalog, NS, None)
    assert changes is not None
    catalog.delete_namespace(NS, force=True)
    mirror(catalog, changes)

    assert labels_of(catalog) is None


def test_nothing_is_asked_in_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """All questions wait for it, so that only what was made ready before is written."""

    def refused(*_: object) -> None:
        raise AssertionError("asked in the transaction")

    catalog = filled(NAMES[:3])
    changes = changes_to(catalog, NS, sorted(NAMES[2:]))
    assert changes is not None
    with monkeypatch.context() as patch:
        for question in ("entry", "siblings", "topics", "parts"):
            patch.setattr(Catalog, question, refused)
        mirror(catalog, changes)

    assert catalog.topics(NS) == tuple(sorted(NAMES[2:]))
