"""TOML and JSON texts, and the depth to which they are read."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import InputError
from lookup.model.documents import (
    MAX_DEPTH,
    NestingError,
    flag,
    is_device,
    json_value,
    mapping,
    number,
    parsed_object,
    special_kind,
    text,
    texts,
    toml_table,
    whole_number,
)

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
        (flag, 1, "key is 1, "),
        (number, True, "key is True, not a number"),
        (number, float("nan"), "key is nan, "),
        (whole_number, 2**63, "key is 9223372036854775808, "),
        (whole_number, float("inf"), "key is inf, "),
        (mapping, [], "key is [], not an object"),
        (texts, {"a": 5}, "key.a is 5, not a text"),
    ],
)
def test_a_wrong_value_is_named(read: Callable[[object, str], Any], value: object, sentence: str) -> None:
    """The sentence says the key, the value and what would be right."""
    with pytest.raises(InputError) as caught:
        read(value, "key")

    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [("{", "it is not JSON: "), ("null", "not a JSON object but NoneType"), ("[" * 100_000, "it is nested too deep")],
)
def test_what_is_no_object_is_refused(source: str, sentence: str) -> None:
    """By one sentence, also where Python's own reader gives up."""
    with pytest.raises(InputError, match=sentence):
        parsed_object(source, "it")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/dev/zero", "a device"),
        ("/dev/../dev/null", "a device"),
        ("/dev/stdin", "a stream of this process"),
        ("/dev/fd/0", "a stream of this process"),
        ("/proc/self/fd/7", "a stream of this process"),
        ("/dev", None),
        ("/no/such/path", None),
        ("a\0b", None),
    ],
)
def test_devices_and_streams_are_special(path: str, kind: str | None) -> None:
    """Files, folders and what is not there are not."""
    assert special_kind(path) == kind
    assert is_device(Path(path)) == (kind == "a device") or kind == "a stream of this process"


def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    """A link to a pipe is a pipe, one to a file a file."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    for name in ("pipe", "file"):
        (tmp_path / f"to-{name}").symlink_to(name)

    assert (special_kind(f"{tmp_path}/to-pipe"), special_kind(f"{tmp_path}/to-file")) == ("a pipe", None)


@pytest.mark.parametrize("digits", [4_301, 5_000])
def test_a_number_that_python_cannot_read_is_a_sentence(digits: int) -> None:
    """Its digits are counted, and no function of Python's is recommended."""
    sentence = "more than 4,300 digits"

    with pytest.raises(tomllib.TOMLDecodeError, match=sentence):
        toml_table(f"x = {'7' * digits}")
    with pytest.raises(ValueError, match=sentence):
        json_value(f"[{'7' * digits}]")
