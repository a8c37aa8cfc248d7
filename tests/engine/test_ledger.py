"""Weights made into loads, usage and top bundles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from lookup.engine.ledger import LazyTopBundles
from lookup.model.load import Load

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


def test_top_bundles_are_a_sequence_that_ends() -> None:
    """A loop over all brokers stops after the last, and places count from the end too."""
    top = LazyTopBundles(2, _loads)

    assert [len(bundles) for bundles in top] == [5, 0]
    assert list(top[-1]) == []
    with pytest.raises(IndexError):
        top[2]
