"""Weights made into loads, usage and top bundles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from lookup.engine.ledger import LazyTopBundles
from lookup.model import BundleLoad
from lookup.model.load import Load, ascending

LOADS = {0: [("a/n/1", 3.0), ("a/n/2", 1.0), ("a/n/0", 1.0), ("a/n/9", 0.0), ("pulsar/system/1", 9.0)], 1: []}


def _loads(broker: int) -> Iterator[tuple[float, str, float]]:
    return ((load, name, 0.0) for name, load in LOADS[broker])


def test_before_the_first_cell_nobody_has_reported() -> None:
    """Usage and load are unknown, topics are what is known of them, nobody has top bundles."""
    figures = Load.unknown(2, np.array([3, 4]))

    assert np.isnan(figures.usage).all()
    assert np.isnan(figures.throughput).all()
    assert figures.topics.tolist() == [3, 4]
    assert list(figures.top_bundles) == [(), ()]


def test_top_bundles_ascend() -> None:
    """Ties go by name; idle bundles and those of system namespaces are among them."""
    top = LazyTopBundles(2, _loads)[0]

    assert tuple(top) == ascending(BundleLoad(*entry) for entry in LOADS[0])
    assert [*reversed(top)] == [*top][::-1]
    assert top[-2:] == tuple(top)[3:]


def test_top_bundles_are_a_sequence_that_ends() -> None:
    """A loop over all brokers stops after the last, and places count from the end too."""
    top = LazyTopBundles(2, _loads)

    assert [len(bundles) for bundles in top] == [5, 0]
    assert list(top[-1]) == []
    with pytest.raises(IndexError):
        top[2]


def test_top_bundles_are_worked_out_once_for_who_asks() -> None:
    """A broker nobody asks about costs nothing."""
    asked: list[int] = []

    def loads(broker: int) -> Iterator[tuple[float, str, float]]:
        asked.append(broker)
        return _loads(broker)

    top = LazyTopBundles(2, loads)

    assert top[0] is top[0]
    assert asked == [0]
