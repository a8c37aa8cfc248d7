"""Messages of system topics in JSON Lines: what is a row, what is passed over and what is junk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lookup.logs.readers import SystemTopicsReader
from lookup.model.documents import Row, Unreadable
from tests.logs.readers.lines import one_row, read_lines

_STATES = "persistent://pulsar/system/loadbalancer-service-unit-state"
_LOADS = "non-persistent://pulsar/system/loadbalancer-broker-load-data"
_BUNDLE = "t/ns/0x00000000_0x80000000"


def _line(value: object, *, topic: str = _STATES, key: object = _BUNDLE, **rest: Any) -> str:
    return json.dumps({"topic": topic, "key": key, "publish_time_ms": 5, "message_id": "0:1:-1", "value": value} | rest)


def test_a_row_has_the_time_at_which_its_message_was_published() -> None:
    """In µs, as all times in tables."""
    line = _line({"state": "Owned", "dstBroker": "b1:8080", "versionId": 1})
    assert one_row(SystemTopicsReader(), line) == {
        "ts": 5_000, "bundle": _BUNDLE, "event": "owned", "broker": "b1:8080",
    }  # fmt: skip


def test_tombstones_and_other_topics_are_passed_over() -> None:
    """A broker that has gone has no load to report, and lines may be empty."""
    lines = (_line(None, topic=_LOADS, key="b1:8080"), _line({"x": 1}, topic="persistent://t/ns/other"), "", " ")
    assert read_lines(SystemTopicsReader(), *lines) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("junk", "the line is no JSON"),
        ("[1]", "the line is no JSON object but list"),
        (_line({}, topic=7), "topic is 7, not a text"),
        (_line({}, key=None), "key is None, not a text"),
        (_line({}, publish_time_ms="now"), "publish_time_ms is 'now', not a whole number"),
        (_line("text"), "value is 'text', not an object"),
        (_line({"state": "Gone"}), "state is 'Gone', which is none of a service unit's"),
        (_line({"state": "Owned", "dstBroker": "b"}, key="junk"), "junk"),
        (_line({"cpu": 7}, topic=_LOADS), "cpu is 7, not an object"),
    ],
)
def test_junk_is_reported_and_the_rest_is_read(line: str, reason: str) -> None:
    """A message that Pulsar does not write is refused with its reason, and those behind it are read."""
    bad, good = read_lines(SystemTopicsReader(), line, _line({"state": "Owned", "dstBroker": "b1:8080"}))

    assert isinstance(bad, Unreadable)
    assert reason in bad.reason
    assert isinstance(good, Row)
