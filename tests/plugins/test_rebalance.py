"""The shedder `rebalance`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookup
from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.logs.jobs import InProcess
from lookup.model import (
    Broker,
    ClusterView,
    CycleLabel,
    CycleOutcome,
    CycleReason,
    Probe,
    Reason,
    Roster,
    Ruling,
    Unload,
)
from lookup.settings.policy import PolicySpec
from lookup.simulation import read_scenario, run_policy
from lookup.testing import broker
from lookup_policies.rebalance import Rebalance
from tests.plugins.cycles import loaded, loading, local

SCENARIOS = Path(__file__).parents[2] / "configs" / "scenarios"
#: 50 and 10, evened out by two moves.
UNEVEN = {"full": dict.fromkeys("abcde", 10.0), "free": {"f": 10.0}}
#: Acts at once.
PROMPT = Rebalance(hit_count=0, max_share=1.0)
MINUTE = 60_000_000

Moves = list[tuple[str, str]]

#: Machines for UNEVEN.
EQUAL = [Broker("free", capacity=100.0), Broker("full", capacity=100.0)]


def _with(view: ClusterView, brokers: list[Broker]) -> ClusterView:
    """Return the view of the same brokers with other properties and capacities; they have the same numbers."""
    roster = Roster(brokers)
    assert list(roster.ids) == list(view.brokers.ids)
    capacity = np.array([np.nan if one.capacity is None else one.capacity for one in roster])
    usage = np.divide(view.load.throughput, capacity, out=np.zeros(len(roster)), where=capacity > 0)
    return loading(replace(view, brokers=roster, capacity=capacity), usage=usage)


def _acting(
    part: Rebalance,
    view: ClusterView,
    memory: dict[str, Any] | None = None,
    refused: Callable[[Unload], Reason | None] = lambda unload: None,
) -> tuple[Moves, CycleOutcome]:
    """Run a cycle; return the accepted moves, as local name and destination, and the outcome."""
    running, moves = part.propose(view, {} if memory is None else memory), []
    try:
        proposal = next(running)
        while True:
            unload = proposal.unload if isinstance(proposal, Probe) else proposal
            assert unload.destination not in (None, unload.source)
            assert view.brokers[view.ownership.owner(unload.bundle) or 0].id == unload.source
            reason = refused(unload)
            if reason is None and unload is proposal:
                moves.append((local(unload.bundle), str(unload.destination)))
            proposal = running.send(Ruling(reason is None, reason))
    except StopIteration as ended:
        return moves, ended.value


def test_it_moves_no_more_than_even_enough_takes() -> None:
    """Of 50 and 10 two bundles make 30 each; one would leave 1.33 times the mean."""
    moves, outcome = _acting(PROMPT, loaded(UNEVEN))

    assert [destination for _, destination in moves] == ["free", "free"]
    assert (outcome.label, outcome.reason) == (CycleLabel.SUCCESS, CycleReason.OVERLOADED)
    assert (outcome.over, outcome.excess) == (1, pytest.approx(50 / 30 - 1.2))


def test_it_stays_if_that_is_even_enough() -> None:
    """1.67 times the mean, and so much is allowed."""
    moves, outcome = _acting(Rebalance(max_imbalance=1.65, hit_count=0), loaded(UNEVEN))

    assert not moves
    assert (outcome.reason, str(outcome.short)) == (
        CycleReason.HIT_COUNT,
        "1.667 times the mean on the fullest broker, minimum 1.67",
    )


def test_capacities_count() -> None:
    """50 on a machine of 100 and 10 on one of 20 are even; on equal ones they are not."""
    unequal = [Broker("free", capacity=20.0), Broker("full", capacity=100.0)]

    assert not _acting(PROMPT, _with(loaded(UNEVEN), unequal))[0]
    assert _acting(PROMPT, _with(loaded(UNEVEN), EQUAL))[0]


def test_it_acts_after_so_many_cycles_in_a_row() -> None:
    """The count starts anew once the cluster is even."""
    part, memory = replace(PROMPT, hit_count=2, history=1), dict[str, Any]()
    even = {"full": dict.fromkeys("abcde", 10.0), "free": {"f": 50.0}}
    acted = [bool(_acting(part, loaded(loads), memory)[0]) for loads in (UNEVEN, UNEVEN, even, UNEVEN, UNEVEN, UNEVEN)]

    assert acted == [False] * 5 + [True]
    assert str(_acting(part, loaded(UNEVEN))[1].short).endswith(", minimum 3")


def test_one_loud_minute_moves_nothing() -> None:
    """Loads are averaged: a bundle that is three times as loud for one of twenty cycles hardly weighs more."""
    memory: dict[str, Any] = {}
    quiet = {"a": {"x": 10.0, "y": 10.0}, "b": {"z": 10.0, "u": 10.0}}
    loud = {"a": {"x": 30.0, "y": 30.0}, "b": quiet["b"]}
    for _ in range(19):
        _acting(PROMPT, loaded(quiet), memory)

    assert not _acting(PROMPT, loaded(loud), memory)[0]
    assert _acting(PROMPT, loaded(loud))[0]


def test_a_broker_that_was_relieved_is_left_alone_though_its_report_is_late() -> None:
    """Bundles count where they are now, whatever usage still says."""
    memory: dict[str, Any] = {}
    part = replace(PROMPT, hit_count=9, rest_s=0)
    for _ in range(9):
        _acting(part, _with(loaded(UNEVEN), EQUAL), memory)
    moved = {name for name, _ in _acting(part, _with(loaded(UNEVEN), EQUAL), memory)[0]}
    after = {"full": {name: 10.0 for name in "abcde" if name not in moved}, "free": dict.fromkeys({"f"} | moved, 10.0)}
    late = loading(_with(loaded(after), EQUAL), usage=np.array([0.1, 0.5]))

    assert len(moved) == 2
    assert not _acting(part, late, memory)[0]


def test_what_else_runs_on_a_machine_stays_there() -> None:
    """70 of 100 by other processes: the bundles of the other two go everywhere but there."""
    loads = {"busy": {}, "full": dict.fromkeys("abcdef", 10.0), "idle": {"g": 10.0}}
    sized = [Broker(name, capacity=100.0) for name in ("busy", "full", "idle")]
    view = loading(_with(loaded(loads), sized), usage=np.array([0.7, 0.6, 0.1]))

    for besides in (0.7, 0.4):
        moves, _ = _acting(PROMPT, loading(view, usage=np.array([besides, 0.6, 0.1])))
        assert {destination for _, destination in moves} == {"idle"}


def test_one_hot_bundle_does_not_hold_up_the_others() -> None:
    """Nothing relieves its broker; another is 1.25 times the mean, and hands one of five bundles on."""
    moves, outcome = _acting(
        PROMPT, loaded({"hot": {"x": 60.0}, "full": dict.fromkeys("abcde", 10.0), "free": {"f": 10.0}})
    )

    assert [destination for _, destination in moves] == ["free"]
    assert outcome.reason == CycleReason.OVERLOADED


def test_a_hot_bundle_beside_brokers_that_are_even_enough_moves_nothing() -> None:
    """The others are at 1.1 times the mean, and what they would hand on to each other is nothing."""
    moves, outcome = _acting(
        PROMPT, loaded({"hot": {"x": 60.0}, "full": dict.fromkeys("abcd", 10.0), "free": {"f": 10.0}})
    )

    assert not moves
    assert str(outcome.short).endswith(", minimum 0.02")


RACKS = [broker(name, rack=name[0]) for name in ("a1", "b1", "b2")]


def _racks(loads: Mapping[str, Mapping[str, float]], origins: Mapping[str, Mapping[str, float]]) -> ClusterView:
    whole = {"rack": {f"t/n/{bundle}": found for bundle, found in origins.items()}}
    view = _with(loaded(loads), RACKS)
    return loading(view, origins=whole, usage=view.load.throughput)


SPREAD = {"a1": {"x": 10.0, "y": 10.0}, "b1": {"u": 10.0, "v": 10.0}, "b2": {"w": 10.0, "z": 10.0}}


def test_bundles_come_near_their_clients() -> None:
    """Two change places, since the brokers are full; one whose clients are everywhere stays."""
    origins = {"x": {"b": 1.0}, "y": {"a": 1.0}, "u": {"a": 3.0}, "v": {"a": 1.0, "b": 1.0}, "w": {"b": 2.0}}
    moves, outcome = _acting(replace(PROMPT, near="rack"), _racks(SPREAD, origins))

    assert sorted(moves) == [("u", "a1"), ("x", "b1")]
    assert (outcome.label, outcome.reason) == (CycleLabel.SUCCESS, CycleReason.LOCALITY)


def test_balance_comes_before_nearness() -> None:
    """All clients are in rack a, and its one broker takes no more than the others permit."""
    origins = {name: {"a": 1.0} for loads in SPREAD.values() for name in loads}
    part = replace(PROMPT, near="rack", max_imbalance=1.5)
    moves, _ = _acting(part, _racks(SPREAD, origins))

    assert [destination for _, destination in moves] == ["a1"]


def test_a_bundle_that_nothing_relieves_does_not_keep_others_from_their_clients() -> None:
    """One alone is more than a broker should carry; load comes near elsewhere all the same."""
    view = _racks({"a1": {"huge": 90.0}, "b1": {"u": 5.0, "x": 1.0}, "b2": {}}, {"huge": {"a": 1.0}, "u": {"c": 1.0}})
    brokers = [broker("a1", rack="a"), broker("b1", rack="b"), broker("b2", rack="c")]
    part = replace(PROMPT, near="rack", move_price=0.05)

    assert _acting(part, replace(view, brokers=Roster(brokers)))[0] == [("u", "b2")]


def test_an_empty_name_of_a_property_is_refused() -> None:
    """It could never be near."""
    with pytest.raises(ValueError, match="near is empty"):
        Rebalance(near="")


@pytest.mark.parametrize(("price", "count"), [(0.2, 1), (0.3, 0)])
def test_what_comes_near_has_to_be_worth_the_price(price: float, count: int) -> None:
    """Half of 10 would come near; 10 move, and a move counts as 10 more."""
    part = replace(PROMPT, near="rack", max_imbalance=2.0, move_price=price, min_gain=0.01)

    assert len(_acting(part, _racks(SPREAD, {"u": {"a": 1.0, "c": 1.0}}))[0]) == count


def test_a_property_that_nobody_sends_leaves_balance() -> None:
    """Without origins nothing is near, and nothing is gained by moving."""
    part = replace(PROMPT, near="rack")
    moves, outcome = _acting(part, _racks(SPREAD, {}))

    assert not moves
    assert str(outcome.short).startswith("0 % of the load")
    assert _acting(part, loaded(UNEVEN))[0]


@pytest.mark.parametrize("budget", [{"max_moves": 1}, {"max_share": 0.2}, {"max_share": 0.01}])
def test_a_budget_is_kept_and_the_next_cycle_goes_on(budget: dict[str, Any]) -> None:
    """One of the two moves is made now, even if a single bundle is more than the budget."""
    part, memory = replace(PROMPT, **budget), dict[str, Any]()
    ((name, _),) = _acting(part, loaded(UNEVEN), memory)[0]
    left = {kept: 10.0 for kept in "abcde" if kept != name}

    assert len(_acting(part, loaded({"full": left, "free": {"f": 10.0, name: 10.0}}), memory)[0]) == 1


@pytest.mark.parametrize(("minutes", "is_moved"), [(59, False), (60, True)])
def test_what_was_moved_stays_for_a_while(minutes: int, is_moved: bool) -> None:
    """Within `rest_s` its new owner may be ever so full: it grew there, and nothing else can go."""
    part, memory = replace(PROMPT, history=1), dict[str, Any]()
    ((name, owner),) = _acting(part, loaded({"one": {"a": 10.0, "b": 10.0}, "other": {}}), memory)[0]
    kept = "ab".replace(name, "")
    fuller = loaded({"one": {kept: 10.0}, owner: {name: 10.0, "new": 50.0}}, now_us=minutes * MINUTE)
    held = {"t/n/new": 0} | memory["moved_us"]
    moves, _ = _acting(part, fuller, {**memory, "moved_us": {**held, "t/n/new": minutes * MINUTE}})

    assert (name in dict(moves)) == is_moved


ZERO = {"one": 0.0, "other": 0.0}
THREE = {**UNEVEN, "open": {"g": 10.0}}


def test_a_refused_destination_is_not_admitted_and_the_next_best_is_taken() -> None:
    """The filters let nothing onto one broker; another takes what it can."""

    def refused(unload: Unload) -> Reason | None:
        return Reason.DESTINATION_FILTERED if unload.destination == "free" else None

    moves, outcome = _acting(PROMPT, loaded(THREE), refused=refused)

    assert {destination for _, destination in moves} == {"open"}
    assert outcome.label is CycleLabel.SUCCESS


def test_a_broker_that_may_not_have_one_bundle_gets_another() -> None:
    """As where namespaces are isolated: the first plan names the bundle that is refused, the next one its equal."""
    view = loaded({"free": {}, "full": {"a": 20.0, "b": 20.0}, "open": {"g": 10.0}})

    def refused(unload: Unload) -> Reason | None:
        is_isolated = (local(unload.bundle), unload.destination) == ("a", "free")
        return Reason.DESTINATION_FILTERED if is_isolated else None

    assert _acting(PROMPT, view)[0] == [("a", "free")]
    assert _acting(PROMPT, view, refused=refused)[0] == [("b", "free")]


def test_a_bundle_that_may_not_leave_stays_and_another_goes() -> None:
    """A grace period is of a bundle, wherever it would go."""
    spared = {name for name, _ in _acting(PROMPT, loaded(UNEVEN))[0]}

    def refused(unload: Unload) -> Reason | None:
        return Reason.GRACE_PERIOD if local(unload.bundle) in spared else None

    moved = {name for name, _ in _acting(PROMPT, loaded(UNEVEN), refused=refused)[0]}
    assert len(moved) == 2
    assert not moved & spared


def test_if_all_is_refused_nothing_moves_and_the_cycle_says_so() -> None:
    """It asks no more often than a few times for each bundle and broker."""
    asked = 0

    def refused(unload: Unload) -> Reason | None:
        nonlocal asked
        asked += 1
        return Reason.DESTINATION_FILTERED

    moves, outcome = _acting(PROMPT, loaded(THREE), refused=refused)

    assert not moves
    assert (outcome.label, outcome.reason, outcome.short) == (CycleLabel.SKIP, CycleReason.NO_BUNDLES, None)
    assert asked < 20


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (loaded(UNEVEN, registered=()), CycleReason.NO_BROKERS),
        (loaded(UNEVEN, throughput={}, usage={}), CycleReason.NO_LOAD_DATA),
        (loaded({"only": {"a": 10.0}}), CycleReason.NO_BROKERS),
        (loaded(UNEVEN, registered=("full",)), CycleReason.NO_BROKERS),
        (loaded({"one": {}, "other": {}}), CycleReason.NO_LOAD_DATA),
        (loaded({"one": {"a": float("nan")}, "other": {"b": float("inf")}}, throughput=ZERO), CycleReason.NO_LOAD_DATA),
        (loaded({"one": {"huge": 1000.0}, "other": {"b": 1.0}}), CycleReason.TOO_LITTLE),
        (_with(loaded(UNEVEN), [Broker("free", capacity=0.0), Broker("full", capacity=1.0)]), CycleReason.NO_BROKERS),
    ],
    ids=["nobody", "no-report", "one-broker", "one-registered", "no-load", "no-number", "one-huge", "no-capacity"],
)
def test_what_cannot_be_solved_is_an_outcome(view: ClusterView, reason: CycleReason) -> None:
    """Nothing moves, nothing raises, and the reason is given."""
    moves, outcome = _acting(PROMPT, view)

    assert not moves
    assert (outcome.label, outcome.reason) == (CycleLabel.SKIP, reason)


_LOADS = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.0, 1e6), max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    loads=st.fixed_dictionaries(dict.fromkeys(("b1", "b2", "b3"), _LOADS)),
    limit=st.floats(1.0, 2.0),
    share=st.floats(0.05, 1.0),
    moves=st.integers(1, 5),
)
def test_no_cycle_makes_it_worse_or_spends_more_than_its_budget(
    loads: dict[str, dict[str, float]], limit: float, share: float, moves: int
) -> None:
    """Whatever the loads: of brokers that are too full, the fullest in order that changes is less full then."""
    unique = {owner: {f"{owner}-{name}": load for name, load in held.items()} for owner, held in loads.items()}
    memory: dict[str, Any] = {}
    part = Rebalance(max_imbalance=limit, max_share=share, max_moves=moves, hit_count=0, history=1)
    made, _ = _acting(part, loaded(unique), memory)
    flat = {name: load for held in unique.values() for name, load in held.items()}
    total, after = sum(flat.values()), {owner: dict(held) for owner, held in unique.items()}
    for name, destination in made:
        after[name.partition("-")[0]].pop(name)
        after[destination][name] = flat[name]
    before, later = (sorted((sum(held.values()) for held in of.values()), reverse=True) for of in (unique, after))
    enough = limit * total / 3 * (1 + 1e-6)
    apart = [
        (then, now)
        for then, now in zip(before, later, strict=True)
        if abs(max(then, enough) - max(now, enough)) > 1e-6 * total
    ]

    assert json.loads(json.dumps(memory)) == memory
    assert len(made) <= moves
    assert len(made) == 1 or sum(flat[name] for name, _ in made) <= share * total * (1 + 1e-6)
    assert not apart or apart[0][1] < apart[0][0]


#: Load / capacity of the fullest broker over the mean from which on a shedder has not settled the cluster.
_UNSETTLED = 1.25


@pytest.mark.parametrize(
    "name", ["heterogeneous-brokers", "load-jitter", "over-placement", "over-unloading", "slow-shedding"]
)
def test_it_settles_the_scenarios_of_pip_364_with_the_fewest_moves(name: str) -> None:
    """No shedder of Pulsar's with its own placement that leaves the cluster as even makes fewer moves."""
    scenario = read_scenario(SCENARIOS / f"pip-364-{name}.scenario").scenario
    ours = PolicySpec.model_validate({"name": "ours", "selector": "best-fit", "shedder": "rebalance"})
    policies = build_policies(load_plugins(), [*scenario.policies, ours])
    *theirs, found = [run_policy(scenario, policy).figures for policy in policies]
    settled = [figures for figures in theirs if figures.balance <= max(found.balance, _UNSETTLED)]

    assert settled
    assert found.moves <= min(figures.moves for figures in settled)
    assert found.balance <= max(min(figures.balance for figures in theirs), 1.2 + 1e-9)


def test_on_a_generated_log_it_moves_less_than_a_threshold_is_as_even_and_nearer(tmp_path: Path) -> None:
    """At most half of the weight moves, the fullest broker is no fuller, and more lookups stay in their rack."""
    log = lookup.generate(tmp_path / "log", lookups=40_000, clusters=1, hours=4, seed=3)
    settings = {
        "evaluation": {"incumbent": "usual", "seeds": [1], "balance_s": 900, "warmup_s": 1800},
        "policies": [
            {"name": "usual", "selector": "least-resource-usage", "shedder": "threshold"},
            "shipped:rebalance",
        ],
    }
    found = lookup.evaluate(
        log.lookups, settings=settings, brokers=log.brokers, ownership=log.ownership, workers=InProcess()
    )
    whole = found.figures[(found.figures["scope"] == "all clusters") & found.figures["key"].isin([None, "rack"])]
    usual, ours = (whole[whole["policy"] == name].set_index("metric")["value"] for name in ("usual", "rebalance"))

    assert ours["moved_weight"] <= 0.5 * usual["moved_weight"]
    assert ours["imbalance_max_mean"] <= usual["imbalance_max_mean"]
    assert ours["match_ratio"] >= usual["match_ratio"] + 0.05
