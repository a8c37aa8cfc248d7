"""Policies as written."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lookup.settings import PartSpec, PolicySpec

_NAMES = st.text("abc-", min_size=1)
_VALUES = st.recursive(
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(_NAMES, inner),
)
_RESERVED = {"use", "weight", "parameters"}
_PARAMETERS = st.dictionaries(_NAMES.filter(lambda name: name not in _RESERVED), _VALUES)


def _policy(text: str) -> PolicySpec:
    return PolicySpec.model_validate(tomllib.loads(text))


def _wrong(text: str) -> str:
    with pytest.raises(ValidationError) as caught:
        _policy(text)
    return "\n".join(str(detail["msg"]) for detail in caught.value.errors())


def test_a_name_is_a_part_without_parameters() -> None:
    """`"x"` means `{ use = "x" }`."""
    assert PartSpec.model_validate("best") == PartSpec.model_validate({"use": "best"}) == PartSpec(use="best")


def test_a_weight_that_was_written_is_kept() -> None:
    """A weight of 1.0 that somebody wrote stays in what is written back; one that nobody wrote does not appear."""
    assert PartSpec.model_validate({"use": "x", "weight": 1.0}).model_dump() == {"use": "x", "weight": 1.0}
    assert PartSpec.model_validate("x").model_dump() == {"use": "x"}


@given(use=_NAMES, parameters=_PARAMETERS)
def test_a_part_is_written_as_it_was_read(use: str, parameters: dict[str, Any]) -> None:
    """Written and read again, a part is the same, whatever its parameters."""
    part = PartSpec.model_validate({"use": use, **parameters})

    assert PartSpec.model_validate(part.model_dump()) == part
    assert PartSpec.model_validate_json(part.model_dump_json()) == part


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("3", "a part's name or a table"),
        ("{}", "Field required"),
        ('{ use = "x", weight = -1 }', "greater than or equal to 0"),
        ('{ use = "x", parameters = {}, key = 1 }', "Extra inputs are not permitted"),
    ],
)
def test_a_part_that_is_none_is_refused(part: str, sentence: str) -> None:
    """A part is a name or a table with `use`; its weight is not negative."""
    assert sentence in _wrong(f'name = "x"\nselector = "best"\nscorers = [{part}]')


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('selector = { use = "best", weight = 1 }', "selector.weight: "),
        ('selector = "best"\nfilters = [{ use = "x", weight = 1 }]', "filters[0].weight: "),
        ('selector = "best"\nshedder = { use = "x", weight = 1 }', "shedder.weight: "),
        ('selector = "best"\nscorers = [{ use = "x", weight = 0 }]', "scorers: at least one"),
        ('selector = "best"\nname = " "', "name: should not be empty"),
        ('selector = "best"\non_error = "panic"', "'stop', 'fail-closed' or 'skip'"),
        ("", "Field required"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(text: str, sentence: str) -> None:
    """Weights belong to scorers and do not all vanish, a policy has a name and a selector."""
    assert sentence in _wrong(text if "name =" in text else f'name = "x"\n{text}')
