"""The selector `least-long-term-message-rate`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lookup.hooks import Offer
from lookup.model import ClusterView
from lookup.testing import candidates, cluster, engine_request
from lookup_policies.least_long_term_message_rate import LeastLongTermMessageRate
from tests.plugins.worlds import shares

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
