"""Answers that hold for a registry epoch: filters and scorers that read nothing which changes in it are asked once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lookup.engine.manager import LoadManager
from lookup.model import Candidates
from tests.engine.parts import Keep, Odds, Score, manager, policy, raising
from tests.engine.trio import BUNDLE, IDS, OTHER, TOPIC, VIEW, figures

_LOAD = frozenset({"view.load"})


def _counted(asked: list[str], mark: str, answer: object) -> Callable[[Candidates], Any]:
    def answering(brokers: Candidates) -> object:
        asked.append(mark)
        return answer

    return answering


def _assigned_twice(made: LoadManager) -> None:
    """Assign a bundle in each of two ticks with loads of their own."""
    made.assign(TOPIC, BUNDLE)
    made.begin_tick(60)
    made.set_load(figures(usage=np.array([0.5, 0.1, 0.2])))
    made.assign(TOPIC, OTHER)


def test_only_parts_that_read_the_load_are_asked_again_when_it_changes() -> None:
    """A registry epoch that begins asks all of them again."""
    asked: list[str] = []
    made = manager(
        policy(
            Keep(answer=_counted(asked, "filter", [True, True, False])),
            Keep(answer=_counted(asked, "filter of load", [True, True]), reads=_LOAD),
            Score(answer=_counted(asked, "score", [1.0, 0.0]), reads=frozenset({"tenant"})),
            Score(answer=_counted(asked, "score of load", [0.0, 0.0]), reads=_LOAD),
            Odds(reads=_LOAD),
        ),
        VIEW,
    )
    _assigned_twice(made)

    assert asked == ["filter", "filter of load", "score", "score of load", "filter of load", "score of load"]
    made.set_registry(VIEW.brokers, VIEW.registered)
    made.assign(TOPIC, "a/b/c")
    assert asked[6:] == ["filter", "filter of load", "score", "score of load"]


def test_a_failure_is_no_answer_that_holds() -> None:
    """It is counted in each instant, as before an answer was kept."""
    made = manager(policy(Keep(answer=raising(KeyError("gone"))), Odds(reads=_LOAD), on_error="skip"), VIEW)
    _assigned_twice(made)

    assert made.failures.count == 2


def test_a_part_may_use_its_array_again() -> None:
    """What it writes there later changes no answer that was given."""
    mask = np.array([True, False, False])
    made = manager(policy(Keep(answer=lambda brokers: mask), Odds(reads=_LOAD)), VIEW)
    made.assign(TOPIC, BUNDLE)
    mask[:] = False
    made.set_load(figures())
    made.assign(TOPIC, OTHER)

    assert [IDS[number] for _, number in made.ownership] == ["b1:1", "b1:1"]
