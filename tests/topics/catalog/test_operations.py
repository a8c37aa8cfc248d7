"""Operations on a catalog: each does what the method of the catalog does."""

from __future__ import annotations

from typing import Literal

import pytest

from lookup.errors import ArgumentError, NotFoundError
from lookup.topics.catalog.operations import (
    LABELS,
    PROPERTIES,
    CatalogOperation,
    GetPairs,
    RemovePairs,
    SetPairs,
    apply,
)
from tests.topics.filled import catalog_of, name_of

_TOPIC = name_of("orders")


@pytest.mark.parametrize("kind", [LABELS, PROPERTIES])
def test_pairs_are_added_read_and_removed(kind: Literal["labels", "properties"]) -> None:
    """Those of the other kind stay as they are."""
    catalog = catalog_of(_TOPIC)
    other = PROPERTIES if kind == LABELS else LABELS
    apply(SetPairs(other, _TOPIC, {"a": "0"}), catalog)
    apply(SetPairs(kind, _TOPIC, {"a": "1", "b": "2", "c": "3"}), catalog)
    assert apply(GetPairs(kind, _TOPIC), catalog) == {"a": "1", "b": "2", "c": "3"}

    apply(RemovePairs(kind, _TOPIC, ("a", "c")), catalog)
    assert apply(GetPairs(kind, _TOPIC), catalog) == {"b": "2"}
    apply(RemovePairs(kind, _TOPIC, everything=True), catalog)
    assert apply(GetPairs(kind, _TOPIC), catalog) == {}
    assert apply(GetPairs(other, _TOPIC), catalog) == {"a": "0"}


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (GetPairs(LABELS, name_of("none")), NotFoundError),
        (RemovePairs(LABELS, _TOPIC), ArgumentError),
        (RemovePairs(PROPERTIES, _TOPIC, ("a",), everything=True), ArgumentError),
    ],
)
def test_an_error_is_that_of_the_catalog(operation: CatalogOperation, error: type[Exception]) -> None:
    """A removal of nothing, or of some keys and everything, is a value like any other until it is applied."""
    with pytest.raises(error):
        apply(operation, catalog_of(_TOPIC))
