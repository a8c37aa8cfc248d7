"""Texts are taken out of lines of JSON."""

from __future__ import annotations

import pytest

from lookup.logs.readers.values import decode_percent, flatten, object_of, value_at

_RECORD = {"a": {"b": {"c": "x"}, "d.e": 7}, "a.f": 1.5, "a.g": {"c": "z"}, "n": None, "l": ["y", {"z": 1}], "t": True}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a.b.c", "x"),
        ("a.d.e", "7"),
        ("a.f", "1.5"),
        ("a.g.c", "z"),
        ("n", ""),
        ("l", '["y",{"z":1}]'),
        ("t", "true"),
        ("a.x", ""),
        ("l.z", ""),
        ("", ""),
    ],
)
def test_a_key_is_found_by_its_dots(name: str, value: str) -> None:
    """Nested or with dots of its own; what is absent or null is an empty text."""
    assert value_at(_RECORD, name) == value


def test_all_keys_of_an_object_are_named_by_dots() -> None:
    """Each name that is listed finds its value."""
    found = flatten(_RECORD)

    assert list(found) == ["a.b.c", "a.d.e", "a.f", "a.g.c", "n", "l", "t"]
    assert {name: value_at(_RECORD, name) for name in found} == found


@pytest.mark.parametrize(
    ("line", "clause"),
    [("{", "the line is not JSON: "), ("7", "not a JSON object but int"), ("[" * 100_000, "is nested too deep")],
)
def test_what_is_no_object_is_a_clause(line: str, clause: str) -> None:
    """It says what stands there."""
    with pytest.raises(ValueError, match=clause):
        object_of(line)


def test_names_in_percent_encoding_that_differ_stay_apart() -> None:
    """Letters of Latin-1 are no UTF-8, and were all one character."""
    assert [decode_percent(text) for text in ("K%F6ln", "K%E4ln", "K%C3%B6ln", "a%2Fb")] == [
        "Köln",
        "Käln",
        "Köln",
        "a/b",
    ]
