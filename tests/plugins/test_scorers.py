"""Scores brokers: by the client's properties, by distance, by room to spare, by bundles owned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lookup.hooks import reads_of
from lookup.model import Edge, LookupRequest, Topology
from lookup.testing import broker, candidates, cluster, engine_request, request
from lookup_policies.scorers import FewestBundles, Headroom, PropertyMatch, TopologyDistance
from tests.plugins.worlds import scored

VIEW = cluster(broker("a1", rack="a", zone="x"), broker("a2", rack="a"), broker("b1", rack="b", zone="x"), "bare")


def test_equal_values_match() -> None:
    """The client's value under the key meets the broker's under the prefixed key."""
    asked = request(properties={"rack": "a"})

    assert scored(PropertyMatch(), asked, VIEW) == {"a1": 1.0, "a2": 1.0, "b1": 0.0, "bare": 0.0}


@pytest.mark.parametrize("asked", [request(), request(properties={"zone": "x"}), engine_request()])
def test_a_client_without_the_property_prefers_nobody(asked: LookupRequest) -> None:
    """Every broker gets `unasked`, labelled or not."""
    assert set(scored(PropertyMatch(unasked=0.25), asked, VIEW).values()) == {0.25}


def test_a_broker_without_the_label_gets_its_own_score() -> None:
    """One-sided labels score `unlabelled`."""
    asked = request(properties={"rack": "a"})

    assert scored(PropertyMatch(unlabelled=0.4), asked, VIEW)["bare"] == 0.4


def test_values_are_compared_as_they_are() -> None:
    """Case counts, and an empty value is a value."""
    view = cluster(broker("b1", rack="A"), broker("b2", rack=""))

    assert scored(PropertyMatch(), request(properties={"rack": "a"}), view) == {"b1": 0.0, "b2": 0.0}
    assert scored(PropertyMatch(), request(properties={"rack": ""}), view) == {"b1": 0.0, "b2": 1.0}


def test_several_keys_are_weighed() -> None:
    """The score is the weighted mean over the keys, each with its own rule for what is missing."""
    asked = request(properties={"rack": "a", "zone": "x"})
    part = PropertyMatch(keys={"rack": 3.0, "zone": 1.0})

    assert scored(part, asked, VIEW) == {"a1": 1.0, "a2": 0.75, "b1": 0.25, "bare": 0.0}


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


def test_both_forms_at_once_are_refused() -> None:
    """A key beside keys would be ignored in silence."""
    with pytest.raises(ValueError, match=r"property-match .* key = 'zone' and keys"):
        PropertyMatch(key="zone", keys={"rack": 1.0})


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


def test_nearer_is_better() -> None:
    """The score falls in proportion to the distance, to 0 at the greatest the topology gives."""
    expected = {"here": 1.0, "next-rack": 0.9, "next-zone": 0.6, "abroad": 0.0, "somewhere": 0.5}

    assert scored(TopologyDistance(), CLIENT, PLACES) == expected


def test_the_scale_does_not_depend_on_the_candidates() -> None:
    """A broker's score is the same whoever else is a candidate."""
    assert scored(TopologyDistance(), CLIENT, PLACES, "next-rack", "here") == {"next-rack": 0.9, "here": 1.0}


def test_a_client_without_a_place_prefers_nobody() -> None:
    """Requests of the engine, and clients that send nothing, give all brokers the same score."""
    assert set(scored(TopologyDistance(unknown=0.3), engine_request(), PLACES).values()) == {0.3}
    assert set(scored(TopologyDistance(), request(properties={"floor": "2"}), PLACES).values()) == {0.5}


def test_links_stretch_the_scale() -> None:
    """Where a link is longer than any level, it is the greatest distance."""
    linked = replace(PLACES, topology=replace(TOPOLOGY, edges=(Edge("eu", "us", 20.0), Edge("us", "asia", 20.0))))

    expected = {"here": 1.0, "next-rack": 0.975, "next-zone": 0.9, "abroad": 0.5, "somewhere": 0.5}
    assert scored(TopologyDistance(), CLIENT, linked) == expected


def test_another_topology_gives_other_scores() -> None:
    """Scores kept for one topology are not used for another with the same brokers."""
    scored(TopologyDistance(), CLIENT, PLACES)
    flat = replace(PLACES, topology=replace(TOPOLOGY, distance_ms={"same": 0.0, "region": 10.0}))

    assert scored(TopologyDistance(), CLIENT, flat)["next-zone"] == 1.0


def test_a_topology_without_distances_prefers_nobody_it_can_place() -> None:
    """Where everything is at distance 0 every known place scores 1."""
    assert scored(TopologyDistance(), CLIENT, replace(PLACES, topology=Topology(distance_ms={})))["abroad"] == 1.0


def test_levels_may_have_other_names() -> None:
    """The client's properties that hold its place are parameters."""
    part = TopologyDistance(zone_key="az")

    assert reads_of(part) == {"properties.region", "properties.az", "properties.rack"}
    assert scored(part, request(properties={"az": "1"}), PLACES)["next-zone"] == 0.6


USED = cluster("idle", "busy", "over", "new", usage={"idle": 0.0, "busy": 0.75, "over": 1.5})


def test_the_score_is_what_is_left() -> None:
    """An idle broker scores 1, an overfull one 0."""
    assert scored(Headroom(), request(), USED) == {"idle": 1.0, "busy": 0.25, "over": 0.0, "new": 0.5}


def test_a_broker_without_report_may_look_full() -> None:
    """The score of a missing report is a parameter."""
    assert scored(Headroom(unreported=0.0), request(), USED)["new"] == 0.0


OWNED = {"t/n/1": "b1", "t/n/2": "b1", "t/m/3": "b1", "t/m/4": "b1", "t/m/5": "b2"}


def test_the_score_falls_with_owned_bundles() -> None:
    """Who owns most scores 0, who owns none scores 1."""
    assert scored(FewestBundles(), request(), cluster("b1", "b2", "b3", owned=OWNED)) == {
        "b1": 0.0,
        "b2": 0.75,
        "b3": 1.0,
    }


def test_only_candidates_are_compared() -> None:
    """The most is that of the candidates."""
    assert scored(FewestBundles(), request(), cluster("b1", "b2", "b3", owned=OWNED), "b2", "b3") == {
        "b2": 0.0,
        "b3": 1.0,
    }


def test_without_bundles_all_are_alike() -> None:
    """Where nobody owns anything everybody scores 1."""
    assert scored(FewestBundles(), request(), cluster("b1", "b2")) == {"b1": 1.0, "b2": 1.0}
