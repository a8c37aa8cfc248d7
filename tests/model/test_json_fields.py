"""Fields of JSON records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lookup.errors import InputError
from lookup.model.json_fields import flag, mapping, number, parsed_object, text, texts, whole_number


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (text, ""),
        (flag, False),
        (number, -1.5),
        (number, 7),
        (whole_number, 2**63 - 1),
        (whole_number, 7.0),
        (mapping, {}),
        (texts, {"a": "b"}),
    ],
)
def test_a_right_value_is_handed_back(read: Callable[[object, str], Any], value: object) -> None:
    """As it came, equal to what is in the record."""
    assert read(value, "key") == value


@pytest.mark.parametrize(
    ("read", "value", "sentence"),
    [
        (text, None, "key is None, not a text"),
        (flag, 1, "key is 1, not true or false"),
        (number, True, "key is True, not a number"),
        (number, float("nan"), "key is nan, not a finite number"),
        (whole_number, 2**63, "key is 9223372036854775808, not a whole number of at most 64 bits"),
        (whole_number, float("inf"), "key is inf, not a whole number of at most 64 bits"),
        (mapping, [], "key is [], not an object"),
        (texts, {"a": 5}, "key.a is 5, not a text"),
    ],
)
def test_a_wrong_value_is_named(read: Callable[[object, str], Any], value: object, sentence: str) -> None:
    """The sentence says the key, the value and what would be right."""
    with pytest.raises(InputError) as caught:
        read(value, "key")

    assert str(caught.value) == sentence


@pytest.mark.parametrize("value", [10**400, "x" * 1000, [[["x"] * 100] * 100] * 100])
def test_a_long_value_is_cut(value: object) -> None:
    """A sentence stays one that can be read."""
    with pytest.raises(InputError) as caught:
        whole_number(value, "key")

    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{", "it is no JSON: "),
        ("null", "it is no JSON object but NoneType"),
        ("[" * 100_000, "it is nested too deep"),
    ],
)
def test_what_is_no_object_is_refused(source: str, sentence: str) -> None:
    """By one sentence, also where Python's own reader gives up."""
    with pytest.raises(InputError, match=sentence):
        parsed_object(source, "it")
