"""The shedder `overload`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.model import CycleLabel, CycleReason
from lookup_policies.overload import Overload
from tests.plugins.cycles import cycle, loaded

HOT = {"hot": {"one": 10.0, "two": 20.0, "three": 70.0}, "cold": {"four": 1.0, "five": 2.0}}


def test_the_most_loaded_bundles_go_until_enough_has_gone() -> None:
    """100 x (0.95 - 0.85 + 0.05) = 15: one is enough, and without it the next two are needed."""
    view = loaded(HOT, usage={"hot": 0.95, "cold": 0.1})

    assert cycle(Overload(), view)[0] == ["three"]
    assert cycle(Overload(), view, refused={"three"})[0] == ["two"]
    assert cycle(Overload(), view, refused={"three", "two"})[0] == ["one"]


@pytest.mark.parametrize(("usage", "accepted"), [(0.85, ["three"]), (0.849, [])])
def test_the_threshold_itself_is_too_much(usage: float, accepted: list[str]) -> None:
    """The limit belongs to what is overloaded."""
    assert cycle(Overload(), loaded(HOT, usage={"hot": usage, "cold": 0.1}))[0] == accepted


def test_all_brokers_may_be_overloaded() -> None:
    """Nobody asks where the bundles could go."""
    accepted, outcome = cycle(Overload(), loaded(HOT, usage={"hot": 0.9, "cold": 1.3}))

    assert accepted == ["five", "three"]
    assert (outcome.label, outcome.reason) == (CycleLabel.SUCCESS, CycleReason.OVERLOADED)
    assert outcome.average == pytest.approx(1.1)
    assert outcome.deviation == pytest.approx(0.2)


def test_a_sole_bundle_stays() -> None:
    """A broker that owns one bundle is left alone, and somebody was overloaded."""
    accepted, outcome = cycle(Overload(), loaded({"hot": {"one": 9.0}, "cold": {}}, usage={"hot": 0.9, "cold": 0.1}))

    assert (accepted, outcome.reason) == ([], CycleReason.NO_BUNDLES)


@pytest.mark.parametrize(
    ("usage", "registered", "reason"),
    [
        ({"hot": 0.5, "cold": 0.1}, None, CycleReason.HIT_COUNT),
        ({}, None, CycleReason.NO_LOAD_DATA),
        ({"hot": 0.9, "cold": 0.1}, [], CycleReason.NO_BROKERS),
    ],
)
def test_there_may_be_nothing_to_do(usage: dict[str, float], registered: list[str] | None, reason: CycleReason) -> None:
    """A cycle without unloads says why."""
    figures = {} if registered is None else {"registered": registered}
    accepted, outcome = cycle(Overload(), loaded(HOT, usage=usage, **figures))

    assert (accepted, outcome.label, outcome.reason) == ([], CycleLabel.SKIP, reason)


@pytest.mark.parametrize(("resource", "accepted"), [("memory", []), ("direct_memory", ["three"]), ("cpu", ["three"])])
def test_memory_does_not_count(resource: str, accepted: list[str]) -> None:
    """Of single resources the largest counts, unweighted, but never memory."""
    resources = {"hot": {resource: 90.0, "bandwidth_in": 20.0}, "cold": {}}

    assert cycle(Overload(), loaded(HOT, resources=resources))[0] == accepted


@settings(max_examples=50)
@given(st.data())
def test_only_overloaded_brokers_give_up_bundles_and_none_twice(data: st.DataObject) -> None:
    """Every accepted bundle is proposed once and belongs to a broker at or above the threshold."""
    usage = data.draw(st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 2), min_size=1))
    view = loaded(
        {one: {f"{one}{place}": data.draw(st.floats(0.1, 9)) for place in range(4)} for one in usage}, usage=usage
    )
    refused = data.draw(st.sets(st.sampled_from(sorted(f"{one}{place}" for one in usage for place in range(4)))))
    accepted, outcome = cycle(Overload(), view, refused=refused)

    assert len(accepted) == len(set(accepted))
    assert (outcome.label == CycleLabel.SUCCESS) is bool(accepted)
    assert all(usage[bundle[0]] >= 0.85 for bundle in accepted)


def test_a_cycle_says_how_many_were_over_and_by_how_much() -> None:
    """0.9 and 1.3 against 0.85."""
    _, outcome = cycle(Overload(), loaded(HOT, usage={"hot": 0.9, "cold": 1.3}))

    assert (outcome.over, outcome.excess) == (2, pytest.approx(0.45))
