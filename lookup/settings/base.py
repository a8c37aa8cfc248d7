"""Define the strict base of every settings model, and the few value types they share.

This module does not read files. `scripts/schemas.py` writes docstrings below fields as the descriptions of the JSON
Schemas under `docs/schema/`, since pydantic would read every source file again at each start of a command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    model_validator,
)

from lookup.model.time import is_in_calendar
from lookup.settings.problems import Loc, place

__all__ = [
    "Above0", "Count", "CountS", "Cycling", "Moment", "Number", "PortNumber", "Positive", "PositiveS", "Ratio", "Share",
    "ShareS", "Strict", "Text", "Truth", "Whole", "WholeFile", "fill_number", "held_to", "is_numbered", "refuse",
]  # fmt: skip


class Strict(BaseModel):
    """A frozen model that rejects unknown keys. Every nested model has to reject them itself."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
        # A command reads one or two kinds of files, so validators of the others are never built.
        defer_build=True,
    )


class WholeFile(Strict):
    """Settings of a whole file, joined from several sources, with the source of each value."""

    _sources: Mapping[str, str] = PrivateAttr(default_factory=dict)

    @classmethod
    def problems_between(cls, tables: Mapping[str, Any]) -> list[tuple[Loc, str]]:  # noqa: ARG003  of all functions of its kind
        """List place and sentence of every mistake between tables, such as names that must or must not match.

        Args:
            tables: by its key in the file, every table that is valid by itself. For an invalid table, an object
                with its valid keys. For policies without known names, None. A check whose tables or keys are
                missing is skipped, so that one mistake does not cause others.
        """
        return []

    @model_validator(mode="after")
    def _check(self) -> Self:
        tables = {name: getattr(self, name) for name in type(self).model_fields}
        refuse([place(loc, sentence) for loc, sentence in self.problems_between(tables)])
        return self

    @property
    def sources(self) -> Mapping[str, str]:
        """The source of every value other than a default, by key path. It is a file, a variable or a flag."""
        return self._sources

    def note_sources(self, sources: Mapping[str, str]) -> Self:
        """Record the source of every value, by key path, for the readers of settings."""
        self._sources = dict(sources)
        return self


#: A text that is not empty.
Text = Annotated[str, Field(min_length=1)]
#: Numbers must be numbers, not `"60"` for 60 or `true` for 1. Environment and flags are parsed before.
Whole = Annotated[int, Field(strict=True)]
Positive = Annotated[int, Field(strict=True, ge=1)]
Count = Annotated[int, Field(strict=True, ge=0)]
PortNumber = Annotated[int, Field(strict=True, ge=1, le=65535)]
Number = Annotated[float, Field(strict=True)]
#: Greatest figure, and smallest above 0: products of a few, summed over the weight of a log, stay finite.
_MOST, _LEAST = 1e15, 1e-9
#: a number above 0
Above0 = Annotated[float, Field(strict=True, ge=_LEAST, le=_MOST)]
#: a number >= 0
Share = Annotated[float, Field(strict=True, ge=0, le=_MOST)]
#: a number in [0, 1]
Ratio = Annotated[float, Field(strict=True, ge=0, le=1)]
Truth = Annotated[bool, Field(strict=True)]

#: Longest span in seconds, a hundred years. As µs added to any instant of the years 1 to 9999 it fits into 64 bits.
_MOST_S = 3_155_760_000
PositiveS = Annotated[int, Field(strict=True, ge=1, le=_MOST_S)]
CountS = Annotated[int, Field(strict=True, ge=0, le=_MOST_S)]


def held_to(problem_of: Callable[[str], str | None]) -> AfterValidator:
    """Build a validator of texts from a function that returns the mistake in a text, as a clause or sentence."""

    def check(text: str) -> str:
        problem = problem_of(text)
        if problem is not None:
            raise ValueError(problem)
        return text

    return AfterValidator(check)


def _check_span(seconds: float) -> float:
    if 0 < seconds < _LEAST_S:
        raise ValueError(f"should be 0 or at least 0.000001, one microsecond, not {seconds}")
    return seconds


#: Shortest span in seconds above 0: spans are counted in whole microseconds.
_LEAST_S = 1e-6
#: a number of seconds, 0 or from a microsecond to a day
ShareS = Annotated[float, Field(strict=True, ge=0, le=86_400), AfterValidator(_check_span)]


def _parse_moment(value: object) -> object:
    read = value
    if isinstance(value, str):
        # pydantic's own parser accepts more, such as numbers, and dates without a time.
        with suppress(ValueError):
            read = datetime.fromisoformat(value)
    if isinstance(read, datetime) and read.tzinfo is not None:
        if not is_in_calendar(read):
            raise ValueError(f"should lie in the years 1 to 9999 of UTC, not {_format_plain(value)}")
        return read
    raise ValueError(f"should be a date and time with offset, like 2026-01-01T00:00:00Z, not {_format_plain(value)}")


def _format_plain(value: object) -> str:
    # TOML has dates of its own. Python would write datetime.date(2026, 1, 1).
    return str(value) if isinstance(value, date) else repr(value)


#: A point in time with its offset, since a local time would differ between machines.
Moment = Annotated[AwareDatetime, BeforeValidator(_parse_moment, json_schema_input_type=datetime)]


def _as_list(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)):
        return value
    raise ValueError(f"should be a text or a list of texts, not {_format_plain(value)}")


#: One text, or several that the members of a template take in turn.
Cycling = Annotated[
    tuple[str, ...],
    Field(min_length=1),
    BeforeValidator(_as_list, json_schema_input_type=str | list[str]),
    PlainSerializer(lambda values: values[0] if len(values) == 1 else list(values)),
]


def fill_number(text: str, number: int) -> str:
    """Replace `{n}`, and `{n:02}` with leading zeros, by a template's number."""
    return _NUMBER.sub(lambda gap: str(number).zfill(int(gap[1] or 0)), text)


def is_numbered(text: str) -> bool:
    """Check whether a text has a gap for a template's number."""
    return _NUMBER.search(text) is not None


_NUMBER = re.compile(r"\{n(?::0(\d))?\}")


def refuse(problems: Sequence[str]) -> None:
    """Raise the problems of a model, if any, as one ValueError with a line each, as pydantic expects."""
    if problems:
        raise ValueError("\n".join(problems))
