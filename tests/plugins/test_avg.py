"""Even out pairs of brokers: the shedder and the placement."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.engine.policy import memory_key
from lookup.hooks import Offer
from lookup.model import ClusterView, CycleLabel, CycleReason
from lookup.testing import candidates, cluster, engine_request
from lookup_policies.avg import Avg, AvgPlacement
from tests.plugins.cycles import cycle, loaded, local
from tests.plugins.worlds import shares

BUNDLES = {f"b{place}": 10.0 for place in range(10)}


def _view(usage: dict[str, float], **figures: Any) -> ClusterView:
    """Give every broker ten bundles in all per tenth of usage, of its own name, and loads of 10 each."""
    loads = {one: {f"{one}{place}": 10.0 for place in range(int(used * 10))} for one, used in usage.items()}
    return loaded(loads, usage=usage, **figures)


def _planned(memory: dict[str, Any]) -> dict[str, str]:
    """Return the destinations of the last cycle by the bundle's local name."""
    return {local(bundle): destination for bundle, (_, destination) in memory["plans"].items()}


def _cycles(part: Avg, view: ClusterView, count: int) -> list[int]:
    memory: dict[str, Any] = {}
    return [len(cycle(part, view, memory)[0]) for _ in range(count)]


PART = Avg(max_share=0.5, min_throughput=1.0)


@pytest.mark.parametrize(
    ("high", "counts"),
    [(0.3, [0] * 7 + [1] + [0] * 7 + [1]), (0.8, [0, 3, 0, 3]), (0.2, [0] * 9)],
    ids=["apart", "far-apart", "close"],
)
def test_pairs_act_when_they_were_apart_often_enough(high: float, counts: list[int]) -> None:
    """Eight cycles at 15 points or more, two at 40; then counting starts anew."""
    assert _cycles(PART, _view({"cold": 0.1, "hot": high}), len(counts)) == counts


def test_the_limits_belong_to_the_far_side() -> None:
    """Exactly 15 and 40 points apart count."""
    memory: dict[str, Any] = {}
    cycle(PART, _view({"cold": 0.0, "hot": 0.15}), memory)
    assert (memory["high"], memory["low"]) == ({}, {"cold": 1, "hot": 1})
    cycle(PART, _view({"cold": 0.0, "hot": 0.4}), memory)
    assert (memory["high"], memory["low"]) == ({"cold": 1, "hot": 1}, {"cold": 2, "hot": 2})


def test_coming_closer_forgets_high_counts_first_then_all() -> None:
    """Between the limits the high counts go, below the low one all four."""
    memory: dict[str, Any] = {"high": {"cold": 1, "hot": 1}, "low": {"cold": 3, "hot": 1, "gone": 2}}
    cycle(PART, _view({"cold": 0.1, "hot": 0.3}), memory)
    assert (memory["high"], memory["low"]) == ({}, {"cold": 4, "hot": 2, "gone": 2})
    cycle(PART, _view({"cold": 0.1, "hot": 0.2}), memory)
    assert (memory["high"], memory["low"]) == ({}, {})


def test_a_close_pair_forgets_only_itself_while_another_is_apart() -> None:
    """Counts of brokers in no pair survive as long as any pair is apart."""
    memory: dict[str, Any] = {"high": {"b": 1}, "low": {"b": 3, "gone": 2}}
    cycle(PART, _view({"a": 0.1, "b": 0.4, "c": 0.45, "d": 0.6}), memory)

    assert memory["low"] == {"a": 1, "d": 1, "gone": 2}


def test_brokers_pair_inwards_and_bundles_are_planned() -> None:
    """The least takes from the most loaded, the second least from the second most; the middle one is alone."""
    memory: dict[str, Any] = {}
    view = _view({"a": 0.1, "b": 0.9, "c": 0.2, "d": 0.7, "e": 0.5})
    cycle(PART, view, memory)
    accepted, outcome = cycle(PART, view, memory)

    assert accepted == ["b8", "b7", "b6", "b5", "d6", "d5"]
    assert _planned(memory) == {f"b{place}": "a" for place in range(5, 9)} | {"d5": "c", "d6": "c"}
    assert (outcome.label, outcome.reason) == (CycleLabel.SUCCESS, CycleReason.OVERLOADED)
    assert outcome.average == pytest.approx(0.48)


def test_messages_come_first() -> None:
    """Half of 10,000 messages per second have to go, though load says otherwise."""
    view = _view(
        {"cold": 0.1, "hot": 0.5},
        rates={"cold": 0.0, "hot": 10_000.0},
        bundle_rates={"hot0": 6000.0, "hot1": 3000.0, "hot2": 1000.0, "hot3": 1000.0, "hot4": 0.0},
    )
    memory: dict[str, Any] = {"high": {"hot": 1}}

    assert cycle(PART, view, memory)[0] == ["hot1", "hot3", "hot2"]


def test_too_few_messages_leave_it_to_throughput() -> None:
    """The minimum itself is not enough; the same holds for throughput."""
    view = _view({"cold": 0.1, "hot": 0.5}, rates={"cold": 0.0, "hot": 2000.0})
    memory: dict[str, Any] = {"high": {"hot": 1}}

    assert cycle(Avg(max_share=0.5, min_throughput=19.9), view, dict(memory))[0] == ["hot4", "hot3"]
    assert cycle(Avg(max_share=0.5, min_throughput=20.0), view, dict(memory))[1].reason == CycleReason.TOO_LITTLE


def test_a_pair_that_may_act_counts_anew_even_if_nothing_moves() -> None:
    """Pulsar clears counts before it looks for bundles."""
    memory: dict[str, Any] = {"high": {"hot": 1}}
    cycle(Avg(), _view({"cold": 0.1, "hot": 0.5}), memory)

    assert (memory["high"], memory["low"]) == ({}, {})


def test_close_scores_are_told_apart() -> None:
    """Half a point decides who is paired with whom: scores are doubles in 4.0.8, 4.2.4 and 5.0.1."""
    usage, memory = {"a": 0.1, "b": 0.605, "c": 0.6, "d": 0.15}, dict[str, Any]()
    cycle(PART, _view(usage), memory)
    cycle(PART, _view(usage), memory)

    assert _planned(memory) == {"b5": "a", "b4": "a", "c5": "d", "c4": "d"}


def test_memory_has_no_weight() -> None:
    """Of single resources cpu and bandwidth count, memory never."""
    resources = {"cold": {"memory": 99.0, "cpu": 10.0}, "hot": {"bandwidth_in": 60.0, "cpu": 10.0}}
    memory: dict[str, Any] = {}
    cycle(Avg(), _view({"cold": 0.1, "hot": 0.5}, resources=resources), memory)

    assert memory["high"] == {"cold": 1, "hot": 1}


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        ({"usage": {}}, CycleReason.NO_LOAD_DATA),
        ({"registered": []}, CycleReason.NO_BROKERS),
        ({"registered": ["hot"]}, CycleReason.HIT_COUNT),
    ],
)
def test_there_may_be_nothing_to_do(figures: dict[str, Any], reason: CycleReason) -> None:
    """A cycle without unloads says why."""
    view = loaded({"cold": {}, "hot": BUNDLES}, **{"usage": {"cold": 0.1, "hot": 0.9}, **figures})
    accepted, outcome = cycle(PART, view, {"high": {"cold": 9}})

    assert (accepted, outcome.label, outcome.reason) == ([], CycleLabel.SKIP, reason)


@settings(max_examples=50)
@given(st.data())
def test_no_pair_turns_over(data: st.DataObject) -> None:
    """A giver gives at most its share of the difference, so with a half it never ends up below its taker."""
    names = data.draw(st.lists(st.sampled_from("abcdefg"), unique=True, min_size=2))
    loads = {one: {f"{one}{place}": data.draw(st.floats(0.1, 30)) for place in range(6)} for one in names}
    usage = {one: sum(bundles.values()) / 180 for one, bundles in loads.items()}
    memory: dict[str, Any] = {"high": dict.fromkeys(names, 1)}
    accepted, _ = cycle(Avg(max_share=0.5, min_throughput=0.0), loaded(loads, usage=usage), memory)
    after = {one: sum(bundles.values()) for one, bundles in loads.items()}
    for bundle in accepted:
        after[bundle[0]] -= loads[bundle[0]][bundle]
        after[_planned(memory)[bundle]] += loads[bundle[0]][bundle]

    assert len(accepted) == len(set(accepted))
    assert all(after[bundle[0]] >= after[_planned(memory)[bundle]] - 1e-9 for bundle in accepted)


def test_a_cycle_says_how_many_pairs_are_apart_before_they_act() -> None:
    """20 points are 5 more than tolerated, as a ratio of usage; nothing moves in the first cycle of this kind."""
    _, outcome = cycle(PART, _view({"cold": 0.1, "hot": 0.3}), {})

    assert (outcome.reason, outcome.over) == (CycleReason.HIT_COUNT, 1)
    assert outcome.excess == pytest.approx(0.05)


BUNDLE, OTHER = "public/default/0x00000000_0x40000000", "public/default/0x40000000_0x80000000"
BY_NAME = AvgPlacement(plan="bundle")


def _planning(*brokers: str, **figures: Any) -> ClusterView:
    """Show a plan that takes the bundle from broker 1 to broker 2."""
    return cluster(*brokers, memory={"at_us": 0, "plans": {BUNDLE: ["1", "2"]}, "bound": {}}, **figures)


@pytest.mark.parametrize(
    ("usage", "offered", "wanted"),
    [
        ({}, "1234", {"2": 1.0}),
        ({"1": 0.1, "2": 0.86, "3": 0.2, "4": 0.9}, "1234", {"3": 1.0}),
        ({"1": 0.1, "2": 0.86, "3": 0.9, "4": 0.9}, "1234", {"2": 1.0}),
        ({}, "134", {"3": 0.5, "4": 0.5}),
        ({}, "1", {}),
    ],
    ids=["planned", "overloaded", "all-overloaded", "no-candidate", "nobody-else"],
)
def test_from_5_0_on_a_plan_is_kept_by_name(usage: dict[str, float], offered: str, wanted: dict[str, float]) -> None:
    """AvgShedder.selectBrokerForBundle of 5.0.1: an overloaded destination is replaced, and never by the source."""
    view = _planning(*"1234", usage=usage)

    assert shares(BY_NAME, view, *offered, asked=engine_request(BUNDLE)) == wanted


def test_from_5_0_on_nothing_drawn_is_remembered() -> None:
    """And what no cycle planned goes anywhere."""
    view, memory = _planning("1", "2"), dict[str, Any]()
    BY_NAME.observe(memory, engine_request(OTHER), view.brokers[0], Offer(candidates(view), view))

    assert (memory, len(shares(BY_NAME, view, asked=engine_request(OTHER)))) == ({}, 2)


def test_before_5_0_new_bundles_share_one_broker_until_the_next_report() -> None:
    """AvgShedder of 4.2.4 keeps its plan by the content of BundleData: of all new bundles that is the same."""
    view, memory = cluster("1", "2", "3"), dict[str, Any]()
    AvgPlacement().observe(memory, engine_request(BUNDLE), view.brokers[1], Offer(candidates(view), view))

    def after(now_us: int, **figures: Any) -> dict[str, float]:
        shown = cluster("1", "2", "3", memory=memory, now_us=now_us, **figures)
        return shares(AvgPlacement(), shown, asked=engine_request(OTHER))

    assert after(0) == {"2": 1.0}
    assert len(after(0, long_term_bundle_rates={OTHER: 3.0})) == 3
    assert len(after(60_000_000)) == 3
    assert memory_key(AvgPlacement()) == "avg"
