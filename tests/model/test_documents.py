"""TOML and JSON texts, and the depth to which they are read."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model.documents import MAX_DEPTH, NestingError, json_value, toml_table

_SENTENCE = "is nested too deep: at most 64 tables or lists may stand inside one another"

_TOML: tuple[Callable[[int], str], ...] = (
    lambda depth: f"x = {'[' * depth}{']' * depth}",
    lambda depth: f"x = {'{a = ' * depth}1{'}' * depth}",
    lambda depth: f"x{'.a' * depth} = 1",
    lambda depth: f"[x{'.a' * (depth - 1)}]\nb = 1",
)
_JSON: tuple[Callable[[int], str], ...] = (
    lambda depth: f"{'[' * depth}{']' * depth}",
    lambda depth: '{"a": ' * depth + "1" + "}" * depth,
)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 300, 2_000, 20_000])
@pytest.mark.parametrize("text", _TOML)
def test_toml_that_is_nested_too_deep_is_refused(text: Callable[[int], str], depth: int) -> None:
    """By brackets, by dots or by the head of a table, a little too deep or beyond Python's stack."""
    with pytest.raises(NestingError) as caught:
        toml_table(text(depth))

    assert str(caught.value) == _SENTENCE


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 300, 100_000])
@pytest.mark.parametrize("text", _JSON)
def test_json_that_is_nested_too_deep_is_refused(text: Callable[[int], str], depth: int) -> None:
    """Lists and objects, a little too deep or beyond Python's stack."""
    with pytest.raises(NestingError, match=_SENTENCE):
        json_value(text(depth))


@pytest.mark.parametrize("text", _TOML)
def test_toml_may_be_as_deep_as_the_limit_says(text: Callable[[int], str]) -> None:
    """The limit itself is read."""
    assert toml_table(text(MAX_DEPTH)) == tomllib.loads(text(MAX_DEPTH))


@pytest.mark.parametrize("text", _JSON)
def test_json_may_be_as_deep_as_the_limit_says(text: Callable[[int], str]) -> None:
    """The limit itself is read, and so are many brackets beside one another."""
    assert json_value(text(MAX_DEPTH))
    assert json_value(f"[{'[], ' * 200}1]")[-1] == 1


@given(text=st.text(alphabet='[]{}="a.1, \n', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """What is no TOML or JSON raises a ValueError and nothing else."""
    readers: tuple[Callable[[str], Any], ...] = (toml_table, json_value)
    for read in readers:
        with suppress(ValueError):
            read(text)
