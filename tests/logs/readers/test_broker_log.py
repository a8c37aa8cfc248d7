"""Logs of brokers: lookups, failures, ownership, requests joined with their answers, and lines in no order of time."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.logs.readers import PulsarBrokerReader
from lookup.logs.readers.broker_log import LogEntry, in_order
from lookup.model.documents import Row, Unreadable
from tests.logs.readers.lines import one_row, read_lines

_TS = 1769860800000000
_TOPIC = "persistent://public/default/t-partition-3"
_S = 1_000_000
_BUNDLE = "public/default/0x40000000_0x80000000"


def _line(message: str, second: int = 0, level: str = "DEBUG") -> str:
    return f"2026-01-31T12:00:{second:02},000+0000 [pulsar-io-4-1] {level} org.apache.pulsar.broker.X - {message}"


def _json(message: str, second: int = 0, **context: str) -> str:
    instant = {"epochSecond": _TS // 1_000_000 + second, "nanoOfSecond": 0}
    return json.dumps({"instant": instant, "loggerName": "o.a.p.X", "message": message, "contextMap": context})


def test_a_request_and_its_result_are_one_lookup() -> None:
    """The row has the request's time and client, the result's broker as an id, and how long it took."""
    result = "Optional[LookupResult [type=BrokerUrl, lookupData=LookupData{brokerUrl=pulsar://b2:6650, httpUrl=x}]]"
    values = one_row(
        PulsarBrokerReader(broker="b1:8080"),
        _line(f"[{_TOPIC}] Received Lookup from /10.1.2.3:51234 for 7"),
        _line(f"[{_TOPIC}] Lookup result {result}", second=1),
    )

    assert values == {
        "ts": _TS,
        "topic": _TOPIC,
        "client": "10.1.2.3",
        "asked_broker": "b1:8080",
        "broker": "b2:8080",
        "result": "connect",
        "latency_ms": 1000.0,
    }


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ("LookupResult [type=RedirectUrl, lookupData=LookupData{brokerUrl=pulsar://b2:6650}]", "redirect"),
        ("LookupData{brokerUrl=pulsar://b2:6650}, redirect=false", "connect"),
        ("Optional.empty", "failed"),
        ("something else", "unknown"),
        ("pulsar://b2:6650", "unknown"),
    ],
)
def test_a_result_says_what_became_of_the_lookup(result: str, outcome: str) -> None:
    """Redirects are told by the type; a text that names none is unknown."""
    values = one_row(PulsarBrokerReader(), _line(f"[{_TOPIC}] Lookup result {result}"))
    assert values.get("result") == outcome


def test_a_topic_behind_for_is_taken_too() -> None:
    """`Received Lookup from X for T` names the topic at its end."""
    values = one_row(PulsarBrokerReader(), _line(f"Received Lookup from host/10.1.2.3:51234 for {_TOPIC}"))
    assert (values["topic"], values["client"]) == (_TOPIC, "10.1.2.3")


@pytest.mark.parametrize("is_json", [False, True])
def test_requests_of_5_0_have_attributes(is_json: bool) -> None:
    """Topic, listener and client come from the context map, behind the text or in JSON."""
    context = {"topic": _TOPIC, "requestId": "7", "advertisedListenerName": "ext", "remoteAddress": "/10.1.2.3:5"}
    text = "Received Lookup request"
    attributes = ", ".join(f"{key}={value}" for key, value in context.items())
    line = _json(text, **context) if is_json else _line(f"{text} {{{attributes}}}")

    expected = {"ts": _TS, "topic": _TOPIC, "client": "10.1.2.3", "listener": "ext"}
    assert one_row(PulsarBrokerReader(), line) == expected


_RESULT_OF_5_0 = (
    "Optional[LookupResult{type=BrokerUrl, lookupData=LookupData{brokerId=b2:8080, brokerUrl=pulsar://b2:6650, "
    "brokerUrlTls=null, httpUrl=http://b2:8080, httpUrlTls=null}, authoritativeRedirect=false, "
    "brokerServiceListenerName='internal', webServiceListenerName='null'}]"
)


@pytest.mark.parametrize("is_json", [False, True])
def test_results_of_5_0_have_attributes(is_json: bool) -> None:
    """Topic, broker and kind of answer come from the context map, as 5.0.0-M1 writes it."""
    attributes = f"{{result={_RESULT_OF_5_0}, toString={_TOPIC}}}"
    line = (
        _json("Lookup result", result=_RESULT_OF_5_0, toString=_TOPIC)
        if is_json
        else _line(f"Lookup result {attributes}")
    )

    expected = {"ts": _TS, "topic": _TOPIC, "broker": "b2:8080", "result": "connect"}
    assert one_row(PulsarBrokerReader(), line) == expected


@pytest.mark.parametrize(
    "line",
    [
        _line(f"Failed to lookup null for topic {_TOPIC} with error java.lang.X: Failed to lookup y", level="WARN"),
        _line(f"Failed to lookup {{topic={_TOPIC}, exceptionMessage=x}}", level="WARN"),
        _line(f"Failed lookup due to too many lookup-requests {_TOPIC}"),
        _json("Failed lookup due to too many lookup-requests", topic=_TOPIC),
        _line(f"No broker was found available for topic {_TOPIC}", level="WARN"),
    ],
)
def test_failures_are_lookups_that_failed(line: str) -> None:
    """Errors, refusals for load and missing brokers are demand without an answer."""
    assert one_row(PulsarBrokerReader(), line) == {"ts": _TS, "topic": _TOPIC, "result": "failed"}


def test_a_failure_names_its_client_where_there_is_authentication() -> None:
    """The client's role stands in the line; the literal null does not count."""
    line = _line(f"Failed to lookup app-7 for topic {_TOPIC} with error x")
    assert one_row(PulsarBrokerReader(), line)["client"] == "app-7"


@pytest.mark.parametrize(("name", "listener"), [("(none)", None), ("internal", "internal")])
def test_the_listener_is_what_the_client_asked_for(name: str, listener: str | None) -> None:
    """4.2 prints `requesting listener`, 5.0 has an attribute; `(none)` is no listener."""
    text = _line(f"[{_TOPIC}] Received Lookup from /10.1.2.3:51234 for 7 requesting listener {name}")
    event = _json("Received Lookup request", topic=_TOPIC, advertisedListenerName=name)

    assert one_row(PulsarBrokerReader(), text).get("listener") == listener
    assert one_row(PulsarBrokerReader(), event).get("listener") == listener
    assert one_row(PulsarBrokerReader(), text)["client"] == "10.1.2.3"


def test_a_redirect_of_5_0_names_its_target_in_an_attribute() -> None:
    """`Redirect lookup for topic` has `redirectUri`."""
    line = _json("Redirect lookup for topic", topic=_TOPIC, redirectUri="http://b3:8080/lookup/v2/topic/x")
    assert one_row(PulsarBrokerReader(), line) == {
        "ts": _TS, "topic": _TOPIC, "broker": "b3:8080", "result": "redirect",
    }  # fmt: skip


def test_lookups_over_http_are_answered_in_one_line() -> None:
    """Success names the broker, a redirect its target."""
    reader = PulsarBrokerReader()
    connect = one_row(
        reader, _line(f"Lookup succeeded for topic {_TOPIC} -- broker: LookupData{{brokerUrl=pulsar://b2:6650}}")
    )
    redirect = one_row(
        reader, _line(f"Redirect lookup for topic {_TOPIC} to http://b3:8080/lookup/v2/topic/x?authoritative=true")
    )

    assert (connect["broker"], connect["result"]) == ("b2:8080", "connect")
    assert (redirect["broker"], redirect["result"]) == ("b3:8080", "redirect")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (_line("Received Lookup from /10.1.2.3:5 for 7"), "the line names no topic"),
        (_line("Successfully unloaded namespace bundle nonsense"), "names no bundle"),
        (f"Selected new owner broker: b:8080 for bundle: {_BUNDLE}.", "in none of the layouts"),
        (f"12:00:00.000 [t] INFO  a.L - Selected new owner broker: b:8080 for bundle: {_BUNDLE}.", "has no date"),
    ],
)
def test_a_record_that_cannot_be_used_says_why(line: str, reason: str) -> None:
    """Missing names, unknown layouts and missing dates are reported with their line."""
    (bad,) = read_lines(PulsarBrokerReader(), line)

    assert isinstance(bad, Unreadable)
    assert reason in bad.reason


def test_stack_traces_and_other_lines_are_passed_over() -> None:
    """Nothing is reported for lines that tell of neither lookups nor ownership."""
    lines = (
        _line("Loading all topics on bundle: " + _BUNDLE),
        "java.lang.IllegalStateException: Failed to lookup x",
        "\tat org.apache.X.lookup(X.java:7) ~[Failed to lookup]",
        "Caused by: x.Exception: Successfully acquired ownership of nothing",
        # The load manager's own failure; no client asked.
        _line(f"Failed to lookup broker:Optional[b1:8080] for bundle:{_BUNDLE}, the broker has not been registered."),
        "",
    )
    assert read_lines(PulsarBrokerReader(), *lines) == []


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.integers(0, 59)), max_size=20))
def test_every_request_becomes_exactly_one_lookup(events: list[tuple[bool, str, int]]) -> None:
    """However requests and results are mixed, each request is one row, and rows are in the order of lines."""
    lines = [
        _line(
            f"[persistent://p/d/{topic}] "
            + ("Received Lookup from /h:1 for 1" if asks else "Lookup result Optional.empty"),
            second,
        )
        for asks, topic, second in sorted(events, key=lambda event: event[2])
    ]
    rows = read_lines(PulsarBrokerReader(), *lines)

    asked = [number for number, line in enumerate(lines, start=1) if "Received" in line]
    assert [row.line for row in rows] == sorted({row.line for row in rows})
    assert set(asked) <= {row.line for row in rows}


@pytest.mark.parametrize("name", ["[fd00::a1]", "fd00::a1"])
def test_a_file_may_be_named_after_an_address_of_ipv6(name: str) -> None:
    """Its id has brackets and the port of the web server."""
    line = _line(f"[{_TOPIC}] Received Lookup from /10.1.2.3:51234 for 7")

    assert one_row(PulsarBrokerReader(broker=name), line)["asked_broker"] == "[fd00::a1]:8080"


@pytest.mark.parametrize("how", ["newest first", "in no order"])
def test_a_log_in_another_order_gives_the_same_lookups(how: str) -> None:
    """Each lookup has its own answer, not that of the one before."""
    answers = [
        f"[{_TOPIC}] Lookup result LookupData{{brokerUrl=pulsar://b{n}:6650}}, redirect=false" for n in range(20)
    ]
    asked = [_line(f"[{_TOPIC}] Received Lookup from /10.0.0.{n}:5 for {n}", second=2 * n) for n in range(20)]
    lines = [line for n in range(20) for line in (asked[n], _line(answers[n], second=2 * n + 1))]
    other = lines[::-1] if how == "newest first" else Random(3).sample(lines, len(lines))

    rows = [row.values for row in read_lines(PulsarBrokerReader(), *other) if isinstance(row, Row)]

    assert rows == [row.values for row in read_lines(PulsarBrokerReader(), *lines) if isinstance(row, Row)]
    assert [(row["client"], row["broker"]) for row in rows] == [(f"10.0.0.{n}", f"b{n}:8080") for n in range(20)]


def _events(*times: int) -> list[LogEntry]:
    return [LogEntry(number, "", ts) for number, ts in enumerate(times)]


@given(gaps=st.lists(st.integers(0, 5 * _S), min_size=1, max_size=50))
def test_a_log_that_runs_backwards_is_turned_round(gaps: list[int]) -> None:
    """So that events of one instant are in order as well."""
    times = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    events = _events(*times)
    steps = sum(gap > 0 for gap in gaps[1:])

    assert list(in_order(events)) == events
    if steps:
        assert list(in_order(events[::-1])) == events


def test_threads_that_write_late_are_left_as_they_are() -> None:
    """Some ms of disorder are in every log of a broker; joining depends on the order of its lines."""
    events = _events(*(10_000 * number - 25_000 * (number % 3 == 2) for number in range(3_000)))

    assert list(in_order(events)) == events


def test_events_in_no_order_are_sorted() -> None:
    """By time; those of one instant stay as they came."""
    events = _events(*range(0, 300 * _S, _S))
    shuffled = Random(1).sample(events, len(events))

    assert list(in_order(shuffled)) == events


def test_too_many_events_to_be_sorted_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do."""
    monkeypatch.setattr("lookup.logs.readers.broker_log._MOST", 1_500)

    with pytest.raises(ValueError, match="more than 1,500 "):
        list(in_order(_events(*range(2_000 * _S, 0, -_S))))


@pytest.mark.parametrize("how", ["newest first", "in no order"])
def test_a_log_that_loses_its_order_is_put_in_order_from_there_on(how: str) -> None:
    """An export may be joined to a log; what came before is as it was."""
    events = _events(*range(0, 3_000 * _S, _S))
    first, rest = events[:1_200], events[1_200:]
    other = rest[::-1] if how == "newest first" else Random(1).sample(rest, len(rest))

    assert list(in_order([*first, *other])) == events


def test_files_that_are_joined_anywhere_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long they are; a step back is a joint, wherever it is."""
    monkeypatch.setattr("lookup.logs.readers.broker_log._MOST", 1_500)
    events = _events(*range(5_000 * _S, 7_500 * _S, _S), *range(0, 2_500 * _S, _S))

    assert list(in_order(events)) == events
