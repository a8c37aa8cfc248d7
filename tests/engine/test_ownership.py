"""Owners by bundle: who owns what, and why owners change."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.ownership import OwnerBook, Ownership, OwnershipChange

_BROKERS = ("b0", "b1", "b2", "b3")
_BUNDLES = st.builds("{}/{}/{}".format, st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from("0123"))
_STEPS = st.lists(st.tuples(_BUNDLES, st.none() | st.integers(0, 3)), max_size=40)


@given(_STEPS)
def test_counts_equal_a_recount(steps: list[tuple[str, int | None]]) -> None:
    """After any gives and takes, counts by broker and by namespace are those of the owners."""
    book, plain = Ownership(_BROKERS), dict[str, int]()
    for bundle, broker in steps:
        if broker is None:
            assert book.take(bundle) == plain.pop(bundle, None)
        else:
            book.give(bundle, broker)
            plain[bundle] = broker

    assert dict(book) == plain
    assert len(book) == len(plain)
    assert book.bundles().tolist() == [Counter(plain.values())[broker] for broker in range(4)]
    for namespace in ("a/x", "a/y", "b/x", "b/y"):
        owners = Counter(owner for bundle, owner in plain.items() if bundle.startswith(f"{namespace}/"))
        assert book.bundles_in(namespace).tolist() == [owners[broker] for broker in range(4)]
    assert [book.bundles_of(broker) for broker in range(4)] == [
        sorted(bundle for bundle, owner in plain.items() if owner == broker) for broker in range(4)
    ]


def test_counts_follow_at_once_and_cannot_be_written() -> None:
    """An array once handed out shows the next change, and is read-only."""
    book = Ownership(_BROKERS[:2])
    counts, inside = book.bundles(), book.bundles_in("a/x")
    book.give("a/x/0", 1)

    assert counts.tolist() == inside.tolist() == [0, 1]
    assert book.owner("a/x/0") == 1
    assert book.owner("a/x/1") is None
    with pytest.raises(ValueError, match="read-only"):
        np.add(counts, 1, out=counts)


def test_nothing_is_taken_from_nobody() -> None:
    """Neither an owner nor a change, and no past."""
    book = OwnerBook(Ownership(_BROKERS[:2]))

    assert not book.take("t/n/x", "admin", 1)
    book.give("t/n/x", 1, 2, decided=True)
    assert book.take_changes() == [OwnershipChange(2, "t/n/x", None, "b1", "first", decided=True)]


def test_counts_of_empty_namespaces_are_dropped_when_they_are_many() -> None:
    """Each time they are; an array of a namespace that is counted goes on following every change, others do not."""
    book = Ownership(_BROKERS)
    book.give("t/kept/x", 1)
    kept = book.bundles_in("t/kept")
    for _ in range(2):
        empty = [book.bundles_in(f"t/n{number}") for number in range(3000)]
        book.sweep()
        book.give("t/n5/x", 1)
        book.give("t/kept/y", 1)

        assert (kept.tolist(), empty[5].tolist()) == ([0, 2, 0, 0], [0, 0, 0, 0])
        assert book.bundles_in("t/n5").tolist() == [0, 1, 0, 0]
        book.take("t/n5/x")
