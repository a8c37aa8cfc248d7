"""The reader of access logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lookup.logs.readers import JettyAccessReader
from lookup.model.documents import Unreadable
from tests.logs.readers.lines import one_row, read_lines

_PATH = "/lookup/v2/topic/persistent/public/default/orders-partition-1"
_EXPECTED: dict[str, Any] = {
    "ts": 1541593651000000,
    "topic": "persistent://public/default/orders-partition-1",
    "client": "172.17.0.1",
    "result": "connect",
    "authoritative": False,
    "latency_ms": 17.0,
}


def _ncsa(request: str, status: int = 200) -> str:
    return f'172.17.0.1 - - [07/Nov/2018:12:27:31 +0000] "{request} HTTP/1.1" {status} 93 "-" "Pulsar-Java-v4.0.1" 17'


@pytest.mark.parametrize(("status", "result"), [(200, "connect"), (307, "redirect"), (404, "failed"), (503, "failed")])
def test_the_status_is_the_result(status: int, result: str) -> None:
    """200 connects, 307 redirects, everything else failed."""
    assert one_row(JettyAccessReader(), _ncsa(f"GET {_PATH}", status))["result"] == result


def test_the_query_and_the_host_are_used() -> None:
    """Listener and authority come from the query, the asked broker from an absolute URI or the reader's parameter."""
    line = _ncsa(f"GET http://b7:8080{_PATH}?authoritative=true&listenerName=ext")
    values = one_row(JettyAccessReader(), line)

    assert (values["authoritative"], values["listener"], values["asked_broker"]) == (True, "ext", "b7:8080")
    assert one_row(JettyAccessReader(broker="b1:8080"), line)["asked_broker"] == "b1:8080"


def test_an_encoded_topic_is_decoded() -> None:
    """Percent signs of the path are undone."""
    line = _ncsa("GET /lookup/v2/topic/non-persistent/t/ns/a%20b%2Fc")
    assert one_row(JettyAccessReader(), line)["topic"] == "non-persistent://t/ns/a b/c"


@pytest.mark.parametrize("is_json", [False, True])
def test_5_0_writes_events_with_attributes(is_json: bool) -> None:
    """The lookup arrived `durationMs` before the event was written."""
    attributes = {
        "method": "GET",
        "uri": _PATH,
        "proto": "HTTP/1.1",
        "status": "200",
        "bytesOut": "93",
        "clientAddr": "172.17.0.1",
        "userAgent": "Pulsar, Java v5",
        "durationMs": "17",
    }
    logger = "org.apache.pulsar.broker.web.JettyRequestLogFactory"
    text = ", ".join(f"{key}={value}" for key, value in attributes.items())
    instant = {"epochSecond": 1541593651, "nanoOfSecond": 17_000_000}
    record = {"instant": instant, "loggerName": logger, "message": "request", "contextMap": attributes}
    line = json.dumps(record) if is_json else f"2018-11-07T12:27:31,017+0000 [w] INFO  {logger} - request {{{text}}}"

    assert one_row(JettyAccessReader(), line) == _EXPECTED


@pytest.mark.parametrize(
    "line",
    [
        _ncsa("GET /admin/v2/persistent/public/default"),
        _ncsa(f"GET {_PATH}/bundle"),
        _ncsa(f"POST {_PATH}"),
        f"2018-11-07T12:27:31,017+0000 [w] INFO  a.Client - asking {_PATH}",
    ],
)
def test_other_requests_are_passed_over(line: str) -> None:
    """Admin calls, bundle ranges, other methods and lines that only mention a lookup are none of its business."""
    assert read_lines(JettyAccessReader(), line) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (_ncsa("GET /lookup/v2/topic/persistent/t/x"), "path 'persistent/t/x' is not"),
        (_ncsa(f"GET {_PATH}").replace("Nov", "Foo"), "timestamp '07/Foo/2018:12:27:31 +0000' "),
        (f'1.2.3.4 "GET {_PATH} HTTP/1.1" 200', "neither NCSA's extended form"),
        *(
            (_ncsa(f"GET {_PATH}")[:end], "neither NCSA's extended form")
            for end in (71, 85, len(_PATH) + 52, len(_PATH) + 62)
        ),
    ],
)
def test_a_lookup_that_cannot_be_read_says_why(line: str, reason: str) -> None:
    """A broken path, time or line is reported."""
    (bad,) = read_lines(JettyAccessReader(), line)

    assert isinstance(bad, Unreadable)
    assert reason in bad.reason
