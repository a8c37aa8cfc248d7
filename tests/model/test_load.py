"""What policies see of load: weighted usage, mean and deviation, rankings of bundles."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model import RESOURCES, IsolationPolicy, LoadStats, NamespaceBundleStats, NamespacePolicies, weighted_usage
from lookup.model.load import BundleLoad, Load, Traffic, ascending, may_be_shed, top_bundles

PERCENT = np.array([[50.0, 90.0, 20.0, 120.0, 0.0], [np.nan] * 5, [150.0, 0.0, 0.0, 130.0, 0.0]])


def test_the_largest_weighted_percentage_counts() -> None:
    """Weights may leave a resource out or stress it; a broker without report has no usage."""
    assert len(RESOURCES) == PERCENT.shape[1]
    assert weighted_usage(PERCENT, (1, 0, 1, 1, 1))[[0, 2]].tolist() == [1.2, 1.5]
    assert weighted_usage(PERCENT, (1, 1, 1, 0, 1))[0] == 0.9
    assert np.isnan(weighted_usage(PERCENT, (0, 0, 0, 0, 0))[1])


LOADS = st.lists(st.floats(0, 10), min_size=2, max_size=20)


def test_round_off_never_makes_a_deviation_negative() -> None:
    """Three equal loads whose mean square comes out below the square of their mean have deviation zero."""
    loads = [0.1, 0.1, 0.1]
    average = sum(loads) / 3

    assert sum(load * load for load in loads) / 3 - average * average < 0
    assert LoadStats.of(loads).deviation == 0.0


def test_a_source_does_not_fall_below_zero() -> None:
    """More than there is cannot leave it."""
    assert LoadStats.of([1.0, 3.0]).after_move(3.0, 1.0, 5.0).squares == 36.0


@given(LOADS)
def test_figures_are_mean_and_population_deviation(loads: list[float]) -> None:
    """As the standard library has them."""
    stats = LoadStats.of(loads)

    assert stats.average == pytest.approx(statistics.fmean(loads))
    assert stats.deviation == pytest.approx(statistics.pstdev(loads), abs=1e-6)


@given(LOADS, st.floats(0, 1))
def test_moving_leaves_the_figures_of_the_loads_after_it(loads: list[float], share: float) -> None:
    """The first load gives some of itself to the second."""
    amount = loads[0] * share
    after = [loads[0] - amount, loads[1] + amount, *loads[2:]]
    moved = LoadStats.of(loads).after_move(loads[0], loads[1], amount)

    assert moved.average == pytest.approx(statistics.fmean(after))
    assert moved.deviation == pytest.approx(statistics.pstdev(after), abs=1e-6)


_STATS = st.builds(
    NamespaceBundleStats,
    msg_throughput_in=st.floats(0, 1e7),
    msg_throughput_out=st.floats(0, 1e7),
    topics=st.integers(0, 9),
)
_BUNDLES = st.dictionaries(st.integers(0, 99).map("t/n/{}".format), _STATS, max_size=20)


def _busy(load: float) -> NamespaceBundleStats:
    return NamespaceBundleStats(msg_throughput_in=load * 1e6)


@given(_BUNDLES, st.integers(0, 25))
def test_the_order_bundles_come_in_does_not_matter(stats: dict[str, NamespaceBundleStats], k: int) -> None:
    """Pulsar leaves ties open; here names decide."""
    turned = dict(reversed(stats.items()))

    assert top_bundles(turned, k) == top_bundles(stats, k)


def test_bundles_that_carry_anything_can_be_asked_for() -> None:
    """Idle ones, those of system namespaces and those of unknown load are known, but carry nothing to move."""
    entries = [BundleLoad("t/n/0", 0.0), BundleLoad("pulsar/system/0", 9.0), BundleLoad("t/n/1", math.nan)]
    load = _one_broker("bytes/s", BundleLoad("t/n/2", 1.0), *entries)

    assert len(load.top_bundles[0]) == 4
    assert load.loaded_bundles(0) == [BundleLoad("t/n/2", 1.0)]


def test_idle_bundles_and_those_of_the_system_are_left_out() -> None:
    """However many messages or topics they have."""
    stats = {
        "pulsar/system/0x00000000_0xffffffff": _busy(9),
        "t/idle/0x00000000_0xffffffff": NamespaceBundleStats(msg_rate_in=1e6, topics=99),
        "t/n/0x00000000_0xffffffff": _busy(1),
    }

    assert top_bundles(stats, 3) == ["t/n/0x00000000_0xffffffff"]


_POLICIES = NamespacePolicies(
    isolation={"t/isolated": (IsolationPolicy(("b",)),)}, anti_affinity_group={"t/apart": "g"}
)


@pytest.mark.parametrize(
    ("with_policies", "wanted"), [(False, ["t/n/0"]), (True, ["t/isolated/0", "t/apart/0", "t/n/0"])]
)
def test_namespaces_with_policies_are_left_out_unless_asked_for(*, with_policies: bool, wanted: list[str]) -> None:
    """Isolation and anti-affinity alike."""
    stats = {"t/n/0": _busy(3), "t/apart/0": _busy(2), "t/isolated/0": _busy(1)}

    chosen = top_bundles(stats, 5, policies=_POLICIES, with_policies=with_policies)

    assert chosen == wanted


def _one_broker(unit: Any, *entries: BundleLoad, stats: dict[str, NamespaceBundleStats] | None = None) -> Load:
    return replace(
        Load.unknown(1), top_bundles=[ascending(entries)], bundle_unit=unit, traffic=Traffic(stats=stats or {})
    )


_NEARLY_ALIKE = (
    BundleLoad("t/n/0", 2_020_000.0, 900.0),
    BundleLoad("t/n/1", 2_010_000.0, 1000.0),
    BundleLoad("t/n/2", 9_000_000.0, 5.0),
)


@pytest.mark.parametrize(
    ("unit", "wanted"), [("bytes/s", ["t/n/0", "t/n/1", "t/n/2"]), ("weight/s", ["t/n/1", "t/n/0", "t/n/2"])]
)
def test_bytes_are_ranked_in_steps_and_weights_by_themselves(unit: str, wanted: list[str]) -> None:
    """10 kB/s are less than a step, so 100 messages more decide; of the weight of lookups every bit counts."""
    load = _one_broker(unit, *_NEARLY_ALIKE)

    assert [entry.bundle for entry in load.reported_bundles(0, 3)] == wanted
    assert [entry.bundle for entry in load.reported_bundles(0, 2)] == wanted[1:]


def test_statistics_of_bundles_are_preferred_to_halves_of_their_load() -> None:
    """All of one bundle's traffic comes in, which ranks before what goes out."""
    stats = {"t/n/1": NamespaceBundleStats(msg_throughput_in=2_010_000.0)}

    load = _one_broker("bytes/s", *_NEARLY_ALIKE[:2], stats=stats)

    assert [entry.bundle for entry in load.reported_bundles(0, 1)] == ["t/n/1"]


@pytest.mark.parametrize("unit", ["bytes/s", "weight/s"])
@pytest.mark.parametrize(("with_policies", "count"), [(False, 1), (True, 3)])
def test_reports_name_bundles_of_namespaces_with_policies_if_asked_for(
    unit: str, count: int, *, with_policies: bool
) -> None:
    """In either unit; those of the system never."""
    names = ("t/n/0", "t/apart/0", "t/isolated/0", "pulsar/system/0")
    load = _one_broker(unit, *(BundleLoad(name, 1e6) for name in names))

    assert len(load.reported_bundles(0, 9, policies=_POLICIES, with_policies=with_policies)) == count


def test_arrays_of_a_load_that_is_shown_cannot_be_written_to() -> None:
    """Not even those that only some loads have; the originals can."""
    load = Load.unknown(2)
    shown = replace(load, max_usage=np.zeros(2)).read_only()

    assert load.usage.flags.writeable
    assert shown.max_usage is not None
    assert not any(column.flags.writeable for column in (shown.usage, shown.topics, shown.max_usage))


def test_a_namespace_without_policies_may_be_shed() -> None:
    """An empty list of policies and a blank group are none."""
    blank = NamespacePolicies(isolation={"t/n": ()}, anti_affinity_group={"t/n": " "})

    assert may_be_shed("t/n", blank)
    assert not may_be_shed("t/isolated", _POLICIES)
    assert not may_be_shed("t/apart", _POLICIES)


def test_renumbered_columns_follow_their_brokers() -> None:
    """A new broker has no report, one that is gone none any more, whatever the load knows."""
    rows = np.arange(3.0)
    load = Load(
        usage=rows,
        throughput=rows * 10,
        topics=np.array([1, 2, 3]),
        top_bundles=[(BundleLoad("t/n/a", 1.0),), (), (BundleLoad("t/n/c", 3.0),)],
        demand={"rack": {"a": 1.0}},
        updated_us=np.array([7, 8, 9]),
        store_order=[2, 0, 1],
        resources=np.arange(15.0).reshape(3, 5),
    )
    after = load.renumber([2, -1, 0])

    assert np.array_equal(after.usage, [2.0, np.nan, 0.0], equal_nan=True)
    assert np.array_equal(after.throughput, [20.0, np.nan, 0.0], equal_nan=True)
    assert (after.topics.tolist(), after.updated_us.tolist() if after.updated_us is not None else None) == (
        [3, 0, 1],
        [9, 0, 7],
    )
    assert list(after.top_bundles) == [(BundleLoad("t/n/c", 3.0),), (), (BundleLoad("t/n/a", 1.0),)]
    assert (after.store_order, after.demand, after.max_usage) == ([0, 2], load.demand, None)
    assert after.resources is not None
    assert np.isnan(after.resources[1]).all()
    assert after.resources[[0, 2]].tolist() == [[10.0, 11.0, 12.0, 13.0, 14.0], [0.0, 1.0, 2.0, 3.0, 4.0]]


def test_a_load_of_no_brokers_may_grow() -> None:
    """A cluster may begin with none."""
    after = Load.unknown(0).renumber([-1, -1])

    assert np.isnan(after.usage).tolist() == [True, True]
    assert (after.topics.tolist(), list(after.top_bundles)) == ([0, 0], [(), ()])
