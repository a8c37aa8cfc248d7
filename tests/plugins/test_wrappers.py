"""The wrappers `explore`, `fallback`, `zone-spill` and `by-namespace`, and how the answer of a child is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from lookup.errors import ContractError
from lookup.hooks import Offer, reads_of
from lookup.model import ClusterView
from lookup.testing import broker, candidates, cluster, engine_request, request
from lookup_policies.avg import AvgPlacement
from lookup_policies.hashing import Rendezvous
from lookup_policies.round_robin import RoundRobin
from lookup_policies.score_selectors import Best, Random
from lookup_policies.wrappers import ByNamespace, Explore, Fallback, ZoneSpill
from tests.plugins.worlds import shares

VIEW = cluster("b1", "b2", "b3", "b4")
SCORES = {"b1": 0.9, "b2": 0.1, "b3": 0.1, "b4": 0.9}
TWO = cluster("b1", "b2", usage={"b1": 0.9, "b2": 0.1})
FROM_X = request(properties={"zone": "x"})


@dataclass(frozen=True)
class Says:
    """A selector that answers what it is told to."""

    name: ClassVar[str] = "says"
    answer: tuple[float, ...]

    def odds(self, *_: object) -> Sequence[float]:
        """Return the answer."""
        return self.answer


def test_explore_normalises_the_childs_weights_first() -> None:
    """A child that answers large weights does not drown exploration."""
    assert shares(Explore(0.4, Says((30.0, 10.0, 0.0, 0.0))), VIEW) == pytest.approx(
        {"b1": 0.55, "b2": 0.25, "b3": 0.1, "b4": 0.1}
    )


def test_explore_declines_what_its_child_declines() -> None:
    """Exploration does not answer where the child would not."""
    assert shares(Explore(child=Best(min_score=0.95)), VIEW, scores=SCORES) == {}


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((1.0,), r"selector says .* shape \(1,\) for 4"),
        ((1.0, -1.0, 0.0, 1.0), "selector says .* finite and not negative"),
        ((1.0, float("nan"), 0.0, 1.0), "selector says .* finite and not negative"),
    ],
)
def test_a_childs_breach_is_not_hidden_by_the_mixture(answer: tuple[float, ...], sentence: str) -> None:
    """Wrong lengths, negative odds and NaN of a child end the run as they would without the wrapper."""
    with pytest.raises(ContractError, match=sentence):
        shares(Explore(child=Says(answer)), VIEW)


@pytest.mark.parametrize(
    ("top", "expected"), [(0.8, {"b1": 1.0}), (0.4, {"b2": 1.0})], ids=["first-answers", "second-answers"]
)
def test_fallback_follows_the_first_that_answers(top: float, expected: dict[str, float]) -> None:
    """By default: the best if it is good enough, else Pulsar's choice by load."""
    assert shares(Fallback(), TWO, scores={"b1": top, "b2": 0.0}) == expected


def test_fallback_declines_if_no_child_answers() -> None:
    """All children declining is a decline."""
    part = Fallback((Best(min_score=0.5), Best(min_score=0.6)))

    assert shares(part, TWO, scores={"b1": 0.1, "b2": 0.1}) == {}


def test_fallback_without_children_is_refused() -> None:
    """A fallback without children could only decline."""
    with pytest.raises(ValueError, match="fallback has no children"):
        Fallback(())


def _view(demand: dict[str, float], zones: str = "xxyyzz", **figures: Any) -> ClusterView:
    brokers = [broker(f"{zone}{place}", zone=zone) for place, zone in enumerate(zones)]
    return cluster(*brokers, demand={"zone": demand}, **figures)


def _by_zone(odds: dict[str, float]) -> dict[str, float]:
    zones = sorted({broker_id[0] for broker_id in odds})
    return {zone: round(sum(share for one, share in odds.items() if one[0] == zone), 6) for zone in zones}


@pytest.mark.parametrize(
    ("demand", "expected"),
    [
        ({"x": 1.0, "y": 1.0, "z": 1.0}, {"x": 1.0}),
        ({"x": 1.0, "y": 8.0}, {"x": 1.0}),
        ({"y": 8.0}, {"x": 1.0}),
        ({"x": 6.0, "y": 3.0, "z": 3.0}, {"x": 0.666667, "y": 0.166667, "z": 0.166667}),
        ({"x": 6.0, "y": 4.0, "z": 2.0}, {"x": 0.666667, "z": 0.333333}),
        ({"x": 10.0}, {"x": 0.333333, "y": 0.333333, "z": 0.333333}),
    ],
    ids=["even", "local-has-room", "no-demand-here", "spills-evenly", "spills-where-there-is-room", "one-zoned"],
)
def test_what_a_zone_cannot_carry_is_spilled(demand: dict[str, float], expected: dict[str, float]) -> None:
    """A zone keeps its share of capacity over its share of demand; the rest goes where capacity exceeds demand."""
    assert _by_zone(shares(ZoneSpill(), _view(demand), asked=FROM_X)) == expected


def test_spilling_fills_every_zone_to_its_share_of_capacity() -> None:
    """Taken over all clients, each zone receives exactly its share of capacity where demand exceeds it."""
    demand = {"x": 7.0, "y": 2.0, "z": 1.0}
    view = _view(demand)
    received = dict.fromkeys("xyz", 0.0)
    for zone, weight in demand.items():
        for target, share in _by_zone(shares(ZoneSpill(), view, asked=request(properties={"zone": zone}))).items():
            received[target] += weight * share

    assert received == pytest.approx(dict.fromkeys("xyz", 10 / 3), abs=1e-4)


def test_capacity_counts_where_everybody_has_one() -> None:
    """A zone with half of the capacity keeps half of the demand, however few brokers it has."""
    brokers = [broker("x0", zone="x", capacity=500.0), *(broker(f"y{n}", zone="y", capacity=100.0) for n in range(5))]
    view = cluster(*brokers, demand={"zone": {"x": 1.0, "y": 1.0}})

    assert shares(ZoneSpill(), view, asked=FROM_X) == {"x0": 1.0}


def test_brokers_without_zone_are_one_zone() -> None:
    """They take part in what is spilled."""
    brokers = [broker("x0", zone="x"), *(f"n{place}" for place in range(5))]

    assert _by_zone(shares(ZoneSpill(), cluster(*brokers, demand={"zone": {"x": 1.0}}), asked=FROM_X)) == {
        "n": 0.833333,
        "x": 0.166667,
    }


def test_the_child_chooses_inside_a_zone() -> None:
    """The child sees the zone's candidates and their scores."""
    scores = {"x0": 0.1, "x1": 0.2, "y2": 0.9, "y3": 0.8, "z4": 0.5, "z5": 0.5}
    odds = shares(ZoneSpill(), _view({"x": 1.0}), asked=FROM_X, scores=scores)

    assert odds == pytest.approx({"x1": 1 / 3, "y2": 1 / 3, "z4": 1 / 6, "z5": 1 / 6})


@pytest.mark.parametrize(
    ("view", "asked"),
    [
        (_view({"x": 1.0}, zones="xxyyz"), FROM_X),
        (_view({"x": 1.0}), engine_request()),
        (_view({"x": 1.0}), request(properties={"zone": "w"})),
        (_view({}), FROM_X),
        (_view({"x": 0.0}), FROM_X),
    ],
    ids=["small-cluster", "no-zone", "nobody-in-it", "no-demand", "demand-of-zero"],
)
def test_zone_spill_otherwise_disregards_zones(view: ClusterView, asked: Any) -> None:
    """Where the rule cannot be applied the child chooses among all."""
    assert len(set(shares(ZoneSpill(child=Random()), view, asked=asked).values())) == 1
    assert len(shares(ZoneSpill(child=Random()), view, asked=asked)) == len(view.brokers)


def test_a_zone_whose_child_declines_hands_on() -> None:
    """The other zones take over the share of one in which nobody is good enough."""
    scores = {"x0": 0.1, "x1": 0.1, "y2": 0.9, "y3": 0.9, "z4": 0.1, "z5": 0.1}
    odds = shares(ZoneSpill(child=Best(min_score=0.5)), _view({"x": 1.0}), asked=FROM_X, scores=scores)

    assert odds == {"y2": 0.5, "y3": 0.5}


def test_zone_spill_reads_the_zone_the_demand_and_what_its_child_reads() -> None:
    """Reads, order and memory are those of rule and child together."""
    part = ZoneSpill(key="az", child=Rendezvous())

    assert reads_of(part) == {"properties.az", "view.load", "bundle", "view.salt"}
    assert ZoneSpill(child=RoundRobin()).order_sensitive
    assert not part.order_sensitive


_IN_TURN = ByNamespace(namespaces=("t/turn",), child=AvgPlacement())
_TURN, _OTHER = "t/turn/0x00000000_0x80000000", "t/n/0x00000000_0x80000000"


def test_by_namespace_asks_another_selector_about_some_namespaces() -> None:
    """Each states its odds, and notes a new owner, as if it were asked about these bundles alone."""
    memory: dict[str, Any] = {}
    view = cluster("b1", "b2", "b3", memory=memory, long_term_bundle_rates={_OTHER: 1.0})
    for bundle in (_TURN, _OTHER):
        _IN_TURN.observe(memory, engine_request(bundle), view.brokers[2], Offer(candidates(view), view))
        _IN_TURN.remember(memory, engine_request(bundle), view.brokers[2])

    assert (memory["counter"], memory["bound"]) == (1, {_OTHER: "b3"})
    assert shares(_IN_TURN, view, asked=engine_request(_TURN)) == {"b2": 1.0}
    assert shares(_IN_TURN, view, asked=engine_request(_OTHER)) == {"b3": 1.0}


def test_by_namespace_is_as_forgetful_as_its_children() -> None:
    """Reads, order and memory are those of both; the memory has the child's key, which a shedder may share."""
    plain = ByNamespace(inside=Random(), child=Rendezvous())

    assert reads_of(plain) == {"namespace", "bundle", "view.salt"}
    assert (_IN_TURN.memory_key, plain.memory_key) == ("avg", "rendezvous")
    assert (_IN_TURN.order_sensitive, plain.order_sensitive) == (True, False)
    assert not hasattr(plain, "remember")
    assert not hasattr(plain, "observe")
    assert hasattr(_IN_TURN, "observe")
