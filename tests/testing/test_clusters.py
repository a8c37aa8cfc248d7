"""The builders of test clusters."""

from __future__ import annotations

import numpy as np
import pytest

from lookup.model import Location, NamespacePolicies
from lookup.testing import broker, candidates, cluster, engine_request, request


def test_labels_become_lookup_properties_and_the_location() -> None:
    """A label is published under the prefix; region, zone and rack also say where the broker stands."""
    built = broker("b1:8080", capacity=5.0, zone="z", rack="a", disk="ssd")

    assert built.property_of("disk") == "ssd"
    assert built.lookup_data.properties == {"lookup.zone": "z", "lookup.rack": "a", "lookup.disk": "ssd"}
    assert built.location == Location(None, "z", "a")


def test_figures_are_named_and_become_columns() -> None:
    """Whatever is said by broker stands at the broker's number; what is not said is unknown or 0."""
    view = cluster("b", "a", usage={"b": 0.5}, topics={"b": 3}, registered=["a"])

    assert [one.id for one in view.brokers] == ["a", "b"]
    np.testing.assert_array_equal(view.load.usage, [np.nan, 0.5])
    assert view.load.topics.tolist() == [0, 3]
    assert view.registered.tolist() == [True, False]


def test_load_follows_from_bundles_and_usage_from_capacity() -> None:
    """A broker's load is the sum of its bundles' loads, its usage that over its capacity."""
    owned = {"t/n/1": "b1", "t/n/2": "b1", "t/n/3": "b2"}
    view = cluster(
        broker("b1", capacity=10.0), "b2", owned=owned, bundle_loads={"t/n/1": 3.0, "t/n/2": 1.0, "t/n/9": 7.0}
    )

    assert view.load.throughput.tolist() == [4.0, 0.0]
    np.testing.assert_array_equal(view.load.usage, [0.4, np.nan])
    assert [entry.bundle for entry in view.load.top_bundles[0]] == ["t/n/2", "t/n/1"]


def test_top_bundles_leave_system_namespaces_out() -> None:
    """As in a real report, bundles nobody may unload are not listed."""
    view = cluster("b1", owned={"pulsar/system/1": "b1"}, bundle_loads={"pulsar/system/1": 1.0})

    assert view.load.top_bundles == ((),)


def test_ownership_counts_by_broker_and_namespace() -> None:
    """Owners are numbers; counts have one entry per broker."""
    view = cluster("b1", "b2", "b3", owned={"t/n/1": "b2", "t/m/1": "b2", "t/m/2": "b3"})

    assert view.ownership.owner("t/m/2") == 2
    assert view.ownership.owner("t/m/3") is None
    assert view.ownership.bundles().tolist() == [0, 2, 1]
    assert view.ownership.bundles_in("t/m").tolist() == [0, 1, 1]


def test_candidates_are_the_registered_or_the_named() -> None:
    """Named ones keep the order they are named in."""
    view = cluster("b1", "b2", "b3", registered=["b3", "b1"])

    assert candidates(view).ids == ("b1", "b3")
    assert candidates(view, "b3", "b2").ids == ("b3", "b2")


@pytest.mark.parametrize(
    "build", [lambda: candidates(cluster("b1"), "b9"), lambda: cluster("b1", owned={"t/n/1": "b9"})]
)
def test_an_unknown_broker_is_a_mistake(build: object) -> None:
    """A typing error in a test is told, with the brokers there are."""
    with pytest.raises(KeyError, match=r"'b9' in the cluster; .*\['b1'\]"):
        build()  # type: ignore[operator]  # parametrized


def test_a_request_falls_into_a_bundle_of_its_namespace() -> None:
    """The bundle is found by the topic's hash among the namespace's boundaries."""
    whole = NamespacePolicies(boundaries={"t/n": (0, 0xFFFFFFFF)})
    asked = request("non-persistent://t/n/x", properties={"rack": "a"}, client="c1", namespaces=whole)

    assert (asked.tenant, asked.namespace, asked.domain) == ("t", "t/n", "non-persistent")
    assert asked.bundle == "t/n/0x00000000_0xffffffff"
    assert (asked.property_of("rack"), asked.client) == ("a", "c1")


def test_a_request_of_the_engine_is_bare() -> None:
    """It has a bundle and a namespace, and nothing a client would send."""
    asked = engine_request("t/n/0x00000000_0xffffffff")

    assert (asked.namespace, asked.topic, asked.domain, asked.client) == ("t/n", None, None, None)
    assert asked.properties == {}
