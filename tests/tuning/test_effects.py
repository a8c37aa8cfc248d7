"""Which settings matter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lookup.tuning.effects import settings_document
from lookup.tuning.racing import Standing
from lookup.tuning.search import Candidate, Search
from tests.tuning.worlds import distance, searched, space_of, standing

_SPACE = {
    "shedder.threshold": {"low": 0.01, "high": 0.5, "scale": "log"},
    "shedder.history": {"low": 0.0, "high": 0.9},
    "shedder.lower_boundary": [True, False],
}


def _found(figures: Callable[[Candidate], Standing]) -> tuple[Search, dict[int, Standing]]:
    search, batches = searched(space_of(_SPACE), figures)
    return search, {one.number: figures(one) for one in batches[0].candidates}


def _mattering(figures: Callable[[Candidate], Standing]) -> set[str]:
    return {one["key"] for one in settings_document(*_found(figures), set()) if one["matters"]}


@pytest.mark.parametrize(
    ("figures", "keys"),
    [
        (lambda one: standing(1.0 + distance(one, "shedder.threshold", 0.01), 1.0), {"shedder.threshold"}),
        (lambda one: standing(1.0 + distance(one, "shedder.threshold", 0.07), 1.0), {"shedder.threshold"}),
        (
            lambda one: standing(2.0, 1.0 + one.point.changes.get("shedder.lower_boundary", False)),
            {"shedder.lower_boundary"},
        ),
        (lambda one: standing(2.0, 1.0), set()),
    ],
)
def test_a_setting_matters_if_a_figure_depends_on_it(figures: Callable[[Candidate], Standing], keys: set[str]) -> None:
    """In one direction, with a best value in the middle, or by a choice; the others do not."""
    assert _mattering(figures) == keys


def test_luck_alone_matters_rarely() -> None:
    """Of 100 searches whose figures are drawn by dice, at most 5 take one of three settings for more."""
    dice = np.random.default_rng(1)
    search, first = _found(lambda one: standing(2.0, 1.0))
    drawn = [{number: standing(*(1.0 + dice.normal(size=2))) for number in first} for _ in range(100)]

    taken = [any(one["matters"] for one in settings_document(search, each, set())) for each in drawn]

    assert sum(taken) <= 5


def test_of_too_few_candidates_nothing_is_said() -> None:
    """Any order of four figures is likely enough."""
    search, first = _found(lambda one: standing(2.0 - one.number / 10, 1.0))

    few = settings_document(search, dict(list(first.items())[:4]), set())

    assert [one["matters"] for one in few] == [None] * 3
    assert False in [one["matters"] for one in settings_document(search, first, set())]


def test_what_is_confirmed_matters() -> None:
    """Whatever the search could tell of each change by itself."""
    search, first = _found(lambda one: standing(2.0, 1.0))

    found = settings_document(search, first, {("space", "shedder.history")})

    assert [one["key"] for one in found if one["matters"]] == ["shedder.history"]
