"""Envelopes come off lines once: what they hold, when it happened, and what of it is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.logs.unwrapping import Events, where_text_is

_ASKED = "[persistent://t/n/a] Received Lookup from /10.0.0.1:5 for 0"
_LINE = f"2024-03-25T13:19:09,900+0000 [io-1] DEBUG org.apache.pulsar.broker.service.ServerCnx - {_ASKED}"
_CLOCK = _LINE.replace("2024-03-25T13:19:09,900+0000", "13:19:09.900")


def _read(*lines: object, keeps_objects: bool = False) -> Events:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    return Events(iter(enumerate(texts, start=1)), keeps_objects)


def _texts(*lines: object, keeps_objects: bool = False) -> list[str]:
    return [text for _, text in _read(*lines, keeps_objects=keeps_objects)]


def test_other_lines_stay_as_they_are() -> None:
    """Whatever no envelope is around: words, tables, and lines that end in braces or JSON of their own."""
    lines = [
        _LINE,
        "",
        "a,b,c",
        f'{_LINE} {{"cpu": 1}}',
        "LookupResult{type=x}",
        "[x] {y}",
        '"a","b"',
        "{",
        "[1, 2",
        "}",
    ]
    assert _texts(*lines) == lines
    assert _texts(*lines, keeps_objects=True)[:3] == lines[:3]


@given(st.lists(st.text(alphabet='{}[]",:\\ \r\n01aé', max_size=12), max_size=6))
def test_no_line_is_too_strange(lines: list[str]) -> None:
    """Numbers only rise, whatever the lines are, for both kinds of readers."""
    for keeps_objects in (False, True):
        numbers = [number for number, _ in _read(*lines, keeps_objects=keeps_objects)]
        assert numbers == sorted({*numbers})


@pytest.mark.parametrize(
    ("wrapped", "clock"),
    [
        ({"message": _ASKED, "@timestamp": "2024-03-25T15:00:00Z"}, "@timestamp"),
        ({"message": _ASKED, "timestamp": 1711378800}, "timestamp"),
        ({"log": _LINE[29:], "stream": "stdout", "time": "2024-03-25T15:00:00.5Z"}, "runtime"),
        (f"2024-03-25T15:00:00.5Z stdout F {_LINE[29:]}", "runtime"),
        ({"message": _LINE, "@timestamp": "2024-03-25T15:00:00Z"}, None),
        ({"message": _ASKED, "instant": {"epochSecond": 1711372749, "nanoOfSecond": 7}, "loggerName": "a.B"}, None),
        ({"message": _CLOCK, "@timestamp": "2024-03-25T15:00:00Z"}, None),
    ],
)
def test_times_of_envelopes_are_counted(wrapped: object, clock: str | None) -> None:
    """A lookup whose line has no time gets that of the nearest envelope, which is said; a time of its own stays."""
    events = _read(wrapped)
    (text,) = [text for _, text in events]

    assert dict(events.borrowed) == ({} if clock is None else {clock: 1})
    assert ("T15:00:00" in text) is (clock is not None)


def test_context_goes_with_a_bare_message() -> None:
    """Attributes of 5.0 are in log4j2's context, or in OTLP's list of pairs."""
    pairs = [{"key": "topic", "value": {"stringValue": "x"}}]
    bare = {"timeUnixNano": "1711372749900000000", "body": {"stringValue": "Received Lookup request"}}
    context = {
        "instant": {"epochSecond": 1711372749},
        "message": "Received Lookup request",
        "contextMap": {"topic": "x"},
    }

    for record in (context, {"resourceLogs": [{"scopeLogs": [{"logRecords": [{**bare, "attributes": pairs}]}]}]}):
        (text,) = _texts(record)
        event: dict[str, Any] = json.loads(text)
        assert (event["message"], event["contextMap"]) == ("Received Lookup request", {"topic": "x"})


def test_cut_lines_are_joined_and_their_lack_is_counted() -> None:
    """By runtime and stream, though another stream comes between; a part that is never followed up is a line."""
    stamp = "2024-03-25T13:19:09.9Z"
    events = _read(f"{stamp} stdout P {_LINE[:50]}", f"{stamp} stderr F oh", f"{stamp} stdout F {_LINE[50:]}")
    assert [text for _, text in events] == ["oh", _LINE]
    assert (events.unfinished, events.requests) == (0, 1)

    lost = _read(f"{stamp} stdout P {_LINE[:50]}")
    assert [text for _, text in lost] == [_LINE[:50]]
    assert lost.unfinished == 1

    flagged = [{"log": _LINE[:50], "logtag": "P"}, {"log": _LINE[50:], "logtag": "F"}]
    assert _texts(*flagged) == [_LINE]


def test_phrases_are_counted_before_anything_is_opened() -> None:
    """However deep they are; a lookup over HTTP is a request and an answer, so that it hides no other that is lost."""
    http = "Lookup succeeded for topic persistent://t/n/a -- broker: b"
    events = _read(
        {"a": [{"b": _ASKED}, {"b": json.dumps({"c": _ASKED.replace("for 0", "for 1")})}]}, http, "[x] Lookup result y"
    )

    assert len(list(events)) >= 3
    assert (events.requests, events.answers) == (3, 2)


def test_documents_may_be_spread_over_lines() -> None:
    """As jq and command lines of clouds print them: one document, several, or an array of them."""
    records = [{"message": _LINE}, {"message": _LINE, "labels": {"a": [1, 2]}}]
    for text in (json.dumps(records, indent=2), json.dumps({"events": records}, indent=4)):
        assert _texts(*text.splitlines()) == [_LINE, _LINE]
    assert _texts("[", *(f"  {json.dumps(record)}," for record in records), "]")[:2] == [_LINE, _LINE]
    assert _texts("{", "  'no json'", _LINE) == ["{", "  'no json'", _LINE]


def test_what_cannot_be_unwrapped_is_named_by_its_form() -> None:
    """By the key under which the phrase of a lookup is, or as a text."""
    assert where_text_is(json.dumps({"a": {"b": [_ASKED]}})) == "JSON, under the key a.b.0"
    assert where_text_is(f"<<{_ASKED}>>") == "lines of text in no layout that is known"
