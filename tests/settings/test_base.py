"""The strict base: every model refuses what it does not know, and numbers are taken as written."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_settings import BaseSettings

import lookup.settings
from lookup.settings.base import Moment, Number, Strict, Truth, Whole


def _models() -> Iterator[type[BaseModel]]:
    for info in pkgutil.iter_modules(lookup.settings.__path__, "lookup.settings."):
        module = importlib.import_module(info.name)
        found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, BaseModel)]
        own = [model for model in found if model.__module__ == module.__name__]
        # The layers hold what nobody has checked yet; what they hold is then given to the strict models.
        yield from (model for model in own if not issubclass(model, BaseSettings))


@pytest.mark.parametrize("model", list(_models()), ids=lambda model: model.__name__)
def test_every_model_is_strict(model: type[BaseModel]) -> None:
    """Every settings model inherits the one base and refuses unknown keys; nested models inherit it from nobody."""
    assert issubclass(model, Strict)
    assert model.model_config["extra"] == "forbid"
    assert model.model_config["frozen"]


def test_the_search_for_models_finds_them() -> None:
    """The test above looks at all models of the room, not at none."""
    assert {"EvaluationFile", "PartSpec", "BrokerProfile", "EdgeEntry"} <= {model.__name__ for model in _models()}


@pytest.mark.parametrize(("kind", "value"), [(Whole, "60"), (Whole, True), (Whole, 1.5), (Number, "1"), (Truth, 1)])
def test_values_are_not_bent_into_shape(kind: Any, value: object) -> None:
    """A text is no number, a truth value is none either, and a number is no truth value."""
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(value)


@pytest.mark.parametrize("value", [1_767_225_600, 1.5, True])
def test_a_number_is_no_moment(value: object) -> None:
    """A time is never guessed from a number of seconds, milliseconds or whatever else."""
    with pytest.raises(ValidationError, match="date and time with offset"):
        TypeAdapter(Moment).validate_python(value)


@pytest.mark.parametrize("text", ["9999-12-31T23:00:00-10:00", "0001-01-01T00:00:00+14:00"])
def test_a_moment_lies_in_the_calendar(text: str) -> None:
    """A time that its offset carries out of the years 1 to 9999 has no date in UTC."""
    with pytest.raises(ValidationError, match=f"1 to 9999 of UTC, not '{re.escape(text)}'"):
        TypeAdapter(Moment).validate_python(text)
