"""The scorer `topology-distance`."""

from __future__ import annotations

from dataclasses import replace

from lookup.hooks import reads_of
from lookup.model import Edge, Topology
from lookup.testing import broker, cluster, engine_request, request
from lookup_policies.topology_distance import TopologyDistance
from tests.plugins.worlds import scored

TOPOLOGY = Topology(distance_ms={"same": 0.0, "rack": 1.0, "zone": 4.0, "region": 10.0})
VIEW = cluster(
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

    assert scored(TopologyDistance(), CLIENT, VIEW) == expected


def test_the_scale_does_not_depend_on_the_candidates() -> None:
    """A broker's score is the same whoever else is a candidate."""
    assert scored(TopologyDistance(), CLIENT, VIEW, "next-rack", "here") == {"next-rack": 0.9, "here": 1.0}


def test_a_client_without_a_place_prefers_nobody() -> None:
    """Requests of the engine, and clients that send nothing, give all brokers the same score."""
    assert set(scored(TopologyDistance(unknown=0.3), engine_request(), VIEW).values()) == {0.3}
    assert set(scored(TopologyDistance(), request(properties={"floor": "2"}), VIEW).values()) == {0.5}


def test_links_stretch_the_scale() -> None:
    """Where a link is longer than any level, it is the greatest distance."""
    linked = replace(VIEW, topology=replace(TOPOLOGY, edges=(Edge("eu", "us", 20.0), Edge("us", "asia", 20.0))))

    expected = {"here": 1.0, "next-rack": 0.975, "next-zone": 0.9, "abroad": 0.5, "somewhere": 0.5}
    assert scored(TopologyDistance(), CLIENT, linked) == expected


def test_another_topology_gives_other_scores() -> None:
    """Scores kept for one topology are not used for another with the same brokers."""
    scored(TopologyDistance(), CLIENT, VIEW)
    flat = replace(VIEW, topology=replace(TOPOLOGY, distance_ms={"same": 0.0, "region": 10.0}))

    assert scored(TopologyDistance(), CLIENT, flat)["next-zone"] == 1.0


def test_a_topology_without_distances_prefers_nobody_it_can_place() -> None:
    """Where everything is at distance 0 every known place scores 1."""
    assert scored(TopologyDistance(), CLIENT, replace(VIEW, topology=Topology(distance_ms={})))["abroad"] == 1.0


def test_levels_may_have_other_names() -> None:
    """The client's properties that hold its place are parameters."""
    part = TopologyDistance(zone_key="az")

    assert reads_of(part) == {"properties.region", "properties.az", "properties.rack"}
    assert scored(part, request(properties={"az": "1"}), VIEW)["next-zone"] == 0.6
