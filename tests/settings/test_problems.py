"""Sentences and places."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from lookup.settings.base import Strict, Whole
from lookup.settings.problems import problems_of


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
