"""One request about three brokers, which the tests of policies ask."""

from __future__ import annotations

from typing import Any

from lookup.engine.ballots import Ballot
from lookup.testing import cluster, request
from tests.engine.parts import instant, policy

VIEW = cluster("b1", "b2", "b3")
ASKED = request("persistent://public/default/t", properties={"rack": "a"}, client="c")


def ballot_of(*parts: Any, **changes: Any) -> Ballot:
    """Return what a policy of these parts says to the request."""
    tested = policy(*parts, **changes)
    return tested.ballot(ASKED, instant(tested, VIEW))
