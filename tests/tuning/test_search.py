"""Which candidates come next, and which are the finalists."""

from __future__ import annotations

import pytest

from lookup.tuning.racing import Standing
from lookup.tuning.search import Candidate
from tests.tuning.worlds import distance, searched, space_of, standing

_KEY = "shedder.threshold"
_BEST = 0.04
_TODAY = {"name": "today", "selector": "random", "shedder": {"use": "threshold", "threshold": 0.4}}
_SPACE = {_KEY: {"low": 0.01, "high": 0.5, "scale": "log"}, "shedder.history": {"low": 0.0, "high": 0.9}}


def _figures(candidate: Candidate) -> Standing:
    return standing(1.0 + 0.4 * distance(candidate, _KEY, _BEST), 1.0)


def test_the_best_value_is_found() -> None:
    """To a tenth, of a range of fifty."""
    search, _ = searched(space_of(_SPACE, _TODAY), _figures)

    best = search.finalists()[0]

    assert best.point.changes[_KEY] == pytest.approx(_BEST, rel=0.1)


def test_a_change_that_brings_nothing_is_taken_back() -> None:
    """The finalist has the key that matters, and no other."""
    search, _ = searched(
        space_of(_SPACE, _TODAY),
        lambda one: standing(
            1.0 + 0.4 * distance(one, _KEY, _BEST) + (0.01 if "shedder.history" in one.point.changes else 0.0), 1.0
        ),
    )

    assert set(search.finalists()[0].point.changes) == {_KEY}


def test_one_key_more_that_does_nothing_takes_no_place() -> None:
    """Of candidates whose figures are equal to the last digit there is one finalist, with the fewest keys."""
    search, _ = searched(space_of(_SPACE, _TODAY), _figures)
    finalists = search.finalists()

    assert len({str(one.standing) for one in finalists}) == len(finalists)
    assert {*finalists[0].point.changes} == {_KEY}


def test_each_change_of_the_best_is_tried_alone() -> None:
    """Beside all others together: of four keys one may do what all four do."""
    keys = ("shedder.threshold", "shedder.history", "shedder.lower_boundary", "grace_s")
    vary = {**_SPACE, "shedder.lower_boundary": [True, False], "grace_s": {"low": 60, "high": 7200}}
    _, batches = searched(space_of(vary, _TODAY), _figures)
    pared = next(batch for batch in batches if batch.kind == "pared")
    best = pared.candidates[0]

    alone = [{*one.point.changes} for one in pared.candidates if len(one.point.changes) == 1]

    assert len(best.point.changes) >= 3
    assert all({key} in alone for key in keys if key in best.point.changes)


def test_fewer_changes_go_to_the_sealed_days_with_the_good_ones_that_they_stand_for() -> None:
    """A gain that the race alone does not show is shown, or not, with all replicates."""

    def figures(one: Candidate) -> Standing:
        is_alone = len(one.point.changes) == 1
        return standing(1.0 + 0.4 * distance(one, _KEY, _BEST), 1.0, half=2.0 if is_alone else 0.05)

    search, _ = searched(space_of(_SPACE, _TODAY), figures)
    first, second, *_ = search.finalists()

    assert {*first.point.changes} == {_KEY}
    assert {*second.point.changes} == {*_SPACE}


def test_batches_are_spread_then_near_then_pared_then_raced() -> None:
    """The first has half the replicates of the next ones, and a quarter of the others' places wait for the pared."""
    search, batches = searched(space_of(_SPACE, _TODAY), _figures, candidates=32)

    assert [(batch.kind, batch.replicates) for batch in batches] == [
        ("wide", 1),
        ("near", 2),
        ("near", 2),
        ("pared", 2),
        ("race", 4),
    ]
    tried = [one for one in search.candidates if one.origin in ("incumbent", "wide", "near")]
    assert len(tried) <= 32 - 12 // 4
    assert [one.number for one in search.candidates] == list(range(len(search.candidates)))


def test_among_equals_there_is_no_finalist() -> None:
    """If every candidate is what the incumbent is, nothing promises more."""
    search, batches = searched(space_of(_SPACE, _TODAY), lambda candidate: standing(2.0, 1.0))

    assert search.finalists() == []
    assert [batch.kind for batch in batches] == ["wide"]


def test_what_the_search_does_not_tell_from_luck_is_no_finalist() -> None:
    """Fewer days would not tell it either."""
    search, _ = searched(space_of(_SPACE, _TODAY), lambda one: standing(1.9 if one.number else 2.0, 1.0, half=0.3))

    assert search.best(3)
    assert search.finalists() == []


@pytest.mark.parametrize(("half", "has_finalists"), [(0.05, True), (0.2, False)])
def test_what_half_the_replicates_do_not_tell_from_luck_is_tried_in_all(half: float, *, has_finalists: bool) -> None:
    """Of those that raced the first, once; a gain that still may be luck makes no finalist."""
    search, batches = searched(
        space_of(_SPACE, _TODAY),
        lambda one: standing(1.9 if one.number else 2.0, 1.0, half=0.3),
        figures_of_all=lambda one: standing(1.9 if one.number else 2.0, 1.0, half=half),
    )
    first, second = batches[-2:]

    assert [(batch.kind, batch.replicates) for batch in (first, second)] == [("race", 4), ("race", 7)]
    raced, again = ({one.number for one in batch.candidates} for batch in (first, second))
    assert again < raced
    assert {one.number for one in search.finalists()} == (again if has_finalists else set())


def test_who_is_beaten_does_not_go_on() -> None:
    """A candidate that another certainly dominates is in no later batch."""
    search, _ = searched(space_of(_SPACE, _TODAY), _figures)
    first = search.best(1)[0]

    search.learn(search.aims, {first.number: first.standing}, {first.number: 1})  # type: ignore[arg-type, dict-item]

    assert first not in search.best(len(search.candidates))


@pytest.mark.parametrize("gain", [0.0, 0.3])
@pytest.mark.parametrize(("values", "candidates", "tried"), [(8, 65, 64), (9, 64, 60)])
def test_listed_values_use_the_whole_budget(gain: float, values: int, candidates: int, tried: int) -> None:
    """Nothing lies near a listed value, so that further ones are tried in its place, whatever the first have shown."""
    vary = {key: [n / 20 for n in range(1, values + 1)] for key in ("shedder.threshold", "shedder.history")}

    search, _ = searched(
        space_of(vary, _TODAY), lambda one: standing(2.0 - gain * bool(one.number), 1.0), candidates=candidates
    )

    assert sum(one.origin == "wide" for one in search.candidates) >= tried


def test_a_space_with_few_values_leaves_its_share_to_none() -> None:
    """Two values are two candidates, whatever the budget."""
    search, _ = searched(space_of({"shedder.lower_boundary": [True, False]}, _TODAY), _figures, candidates=32)

    assert len(search.candidates) == 2 + 1
