"""The storage in memory belongs to one catalog."""

from __future__ import annotations

import pytest

from lookup.errors import ArgumentError, StateError
from lookup.topics.catalog import Catalog, MemoryStorage
from tests.topics.catalogs import filled


def test_a_second_catalog_cannot_take_a_storage_in_memory() -> None:
    """It has the events, not the topics: an empty catalog at that revision would be a lie."""
    storage = MemoryStorage()
    filled(storage)

    with pytest.raises(StateError, match="this MemoryStorage belongs to another catalog"):
        Catalog(storage)


def test_at_least_the_last_event_is_kept() -> None:
    """As in a file."""
    with pytest.raises(ArgumentError, match="n_events is 0, at least the last event must be kept"):
        MemoryStorage(0)
