"""Model the file of a search for settings, with its aim, its budget, and the values to try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, WrapValidator, model_validator

from lookup.model.quoting import shown
from lookup.settings.base import Number, Positive, Ratio, Share, Strict, Text, WholeFile, refuse
from lookup.settings.problems import LIST, TABLE, Loc, place
from lookup.settings.pulsar_keys import BUNDLES_KEY, Scalar

__all__ = ["RangeEntry", "SpaceEntry", "TuneFile", "TuneSection", "split_overrides"]


def _check_number(value: object, check: Callable[[object], float]) -> float:
    number = check(value)
    return value if isinstance(value, int) else number


#: A number as written. Integer ends make every value between them an integer.
_End = Annotated[Number, WrapValidator(_check_number)]


class RangeEntry(Strict):
    """The values of a setting between two ends, integers if the ends are. A missing end is that of the part."""

    low: _End | None = None
    """Least value, by default that of the part."""
    high: _End | None = None
    """Greatest value, by default that of the part."""
    scale: Literal["linear", "log"] = "linear"
    """Steps of equal differences, or of equal ratios."""
    source: str = ""
    """Origin of the ends, for people."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        problem = self.problem(self.low, self.high)
        refuse([] if problem is None else [problem])
        return self

    def problem(self, low: float | None, high: float | None) -> str | None:
        """Describe the mistake in these ends on this scale, None if there is none."""
        if low is not None and high is not None and low >= high:
            return f"high: {high:g} should be above low, {low:g}"
        if self.scale == "log" and low is not None and low <= 0:
            return f"low: {low:g} should be above 0 on a scale of ratios"
        return None


#: A list has the values themselves, such as numbers, texts, names of classes, or parts as tables.
_Values = Annotated[
    Annotated[tuple[Scalar | Mapping[str, Any], ...], Field(min_length=2), Tag(LIST)]
    | Annotated[RangeEntry, Tag(TABLE)],
    Discriminator(lambda value: LIST if isinstance(value, list | tuple) else TABLE),
]


class SpaceEntry(Strict):
    """Settings of one policy that are varied together."""

    name: Text
    """Name in reports."""
    policy: str | None = None
    """Policy of the evaluation that is changed, by default the incumbent."""
    set: Mapping[str, Any] = {}
    """Values that all candidates have, by key of a `broker.conf` or by key path, like `shedder.threshold`."""
    vary: Annotated[Mapping[str, _Values], Field(min_length=1)]
    """Values that are tried, likewise by key."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = [f"set.{key}: is varied as well; write it once" for key in self.set if key in self.vary]
        if BUNDLES_KEY in {*self.set, *self.vary}:
            tables = {"set": self.set, "vary": self.vary}
            same = f"is the same setting as {BUNDLES_KEY}; write one of them"
            problems += [f"{table}.bundles: {same}" for table, keys in tables.items() if "bundles" in keys]
        problems += [
            place(("vary", key), f"has one value, {shown(values[0])}; give another one, or write it under set")
            for key, values in self.vary.items()
            if not isinstance(values, RangeEntry) and all(value == values[0] for value in values)
        ]
        refuse(problems)
        return self


class TuneSection(Strict):
    """The aim of a search, and its budget."""

    evaluation: Text | Mapping[str, Any]
    """Path of the evaluation, with log, brokers, rules, the incumbent and the policies that spaces change. A
    program may give its content."""
    objectives: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Figures to improve, `metric` or `metric:key`, by default `imbalance_max_mean`, and `match_ratio` of each
    label."""
    prices: tuple[str, ...] | None = None
    """Figures that may get worse where an objective gets better, by default `moved_weight`."""
    limits: Mapping[str, Share] = {}
    """By figure, how many times the incumbent's a candidate's may be at most, or at least if it should rise."""
    tolerance: Ratio = 0.05
    """Tolerated loss of an objective, as a share of the incumbent's figure."""
    candidates: Annotated[int, Field(strict=True, ge=2, le=10_000)] = 64
    """How many settings are tried, today's included."""
    minutes: Annotated[float, Field(strict=True, gt=0)] | None = None
    """Minutes after which no further batch begins. By default only the candidates end the search."""
    replicates: Positive = 2
    """Replicates of the first trial of a candidate near the best. Candidates that cover the spaces have half of
    them."""
    finalists: Annotated[int, Field(strict=True, ge=1, le=8)] = 3
    """How many are judged on the sealed days, at most."""
    holdout: Annotated[float, Field(strict=True, ge=0.1, le=0.9)] = 0.3
    """Share of the log, its last part, that is sealed."""


class TuneFile(WholeFile):
    """All settings of a search except the evaluation it names."""

    tune: TuneSection
    """Objectives and limits of the search."""
    spaces: Annotated[
        tuple[SpaceEntry, ...],
        Field(min_length=1),
        BeforeValidator(lambda value: value, json_schema_input_type=list[SpaceEntry | str]),
    ]
    """Settings to vary, as tables, or paths of files with one."""

    @classmethod
    def problems_between(cls, tables: Mapping[str, Any]) -> list[tuple[Loc, str]]:
        """List the mistakes between tables."""
        names = Counter(entry.name for entry in tables.get("spaces") or ())
        return [
            (("spaces",), f"{count} are named {shown(name)}; a name should occur once")
            for name, count in names.items()
            if count > 1
        ]


def split_overrides(overrides: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Split settings by key path into those of a search and those of its evaluation."""
    heads = TuneFile.model_fields.keys()
    own = {key: value for key, value in overrides.items() if key.partition(".")[0] in heads}
    return own, {key: value for key, value in overrides.items() if key not in own}
