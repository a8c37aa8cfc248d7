"""The closed loop: what a minute is, what brokers report, and what its samples say."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lookup.engine.policy import Policy
from lookup.model import CycleLabel, CycleOutcome, CycleReason, Ruling, Split, Unload
from lookup.simulation import run_policy
from lookup.simulation.load import MIB, BundleTable
from lookup_policies.default_split import DefaultSplit
from lookup_policies.round_robin import RoundRobin
from lookup_policies.score_selectors import Random
from tests.simulation.scenarios import scenario, trends

_MODULAR = Path(__file__).parents[2] / "configs" / "brokers" / "modular.conf"


def test_owners_at_the_start_are_no_moves() -> None:
    """Three of four equal bundles on the smaller broker: usages 0.6 and 0.1."""
    (trend,) = trends()
    sample = trend.samples[0]

    assert len(trend.samples) == 12
    assert sample.by_broker == pytest.approx({"b1": 0.6, "b2": 0.1})
    assert (sample.balance, sample.usage_max) == pytest.approx((0.6 / 0.35, 0.6))
    assert (trend.figures.moves, trend.figures.unowned) == (0, 0)


def test_bundles_without_owner_are_looked_up_in_the_same_minute() -> None:
    """Whoever is left serves them all; those that had an owner moved."""
    (trend,) = trends(events=[{"at": 3, "leave": ["b1"]}, {"at": 5, "join": ["b1"]}])

    assert [sample.moves for sample in trend.samples] == [0, 0, 0, 3] + [0] * 8
    assert trend.samples[3].by_broker["b2"] == pytest.approx(0.4)
    assert len(trend.samples[4].usage) == 1
    assert trend.samples[5].by_broker["b1"] == 0.0
    assert trend.samples[3].moved_load == pytest.approx(6.0)


def test_without_brokers_nobody_serves() -> None:
    """Bundle-minutes without owner are counted; the first owner later is a move."""
    (trend,) = trends(events=[{"at": 2, "leave": ["b1", "b2"]}, {"at": 4, "join": ["b2"]}])

    assert [sample.unowned for sample in trend.samples[:5]] == [0, 0, 4, 4, 0]
    assert trend.figures.unowned == 8


def test_a_new_bundle_is_no_move() -> None:
    """Nobody owned it before."""
    (trend,) = trends(owners={})

    assert trend.figures.moves == 0
    assert sum(value > 0 for value in trend.samples[0].by_broker.values()) == 2


def test_load_follows_the_policys_own_doing() -> None:
    """A shedder that balances sees the effect in the next minute and stops."""
    (trend,) = trends(
        policies=[{"name": "p", "selector": "least-resource-usage", "shedder": {"use": "threshold", "history": 0.0}}]
    )

    assert trend.figures.unloads > 0
    assert trend.figures.usage_max < 0.5
    assert trend.figures.last_move < 5


def test_reports_may_be_smoothed() -> None:
    """With history a jump is seen slowly; who comes back begins anew."""
    policies = [{"name": "p", "selector": "random", "shedder": {"use": "transfer", "target_std": 0.1}}]
    events = [{"at": 4, "topics": [0, 1], "factor": 4.0}]
    light = [{"name": "t/n", "bundles": 4, "topics": 8, "load": 4.0}]
    even = {"owners": {"b1": 2, "b2": 2}, "namespaces": light, "policies": policies, "events": events, "minutes": 20}
    (at_once,), (later,) = trends(**even), trends(**even, history=0.9)

    first = [next(one.minute for one in trend.samples if one.unloads) for trend in (at_once, later)]
    assert first[0] < first[1]


HOT: dict[str, Any] = {
    "owners": {"b1": 4},
    "namespaces": [{"name": "t/n", "bundles": 4, "topics": 8, "load": 800.0, "message_bytes": 1e6}],
}


def test_splits_change_the_bundles_of_the_next_minute() -> None:
    """Bundles of 200 MiB/s are cut once, after four minutes above the limit, to 100 each, where it stops."""
    (trend,) = trends(**HOT, policies=[{"name": "p", "selector": "random", "splitter": "default-split"}])

    assert [sample.splits for sample in trend.samples] == [0, 0, 0, 4] + [0] * 8
    assert trend.samples[-1].by_broker == {"b1": pytest.approx(80.0), "b2": 0.0}
    assert trend.figures.unowned == 0


@dataclass(frozen=True)
class _Seeing:
    """A split algorithm that never cuts and keeps what it was shown."""

    name: ClassVar[str] = "seeing"
    seen: tuple[list[Any], ...] = ([],)

    def boundaries(self, bundle: Any, topics: Any, positions: Any) -> tuple[int, ...]:
        """Keep the topics."""
        self.seen[0].append((str(bundle.range), topics["hash"].tolist(), topics["throughput"].tolist()))
        return ()


def test_a_splitter_sees_single_topics() -> None:
    """Hash and throughput of those inside the bundle."""
    algorithm = _Seeing()
    run_policy(scenario(**HOT), Policy("p", Random(), splitter=DefaultSplit(hit_threshold=0, algorithm=algorithm)))

    assert algorithm.seen[0][0] == ("0x00000000_0x40000000", [2**28, 3 * 2**28], [100.0 * MIB] * 2)


def test_children_share_what_their_parent_carried() -> None:
    """A cut between topics divides them; names of bundles follow."""
    table = BundleTable(scenario().namespaces, 1, with_topics=True)
    table.split(Split("t/n/0x00000000_0x40000000", "b1", (2**29,)))
    load = table.at(0)

    assert list(load.loads)[:2] == ["t/n/0x00000000_0x20000000", "t/n/0x20000000_0x40000000"]
    assert [load.loads[name] for name in table.names()] == [MIB, MIB, 2 * MIB, 2 * MIB, 2 * MIB]
    assert [stats.topics for stats in load.traffic.stats.values()] == [1, 1, 2, 2, 2]
    assert load.traffic.bundle_counts == {"t/n": 5}


@dataclass(frozen=True)
class _Once:
    """A shedder or splitter that makes one proposal, once."""

    name: ClassVar[str] = "once"
    memory_key: str
    proposal: Unload | Split

    def propose(self, view: Any, memory: Any) -> Generator[Any, Ruling, CycleOutcome]:
        """Propose."""
        if not memory:
            memory["ruling"] = str((yield self.proposal).reason)
        return CycleOutcome(CycleLabel.SUCCESS, CycleReason.OVERLOADED)


def test_a_bundle_that_moves_and_is_split_in_one_minute_weighs_what_it_weighed() -> None:
    """Its name is gone when the minute is told, what it carried is not."""
    bundle = "t/n/0x00000000_0x40000000"
    shedder, splitter = _Once("shed", Unload(bundle, "b1", "b2")), _Once("split", Split(bundle, "b2", (2**29,)))
    sample = run_policy(scenario(), Policy("p", Random(), shedder=shedder, splitter=splitter)).samples[0]

    assert (sample.moves, sample.splits, sample.moved_load) == (1, 1, pytest.approx(2.0))


def test_unloaded_children_are_placed_in_the_same_minute() -> None:
    """Those that come back to their owner are unloads, and no moves."""
    splitter = _Once("split", Split("t/n/0x00000000_0x40000000", "b1", (2**28, 2**29)))
    selector = RoundRobin()
    stays, spreads = (
        run_policy(scenario(), Policy("p", selector, splitter=splitter, unload_children=is_unloaded)).samples[0]
        for is_unloaded in (False, True)
    )

    assert (stays.unloads, stays.moves, stays.unowned, stays.by_broker["b2"]) == (0, 0, 0, pytest.approx(0.1))
    assert (spreads.unloads, spreads.moves, spreads.unowned) == (3, 1, 0)
    # MiB/s, by what the other broker has gained of its capacity
    assert spreads.moved_load == pytest.approx((spreads.by_broker["b2"] - 0.1) * 20)


def test_clients_may_have_properties() -> None:
    """What they send is looked at; the share of the load that is where they are is told."""
    brokers = [
        {"id": "b1", "capacity": 10.0, "properties": {"lookup.rack": "a"}},
        {"id": "b2", "capacity": 20.0, "properties": {"lookup.rack": "b"}},
    ]
    follows = [{"name": "p", "scorers": ["property-match"], "selector": "best"}]
    (trend,) = trends(brokers=brokers, policies=follows, owners={"b2": 1}, properties={"rack": "a"})

    assert trend.figures.matched == pytest.approx(0.75)


@dataclass(frozen=True)
class _Watcher:
    """A shedder that moves nothing and keeps where the load came from."""

    name: ClassVar[str] = "watcher"
    seen: tuple[list[Any], ...]
    reads: frozenset[str] = frozenset({"view.load", "view.load.origins"})

    def propose(self, view: Any, memory: Any) -> Generator[Unload, Ruling, CycleOutcome]:
        """Keep the origins."""
        self.seen[0].append(view.load.origins)
        yield from ()
        return CycleOutcome(CycleLabel.SKIP, CycleReason.HIT_COUNT)


def test_load_comes_from_where_the_clients_of_the_scenario_are() -> None:
    """All of it, by bundle, in bytes per second; a part that does not declare it sees nothing."""
    declared: tuple[list[Any], ...] = ([],)
    silent: tuple[list[Any], ...] = ([],)
    made = scenario(properties={"rack": "a"})
    run_policy(made, Policy("p", Random(), shedder=_Watcher(declared)))
    run_policy(made, Policy("p", Random(), shedder=_Watcher(silent, frozenset({"view.load"}))))

    by_bundle = declared[0][-1]["rack"]
    assert [found == {"a": pytest.approx(2 * MIB)} for found in by_bundle.values()] == [True] * 4
    assert not any(silent[0])


def test_other_processes_use_a_machine_too() -> None:
    """They are in its usage, but who serves no bundle is idle all the same."""
    brokers = [{"id": "b1", "capacity": 10.0, "busy": 0.25}, {"id": "b2", "capacity": 20.0, "busy": 0.5}]
    (trend,) = trends(brokers=brokers, owners={"b1": 4})

    assert trend.samples[0].by_broker == pytest.approx({"b1": 1.05, "b2": 0.5})
    assert trend.figures.idle == 1


def test_message_rates_in_the_long_run_are_not_those_of_the_minute() -> None:
    """What was busy for nine minutes and is quiet now is passed over for what never was."""
    (trend,) = trends(
        brokers=[{"id": name, "capacity": 100.0} for name in ("b1", "b2", "b3")],
        owners={"b1": 1, "b2": 2, "b3": 1},
        events=[
            {"at": 0, "topics": [0, 1], "factor": 9.0},
            {"at": 9, "topics": [0, 1], "factor": 0.1},
            {"at": 9, "leave": ["b3"]},
        ],
        policies=[{"name": "p", "selector": "least-long-term-message-rate"}],
    )

    assert trend.samples[9].moved == ((2, 1),)


def _modular(**keys: Any) -> list[dict[str, Any]]:
    """Return 4.2's modular manager, without splits and with these keys of a `broker.conf`, as the only policy."""
    conf = {"loadBalancerAutoBundleSplitEnabled": False, **keys}
    return [{"name": "p", "from_broker_conf": str(_MODULAR), "pulsar": "4.2", "broker_conf": conf}]


@pytest.mark.parametrize("is_even", [True, False])
def test_all_bundles_of_a_modular_cycle_go_where_its_first_figures_say(*, is_even: bool) -> None:
    """To the idlest broker, however many; Pulsar 4.2.4 left 13 bundles on three brokers so."""
    (trend,) = trends(
        brokers=[{"id": f"b{n}", "capacity": 100.0} for n in (1, 2, 3)],
        owners={"b1": 13, "b3": 1},
        namespaces=[{"name": "t/n", "bundles": 14, "topics": 14, "load": 70.0}],
        policies=_modular(
            loadBalancerBundleUnloadMinThroughputThreshold=0, loadBalancerDistributeBundlesEvenlyEnabled=is_even
        ),
    )

    first = next(sample for sample in trend.samples if sample.moves)
    assert first.moves > 2
    assert {new for _, new in first.moved} == {1}


def test_a_lost_bundle_counts_a_hundred_messages() -> None:
    """Nobody reports what it carries any more; 256 messages/s apart the idler broker gets three before the other."""
    brokers = [{"id": f"b{n}", "capacity": 100.0} for n in (1, 2, 3)]
    (trend,) = trends(
        brokers=brokers,
        owners={"b1": 1, "b2": 1, "b3": 5},
        # A bundle has one topic of 1024 messages/s, that of the second broker 1280.
        namespaces=[{"name": "t/n", "bundles": 7, "topics": 7, "load": 7.0}],
        events=[{"at": 0, "topics": [1], "factor": 1.25}, {"at": 3, "leave": ["b3"]}],
        policies=_modular(loadBalancerDistributeBundlesEvenlyEnabled=False),
    )

    assert [new for _, new in trend.samples[3].moved] == [0, 0, 0, 1, 0]


def test_equal_seeds_give_equal_runs() -> None:
    """And other seeds others, where there is something to draw."""
    jittery = {"namespaces": [{"name": "t/n", "load": 8.0, "jitter": 0.5}], "owners": {}}
    (one,), (same,), (other,) = trends(**jittery), trends(**jittery), trends(**jittery, seed=2)

    assert one.figures == same.figures or repr(one.figures) == repr(same.figures)
    assert one.figures.thrash != other.figures.thrash


def test_a_scenario_says_what_is_seen() -> None:
    """Load grows by 8 %, which lifts one broker above the threshold: nobody is told of so small a change."""
    changes: dict[str, Any] = {
        "minutes": 8,
        "owners": {"b1": 2, "b2": 2},
        "policies": [{"name": "p", "selector": "random", "shedder": {"use": "threshold", "threshold": 0.16}}],
        "namespaces": [{"name": "t/n", "bundles": 4, "topics": 8, "load": 12.0}],
        "events": [{"at": 3, "factor": 1.08}],
    }
    changes["policies"][0]["shedder"]["history"] = 0.0
    (fresh,), (published,) = trends(**changes), trends(**changes, reports="published")

    assert fresh.figures.unloads > 0
    assert published.figures.unloads == 0
