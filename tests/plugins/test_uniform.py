"""The shedder `uniform`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.model import CycleLabel, CycleReason
from lookup_policies.uniform import Uniform
from tests.plugins.cycles import cycle, loaded

MIB = 1024.0 * 1024.0
#: 70, 3 and 2 MiB/s: a fifth of the difference is 13.6 MiB/s.
LOADS = {
    "hot": {"huge": 50 * MIB, "big": 10 * MIB, "middle": 6 * MIB, "small": 3 * MIB, "tiny": 1 * MIB},
    "warm": {"other": 3 * MIB},
    "cold": {"last": 2 * MIB},
}


def test_the_busiest_evens_out_by_throughput() -> None:
    """More than four times the least: bundles that fit into what remains go, most loaded first."""
    accepted, outcome = cycle(Uniform(), loaded(LOADS))

    assert accepted == ["big", "small"]
    assert (outcome.label, outcome.reason) == (CycleLabel.SUCCESS, CycleReason.OVERLOADED)
    assert outcome.average is None


def test_a_refused_bundle_is_passed_over() -> None:
    """What it would have taken remains for the others."""
    assert cycle(Uniform(), loaded(LOADS), refused={"big"})[0] == ["middle", "small", "tiny"]


@pytest.mark.parametrize(("most", "accepted"), [(8.0, []), (8.01, ["a"])])
def test_four_times_the_least_is_not_yet_too_much(most: float, accepted: list[str]) -> None:
    """The limit is strict."""
    view = loaded({"hot": {"a": 0.5 * MIB, "b": (most - 0.5) * MIB}, "cold": {"c": 2 * MIB}})

    assert cycle(Uniform(min_throughput=0.0), view)[0] == accepted


RATES = {"a": 2000.0, "b": 1500.0, "c": 500.0, "d": 6000.0}
BY_RATE = {"hot": dict.fromkeys("abcd", 1.0), "cold": {"e": 1.0}}


def test_messages_come_first() -> None:
    """10,000 against 4,000 messages per second: 1,200 have to go, in bundles of at most that much."""
    view = loaded(BY_RATE, bundle_rates=RATES, rates={"hot": 10_000.0, "cold": 4_000.0})

    assert cycle(Uniform(), view)[0] == ["c"]
    assert cycle(Uniform(max_share=0.5), view)[0] == ["a", "c"]


def test_messages_that_are_ahead_hide_throughput() -> None:
    """Where messages are too far apart throughput is not looked at, even if too few would move."""
    view = loaded(LOADS, rates={"hot": 900.0, "warm": 100.0, "cold": 100.0})

    assert cycle(Uniform(), view)[1].reason == CycleReason.TOO_LITTLE
    assert cycle(Uniform(rate_difference=0.0), view)[0] == ["big", "small"]


@pytest.mark.parametrize(("rate", "label"), [(1500.0, CycleLabel.SKIP), (1501.0, CycleLabel.SUCCESS)])
def test_half_as_many_messages_again_are_not_yet_too_many(rate: float, label: CycleLabel) -> None:
    """The limit is strict."""
    view = loaded(BY_RATE, bundle_rates=dict.fromkeys("abcd", 10.0), rates={"hot": rate, "cold": 1000.0})

    assert cycle(Uniform(min_rate=100.0), view)[1].label == label


def test_too_little_is_left() -> None:
    """A fifth of the difference has to be worth the minimum, which itself is enough."""
    view = loaded({"hot": {"a": 5.0, "b": 96.0}, "cold": {"c": 1.0}})

    assert cycle(Uniform(min_throughput=20.0), view)[0] == ["a"]
    assert cycle(Uniform(min_throughput=20.5), view)[1].reason == CycleReason.TOO_LITTLE


def test_a_sole_bundle_stays() -> None:
    """The busiest broker keeps its only bundle."""
    view = loaded({"hot": {"a": 90 * MIB}, "cold": {"c": 1.0}})

    assert cycle(Uniform(max_share=2.0), view)[1].reason == CycleReason.NO_BUNDLES


def test_so_many_bundles_at_most() -> None:
    """Refused ones do not count."""
    assert cycle(Uniform(max_bundles=1), loaded(LOADS))[0] == ["big"]
    assert cycle(Uniform(max_bundles=1), loaded(LOADS), refused={"big"})[0] == ["middle"]
    assert cycle(Uniform(max_bundles=0), loaded(LOADS))[0] == []


def test_a_broker_without_traffic_counts_as_one() -> None:
    """Nothing is divided by zero: the least becomes one, in the difference too."""
    view = loaded({"hot": {"a": 1.0, "b": 10.0}, "cold": {}})

    assert cycle(Uniform(min_throughput=0.0), view)[0] == ["a"]
    assert cycle(Uniform(min_throughput=2.5), view)[0] == []


def test_upstream_counts_in_whole_numbers() -> None:
    """1.99 of 4.9 required count as 1 of 4, so one more goes."""
    view = loaded({"hot": {"a": 1.99, "b": 1.99, "c": 1.2, "d": 20.32}, "cold": {"e": 1.0}})
    share = 4.9 / 24.5

    assert cycle(Uniform(max_share=share, min_throughput=0.0), view)[0] == ["b", "a", "c"]
    assert cycle(Uniform(max_share=share, min_throughput=0.0, quirks="intended"), view)[0] == ["b", "a"]


def test_upstream_has_32_bits() -> None:
    """Both brokers above 2^31 - 1: that number stands for the least, and nothing above it can be required."""
    view = loaded({"hot": {"a": 2.5e9, "b": 10e9}, "cold": {"c": 10e9}})
    part = Uniform(max_share=1.0)

    assert cycle(part, view)[1].reason == CycleReason.NO_BUNDLES
    assert cycle(Uniform(max_share=1.0, quirks="intended"), view)[1].reason == CycleReason.HIT_COUNT


def test_upstream_takes_bundles_without_messages() -> None:
    """They fit into whatever remains."""
    view = loaded(BY_RATE, bundle_rates={**RATES, "b": 0.0}, rates={"hot": 10_000.0, "cold": 4_000.0})

    assert cycle(Uniform(), view)[0] == ["c", "b"]
    assert cycle(Uniform(quirks="intended"), view)[0] == ["c"]


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        ({"throughput": {}}, CycleReason.NO_LOAD_DATA),
        ({"registered": []}, CycleReason.NO_BROKERS),
        ({"registered": ["warm", "cold"]}, CycleReason.HIT_COUNT),
    ],
)
def test_there_may_be_nothing_to_do(figures: dict[str, object], reason: CycleReason) -> None:
    """A cycle without unloads says why."""
    accepted, outcome = cycle(Uniform(), loaded(LOADS, **figures))

    assert (accepted, outcome.label, outcome.reason) == ([], CycleLabel.SKIP, reason)


@settings(max_examples=50)
@given(st.data())
def test_without_quirks_no_more_goes_than_is_required(data: st.DataObject) -> None:
    """What the busiest gives up is worth at most the share of the difference, and no bundle goes twice."""
    brokers = data.draw(st.integers(2, 5))
    loads = {f"b{n}": {f"{n}-{place}": data.draw(st.floats(0.1, 90)) for place in range(5)} for n in range(brokers)}
    accepted, _ = cycle(Uniform(min_throughput=0.0, throughput_multiple=1.01, quirks="intended"), loaded(loads))
    totals = [sum(bundles.values()) for bundles in loads.values()]
    moved = sum(bundles.get(one, 0.0) for one in accepted for bundles in loads.values())

    assert len(accepted) == len(set(accepted))
    assert moved <= 0.2 * (max(totals) - min(totals)) + 1e-9


def test_a_cycle_says_how_far_the_busiest_is_ahead() -> None:
    """70 MiB/s are 35 times the least, 31 more than tolerated; 10,000 messages 150 % more, 100 points too many."""
    by_rate = loaded(BY_RATE, bundle_rates=RATES, rates={"hot": 10_000.0, "cold": 4_000.0})
    outcomes = [cycle(Uniform(), view)[1] for view in (loaded(LOADS), by_rate)]

    assert [(outcome.over, outcome.excess) for outcome in outcomes] == [
        (1, pytest.approx(31.0)),
        (1, pytest.approx(1.0)),
    ]


def test_a_bundle_may_be_larger_by_the_extra() -> None:
    """Of 1,200 messages per second with 1,000 in addition: 2,000 fit, and the 200 that remain are less than 500."""
    view = loaded(BY_RATE, bundle_rates=RATES, rates={"hot": 10_000.0, "cold": 4_000.0})

    assert cycle(Uniform(extra=1000.0), view)[0] == ["a"]
