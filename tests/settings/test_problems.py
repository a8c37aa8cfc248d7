"""Sentences and places."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from lookup.settings.base import Strict, Whole
from lookup.settings.problems import (
    choices_at,
    descend,
    key_path,
    place,
    place_meant,
    problems_of,
    unknown_keys,
    without,
)


class _Inner(Strict):
    width: Whole = 1


class _Outer(Strict):
    inner: _Inner | None = None
    many: tuple[_Inner, ...] = ()
    named: Mapping[str, _Inner] = {}


def _error(values: object) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        _Outer.model_validate(values)
    return caught.value


@pytest.mark.parametrize(
    ("loc", "wanted"),
    [
        (("brokers", 0, "properties", "lookup.rack"), 'brokers[0].properties."lookup.rack"'),
        (("evaluation", "tick_s"), "evaluation.tick_s"),
        (("margins", 'a"b'), 'margins."a\\"b"'),
        ((), ""),
    ],
)
def test_places_are_written_as_toml_writes_them(loc: tuple[str | int, ...], wanted: str) -> None:
    """Keys are joined by dots, quoted where TOML would quote them; positions stand in brackets."""
    assert key_path(loc) == wanted


@pytest.mark.parametrize(
    ("loc", "sentence", "wanted"),
    [
        (("a",), "is missing", "a: is missing"),
        (("a", 0), "key: is wrong", "a[0].key: is wrong"),
        ((), "key: is wrong", "key: is wrong"),
        (("a",), "should be x: y", "a: should be x: y"),
    ],
)
def test_a_table_s_own_problems_name_the_key_inside(loc: tuple[str | int, ...], sentence: str, wanted: str) -> None:
    """A sentence that begins with a key is joined to its table by a dot, any other by a colon."""
    assert place(loc, sentence) == wanted


@pytest.mark.parametrize(
    ("values", "place", "end"),
    [
        ({"iner": {}}, ("iner",), "did you mean 'inner'?"),
        ({"width": 1}, ("width",), "did you mean inner.width?"),
        ({"inner": {"widht": 1}}, ("inner", "widht"), "did you mean 'width'?"),
        ({"many": [{}, {"w": 1}]}, ("many", 1, "w"), "known: width"),
        ({"named": {"x": {"wide": 1}}}, ("named", "x", "wide"), "did you mean 'width'?"),
        ({"inner": 3}, ("inner",), "not 3"),
        ({"inner": {"width": "x" * 99}}, ("inner", "width"), f"not '{'x' * 77}...'"),
    ],
)
def test_every_mistake_has_place_and_sentence(values: object, place: tuple[str | int, ...], end: str) -> None:
    """Unknown keys are compared with those of their own table, at any depth; long values are cut."""
    [(found, sentence)] = problems_of(_error(values), _Outer)

    assert found == place
    assert sentence.endswith(end)


def test_unknown_keys_can_be_left_out() -> None:
    """What remains without the unknown keys is what was right; nothing that was given is changed."""
    given = {"inner": {"width": 2, "w": 1}, "many": [{"w": 1}, {"width": 3}], "x": 1}

    left = without(given, unknown_keys(_error(given)))

    assert left == {"inner": {"width": 2}, "many": [{}, {"width": 3}]}
    assert given["inner"] == {"width": 2, "w": 1}


def test_types_are_followed_through_tables_and_lists() -> None:
    """The keys of a table are found through optional tables, lists and tables of tables; elsewhere there are none."""
    assert choices_at(_Outer, ("many", 4)) == ["width"]
    assert choices_at(_Outer, ("inner", "width")) == []
    assert descend(_Outer, "nothing") is None


@pytest.mark.parametrize(
    ("sentence", "meant"),
    [
        ("is missing", ("brokers", 0)),
        ("should be a text: 7 is none", ("brokers", 0)),
        ("id: {n} needs a count", ("brokers", 0, "id")),
        ('location.rack."a.b"[2]: is odd', ("brokers", 0, "location", "rack", "a.b", 2)),
    ],
)
def test_what_a_sentence_is_about_is_the_key_it_begins_with(sentence: str, meant: tuple[str | int, ...]) -> None:
    """A sentence that begins otherwise is about the table."""
    assert place_meant(("brokers", 0), sentence) == meant
