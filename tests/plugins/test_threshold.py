"""Sheds from overloaded brokers: above the average by a threshold, or above a fixed usage."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.model import ClusterView, CycleLabel, CycleOutcome, CycleReason, Reason, Ruling
from lookup.testing import cluster
from lookup_policies.threshold import Overload, Threshold
from tests.plugins.cycles import cycle, loaded

MIB = 1024 * 1024


def _cycle(
    view: ClusterView,
    part: Threshold | None = None,
    memory: dict[str, Any] | None = None,
    refused: Collection[str] = (),
) -> tuple[list[str], CycleOutcome]:
    """Run a cycle and return the accepted bundles in order, and the outcome."""
    cycle = (part or Threshold()).propose(view, {} if memory is None else memory)
    accepted: list[str] = []
    try:
        unload = next(cycle)
        while True:
            assert view.brokers[view.ownership.owner(unload.bundle) or 0].id == unload.source
            good = unload.bundle not in refused
            if good:
                accepted.append(unload.bundle)
            unload = cycle.send(Ruling(good, None if good else Reason.GRACE_PERIOD))
    except StopIteration as ended:
        return accepted, ended.value


def _view(usage: Mapping[str, float], loads: Mapping[str, Mapping[str, float]], **figures: Any) -> ClusterView:
    """Build a cluster from usage by broker and load by bundle (its local name) by broker."""
    owned = {f"t/n/{bundle}": owner for owner, bundles in loads.items() for bundle in bundles}
    bundle_loads = {f"t/n/{bundle}": load for bundles in loads.values() for bundle, load in bundles.items()}
    return cluster(*usage, usage=usage, owned=owned, bundle_loads=bundle_loads, **figures)


def _short(bundles: list[str]) -> list[str]:
    return [bundle.rpartition("/")[2] for bundle in bundles]


HOT = {"hot": {"one": 10.0, "two": 20.0, "three": 30.0}, "cold": {"four": 1.0}}


def test_upstreams_example_with_recently_unloaded_bundles() -> None:
    """Pulsar's own test: bundles 10 and 9 are refused, 8 to 5 make up what is needed."""
    bundles = {f"bundle-{place}": 2.0 * place * MIB for place in range(1, 11)}
    view = _view({"broker-1": 0.999, "broker2": 0.0}, {"broker-1": bundles}, throughput={"broker-1": 110.0 * MIB})
    accepted, outcome = _cycle(view, refused={"t/n/bundle-10", "t/n/bundle-9"})

    assert _short(accepted) == ["bundle-8", "bundle-7", "bundle-6", "bundle-5"]
    assert (outcome.label, outcome.reason) == (CycleLabel.SUCCESS, CycleReason.OVERLOADED)


def test_the_most_loaded_bundles_go_until_enough_has_gone() -> None:
    """60 x (0.9 - 0.5 - 0.1 + 0.05) = 21: the largest bundle is enough."""
    accepted, outcome = _cycle(_view({"hot": 0.9, "cold": 0.1}, HOT))

    assert _short(accepted) == ["three"]
    assert outcome.average == pytest.approx(0.5)
    assert outcome.deviation == pytest.approx(0.4)
    assert outcome.modelled_deviation is None


def test_just_above_the_threshold_is_overloaded() -> None:
    """0.11 above an average of 0.5 exceeds 0.1."""
    assert _short(_cycle(_view({"hot": 0.61, "cold": 0.39}, HOT))[0]) == ["three"]


@pytest.mark.parametrize(
    ("usage", "loads", "expected"),
    [
        ({}, {}, CycleReason.NO_BROKERS),
        ({"hot": 0.999}, {"hot": {"one": 1.0, "two": 1.0}}, CycleReason.HIT_COUNT),
        ({"hot": 0.9, "cold": 0.1}, {"hot": {"one": 60.0}}, CycleReason.NO_BUNDLES),
        ({"hot": 0.0, "cold": 0.0}, HOT, CycleReason.HIT_COUNT),
        ({"hot": 0.59, "cold": 0.41}, HOT, CycleReason.HIT_COUNT),
    ],
    ids=["no-brokers", "a-single-broker", "a-single-bundle", "idle", "below-the-threshold"],
)
def test_there_may_be_nothing_to_do(
    usage: dict[str, float], loads: dict[str, dict[str, float]], expected: CycleReason
) -> None:
    """A cycle without unloads says why."""
    accepted, outcome = _cycle(_view(usage, loads))

    assert (accepted, outcome.label, outcome.reason) == ([], CycleLabel.SKIP, expected)


def test_brokers_without_report_do_not_count() -> None:
    """The average is that of registered brokers with a report."""
    unreported = cluster("hot", "cold", owned={"t/n/one": "hot"})
    gone = _view({"hot": 0.9, "cold": 0.1}, HOT, registered=["hot"])

    assert _cycle(unreported)[1].reason == CycleReason.NO_LOAD_DATA
    assert _cycle(gone)[1].average == 0.9


def test_too_little_to_offload_is_left() -> None:
    """Below `min_offload` nothing moves, and the cycle says so; at it something does."""
    view = _view({"hot": 0.9, "cold": 0.1}, HOT)
    accepted, outcome = _cycle(view, Threshold(min_offload=21.01))

    assert (accepted, outcome.reason) == ([], CycleReason.TOO_LITTLE)
    assert _cycle(view, Threshold(min_offload=20.99))[0] != []


def test_usage_is_smoothed_over_cycles() -> None:
    """A spike moves the memory by a tenth of its height; what is kept is JSON-able and forgets brokers that left."""
    memory: dict[str, Any] = {"usage": {"hot": 0.5, "cold": 0.5, "left": 0.5}}
    accepted, outcome = _cycle(_view({"hot": 1.0, "cold": 0.5}, HOT), memory=memory)

    assert accepted == []
    assert memory["usage"] == pytest.approx({"hot": 0.55, "cold": 0.5})
    assert outcome.average == pytest.approx(0.525)


def test_without_history_only_the_present_counts() -> None:
    """`history` 0 forgets at once."""
    memory: dict[str, Any] = {"usage": {"hot": 0.5, "cold": 0.5}}

    assert _cycle(_view({"hot": 0.9, "cold": 0.1}, HOT), Threshold(history=0.0), memory)[0] == ["t/n/three"]


LOW = {"hot": 0.62, "also": 0.62, "able": 0.60, "cold": 0.3}
LOW_LOADS = {"hot": {"single": 60.0}, "able": {"one": 2.0, "two": 2.5}, "cold": {"four": 1.0}}


@pytest.mark.parametrize("lower_boundary", [False, True])
def test_a_broker_far_below_the_average_may_get_something(lower_boundary: bool) -> None:
    """With the lower boundary the busiest broker with bundles to spare gives up half the threshold's worth."""
    part = Threshold(lower_boundary=lower_boundary)
    accepted, outcome = _cycle(_view(LOW, LOW_LOADS), part)

    assert _short(accepted) == (["two"] if lower_boundary else [])
    assert outcome.reason == (CycleReason.UNDERLOADED if lower_boundary else CycleReason.HIT_COUNT)


def test_the_lower_boundary_moves_the_average_a_second_time() -> None:
    """As in Pulsar, looking for it advances the smoothed usage once more."""
    memory: dict[str, Any] = {"usage": dict.fromkeys(LOW, 0.5)}
    _cycle(_view(LOW, LOW_LOADS), Threshold(lower_boundary=True), memory)

    assert memory["usage"]["hot"] == pytest.approx(0.5 * 0.81 + 0.62 * 0.19)


def test_under_the_lower_boundary_only_the_busiest_broker_gives_up_bundles() -> None:
    """Of several brokers with bundles to spare it is the one with the highest usage, of equals the first by id."""
    loads = {name: {f"{name}-small": 2.0, f"{name}-large": 2.5} for name in ("busy", "busier", "equal")}
    view = _view({"busy": 0.55, "busier": 0.57, "equal": 0.57, "cold": 0.39}, {**loads, "cold": {"four": 1.0}})

    assert _short(_cycle(view, Threshold(lower_boundary=True))[0]) == ["busier-large"]


def test_the_lower_boundary_needs_somebody_below_it() -> None:
    """Where all are near the average nothing moves."""
    view = _view(dict.fromkeys(LOW, 0.5), LOW_LOADS)

    assert _cycle(view, Threshold(lower_boundary=True))[0] == []


@settings(max_examples=50)
@given(st.data())
def test_only_overloaded_brokers_give_up_bundles_and_none_twice(data: st.DataObject) -> None:
    """Every accepted bundle is proposed once and belongs to a broker above the average."""
    usage = data.draw(st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 2), min_size=1))
    loads = {one: {f"{one}{place}": data.draw(st.floats(0.1, 9)) for place in range(4)} for one in usage}
    view = _view(usage, loads)
    refused = data.draw(st.sets(st.sampled_from(sorted(f"t/n/{one}{place}" for one in usage for place in range(4)))))
    accepted, outcome = _cycle(view, refused=refused)

    assert len(accepted) == len(set(accepted))
    assert (outcome.label == CycleLabel.SUCCESS) is bool(accepted)
    assert all(usage[_short([bundle])[0][0]] > (outcome.average or 0.0) for bundle in accepted)


def test_the_intended_lower_boundary_moves_nothing_twice() -> None:
    """Without quirks looking for it leaves smoothed usage alone."""
    memory: dict[str, Any] = {"usage": dict.fromkeys(LOW, 0.5)}
    _cycle(_view(LOW, LOW_LOADS), Threshold(lower_boundary=True, quirks="intended"), memory)

    assert memory["usage"]["hot"] == pytest.approx(0.5 * 0.9 + 0.62 * 0.1)


def test_the_fullest_resource_is_the_usage() -> None:
    """The largest weighted percentage; memory and direct memory weigh nothing by default."""
    resources = {"hot": {"cpu": 50.0, "memory": 99.0, "bandwidth_in": 90.0}, "cold": {"direct_memory": 99.0}}
    view = _view({"hot": 0.0, "cold": 0.0}, HOT, resources=resources)
    memory: dict[str, Any] = {}
    accepted, outcome = _cycle(view, memory=memory)

    assert (_short(accepted), outcome.average) == (["three"], 0.45)
    assert memory["usage"] == {"hot": 0.9, "cold": 0.0}


def test_resources_above_100_percent_count() -> None:
    """ThresholdShedder.updateAvgResourceUsage has no limit: a card that carries more than it says is overloaded."""
    resources = {"hot": {"cpu": 60.0, "bandwidth_in": 120.0}, "cold": {"cpu": 20.0, "bandwidth_out": 20.0}}
    memory: dict[str, Any] = {}
    accepted, _ = _cycle(_view({"hot": 0.0, "cold": 0.0}, HOT, resources=resources), memory=memory)

    assert (memory["usage"], bool(accepted)) == ({"hot": 1.2, "cold": 0.2}, True)


def test_a_cycle_says_how_many_were_over_and_by_how_much() -> None:
    """0.9 is 0.3 above what an average of 0.5 and a threshold of 0.1 tolerate; 0.59 is not above it."""
    over, balanced = (
        _cycle(_view(usage, HOT))[1] for usage in ({"hot": 0.9, "cold": 0.1}, {"hot": 0.59, "cold": 0.41})
    )

    assert (over.over, over.excess) == (1, pytest.approx(0.3))
    assert (balanced.over, balanced.excess) == (0, 0.0)


FULL = {"hot": {"one": 10.0, "two": 20.0, "three": 70.0}, "cold": {"four": 1.0, "five": 2.0}}


def test_the_most_loaded_bundles_go_until_the_fixed_usage_is_reached() -> None:
    """100 x (0.95 - 0.85 + 0.05) = 15: one is enough, and without it the next two are needed."""
    view = loaded(FULL, usage={"hot": 0.95, "cold": 0.1})

    assert cycle(Overload(), view)[0] == ["three"]
    assert cycle(Overload(), view, refused={"three"})[0] == ["two"]
    assert cycle(Overload(), view, refused={"three", "two"})[0] == ["one"]


@pytest.mark.parametrize(("usage", "accepted"), [(0.85, ["three"]), (0.849, [])])
def test_the_threshold_itself_is_too_much(usage: float, accepted: list[str]) -> None:
    """The limit belongs to what is overloaded."""
    assert cycle(Overload(), loaded(FULL, usage={"hot": usage, "cold": 0.1}))[0] == accepted


def test_all_brokers_may_be_overloaded() -> None:
    """Nobody asks where the bundles could go."""
    accepted, outcome = cycle(Overload(), loaded(FULL, usage={"hot": 0.9, "cold": 1.3}))

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
def test_no_broker_may_have_reached_the_fixed_usage(
    usage: dict[str, float], registered: list[str] | None, reason: CycleReason
) -> None:
    """A cycle without unloads says why."""
    figures = {} if registered is None else {"registered": registered}
    accepted, outcome = cycle(Overload(), loaded(FULL, usage=usage, **figures))

    assert (accepted, outcome.label, outcome.reason) == ([], CycleLabel.SKIP, reason)


@pytest.mark.parametrize(("resource", "accepted"), [("memory", []), ("direct_memory", []), ("cpu", ["three"])])
def test_memory_does_not_count(resource: str, accepted: list[str]) -> None:
    """Of single resources the largest weighted one counts."""
    resources = {"hot": {resource: 90.0, "bandwidth_in": 20.0}, "cold": {}}

    assert cycle(Overload(), loaded(FULL, resources=resources))[0] == accepted


@settings(max_examples=50)
@given(st.data())
def test_only_brokers_at_the_fixed_usage_give_up_bundles_and_none_twice(data: st.DataObject) -> None:
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


def test_a_cycle_says_how_many_had_reached_the_fixed_usage_and_by_how_much() -> None:
    """0.9 and 1.3 against 0.85."""
    _, outcome = cycle(Overload(), loaded(FULL, usage={"hot": 0.9, "cold": 1.3}))

    assert (outcome.over, outcome.excess) == (2, pytest.approx(0.45))
