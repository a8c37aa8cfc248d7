"""Sheds from overloaded brokers: above the average by a threshold, or above a fixed usage."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.hooks import Shedder
from lookup.model import ClusterView, CycleLabel, CycleReason
from lookup.testing import cluster
from lookup_policies.threshold import Overload, Threshold
from tests.plugins.cycles import cycle, loaded

MIB = 1024 * 1024
HOT = {"hot": {"one": 10.0, "two": 20.0, "three": 30.0}, "cold": {"four": 1.0}}
LOW = {"hot": 0.62, "also": 0.62, "able": 0.60, "cold": 0.3}
LOW_LOADS = {"hot": {"single": 60.0}, "also": {}, "able": {"one": 2.0, "two": 2.5}, "cold": {"four": 1.0}}
FULL = {"hot": {"one": 10.0, "two": 20.0, "three": 70.0}, "cold": {"four": 1.0, "five": 2.0}}


def _used(hot: float, cold: float = 0.1, loads: Any = HOT, **figures: Any) -> ClusterView:
    return loaded(loads, usage={"hot": hot, "cold": cold}, **figures)


#: Pulsar's own test: bundles 10 and 9 are refused, 8 to 5 make up what is needed.
_UPSTREAM = loaded(
    {"broker-1": {f"bundle-{place}": 2.0 * place * MIB for place in range(1, 11)}, "broker2": {}},
    usage={"broker-1": 0.999, "broker2": 0.0},
)
_RESOURCES = {"hot": {"cpu": 50.0, "memory": 99.0, "bandwidth_in": 90.0}, "cold": {"direct_memory": 99.0}}
_BUSY = loaded(
    {name: {f"{name}-small": 2.0, f"{name}-large": 2.5} for name in ("busy", "busier", "equal")}
    | {"cold": {"four": 1.0}},
    usage={"busy": 0.55, "busier": 0.57, "equal": 0.57, "cold": 0.39},
)
_LOWER = Threshold(lower_boundary=True)


@pytest.mark.parametrize(
    ("part", "view", "refused", "expected"),
    [
        (Threshold(), _UPSTREAM, ("bundle-10", "bundle-9"), ["bundle-8", "bundle-7", "bundle-6", "bundle-5"]),
        # 60 x (0.9 - 0.5 - 0.1 + 0.05) = 21: the largest bundle is enough; 0.11 above an average of 0.5 exceeds 0.1.
        (Threshold(), _used(0.9), (), ["three"]),
        (Threshold(), _used(0.61, 0.39), (), ["three"]),
        (Threshold(), _used(0.59, 0.41), (), CycleReason.HIT_COUNT),
        (Threshold(), _used(0.0, 0.0), (), CycleReason.HIT_COUNT),
        (Threshold(), cluster(), (), CycleReason.NO_BROKERS),
        (Threshold(), loaded({"hot": {"one": 1.0, "two": 1.0}}, usage={"hot": 0.999}), (), CycleReason.HIT_COUNT),
        (Threshold(), _used(0.9, loads={"hot": {"one": 60.0}, "cold": {}}), (), CycleReason.NO_BUNDLES),
        (Threshold(), cluster("hot", "cold", owned={"t/n/one": "hot"}), (), CycleReason.NO_LOAD_DATA),
        (Threshold(min_offload=21.01), _used(0.9), (), CycleReason.TOO_LITTLE),
        (Threshold(min_offload=20.99), _used(0.9), (), ["three"]),
        # The largest weighted percentage counts, above 100 too; memory and direct memory weigh nothing by default.
        (Threshold(), loaded(HOT, resources=_RESOURCES), (), ["three"]),
        # Under the lower boundary the busiest broker with bundles to spare gives up half the threshold's worth.
        (Threshold(), loaded(LOW_LOADS, usage=LOW), (), CycleReason.HIT_COUNT),
        (_LOWER, loaded(LOW_LOADS, usage=LOW), (), ["two"]),
        (_LOWER, loaded(LOW_LOADS, usage=dict.fromkeys(LOW, 0.5)), (), CycleReason.HIT_COUNT),
        (_LOWER, _BUSY, (), ["busier-large"]),
        # 100 x (0.95 - 0.85 + 0.05) = 15: one is enough, and without it the next two are needed.
        (Overload(), _used(0.95, loads=FULL), (), ["three"]),
        (Overload(), _used(0.95, loads=FULL), ("three",), ["two"]),
        (Overload(), _used(0.95, loads=FULL), ("three", "two"), ["one"]),
        # The threshold itself is too much, and nobody asks where the bundles could go.
        (Overload(), _used(0.85, loads=FULL), (), ["three"]),
        (Overload(), _used(0.849, loads=FULL), (), CycleReason.HIT_COUNT),
        (Overload(), _used(0.9, 1.3, loads=FULL), (), ["five", "three"]),
        (Overload(), _used(0.9, loads={"hot": {"one": 9.0}, "cold": {}}), (), CycleReason.NO_BUNDLES),
        (Overload(), loaded(FULL), (), CycleReason.NO_LOAD_DATA),
        (Overload(), _used(0.9, loads=FULL, registered=[]), (), CycleReason.NO_BROKERS),
        *(
            (Overload(), loaded(FULL, resources={"hot": {name: 90.0, "bandwidth_in": 20.0}, "cold": {}}), (), expected)
            for name, expected in (
                ("memory", CycleReason.HIT_COUNT),
                ("direct_memory", CycleReason.HIT_COUNT),
                ("cpu", ["three"]),
            )
        ),
    ],
)
def test_a_cycle_unloads_or_says_why_not(
    part: Shedder, view: ClusterView, refused: tuple[str, ...], expected: list[str] | CycleReason
) -> None:
    """The most loaded bundles go until enough has gone."""
    accepted, outcome = cycle(part, view, refused=refused)

    assert outcome.label == (CycleLabel.SUCCESS if accepted else CycleLabel.SKIP)
    assert (outcome.reason if isinstance(expected, CycleReason) else accepted) == expected
    assert (outcome.reason == CycleReason.UNDERLOADED) == (part == _LOWER and bool(accepted))


_BOTH = {"hot": 0.5, "cold": 0.5}


@pytest.mark.parametrize(
    ("part", "view", "before", "after"),
    [
        # A spike moves the memory by a tenth of its height; brokers that left are forgotten.
        (Threshold(), _used(1.0, 0.5), {**_BOTH, "left": 0.5}, {"hot": 0.55, "cold": 0.5}),
        (Threshold(history=0.0), _used(0.9), _BOTH, {"hot": 0.9, "cold": 0.1}),
        # As in Pulsar, looking for the lower boundary advances the smoothed usage once more.
        (_LOWER, loaded(LOW_LOADS, usage=LOW), dict.fromkeys(LOW, 0.5), {"hot": 0.5 * 0.81 + 0.62 * 0.19}),
        (
            Threshold(lower_boundary=True, quirks="intended"),
            loaded(LOW_LOADS, usage=LOW),
            dict.fromkeys(LOW, 0.5),
            {"hot": 0.5 * 0.9 + 0.62 * 0.1},
        ),
        (Threshold(), loaded(HOT, resources=_RESOURCES), {}, {"hot": 0.9, "cold": 0.0}),
        # ThresholdShedder.updateAvgResourceUsage has no limit: a card may carry more than it says.
        (
            Threshold(),
            loaded(HOT, resources={"hot": {"cpu": 60.0, "bandwidth_in": 120.0}, "cold": {"bandwidth_out": 20.0}}),
            {},
            {"hot": 1.2, "cold": 0.2},
        ),
    ],
)
def test_usage_is_smoothed_over_cycles(
    part: Threshold, view: ClusterView, before: dict[str, float], after: dict[str, float]
) -> None:
    """What is kept is JSON-able."""
    memory: dict[str, Any] = {"usage": before} if before else {}
    cycle(part, view, memory)

    assert {name: memory["usage"][name] for name in after} == pytest.approx(after)
    assert "left" not in memory["usage"]


@pytest.mark.parametrize(
    ("part", "view", "average", "deviation", "over", "excess"),
    [
        # 0.9 is 0.3 above what an average of 0.5 and a threshold of 0.1 tolerate; 0.59 is not above it.
        (Threshold(), _used(0.9), 0.5, 0.4, 1, 0.3),
        (Threshold(), _used(0.59, 0.41), 0.5, 0.09, 0, 0.0),
        (Threshold(), _used(0.9, registered=["hot"]), 0.9, 0.0, 0, 0.0),
        (Overload(), _used(0.9, 1.3, loads=FULL), 1.1, 0.2, 2, 0.45),
    ],
)
def test_a_cycle_says_how_many_were_over_and_by_how_much(
    part: Shedder, view: ClusterView, average: float, deviation: float, over: int, excess: float
) -> None:
    """Beside the average of registered brokers with a report."""
    _, outcome = cycle(part, view)

    assert (outcome.average, outcome.deviation) == (pytest.approx(average), pytest.approx(deviation))
    assert (outcome.over, outcome.excess, outcome.modelled_deviation) == (over, pytest.approx(excess), None)


@pytest.mark.parametrize("part", [Threshold(), Overload()], ids=["threshold", "overload"])
@settings(max_examples=50)
@given(st.data())
def test_only_overloaded_brokers_give_up_bundles_and_none_twice(part: Shedder, data: st.DataObject) -> None:
    """Every accepted bundle is proposed once and belongs to a broker above the average, or at the fixed usage."""
    usage = data.draw(st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 2), min_size=1))
    loads = {one: {f"{one}{place}": data.draw(st.floats(0.1, 9)) for place in range(4)} for one in usage}
    refused = data.draw(st.sets(st.sampled_from(sorted(f"{one}{place}" for one in usage for place in range(4)))))
    accepted, outcome = cycle(part, loaded(loads, usage=usage), refused=refused)

    assert len(accepted) == len(set(accepted))
    assert (outcome.label == CycleLabel.SUCCESS) is bool(accepted)
    for bundle in accepted:
        assert usage[bundle[0]] >= 0.85 if part == Overload() else usage[bundle[0]] > (outcome.average or 0.0)
