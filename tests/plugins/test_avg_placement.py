"""The selector `avg-placement`."""

from __future__ import annotations

from typing import Any

from lookup.engine.policy import memory_key
from lookup.testing import candidates, cluster, engine_request
from lookup_policies.avg_placement import AvgPlacement
from tests.plugins.worlds import shares

BUNDLE = "public/default/0x00000000_0x40000000"


def test_a_bound_bundle_goes_where_it_is_bound() -> None:
    """The shedder has said who takes the bundle."""
    view = cluster("1", "2", "3", memory={"bound": {BUNDLE: "2"}})

    assert shares(AvgPlacement(), view, asked=engine_request(BUNDLE)) == {"2": 1.0}


def test_an_unbound_bundle_goes_anywhere() -> None:
    """A bundle that is not bound, or bound to a broker that is no candidate, has equal odds everywhere."""
    view = cluster("1", "2", "3", memory={"bound": {BUNDLE: "3"}})
    other = engine_request("public/default/0x40000000_0x80000000")

    assert shares(AvgPlacement(), view, "1", "2", asked=engine_request(BUNDLE)) == {"1": 0.5, "2": 0.5}
    assert len(shares(AvgPlacement(), view, asked=other)) == 3


def test_an_assignment_binds_the_bundle_in_the_memory_of_the_shedder() -> None:
    """What is chosen once is chosen again, and the shedder `avg` sees it."""
    view, memory = cluster("1", "2"), dict[str, Any]()

    AvgPlacement().remember(memory, engine_request(BUNDLE), candidates(view, "2")[0])

    assert memory == {"bound": {BUNDLE: "2"}}
    assert memory_key(AvgPlacement()) == "avg"
