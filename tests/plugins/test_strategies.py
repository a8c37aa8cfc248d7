"""Chooses as Pulsar's own placement strategies do: by usage, by smoothed usage, by messages in the long run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lookup.hooks import Offer
from lookup.model import ClusterView
from lookup.testing import candidates, cluster, engine_request, request
from lookup_policies.strategies import LeastLongTermMessageRate, LeastResourceUsage, LeastResourceUsageWithWeight
from tests.plugins.worlds import shares


def test_the_average_is_that_of_the_candidates() -> None:
    """A broker that a filter has dropped does not lift the mean."""
    view = cluster("1", "2", "3", usage={"1": 0.1, "2": 0.15, "3": 1.0})

    assert set(shares(LeastResourceUsage(), view, "1", "2")) == {"1", "2"}


WEIGHTED = LeastResourceUsageWithWeight(history=0.5)


def _select(part: LeastResourceUsageWithWeight, view: ClusterView, memory: dict[str, Any], *ids: str) -> set[str]:
    seen = replace(view, memory=memory)
    pool = set(shares(part, seen, *ids))
    offered = candidates(seen, *ids)
    part.observe(memory, request(), candidates(seen, min(pool))[0], Offer(offered, seen))
    return pool


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"1": 0.1, "2": 0.3, "3": 0.8}, {"1", "2"}),
        ({"1": 0.9, "2": 0.9, "3": 0.95}, {"1", "2", "3"}),
        ({"1": 0.05, "2": 0.05, "3": 0.35}, {"1", "2", "3"}),
    ],
    ids=["below-the-mean", "nobody-below", "a-last-bit-off-the-edge"],
)
def test_brokers_clearly_below_the_mean_share_the_odds(usage: dict[str, float], expected: set[str]) -> None:
    """If there is no such broker, all candidates share them."""
    assert set(shares(WEIGHTED, cluster("1", "2", "3", usage=usage))) == expected


def test_every_selection_updates_smoothed_usage() -> None:
    """The past fades by selections, not by time, and only for brokers that were candidates."""
    memory: dict[str, Any] = {}
    _select(WEIGHTED, cluster("1", "2", usage={"1": 0.8, "2": 0.4}, throughput={"1": 5.0, "2": 5.0}), memory)
    later = cluster("1", "2", usage={"1": 0.0, "2": 0.6}, throughput={"1": 5.0, "2": 5.0})

    assert [_select(WEIGHTED, later, memory) for _ in range(2)] == [{"1", "2"}, {"1"}]
    assert memory["usage"] == {"1": pytest.approx(0.2), "2": pytest.approx(0.55)}
    _select(WEIGHTED, later, memory, "2")
    assert memory["usage"]["1"] == pytest.approx(0.2)


def test_an_idle_broker_starts_smoothing_again() -> None:
    """A broker without load forgets the load that it had."""
    usage, memory = {"1": 0.6, "2": 0.4}, {"usage": {"1": 0.0, "2": 1.0}}
    idle = replace(cluster("1", "2", usage=usage, throughput={"1": 5.0, "2": 0.0}), memory=memory)

    assert set(shares(replace(WEIGHTED, difference=0.0), idle)) == {"1"}
    assert set(shares(replace(WEIGHTED, history=1.0), idle)) == {"1"}
    assert _select(WEIGHTED, idle, memory) == {"1", "2"}
    assert memory["usage"] == {"1": pytest.approx(0.3), "2": pytest.approx(0.4)}


PART = LeastLongTermMessageRate()
BUNDLES = [f"public/default/{place:#010x}_{place + 1:#010x}" for place in range(4)]


def _given(view: ClusterView, memory: dict[str, Any], bundle: str, broker_id: str) -> ClusterView:
    brokers = candidates(view)
    PART.observe(memory, engine_request(bundle), candidates(view, broker_id)[0], Offer(brokers, view))
    return replace(view, memory=memory)


def test_the_least_rate_wins_and_ties_share() -> None:
    """Rates of the long run count where they are known, else the load."""
    loads = {"1": 10.0, "2": 10.0, "3": 30.0}

    assert shares(PART, cluster("1", "2", "3", throughput=loads)) == {"1": 0.5, "2": 0.5}
    known = cluster("1", "2", "3", throughput=loads, long_term_rates={"1": 9, "2": 8, "3": 7})
    assert shares(PART, known) == {"3": 1.0}


def test_overloaded_brokers_come_last_and_tie_among_themselves() -> None:
    """Above 85 % a rate is infinite; where all are, any of them will do."""
    rates = {"1": 1.0, "2": 50.0}

    assert shares(PART, cluster("1", "2", usage={"1": 0.86, "2": 0.85}, throughput=rates)) == {"2": 1.0}
    assert shares(PART, cluster("1", "2", usage={"1": 0.86, "2": 0.99}, throughput=rates)) == {"1": 0.5, "2": 0.5}


def test_bundles_count_from_the_moment_they_are_given() -> None:
    """Bundles that come in one go spread out, though no report shows their traffic yet."""
    view, memory, chosen = cluster("1", "2"), dict[str, Any](), list[str]()
    for bundle in BUNDLES:
        chosen.append(min(shares(PART, view)))
        view = _given(view, memory, bundle, chosen[-1])

    assert chosen == ["1", "2", "1", "2"]


def test_a_known_bundle_counts_with_its_own_rate() -> None:
    """What is known of a bundle replaces the rate of an unknown one."""
    view = cluster("1", "2", throughput={"1": 0.0, "2": 150.0}, long_term_bundle_rates={BUNDLES[0]: 200.0})

    assert shares(PART, _given(view, {}, BUNDLES[0], "1")) == {"2": 1.0}
    assert shares(PART, _given(view, {}, BUNDLES[1], "1")) == {"1": 1.0}


def test_the_next_report_shows_the_traffic_itself() -> None:
    """Bundles given before the instant of the report are not counted twice."""
    given = _given(cluster("1", "2", throughput={"1": 0.0, "2": 50.0}), {}, BUNDLES[0], "1")

    assert shares(PART, given) == {"2": 1.0}
    assert shares(PART, replace(given, now_us=60_000_000)) == {"1": 1.0}
