"""The scorer `headroom`."""

from __future__ import annotations

from lookup.testing import cluster, request
from lookup_policies.headroom import Headroom
from tests.plugins.worlds import scored

VIEW = cluster("idle", "busy", "over", "new", usage={"idle": 0.0, "busy": 0.75, "over": 1.5})


def test_the_score_is_what_is_left() -> None:
    """An idle broker scores 1, an overfull one 0."""
    assert scored(Headroom(), request(), VIEW) == {"idle": 1.0, "busy": 0.25, "over": 0.0, "new": 0.5}


def test_a_broker_without_report_may_look_full() -> None:
    """The score of a missing report is a parameter."""
    assert scored(Headroom(unreported=0.0), request(), VIEW)["new"] == 0.0
