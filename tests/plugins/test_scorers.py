"""Scores brokers: by the client's properties, by distance, by room to spare, by bundles owned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from lookup.hooks import Scorer, reads_of
from lookup.model import ClusterView, Edge, LookupRequest, Topology
from lookup.testing import broker, candidates, cluster, engine_request, request
from lookup_policies.scorers import FewestBundles, Headroom, PropertyMatch, TopologyDistance
from tests.plugins.worlds import scored

VIEW = cluster(broker("a1", rack="a", zone="x"), broker("a2", rack="a"), broker("b1", rack="b", zone="x"), "bare")
CASED = cluster(broker("b1", rack="A"), broker("b2", rack=""))
RACK = request(properties={"rack": "a"})

TOPOLOGY = Topology(distance_ms={"same": 0.0, "rack": 1.0, "zone": 4.0, "region": 10.0})
PLACES = cluster(
    broker("here", region="eu", zone="1", rack="a"),
    broker("next-rack", region="eu", zone="1", rack="b"),
    broker("next-zone", region="eu", zone="2", rack="a"),
    broker("abroad", region="us", zone="1", rack="a"),
    "somewhere",
    topology=TOPOLOGY,
)
CLIENT = request(properties={"region": "eu", "zone": "1", "rack": "a"})
LINKED = replace(PLACES, topology=replace(TOPOLOGY, edges=(Edge("eu", "us", 20.0), Edge("us", "asia", 20.0))))
FLAT = replace(PLACES, topology=replace(TOPOLOGY, distance_ms={"same": 0.0, "region": 10.0}))
NOWHERE = replace(PLACES, topology=Topology(distance_ms={}))

USED = cluster("idle", "busy", "over", "new", usage={"idle": 0.0, "busy": 0.75, "over": 1.5})
OWNING = cluster("b1", "b2", "b3", owned={"t/n/1": "b1", "t/n/2": "b1", "t/m/3": "b1", "t/m/4": "b1", "t/m/5": "b2"})


@pytest.mark.parametrize(
    ("part", "asked", "view", "expected"),
    [
        # The client's value under the key meets the broker's under the prefixed key.
        (PropertyMatch(), RACK, VIEW, {"a1": 1.0, "a2": 1.0, "b1": 0.0, "bare": 0.0}),
        (PropertyMatch(unlabelled=0.4), RACK, VIEW, {"bare": 0.4}),
        # Case counts, and an empty value is a value.
        (PropertyMatch(), RACK, CASED, {"b1": 0.0, "b2": 0.0}),
        (PropertyMatch(), request(properties={"rack": ""}), CASED, {"b1": 0.0, "b2": 1.0}),
        # The score is the weighted mean over the keys, each with its own rule for what is missing.
        (
            PropertyMatch(keys={"rack": 3.0, "zone": 1.0}),
            request(properties={"rack": "a", "zone": "x"}),
            VIEW,
            {"a1": 1.0, "a2": 0.75, "b1": 0.25, "bare": 0.0},
        ),
        # The score falls in proportion to the distance, to 0 at the greatest the topology gives.
        (TopologyDistance(), CLIENT, PLACES, {"here": 1.0, "next-rack": 0.9, "next-zone": 0.6, "abroad": 0.0}),
        (TopologyDistance(), CLIENT, PLACES, {"somewhere": 0.5}),
        # Where a link is longer than any level, it is the greatest distance.
        (TopologyDistance(), CLIENT, LINKED, {"here": 1.0, "next-rack": 0.975, "next-zone": 0.9, "abroad": 0.5}),
        # Scores kept for one topology are not used for another with the same brokers.
        (TopologyDistance(), CLIENT, FLAT, {"next-zone": 1.0}),
        (TopologyDistance(), CLIENT, NOWHERE, {"abroad": 1.0}),
        (TopologyDistance(zone_key="az"), request(properties={"az": "1"}), PLACES, {"next-zone": 0.6}),
        # An idle broker scores 1, an overfull one 0; that of a missing report is a parameter.
        (Headroom(), request(), USED, {"idle": 1.0, "busy": 0.25, "over": 0.0, "new": 0.5}),
        (Headroom(unreported=0.0), request(), USED, {"new": 0.0}),
        # Who owns most scores 0, who owns none scores 1; the most is that of the candidates.
        (FewestBundles(), request(), OWNING, {"b1": 0.0, "b2": 0.75, "b3": 1.0}),
        (FewestBundles(), request(), cluster("b1", "b2"), {"b1": 1.0, "b2": 1.0}),
    ],
)
def test_brokers_have_their_scores(
    part: Scorer, asked: LookupRequest, view: ClusterView, expected: Mapping[str, float]
) -> None:
    """Those that are named, by the rule of the scorer."""
    found = scored(part, asked, view)

    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("part", "asked", "view", "expected"),
    [
        (PropertyMatch(unasked=0.25), request(), VIEW, {0.25}),
        (PropertyMatch(unasked=0.25), request(properties={"zone": "x"}), VIEW, {0.25}),
        (PropertyMatch(unasked=0.25), engine_request(), VIEW, {0.25}),
        (TopologyDistance(unknown=0.3), engine_request(), PLACES, {0.3}),
        (TopologyDistance(), request(properties={"floor": "2"}), PLACES, {0.5}),
    ],
)
def test_a_client_that_says_nothing_prefers_nobody(
    part: Scorer, asked: LookupRequest, view: ClusterView, expected: set[float]
) -> None:
    """Requests of the engine, and clients without the property, give every broker the same score."""
    assert set(scored(part, asked, view).values()) == expected


def test_the_candidates_alone_are_scored() -> None:
    """Of distances the scale stays; the most bundles are those of the candidates."""
    assert scored(TopologyDistance(), CLIENT, PLACES, "next-rack", "here") == {"next-rack": 0.9, "here": 1.0}
    assert scored(FewestBundles(), request(), OWNING, "b2", "b3") == {"b2": 0.0, "b3": 1.0}


def test_the_order_of_keys_makes_no_difference() -> None:
    """Equal parts score equally to the last bit."""
    view = cluster(broker("b1", a="1", b="1", c="1", d="2"))
    asked = request(properties=dict.fromkeys("abcd", "1"))
    weights = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.1}
    parts = PropertyMatch(keys=weights), PropertyMatch(keys=dict(reversed(weights.items())))
    forwards, backwards = (part.score(asked, candidates(view), view).tolist() for part in parts)

    assert parts[0] == parts[1]
    assert forwards == backwards


def test_only_compared_properties_are_read() -> None:
    """The decision key holds the keys and nothing else."""
    assert reads_of(PropertyMatch(key="zone")) == {"properties.zone"}
    assert reads_of(PropertyMatch(keys={"rack": 1.0, "zone": 1.0})) == {"properties.rack", "properties.zone"}
    assert reads_of(TopologyDistance(zone_key="az")) == {"properties.region", "properties.az", "properties.rack"}


def test_both_forms_at_once_are_refused() -> None:
    """A key beside keys would be ignored in silence."""
    with pytest.raises(ValueError, match=r"property-match .* key = 'zone' and keys"):
        PropertyMatch(key="zone", keys={"rack": 1.0})
