"""The shedder `transfer`; Pulsar's own expectations are run by `tests/vectors/test_areas.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lookup.model import (
    ClusterView,
    CycleLabel,
    CycleOutcome,
    CycleReason,
    IsolationPolicy,
    NamespacePolicies,
    Probe,
    Reason,
    Ruling,
    Unload,
)
from lookup.testing import cluster
from lookup_policies.transfer import Transfer
from tests.plugins.cycles import loading

NOW_US = 10_000_000_000
AT_ONCE = Transfer(hit_count=0)

Loads = Mapping[str, Mapping[str, float]]
#: A full broker, an empty one and one between.
UNEVEN: Loads = {"full": {"f1": 10.0, "f2": 20.0, "f3": 50.0}, "half": {"h1": 15.0, "h2": 25.0}, "none": {}}


def _view(loads: Loads, *, usage: Mapping[str, float] | None = None, **figures: Any) -> ClusterView:
    """Build a cluster of brokers with capacity 100 from bundles' loads by broker."""
    owned = {f"t/n/{bundle}": owner for owner, bundles in loads.items() for bundle in bundles}
    return cluster(
        *loads,
        usage=usage or {owner: sum(bundles.values()) / 100 for owner, bundles in loads.items()},
        owned=owned,
        bundle_loads={f"t/n/{bundle}": load for bundles in loads.values() for bundle, load in bundles.items()},
        now_us=NOW_US,
        **figures,
    )


def _cycle(
    view: ClusterView,
    part: Transfer = AT_ONCE,
    memory: dict[str, Any] | None = None,
    refuses: Callable[[Unload, bool], bool] = lambda unload, asked: False,
) -> tuple[list[tuple[str, str, str | None]], CycleOutcome]:
    """Run a cycle; return what was accepted, bundle, source and destination, and the outcome."""
    accepted: list[tuple[str, str, str | None]] = []
    cycle = part.propose(view, {} if memory is None else memory)
    try:
        proposal = next(cycle)
        while True:
            unload, asked = (proposal.unload, True) if isinstance(proposal, Probe) else (proposal, False)
            good = not refuses(unload, asked)
            if good and not asked:
                accepted.append((unload.bundle.rpartition("/")[2], unload.source, unload.destination))
            proposal = cycle.send(Ruling(good, None if good else Reason.DESTINATION_FILTERED))
    except StopIteration as ended:
        return accepted, ended.value


def test_the_fullest_gives_the_emptiest_half_of_their_difference() -> None:
    """Of 80 against 0, 10 and 20 fit into 40; the largest stays because nothing can come back for it."""
    accepted, outcome = _cycle(_view(UNEVEN))

    assert accepted == [("f1", "full", "none"), ("f2", "full", "none")]
    assert (outcome.label, outcome.reason) == (CycleLabel.SUCCESS, CycleReason.OVERLOADED)
    assert outcome.average == pytest.approx(0.4)
    assert outcome.deviation == pytest.approx(np.std([0.8, 0.4, 0.0]))
    assert outcome.modelled_deviation == pytest.approx(np.std([0.5, 0.4, 0.3]))


SWAPPED: Loads = {"full": {"f1": 50.0, "f2": 50.0}, "less": {"l1": 24.0, "l2": 24.0}}


def test_without_debug_what_comes_back_is_forgotten() -> None:
    """Pulsar's model then has 50 on one side and 98 on the other; what was evidently meant does not."""
    assert _cycle(_view(SWAPPED))[1].modelled_deviation == pytest.approx(0.24)
    assert _cycle(_view(SWAPPED), replace(AT_ONCE, quirks="intended"))[1].modelled_deviation == pytest.approx(
        0.0, abs=1e-6
    )


def test_a_bundle_that_may_not_come_back_is_not_swapped() -> None:
    """The next one of the destination is tried; where none is left the pair is done."""
    first = _cycle(_view(SWAPPED), refuses=lambda unload, asked: unload.bundle == "t/n/l1")
    none = _cycle(_view(SWAPPED), refuses=lambda unload, asked: unload.source == "less")

    assert first[0] == [("f1", "full", "less"), ("l2", "less", "full")]
    assert none[1].reason == CycleReason.NO_BUNDLES


def test_a_swap_has_to_help() -> None:
    """50 for 40 would leave 90 of 100: a quarter of the source's load has to be gone at least."""
    loads = {"full": {"f1": 50.0, "f2": 50.0}, "less": {"l1": 40.0}}

    assert _cycle(_view(loads), replace(AT_ONCE, target_std=0.1))[1].reason == CycleReason.NO_BUNDLES


def test_what_comes_back_leaves_the_destination_below_the_source() -> None:
    """3 would leave 102 where 60 came to 45, so it stays and only 33 comes back."""
    loads = {"full": {"f1": 40.0, "f2": 60.0}, "less": {"l1": 3.0, "l2": 33.0}}
    view = _view(loads, usage={"full": 1.0, "less": 0.45}, throughput={"full": 100.0, "less": 45.0})
    accepted, _ = _cycle(view, refuses=lambda unload, asked: unload.bundle == "t/n/f1")

    assert accepted == [("f2", "full", "less"), ("l2", "less", "full")]


def test_brokers_are_paired_from_both_ends_up_to_a_number_per_cycle() -> None:
    """The second fullest gives to the second emptiest."""
    loads = {"a": {"a1": 20.0, "a2": 70.0}, "b": {"b1": 20.0, "b2": 60.0}, "c": {"c1": 1.0}, "d": {}}
    part = replace(AT_ONCE, target_std=0.1)

    assert _cycle(_view(loads), part)[0] == [("a1", "a", "d"), ("b1", "b", "c")]
    assert _cycle(_view(loads), replace(part, brokers_per_cycle=1))[0] == [("a1", "a", "d")]
    assert _cycle(_view(loads), replace(part, brokers_per_cycle=0))[1].reason == CycleReason.HIT_COUNT


@pytest.mark.parametrize(
    ("usage", "load", "expected"),
    [
        ({"a": 0.11, "b": 0.10, "c": 0.01}, {}, CycleReason.UNDERLOADED),
        ({"a": 0.30, "b": 0.30, "c": 0.29}, {"a": 100.0, "b": 100.0, "c": 12.4}, CycleReason.UNDERLOADED),
        ({"a": 0.30, "b": 0.30, "c": 0.29}, {"a": 100.0, "b": 100.0, "c": 12.6}, CycleReason.HIT_COUNT),
        ({"a": 0.90, "b": 0.60, "c": 0.40}, {}, CycleReason.OVERLOADED),
        ({"a": 0.84, "b": 0.55, "c": 0.35}, {}, CycleReason.HIT_COUNT),
        ({"a": 0.90, "b": 0.80, "c": 0.75}, {}, CycleReason.HIT_COUNT),
    ],
    ids=["usage", "load", "not-quite", "overloaded", "not-full", "full-together"],
)
def test_ends_may_be_out_of_balance_while_the_deviation_is_not(
    usage: dict[str, float], load: dict[str, float], expected: CycleReason
) -> None:
    """An eighth of the average or of the fullest's load is too little; above 0.85 and average + target too much."""
    loads = {name: {f"{name}1": 1.0, f"{name}2": 1.0} for name in usage}
    view = _view(loads, usage=usage, throughput=load or {name: used * 100 for name, used in usage.items()})

    assert _cycle(view)[1].reason == expected


def test_underload_is_judged_by_smoothed_load_where_it_is_reported() -> None:
    """Load of this moment does not matter then."""
    loads = {"a": {"a1": 10.0, "a2": 20.0}, "b": {"b1": 1.0}}
    view = _view(loads, usage={"a": 0.3, "b": 0.29})

    assert _cycle(view)[1].reason == CycleReason.UNDERLOADED
    assert _cycle(loading(view, smoothed_throughput=np.array([30.0, 29.0])))[1].reason == CycleReason.HIT_COUNT


def test_both_sides_of_a_swap_cool_down() -> None:
    """Each gave something up."""
    memory: dict[str, Any] = {}
    _cycle(_view(SWAPPED), memory=memory)

    assert memory["unloaded_us"] == {"full": NOW_US, "less": NOW_US}


def _updated(view: ClusterView, **seconds_ago: int) -> ClusterView:
    ages = [seconds_ago.get(name, 0) for name in view.brokers.ids]
    return loading(view, updated_us=view.now_us - np.array(ages, dtype=np.int64) * 1_000_000)


def test_outdated_reports_do_not_count() -> None:
    """At 1800 s they still do."""
    everybody = dict.fromkeys(UNEVEN, 1801)

    assert _cycle(_updated(_view(UNEVEN), **everybody))[1] == CycleOutcome(CycleLabel.SKIP, CycleReason.OUT_DATED_DATA)
    assert _cycle(_updated(_view(UNEVEN), full=1801))[1].average == pytest.approx(0.2)
    assert _cycle(_updated(_view(UNEVEN), full=1800))[1].average == pytest.approx(0.4)


def test_a_broker_that_left_may_count_by_accident() -> None:
    """Pulsar reads all reports there are."""
    view = _view(UNEVEN, registered=["half", "none"])

    assert _cycle(view)[1].average == pytest.approx(0.4)
    assert _cycle(view, replace(AT_ONCE, quirks="intended"))[1].average == pytest.approx(0.2)


def test_a_broker_that_is_idle_but_has_load_may_be_emptied_by_accident() -> None:
    """A target of zero by zero stops nothing in Pulsar."""
    loads: Loads = {"empty": {}, "idle": {"i1": 5.0, "i2": 5.0, "i3": 5.0}}
    view = _view(loads, usage=dict.fromkeys(loads, 0.0))

    assert [bundle for bundle, _, _ in _cycle(view)[0]] == ["i1", "i2"]
    assert _cycle(view, replace(AT_ONCE, quirks="intended"))[0] == []


def test_a_swap_by_load_may_make_usage_worse_by_accident() -> None:
    """Load is small where usage is high: evening out load moves most of the usage to the broker that has some."""
    loads = {"full": {"f1": 40.0, "f2": 60.0}, "less": {"l1": 5.0}}
    usage = {"full": 0.9, "less": 0.8}
    upstream = _cycle(_view(loads, usage=usage), replace(AT_ONCE, target_std=0.01, debug=True))
    intended = _cycle(_view(loads, usage=usage), replace(AT_ONCE, target_std=0.01, quirks="intended"))

    assert upstream[0] == [("f1", "full", "less"), ("l1", "less", "full")]
    assert (upstream[1].modelled_deviation or 0.0) > (upstream[1].deviation or 0.0)
    assert intended[0] == []


def test_what_comes_back_may_have_been_unloaded_lately_by_accident() -> None:
    """Pulsar looks only at recently unloaded bundles of the fuller broker; what was evidently meant looks at both."""
    lately = {"t/n/l1", "t/n/l2"}

    def spares(unload: Unload, asked: bool) -> bool:
        return unload.bundle in lately and not unload.in_exchange

    upstream = _cycle(_view(SWAPPED), refuses=spares)
    intended = _cycle(_view(SWAPPED), replace(AT_ONCE, quirks="intended"), refuses=spares)

    assert upstream[0] == [("f1", "full", "less"), ("l1", "less", "full")]
    assert intended[0] == []


POLICIES = NamespacePolicies(
    isolation={"t/i": (IsolationPolicy((".*",)),)}, anti_affinity_group={"t/g": "group", "t/b": " "}
)


@pytest.mark.parametrize(
    ("namespace", "shed_with_policies", "moves"),
    [
        ("t/n", False, True),
        ("t/i", False, False),
        ("t/g", False, False),
        ("t/b", False, True),
        ("t/i", True, True),
        ("t/g", True, True),
    ],
)
def test_bundles_with_policies_stay_unless_they_may_be_shed(
    namespace: str, shed_with_policies: bool, moves: bool
) -> None:
    """They are not even reported: what is left counts as all there is."""
    bundles = {f"{namespace}/f1": 10.0, f"{namespace}/f2": 80.0}
    view = cluster(
        "full",
        "none",
        usage={"full": 0.9, "none": 0.0},
        owned=dict.fromkeys(bundles, "full"),
        bundle_loads=bundles,
        namespaces=POLICIES,
    )

    assert bool(_cycle(view, replace(AT_ONCE, shed_with_policies=shed_with_policies))[0]) is moves


def test_a_cycle_says_how_many_were_over_and_by_how_much() -> None:
    """0.8 is 0.4 above the average, 0.15 more than the deviation that is tolerated; 0.42 is below that."""
    over = _cycle(_view(UNEVEN), Transfer(target_std=0.25, hit_count=0, cool_down_s=0))[1]
    even = _cycle(_view(UNEVEN, usage={"full": 0.42, "half": 0.4, "none": 0.38}), Transfer(hit_count=0))[1]

    assert (over.over, over.excess) == (1, pytest.approx(0.15))
    assert (even.over, even.excess) == (0, 0.0)


def test_what_is_refused_after_all_is_not_counted() -> None:
    """A transfer whose probe was accepted may be refused: the model follows what took place."""
    accepted, outcome = _cycle(_view(UNEVEN), refuses=lambda unload, asked: not asked and unload.bundle == "t/n/f1")

    assert accepted == [("f2", "full", "none")]
    assert outcome.modelled_deviation == pytest.approx(np.std([0.6, 0.4, 0.2]))
