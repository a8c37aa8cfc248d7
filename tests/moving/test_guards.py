"""Every guard lets a cluster that is well pass, and says in one sentence what is not well."""

from __future__ import annotations

import json
from collections.abc import Iterator
from queue import Queue
from typing import Any

import pytest

from lookup.collect.collector import Endpoints
from lookup.collect.observing import Record
from lookup.collect.sources import AdminRest, Credentials
from lookup.moving.guards import Tolerances, guards_of, stopped_by
from lookup.moving.watching import OwnerWatch
from tests.moving.standin import BROKERS, StandIn, running


@pytest.fixture
def standin() -> Iterator[StandIn]:
    """Run a cluster."""
    with running() as started:
        yield started


def _stopped(standin: StandIn, **tolerances: Any) -> str | None:
    """Return what the guards say."""
    endpoints, records = Endpoints("east", standin.url), Queue[Record]()
    rest, watch = AdminRest(standin.url, Credentials()), OwnerWatch("east", records)
    guards = guards_of(Tolerances(**tolerances), endpoints, rest, watch, BROKERS, standin.plan())
    return stopped_by(guards)


def _samples(*values: float) -> tuple[int, str]:
    result = [{"metric": {"alertname": "lag", "broker": "a"}, "value": [1, str(value)]} for value in values]
    return 200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (_samples(), "None"),
        (_samples(0.0, 0.0), "None"),
        (_samples(0.0, 2.5), "up < 1 gives 2.5 for alertname=lag, broker=a;"),
        ((200, '{"data": {"resultType": "scalar", "result": [1, "0"]}}'), "None"),
        ((200, '{"data": {"resultType": "scalar", "result": [1, "NaN"]}}'), "up < 1 gives nan;"),
        ((400, ""), "HTTP status 400"),
        ((200, "<html>"), "http://127"),
    ],
)
def test_queries_of_prometheus(standin: StandIn, answer: tuple[int, str], said: str) -> None:
    """Nothing or 0 lets pass; a value, an error and an answer of another form do not."""
    standin.answers["/api/v1/query"] = answer

    assert said in str(_stopped(standin, prometheus=standin.url, queries=("up < 1",)))


def test_a_broker_that_does_not_answer_any_more_is_lost(standin: StandIn) -> None:
    """Also while it is still registered; one that could not be reached from the start is not asked."""
    with running() as other:
        plan = standin.plan()
        brokers = (plan.brokers[0], plan.brokers[1].model_copy(update={"web_url": other.url}), plan.brokers[2])
        dead = brokers[2].model_copy(update={"web_url": "http://127.0.0.1:1"})
        plan = plan.model_copy(update={"brokers": (*brokers[:2], dead)})
        rest, watch = AdminRest(standin.url, Credentials()), OwnerWatch("east", Queue[Record]())
        guards = guards_of(Tolerances(), Endpoints("east", standin.url), rest, watch, BROKERS, plan)
        assert stopped_by(guards) is None

    assert str(stopped_by(guards)).startswith("lost: b:8080 ")
