"""How sentences repeat what users wrote."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lookup.model.quoting import (
    BREAKING,
    closest,
    forbidden_character,
    join_names,
    json_text,
    one_line,
    printable,
    quantity,
    shown,
    suggestion,
    toml_text,
    unseen,
)


@given(value=st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=9)))
def test_whatever_is_shown_is_printable_and_short(value: object) -> None:
    """No character of a value reaches a terminal raw, and no value makes a sentence long."""
    assert shown(value).isprintable()
    assert len(shown(value)) <= 10 * 80 + 2


@given(value=st.text())
@example("a\u202e\x7f\U000e0001")
def test_written_for_programs_a_text_is_printable_and_the_same(value: str) -> None:
    """As JSON and as TOML."""
    assert json_text(value).isprintable()
    assert toml_text(value).isprintable()
    assert json.loads(json_text(value)) == tomllib.loads(f"a = {toml_text(value)}")["a"] == value


def test_every_value_of_settings_has_a_form_in_toml() -> None:
    """Numbers, texts, times, lists and tables; a key has quotation marks where it needs them."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    table = {"a": [1, 2.0, 1e16, True, "ü"], "b c": {}, "none": None, "at": at}

    text = toml_text(table)

    assert text == '{ a = [1, 2.0, 1e+16, true, "ü"], "b c" = {}, at = 2026-01-01T00:00:00Z }'
    assert tomllib.loads(f"x = {text}")["x"] == {key: table[key] for key in ("a", "b c", "at")}


@given(names=st.lists(st.text()))
def test_a_list_of_names_is_printable_and_short(names: list[str]) -> None:
    """However many there are and whatever is in them."""
    assert join_names(names).isprintable()
    assert len(join_names(names)) <= 12 * 900


@given(text=st.text())
def test_what_is_printable_has_no_control_characters(text: str) -> None:
    """But for ends of lines and tabs; a text without control characters is as it was."""
    assert all(one.isprintable() or one in "\n\t" for one in printable(text))
    assert printable(text) == text or not text.isprintable()
    assert one_line(text).isprintable()


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("w\x1b[31mhen", r"'w\x1b[31mhen'"),
        ("x" * 80, f"'{'x' * 80}'"),
        ("x" * 81, f"'{'x' * 77}...'"),
        ("\u202egnp", r"'\u202egnp'"),
        (7, "7"),
        ([1, [2, [3, [4]]]], "[1, [2, [...]]]"),
    ],
)
def test_a_value_is_quoted_and_its_end_left_out(value: object, wanted: str) -> None:
    """Texts have quotation marks, what is nested is told to two levels."""
    assert shown(value) == wanted


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["time", "page"], "time, page"),
        (["a, b", "c\x1b"], r"'a, b', 'c\x1b'"),
        ([""], "''"),
        ([f"c{n}" for n in range(14)], "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 and 2 more"),
    ],
)
def test_names_are_quoted_where_they_must_be(names: list[str], wanted: str) -> None:
    """Plain words stand as they are; of many the number that is left out is told."""
    assert join_names(names) == wanted


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a b", None),
        ("é", None),
        (" a", "begins or ends with a blank"),
        ("a\u00a0", "begins or ends with a blank"),
        ("a\u200bb", r"'\u200b'"),
        ("a\ud800", r"'\ud800'"),
    ],
)
def test_what_nobody_sees_is_named(text: str, says: str | None) -> None:
    """A character without a shape, half of a pair, or a blank at an end; blanks inside are seen."""
    assert unseen(text) is says or str(says) in str(unseen(text))


def test_separators_are_forbidden_like_what_breaks_a_list() -> None:
    """The first of them is returned; a character without width breaks nothing."""
    assert forbidden_character("a,b\n", ",") == ","
    assert forbidden_character("a\u200bb", categories=BREAKING) is None


def test_the_nearest_name_is_suggested() -> None:
    """A near name is suggested alone, else all are listed, sorted."""
    assert suggestion("tik_s", ["seeds", "tick_s"]) == "did you mean 'tick_s'?"
    assert suggestion("zzz", ["seeds", "load"]) == "known: load, seeds"
    assert suggestion("zzz", []) == "there are none"
    assert suggestion("zzz", [], nothing="known: none") == "known: none"


def test_a_name_that_is_not_alike_enough_is_not_the_closest() -> None:
    """The share that must be alike is the caller's to choose."""
    assert closest("tik_s", ["seeds", "tick_s"]) == "tick_s"
    assert closest("tik_s", ["seeds", "tick_s"], cutoff=0.95) is None


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 policies"), (1, "1 policy"), (2, "2 policies"), (1000, "1,000 policies")]
)
def test_one_is_singular(count: int, text: str) -> None:
    """Only a single thing is told in the singular; thousands are grouped."""
    assert quantity(count, "policy", "policies") == text


def test_most_plurals_have_an_s() -> None:
    """The plural need not be given."""
    assert [quantity(count, "file") for count in (1, 2)] == ["1 file", "2 files"]
