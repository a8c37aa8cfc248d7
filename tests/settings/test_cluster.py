"""Namespaces, clients and topologies as written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lookup.settings import ClientEntry, NamespaceEntry, TopologyFile
from lookup.settings.resolve import policies_of


@given(st.sets(st.integers(1, 0xFFFFFFFE), max_size=8))
def test_ascending_boundaries_are_read(inner: set[int]) -> None:
    """Any ascending boundaries over the whole circle are taken, in either case."""
    numbers = (0, *sorted(inner), 0xFFFFFFFF)

    for pattern in ("0x{:08x}", "0x{:08X}"):
        entry = NamespaceEntry(name="a/b", boundaries=tuple(pattern.format(number) for number in numbers))
        assert policies_of([entry]).boundaries[entry.name] == numbers


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"name": "a"}, "name: namespace 'a'"),
        ({"bundles": 4, "boundaries": ["0x0", "0xffffffff"]}, "bundles: "),
        ({"boundaries": ["0x0", "x"]}, "boundaries: "),
        ({"boundaries": ["0x1", "0xffffffff"]}, "boundaries: "),
        ({"boundaries": []}, "boundaries: "),
        ({"isolation": [{"primary": ["a("]}]}, "primary[0]: 'a('"),
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


@pytest.mark.parametrize(
    ("match", "sentence"),
    [
        ({}, "should say either"),
        ({"cidr": "10.0.0.0/8", "client": "*"}, "should say either"),
        ({"cidr": "10.1.2.3/16"}, "cidr: "),
        ({"cidr": "rack-a"}, "cidr: "),
    ],
)
def test_a_match_is_a_network_or_a_glob(match: dict[str, Any], sentence: str) -> None:
    """Exactly one of the two is given, and a network is written as one."""
    with pytest.raises(ValidationError) as caught:
        ClientEntry.model_validate({"match": match, "properties": {"rack": "a"}})

    assert caught.value.errors()[0]["msg"].removeprefix("Value error, ").startswith(sentence)


def test_an_entry_labels_something() -> None:
    """An entry without properties would hide the ones behind it and do nothing."""
    with pytest.raises(ValidationError):
        ClientEntry.model_validate({"match": {"client": "*"}, "properties": {}})


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"levels": ["rack", "zone"]}, "levels: "),
        ({"levels": ["rack"], "distance_ms": {"zone": 1.0}}, "distance_ms.zone: "),
        ({"levels": ["rack"], "price_per_gb": {"zone": 1.0}}, "price_per_gb.zone: "),
        ({"edges": [{"a": "x", "b": "x", "ms": 1.0}]}, "edges[0]: "),
        ({"distance_ms": {"rack": -1.0}}, "Input should be greater"),
        ({"edges": [{"a": "x", "b": "y"}]}, "Field required"),
    ],
)
def test_a_topology_that_makes_no_sense_is_refused(keys: dict[str, Any], sentence: str) -> None:
    """Levels are listed outermost first and once, figures belong to them, links join two places."""
    with pytest.raises(ValidationError) as caught:
        TopologyFile.model_validate(keys)

    assert caught.value.errors()[0]["msg"].removeprefix("Value error, ").startswith(sentence)
