"""A policy: filters, scorers and a selector made into odds."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.ballots import SecondChoice
from lookup.errors import ContractError, PluginError, PolicyError
from lookup.model import Candidates, Reason
from lookup.model.bundles import NamespacePolicies
from tests.engine.asked import ASKED, VIEW, ballot_of
from tests.engine.parts import Keep, Odds, Score, instant, policy

# Filters


def test_filters_are_asked_in_order_about_those_left() -> None:
    """A filter sees only what the filters before it kept."""
    seen: list[tuple[str, ...]] = []

    def remember(brokers: Candidates) -> list[bool]:
        seen.append(brokers.ids)
        return [broker.id != "b2" for broker in brokers]

    ballot = ballot_of(Keep(ids=("b2", "b3")), Keep(answer=remember, reason=Reason.VERSION))

    assert seen == [("b2", "b3")]
    assert dict(ballot.odds) == {"b3": 1.0}
    assert dict(ballot.rejected) == {Reason.FILTERED: 1, Reason.VERSION: 1}


def _endless(brokers: Candidates) -> Iterator[bool]:
    while True:
        yield True


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda _: None, "filter 'keep' answered None"),
        (lambda _: [True], "filter 'keep' gave 1 answers"),
        (lambda _: np.array([[True, True, True]]), "filter 'keep' gave 1 answers"),
        (_endless, "filter 'keep' gave 4 answers"),
        (lambda _: [1, 0, 1], "filter 'keep' answered 1"),
    ],
)
@pytest.mark.parametrize("on_error", ["stop", "skip", "fail-closed"])
def test_a_filter_that_breaks_its_protocol_ends_the_run(answer: Any, sentence: str, on_error: str) -> None:
    """Whatever `on_error` says."""
    with pytest.raises(ContractError, match=sentence):
        ballot_of(Keep(answer=answer), on_error=on_error)


# Scores


def test_selectors_cannot_write_into_the_scores() -> None:
    """The margin is told from the scores the scorers gave."""
    held: list[Any] = []

    class Holding(Odds):
        def odds(self, request: Any, brokers: Candidates, scores: Any, view: Any) -> Any:
            held.append(scores)
            return scores

    ballot_of(Score({"b1": 1.0}), Holding())

    with pytest.raises(ValueError, match="read-only"):
        held[0][0] = 5.0


@pytest.mark.parametrize(
    ("by_id", "margin", "ties"),
    [
        ({"b1": 0.75, "b2": 0.5}, 0.25, 1),
        ({"b1": 0.75, "b2": 0.75 - 1e-10, "b3": 0.25}, 0.5, 2),
        ({"b1": 0.5, "b2": 0.5, "b3": 0.5}, None, 3),
    ],
)
def test_the_margin_is_the_lead_over_what_is_not_tied(by_id: dict[str, float], margin: float | None, ties: int) -> None:
    """Scores within 1e-9 of the best are tied with it."""
    ballot = ballot_of(Score(by_id))

    assert ballot.ties == ties
    assert ballot.margin == (margin if margin is None else pytest.approx(margin, abs=1e-9))


# Odds


@pytest.mark.parametrize(("rolled", "number"), [(0.0, 0), (0.2499, 0), (0.25, 2), (0.99, 2), (1.0, 2)])
def test_a_roll_picks_by_the_cumulative_odds(rolled: float, number: int) -> None:
    """A roll at a boundary belongs to the next broker, and 1.0 to the last."""
    assert ballot_of(Odds({"b1": 1.0, "b3": 3.0})).pick(rolled) == number


@given(st.lists(st.floats(0, 1.7e308, allow_nan=False), min_size=3, max_size=3).filter(any), st.floats(0, 1))
def test_any_odds_make_a_distribution(odds: list[float], rolled: float) -> None:
    """However great or small the odds, they add up to 1 and a roll picks a broker with odds above 0."""
    ballot = ballot_of(Odds(answer=lambda _: odds))

    assert sum(ballot.odds.values()) == pytest.approx(1.0)
    assert all(odd > 0 for odd in ballot.odds.values())
    assert ballot.odds[VIEW.brokers[ballot.pick(rolled)].id] > 0


# Keys and fingerprints


def test_the_decision_key_is_what_is_read() -> None:
    """Fields in sorted order, an absent property as None."""
    tested = policy(Keep(reads=frozenset({"tenant"})), Odds(reads=frozenset({"properties.rack", "properties.dc"})))

    assert tested.request_reads == ("properties.dc", "properties.rack", "tenant")
    assert tested.decision_key(ASKED) == (None, "a", "public")


def test_all_properties_swallow_single_ones() -> None:
    """Properties count as a whole, whatever their order."""
    tested = policy(Keep(reads=frozenset({"properties"})), Odds(reads=frozenset({"properties.rack"})))
    turned = replace(ASKED, properties={"z": "1", "a": "2"})

    assert tested.request_reads == ("properties",)
    assert tested.decision_key(turned) == ((("a", "2"), ("z", "1")),)


def test_memory_cannot_be_written_while_deciding() -> None:
    """What a part remembers changes by assignments alone."""

    class Scribbling(Odds):
        def odds(self, request: Any, brokers: Candidates, scores: Any, view: Any) -> Any:
            view.memory["count"] = 1
            return scores

    with pytest.raises(PolicyError, match="does not support item assignment"):
        ballot_of(Scribbling(reads=frozenset({"view.memory"})))


def test_a_policy_survives_pickle_after_use() -> None:
    """What is worked out once is worked out again on the other side."""
    tested = policy(Keep(ids=("b1",)), Score({"b1": 0.5}))
    tested.ballot(ASKED, instant(tested, VIEW))
    revived = pickle.loads(pickle.dumps(tested))

    assert revived == tested
    assert revived.ballot(ASKED, instant(revived, VIEW)) == tested.ballot(ASKED, instant(tested, VIEW))


# What is asked once per instant


def _counting(asked: list[str], mark: str) -> Any:
    def answer(brokers: Candidates) -> list[bool]:
        asked.append(mark)
        return [broker.id != "b2" for broker in brokers]

    return answer


@pytest.mark.parametrize(
    ("reads", "asked_again"),
    [
        (frozenset({"view.load"}), []),
        (frozenset({"tenant"}), []),
        (frozenset({"topic"}), ["first", "second"]),
        (frozenset({"view.ownership"}), ["first", "second"]),
        (frozenset({"view.memory"}), ["first", "second"]),
    ],
)
def test_filters_that_no_assignment_can_change_are_asked_once_per_instant(
    reads: frozenset[str], asked_again: list[str]
) -> None:
    """Another request that agrees on what they read gets the same brokers; the rejections are counted for both."""
    asked: list[str] = []
    first = Keep(answer=_counting(asked, "first"), reads=reads)
    second = Keep(answer=_counting(asked, "second"), reads=reads)
    tested = policy(first, second)
    now = instant(tested, VIEW)
    ballots = [tested.ballot(ASKED, now), tested.ballot(replace(ASKED, topic="persistent://public/default/u"), now)]

    assert asked == ["first", "second", *asked_again]
    assert ballots[0] == ballots[1]
    assert ballots[0].rejected == {Reason.FILTERED: 1}


def test_a_filter_after_one_that_reads_owners_is_asked_about_what_that_leaves() -> None:
    """Each time the brokers left are others, and once about the same ones."""
    asked: list[list[str]] = []
    left = ["b1"]

    def note(brokers: Candidates) -> list[bool]:
        asked.append([broker.id for broker in brokers])
        return [True] * len(asked[-1])

    owners = Keep(reads=frozenset({"view.ownership"}), answer=lambda brokers: [broker.id in left for broker in brokers])
    tested = policy(owners, Keep(answer=note, reads=frozenset({"view.load"})))
    now = instant(tested, VIEW)
    tested.ballot(ASKED, now)
    tested.ballot(ASKED, now)
    left[:] = ["b2"]
    tested.ballot(ASKED, now)

    assert asked == [["b1"], ["b2"]]


def test_what_was_chosen_among_some_is_not_repeated_among_others() -> None:
    """Within one instant an assignment may change whom a filter leaves; scorers and selector are then asked anew."""
    left = ["b1"]
    keep = Keep(reads=frozenset({"view.ownership"}), answer=lambda brokers: [broker.id in left for broker in brokers])
    tested = policy(keep, Odds(reads=frozenset()))
    now = instant(tested, VIEW)
    first = set(tested.ballot(ASKED, now).odds)
    left[:] = ["b2"]

    assert (first, set(tested.ballot(ASKED, now).odds)) == ({"b1"}, {"b2"})


@dataclass(frozen=True)
class _Idle(Keep):
    """A filter that keeps nobody, but says that it keeps everybody if no namespace is in a group."""

    def is_idle(self, namespaces: NamespacePolicies) -> bool:
        """Return whether there is no group."""
        return not namespaces.anti_affinity_group


def test_idle_filters_are_left_out_where_they_are_idle() -> None:
    """A second choice then begins with as many fewer filters."""
    tested = replace(policy(_Idle(), Keep(), Odds()), second_choice=SecondChoice(filters=1))
    grouped = NamespacePolicies(anti_affinity_group={"t/n": "g"})

    assert tested.in_use(grouped) is tested
    assert tested.in_use(NamespacePolicies()) == replace(
        policy(Keep(), Odds()), second_choice=SecondChoice(filters=0), name=tested.name
    )


@dataclass(frozen=True)
class _Raising(Keep):
    def is_idle(self, namespaces: NamespacePolicies) -> bool:
        """Raise."""
        return bool(1 / 0)


def test_filters_that_fail_to_say_whether_they_are_idle_are_named() -> None:
    """The run ends before its first decision."""
    with pytest.raises(PluginError, match=r"filter 'keep' raised ZeroDivisionError"):
        policy(_Raising(), Odds()).in_use(NamespacePolicies())
