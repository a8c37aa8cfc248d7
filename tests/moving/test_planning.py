"""A plan makes a cluster evener within its limits, says what it may not do, and does no harm on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.errors import InputError
from lookup.model import ClusterView, CycleLabel, CycleOutcome, CycleReason, Unload
from lookup.model.bundles import IsolationPolicy, NamespacePolicies
from lookup.moving.plan import Limits, MovePlan
from lookup.moving.planning import make_plan
from lookup.moving.reading import read_record
from lookup.moving.state import state_of
from lookup.settings.files import policies_in
from tests.moving.worlds import World, broker, bundle

_FILTERS = ["load-manager-class", "max-topics", "anti-affinity", "isolation"]


def _policy(shedder: Any = "rebalance", **parts: Any) -> Policy:
    table = {"name": "tried", "filters": _FILTERS, "selector": "least-resource-usage", "shedder": shedder, **parts}
    return build_policies(load_plugins(), policies_in(table, "policy"))[0]


_EVEN = {"use": "rebalance", "max_imbalance": 1.05, "max_share": 1.0}


def _planned(
    world: World, folder: Path, *, shedder: Any = _EVEN, namespaces: NamespacePolicies | None = None, **limits: Any
) -> MovePlan:
    rows = read_record(str(world.write(folder / "record")))
    known = NamespacePolicies() if namespaces is None else namespaces
    state = state_of(type(rows)(rows.cluster, rows.at_us, rows.source, rows.tables, known))
    return make_plan(state, _policy(shedder), Limits(**limits))


def _loads(world: World, owners: dict[str, str]) -> Counter[str]:
    loads: Counter[str] = Counter(world.besides)
    for name in world.loads:
        loads[owners[name]] += world.load(name, world.minutes - 1)  # type: ignore[assignment]
    return loads


def test_a_plan_leads_to_an_even_cluster(tmp_path: Path) -> None:
    """Its figures and loads are those of the owners that its steps lead to; owners in steps are those of now."""
    world = World.crowded()
    world.besides = {broker(1): 5e5}

    plan = _planned(world, tmp_path)

    owners = dict(world.owners)
    for step in plan.steps:
        assert owners[step.bundle] == step.source
        owners[step.bundle] = step.destination
    loads = _loads(world, owners)
    assert plan.figure("imbalance").value == pytest.approx(max(loads.values()) * 3 / sum(loads.values()))
    assert plan.figure("imbalance").value <= 1.05
    assert {one.id: one.load_after for one in plan.brokers} == pytest.approx(dict(loads))
    assert plan.steps[-1].imbalance == pytest.approx(plan.figure("imbalance").value)


@pytest.mark.parametrize(("brokers", "silent"), [(1, 0), (3, 2)], ids=["alone", "silent"])
def test_one_broker_with_many_bundles_keeps_them(brokers: int, silent: int, tmp_path: Path) -> None:
    """A plan without moves says so, and that nothing is evener."""
    owned = {bundle(number, of=128): broker(0) for number in range(70)}
    world = World(
        brokers=brokers,
        silent={broker(number) for number in range(1, 1 + silent)},
        owners=owned,
        loads=dict.fromkeys(owned, 1e6),
    )

    plan = _planned(world, tmp_path)

    assert plan.steps == ()
    assert "fewer than two brokers" in plan.why


def test_a_shedder_that_counts_hits_acts_at_once(tmp_path: Path) -> None:
    """However many cycles in a row it would wait for."""
    patient = _planned(World.crowded(), tmp_path / "a", shedder={**_EVEN, "hit_count": 30, "history": 50})

    assert [step.bundle for step in patient.steps] == [
        step.bundle for step in _planned(World.crowded(), tmp_path / "b", shedder={**_EVEN, "hit_count": 0}).steps
    ]


@pytest.mark.parametrize("shedder", ["transfer", "threshold", "avg", "uniform", "overload"])
def test_every_kind_of_shedder_plans(tmp_path: Path, shedder: str) -> None:
    """If it names no destination it is the broker with most room; a plan never names the owner or a stranger."""
    plan = _planned(World.crowded(), tmp_path, shedder=shedder)

    assert plan.steps
    for step in plan.steps:
        assert step.destination in {one.id for one in plan.brokers} - {step.source}


def test_limits_hold(tmp_path: Path) -> None:
    """On moves, on load, and on namespaces."""
    world = World.crowded()
    for number in range(4):
        world.owners[bundle(number, "other/one")] = broker(0)
        world.loads[bundle(number, "other/one")] = 2e6

    few = _planned(world, tmp_path / "few", max_moves=2)
    light = _planned(world, tmp_path / "light", max_weight=3.5e6)
    single = _planned(world, tmp_path / "one", only=("other/one",))

    assert len(few.steps) == 2
    assert 0 < sum(step.weight or 0.0 for step in light.steps) <= 3.5e6
    assert {step.bundle.rpartition("/")[0] for step in single.steps} == {"other/one"}
    # What may not move keeps its broker far above the mean.


def test_limits_that_are_given_take_the_place_of_the_shedders_own_budget(tmp_path: Path) -> None:
    """A tenth of the load in one cycle is not what a plan of ten moves is held to."""
    cautious = {"use": "rebalance", "max_imbalance": 1.05, "max_share": 0.1}

    own, given = (
        _planned(World.crowded(), tmp_path / str(most), shedder=cautious, max_moves=most) for most in (None, 9)
    )

    assert (len(own.steps), len(given.steps)) == (2, 9)


def test_a_drained_broker_gives_all_up_before_anything_else(tmp_path: Path) -> None:
    """Bundles on no list as well; nothing goes there, and what it owns goes to where there is most room."""
    world = World.crowded()
    world.owners[bundle(40)] = broker(2)
    world.besides = {broker(2): 6e5}

    plan = _planned(world, tmp_path, drain=("broker-2",))

    drained = [step for step in plan.steps if step.source == broker(2)]
    assert plan.limits.drain == (broker(2),)
    assert {step.bundle for step in drained} == {name for name, owner in world.owners.items() if owner == broker(2)}
    assert [step.number for step in drained] == list(range(1, len(drained) + 1))
    assert {step.reason for step in drained} == {"drain"}
    assert {step.destination for step in drained} == {broker(1)}
    assert broker(2) not in {step.destination for step in plan.steps}
    assert next(one.load_after for one in plan.brokers if one.id == broker(2)) == pytest.approx(0.0)
    (quiet,) = [step for step in drained if step.bundle == bundle(40)]
    assert (quiet.weight, quiet.costs.topics) == (None, None)


def test_the_most_loaded_bundles_are_drained_first(tmp_path: Path) -> None:
    """Whatever their names are; names decide among equals, and one on no list weighs its share of the rest."""
    world = World(brokers=3, sway=0.0)
    loads = {0: 1e6, 1: 5e6, 2: 3e6, 3: 3e6, 5: 2e6}
    for number in (*loads, 4):
        world.owners[bundle(number)] = broker(0)
    world.loads = {bundle(number): load for number, load in loads.items()}
    world.besides = {broker(0): 4e6}
    shedder = {"use": "rebalance", "max_imbalance": 100.0}

    order = [bundle(number) for number in (1, 4, 2, 3, 5, 0)]
    for most in range(1, 7):
        plan = _planned(world, tmp_path / str(most), shedder=shedder, drain=(broker(0),), max_moves=most)

        assert {step.bundle for step in plan.steps} == {*order[:most]}


def test_what_is_drained_goes_where_it_is_emptiest(tmp_path: Path) -> None:
    """5, 4, 3, 3 and 3 MB/s, one after the other, leave two brokers with 8 and 10."""
    world = World(brokers=3, sway=0.0)
    for number, load in enumerate((3e6, 3e6, 3e6, 4e6, 5e6)):
        world.owners[bundle(number)], world.loads[bundle(number)] = broker(0), load

    plan = _planned(world, tmp_path, shedder={"use": "rebalance", "max_imbalance": 100.0}, drain=(broker(0),))

    after = sorted(one.load_after or 0.0 for one in plan.brokers)
    assert after == pytest.approx([0.0, 8e6, 10e6])


def test_a_drain_that_limits_cut_short_says_so(tmp_path: Path) -> None:
    """What stays is refused because of the limit."""
    plan = _planned(World.crowded(), tmp_path, drain=(broker(0),), max_moves=5)

    assert len(plan.steps) == 5
    assert plan.why.startswith("5 of 18 bundles can leave broker-0:8080")
    assert {move.reason for move in plan.refused} == {"max-moves"}
    assert len(plan.refused) == 13


def test_bundles_outside_of_isolation_are_brought_back(tmp_path: Path) -> None:
    """Bundles that a broker owned before a policy was set stay there by themselves; the plan names them first."""
    world = World.crowded()
    isolated = NamespacePolicies(isolation={"shop/orders": (IsolationPolicy(("broker-0", "broker-1")),)})
    strays = {n for n, owner in world.owners.items() if owner == broker(2) and n.startswith("shop/orders/")}

    plan = _planned(world, tmp_path, namespaces=isolated)
    brought = [step for step in plan.steps if step.reason == "isolation"]

    assert strays
    assert {step.bundle for step in brought} == strays
    assert {step.destination for step in brought} <= {broker(0), broker(1)}
    assert [step.number for step in brought] == list(range(1, len(strays) + 1))
    outside = plan.figure("outside_isolation")
    assert (outside.before, outside.value) == (len(strays), 0)
    assert outside.metric not in [figure.metric for figure in _planned(world, tmp_path / "free").figures]


def test_isolation_and_groups_are_kept_and_named(tmp_path: Path) -> None:
    """Nothing of an isolated namespace leaves its brokers, and what the shedder wanted otherwise is refused by name."""
    isolated = NamespacePolicies(isolation={"shop/orders": (IsolationPolicy(("broker-0", "broker-1")),)})

    plan = _planned(World.crowded(), tmp_path / "a", namespaces=isolated)
    drained = _planned(World.crowded(), tmp_path / "b", namespaces=isolated, drain=("broker-2",))
    nowhere = _planned(World.crowded(), tmp_path / "c", namespaces=isolated, drain=("broker-0", "broker-1"))

    assert {step.destination for step in plan.steps} == {broker(1)}
    assert {move.reason for move in plan.refused} == {"isolation"}
    assert {step.destination for step in drained.steps if step.reason == "drain"} == {broker(1)}
    assert ([*nowhere.steps], {move.reason for move in nowhere.refused}) == ([], {"isolation"})


def test_bundles_of_one_group_do_not_gather(tmp_path: Path) -> None:
    """The filter knows of the moves before: each goes to a broker that then has fewest of the group."""
    grouped = NamespacePolicies(anti_affinity_group={"shop/orders": "critical"})

    plan = _planned(World.crowded(), tmp_path, namespaces=grouped, drain=(broker(0),))

    taken = Counter(step.destination for step in plan.steps)
    assert abs(taken[broker(1)] - taken[broker(2)]) <= 1


def test_system_and_pinned_bundles_stay(tmp_path: Path) -> None:
    """A drain says why, and a shedder never sees them."""
    world = World.crowded()
    pinned = "pulsar/broker-2:8080/0x00000000_0xffffffff"
    world.owners |= {bundle(0, "pulsar/system", 4): broker(2), pinned: broker(2)}

    plan = _planned(world, tmp_path, drain=(broker(2),))

    assert {(move.bundle, move.reason) for move in plan.refused} == {
        (bundle(0, "pulsar/system", 4), "system-namespace"),
        (pinned, "system-namespace"),
    }


def test_nothing_goes_to_or_from_brokers_of_another_manager(tmp_path: Path) -> None:
    """They cannot be steered."""
    world = World.crowded()
    world.managers = {broker(1): "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"}

    plan = _planned(world, tmp_path)

    assert {step.destination for step in plan.steps} == {broker(2)}
    assert any("run no extensible load manager" in sentence for sentence in plan.missing)
    drained = _planned(world, tmp_path / "drained", drain=(broker(1),))
    assert {move.reason for move in drained.refused if move.source == broker(1)} == {"load-manager-class"}


def test_no_intermediate_state_is_worse_than_the_start(tmp_path: Path) -> None:
    """On made clusters of all kinds; a step that could not be avoided would be marked."""
    for seed in range(8):
        dice, world = np.random.default_rng(seed), World(brokers=5, minutes=4)
        for number in range(40):
            world.owners[bundle(number)] = broker(int(dice.integers(0, 5) * dice.integers(0, 2)))
            world.loads[bundle(number)] = float(dice.pareto(1.5) + 0.1) * 1e6

        plan = _planned(world, tmp_path / str(seed))

        start = plan.figure("imbalance").before * (1 + 1e-9)
        assert [step.worse for step in plan.steps] == [step.imbalance > start for step in plan.steps]
        assert not any(step.worse for step in plan.steps)


@dataclass(frozen=True)
class _Scripted:
    """A shedder that proposes what it is told."""

    name: ClassVar[str] = "scripted"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: bundle, owner and destination of each
    unloads: tuple[tuple[str, str, str], ...]

    def propose(self, view: ClusterView, memory: Any) -> Generator[Unload, Any, CycleOutcome]:
        """Propose one after the other."""
        yield from (Unload(*unload) for unload in self.unloads)
        return CycleOutcome(CycleLabel.SUCCESS, CycleReason.OVERLOADED)


def _scripted(
    folder: Path, loads: list[list[float]], *moves: tuple[int, int, int], producers: Sequence[int] = ()
) -> MovePlan:
    """Plan moves (bundle, from, to) of a cluster with these loads by broker, in MB/s, and producers by bundle."""
    world = World(brokers=len(loads), minutes=1)
    world.producers = {bundle(number): count for number, count in enumerate(producers)}
    for owner, of_broker in enumerate(loads):
        for load in of_broker:
            world.owners[bundle(len(world.owners))] = broker(owner)
            world.loads[bundle(len(world.loads))] = load * 1e6
    unloads = tuple((bundle(number), broker(source), broker(to)) for number, source, to in moves)
    policy = replace(_policy(), shedder=_Scripted(unloads))
    return make_plan(world.state(folder / "record"), policy, Limits())


def test_room_is_made_before_it_is_taken(tmp_path: Path) -> None:
    """However the shedder proposed them: first what leaves the broker that the other is to go to."""
    plan = _scripted(tmp_path, [[4, 6], [4, 4], [2]], (0, 0, 1), (2, 1, 2))

    assert [step.bundle for step in plan.steps] == [bundle(2), bundle(0)]
    assert not any(step.worse for step in plan.steps)


def test_what_gains_most_for_each_reconnect_comes_first(tmp_path: Path) -> None:
    """Of two equal bundles the one with fewer clients; a heavy one with many comes behind a light one with few."""
    moves = [(number, 0, 1) for number in range(4)]

    plan = _scripted(tmp_path, [[3, 3, 3, 1, 20], [0.1]], *moves, producers=(50, 4, 400, 1))

    assert [step.bundle for step in plan.steps] == [bundle(number) for number in (1, 3, 0, 2)]
    assert [step.costs.producers for step in plan.steps] == [4, 1, 50, 400]


@pytest.mark.parametrize("others", [0, 15])
def test_a_step_that_brings_nothing_is_no_step(tmp_path: Path, others: int) -> None:
    """A bundle of 2 kB/s stays where it is, alone or beside fifteen others, and is in no figure."""
    moves = [(number, 0, 1) for number in range(others + 1)]

    plan = _scripted(tmp_path, [[0.002, *[1.0] * 15, 15.0], [0.5]], *moves)

    assert [step.bundle for step in plan.steps] == [bundle(number) for number in range(1, others + 1)]
    assert next(one for one in plan.brokers if one.id == broker(1)).load_after == pytest.approx((0.5 + others) * 1e6)


@pytest.mark.parametrize(
    ("shedder", "limits", "end"),
    [
        (_EVEN, {"max_moves": 2}, "; ended by max_moves"),
        (_EVEN, {"max_weight": 3.5e6}, "; ended by max_weight"),
        ({"use": "rebalance", "max_share": 1.0, "max_moves": 3}, {}, "; ended by rebalance.max_moves"),
        ({"use": "rebalance", "max_share": 0.1}, {}, "; ended by rebalance.max_share"),
        (_EVEN, {}, "rebalance: unloaded from overloaded brokers"),
        (_EVEN, {"max_moves": 50}, "rebalance: unloaded from overloaded brokers"),
    ],
)
def test_the_limit_that_ends_a_plan_is_named(
    tmp_path: Path, shedder: Mapping[str, Any], limits: Mapping[str, Any], end: str
) -> None:
    """Of the plan, or of the shedder's own cycle; a plan that ends because the cluster is even names none."""
    assert _planned(World.crowded(), tmp_path, shedder=shedder, **limits).why.endswith(end)


def test_brokers_without_a_recent_report_end_a_plan(tmp_path: Path) -> None:
    """Whether they have room nobody knows."""
    world = World.crowded()
    world.silent = {broker(2)}

    plan = _planned(world, tmp_path)

    assert plan.why.endswith("; ended by the age of reports: broker-2:8080 can take nothing")


def test_a_state_that_is_worse_than_the_start_is_marked(tmp_path: Path) -> None:
    """Two full brokers that exchange bundles have both on one of them in between."""
    plan = _scripted(tmp_path, [[5, 5], [5, 5]], (0, 0, 1), (2, 1, 0))

    assert [step.worse for step in plan.steps] == [True, False]


def test_an_even_cluster_has_nothing_worth_moving(tmp_path: Path) -> None:
    """The shedder's reason is the plan's."""
    world = World.crowded()
    for number in range(24):
        world.owners[bundle(number)] = broker(number % 3)

    plan = _planned(world, tmp_path, shedder={"use": "rebalance", "max_imbalance": 1.3})

    assert plan.steps == ()
    assert plan.why.startswith("rebalance: balanced, or")


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"drain": ("broker-7:8080",)}, "drain: .*'broker-7:8080'; did you mean"),
        ({"drain": ("broker-0", "broker-1", "broker-2")}, "no broker .* is left"),
        ({"only": ("shop/order",)}, "only: .*'shop/order' .* mean 'shop/orders'"),
    ],
)
def test_limits_that_name_nothing_are_refused(tmp_path: Path, limits: dict[str, Any], sentence: str) -> None:
    """With what was probably meant."""
    with pytest.raises(InputError, match=sentence):
        _planned(World.crowded(), tmp_path, **limits)


def test_a_policy_without_shedder_is_refused(tmp_path: Path) -> None:
    """By its name."""
    with pytest.raises(InputError, match="policy 'tried' has no shedder"):
        make_plan(World.crowded().state(tmp_path / "record"), _policy(None), Limits())
