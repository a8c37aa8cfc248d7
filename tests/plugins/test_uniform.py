"""The shedder `uniform`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.model import ClusterView, CycleLabel, CycleReason
from lookup_policies.uniform import Uniform
from tests.plugins.cycles import cycle, loaded

MIB = 1024.0 * 1024.0
#: 70, 3 and 2 MiB/s: a fifth of the difference is 13.6 MiB/s.
LOADS = {
    "hot": {"huge": 50 * MIB, "big": 10 * MIB, "middle": 6 * MIB, "small": 3 * MIB, "tiny": 1 * MIB},
    "warm": {"other": 3 * MIB},
    "cold": {"last": 2 * MIB},
}
RATES = {"a": 2000.0, "b": 1500.0, "c": 500.0, "d": 6000.0}
BY_RATE = {"hot": dict.fromkeys("abcd", 1.0), "cold": {"e": 1.0}}
_SHARE = 4.9 / 24.5


def _by_rate(hot: float = 10_000.0, cold: float = 4_000.0, **rates: float) -> ClusterView:
    return loaded(BY_RATE, bundle_rates={**RATES, **rates}, rates={"hot": hot, "cold": cold})


_LOADED, _QUIET = loaded(LOADS), loaded({"hot": {"a": 1.0, "b": 10.0}, "cold": {}})
_HIDDEN = loaded(LOADS, rates={"hot": 900.0, "warm": 100.0, "cold": 100.0})
_FIFTH = loaded({"hot": {"a": 5.0, "b": 96.0}, "cold": {"c": 1.0}})
_FRACTIONS = loaded({"hot": {"a": 1.99, "b": 1.99, "c": 1.2, "d": 20.32}, "cold": {"e": 1.0}})
_BEYOND = loaded({"hot": {"a": 2.5e9, "b": 10e9}, "cold": {"c": 10e9}})
_FOURFOLD = {
    most: loaded({"hot": {"a": 0.5 * MIB, "b": (most - 0.5) * MIB}, "cold": {"c": 2 * MIB}}) for most in (8.0, 8.01)
}


@pytest.mark.parametrize(
    ("part", "view", "refused", "expected"),
    [
        # More than four times the least: bundles that fit into what remains go, most loaded first.
        (Uniform(), _LOADED, (), ["big", "small"]),
        # What a refused bundle would have taken remains for the others.
        (Uniform(), _LOADED, ("big",), ["middle", "small", "tiny"]),
        # So many bundles at most, refused ones left out.
        (Uniform(max_bundles=1), _LOADED, (), ["big"]),
        (Uniform(max_bundles=1), _LOADED, ("big",), ["middle"]),
        (Uniform(max_bundles=0), _LOADED, (), []),
        # Four times the least is not yet too much.
        (Uniform(min_throughput=0.0), _FOURFOLD[8.0], (), []),
        (Uniform(min_throughput=0.0), _FOURFOLD[8.01], (), ["a"]),
        # 10,000 against 4,000 messages per second come first: 1,200 have to go, in bundles of at most that much.
        (Uniform(), _by_rate(), (), ["c"]),
        (Uniform(max_share=0.5), _by_rate(), (), ["a", "c"]),
        # With 1,000 in addition 2,000 fit, and the 200 that remain are less than 500.
        (Uniform(extra=1000.0), _by_rate(), (), ["a"]),
        # Where messages are too far apart throughput is not looked at, even if too few would move.
        (Uniform(), _HIDDEN, (), CycleReason.TOO_LITTLE),
        (Uniform(rate_difference=0.0), _HIDDEN, (), ["big", "small"]),
        # Half as many messages again are not yet too many.
        (Uniform(min_rate=100.0), _by_rate(1500.0, 1000.0), (), CycleReason.HIT_COUNT),
        (Uniform(min_rate=100.0), _by_rate(1501.0, 1000.0, a=10.0, b=10.0, c=10.0, d=10.0), (), ["d", "c", "b", "a"]),
        # A fifth of the difference has to be worth the minimum, which itself is enough.
        (Uniform(min_throughput=20.0), _FIFTH, (), ["a"]),
        (Uniform(min_throughput=20.5), _FIFTH, (), CycleReason.TOO_LITTLE),
        # The busiest broker keeps its only bundle.
        (Uniform(max_share=2.0), loaded({"hot": {"a": 90 * MIB}, "cold": {"c": 1.0}}), (), CycleReason.NO_BUNDLES),
        # Nothing is divided by zero: a broker without traffic counts as one, in the difference too.
        (Uniform(min_throughput=0.0), _QUIET, (), ["a"]),
        (Uniform(min_throughput=2.5), _QUIET, (), []),
        # Upstream counts in whole numbers: 1.99 of 4.9 required count as 1 of 4, so one more goes.
        (Uniform(max_share=_SHARE, min_throughput=0.0), _FRACTIONS, (), ["b", "a", "c"]),
        (Uniform(max_share=_SHARE, min_throughput=0.0, quirks="intended"), _FRACTIONS, (), ["b", "a"]),
        # And of 32 bits: above 2^31 - 1 that number stands for the least, and nothing above it can be required.
        (Uniform(max_share=1.0), _BEYOND, (), CycleReason.NO_BUNDLES),
        (Uniform(max_share=1.0, quirks="intended"), _BEYOND, (), CycleReason.HIT_COUNT),
        # And takes bundles without messages: they fit into whatever remains.
        (Uniform(), _by_rate(b=0.0), (), ["c", "b"]),
        (Uniform(quirks="intended"), _by_rate(b=0.0), (), ["c"]),
        (Uniform(), loaded(LOADS, throughput={}), (), CycleReason.NO_LOAD_DATA),
        (Uniform(), loaded(LOADS, registered=[]), (), CycleReason.NO_BROKERS),
        (Uniform(), loaded(LOADS, registered=["warm", "cold"]), (), CycleReason.HIT_COUNT),
    ],
)
def test_the_busiest_evens_out(
    part: Uniform, view: ClusterView, refused: tuple[str, ...], expected: list[str] | CycleReason
) -> None:
    """With these bundles, in this order, or with none for this reason."""
    accepted, outcome = cycle(part, view, refused=refused)

    assert outcome.label == (CycleLabel.SUCCESS if accepted else CycleLabel.SKIP)
    if isinstance(expected, CycleReason):
        assert (accepted, outcome.reason) == ([], expected)
    else:
        assert accepted == expected
        assert outcome.average is None


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


@pytest.mark.parametrize(("view", "excess"), [(_LOADED, 31.0), (_by_rate(), 1.0)])
def test_a_cycle_says_how_far_the_busiest_is_ahead(view: ClusterView, excess: float) -> None:
    """70 MiB/s are 35 times the least, 31 more than tolerated; 10,000 messages 150 % more, 100 points too many."""
    _, outcome = cycle(Uniform(), view)

    assert (outcome.reason, outcome.over, outcome.excess) == (CycleReason.OVERLOADED, 1, pytest.approx(excess))
