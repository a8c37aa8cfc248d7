"""Namespaces as written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lookup.settings import NamespaceEntry
from lookup.settings.namespace import parse_boundaries


@given(st.sets(st.integers(1, 0xFFFFFFFE), max_size=8))
def test_ascending_boundaries_are_read(inner: set[int]) -> None:
    """Any ascending boundaries over the whole circle are taken, in either case."""
    numbers = (0, *sorted(inner), 0xFFFFFFFF)

    for pattern in ("0x{:08x}", "0x{:08X}"):
        entry = NamespaceEntry(name="a/b", boundaries=tuple(pattern.format(number) for number in numbers))
        assert parse_boundaries(entry.boundaries or ()) == numbers


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"name": "a"}, "name: namespace 'a' is not of the form tenant/namespace"),
        ({"bundles": 4, "boundaries": ["0x0", "0xffffffff"]}, "bundles: give bundles or boundaries, not both"),
        ({"boundaries": ["0x0", "x"]}, "boundaries: should ascend from 0x00000000 to 0xffffffff, hexadecimal, not"),
        ({"boundaries": ["0x0", "0x80000000"]}, "boundaries: should ascend from 0x00000000 to 0xffffffff, not"),
        ({"boundaries": ["0x0", "0x2", "0x2", "0xffffffff"]}, "boundaries: should ascend"),
        ({"boundaries": ["0x1", "0xffffffff"]}, "boundaries: should ascend"),
        ({"boundaries": []}, "boundaries: should ascend"),
        ({"isolation": [{"primary": ["a("]}]}, "primary[0]: 'a(' is no regular expression"),
        ({"isolation": [{"primary": ["a"], "secondary": ["*"]}]}, "secondary[0]: '*' is no regular expression"),
    ],
)
def test_a_namespace_that_makes_no_sense_is_refused(keys: dict[str, Any], sentence: str) -> None:
    """Names, boundaries and patterns are checked when they are read, not when they are first used."""
    with pytest.raises(ValidationError) as caught:
        NamespaceEntry.model_validate({"name": "a/b", **keys})

    assert caught.value.errors()[0]["msg"].removeprefix("Value error, ").startswith(sentence)


@pytest.mark.parametrize("keys", [{"bundles": 0}, {"bundles": 1 << 17}, {"isolation": [{"primary": []}]}])
def test_a_namespace_out_of_range_is_refused(keys: dict[str, Any]) -> None:
    """There is at least one bundle and no absurd number of them, and isolation names some host."""
    with pytest.raises(ValidationError):
        NamespaceEntry.model_validate({"name": "a/b", **keys})
