"""The layouts of Pulsar's logs, and what their readers are told of a log's origin."""

from __future__ import annotations

import pytest

from lookup.logs.readers.layouts import LineLayout, LogEvent, LogOrigin, is_continuation

_TS = 1695198452188000


def _event(line: str, source: str = "broker.log", **origin: str) -> LogEvent | None:
    return LineLayout(LogOrigin(**origin), source).read(line)  # type: ignore[arg-type]  texts only


def test_braces_of_other_texts_are_no_attributes() -> None:
    """A record printed as `Name{...}` stays in the message."""
    event = _event("2023-09-20T08:27:32,188+0000 [t] DEBUG a.L - result LookupData{brokerUrl=u, httpUrl=h}")
    assert event == LogEvent(_TS, "result LookupData{brokerUrl=u, httpUrl=h}")


@pytest.mark.parametrize(
    ("source", "date"),
    [("x.log", "2023-09-20"), ("logs/broker-2023-09-20.log", ""), ("logs/20230920/broker.log.gz", "")],
)
def test_a_clock_takes_its_day_from_the_parameter_or_the_path(source: str, date: str) -> None:
    """Layout A gets the day the reader was told, or the one in the file's path."""
    event = _event("08:27:32.188 [pool-1] INFO  a.b.Logger - hello", source, date=date)
    assert event == LogEvent(_TS, "hello")


def test_a_clock_without_day_is_unreadable() -> None:
    """Where nothing names the day the reason says how to give it."""
    with pytest.raises(ValueError, match="give the reader `date`"):
        _event("08:27:32.188 [pool-1] INFO  a.b.Logger - hello")


def test_midnight_is_noticed_even_on_lines_that_nobody_reads() -> None:
    """The day goes on when the clock goes back by half a day, not when threads write late."""
    layout = LineLayout(LogOrigin(date="2023-09-19"), "x.log")
    layout.pass_over("23:59:59.900 [t] INFO  a.L - noise")
    layout.pass_over("23:59:59.800 [t] INFO  a.L - late noise")
    layout.pass_over("00:00:00.100 [t] INFO  a.L - noise")

    event = layout.read("08:27:32.188 [t] INFO  a.L - hello")
    assert event is not None
    assert event.ts == _TS


def test_a_zone_applies_to_times_without_offset() -> None:
    """The parameter `timezone` shifts times that have no offset, and no others."""
    berlin = {"timezone": "Europe/Berlin"}
    assert _event("2023-09-20 10:27:32.188 [t] WARN  a.L - hello", **berlin) == LogEvent(_TS, "hello")
    assert _event("2023-09-20T08:27:32,188+0000 [t] WARN  a.L - hello", **berlin) == LogEvent(_TS, "hello")


def test_other_lines_are_no_events() -> None:
    """A line in none of the layouts is None; stack traces are told apart."""
    assert _event("Attempting to shed load on broker101:4080") is None
    assert is_continuation("\tat org.apache.pulsar.broker.Foo.bar(Foo.java:7)")
    assert is_continuation("Caused by: java.lang.IllegalStateException: x")
    assert is_continuation("javax.ws.rs.WebApplicationException: HTTP 307 Temporary Redirect")
    assert not is_continuation("2023-09-20T08:27:32,188+0000 [t] INFO  a.L - x")


def test_the_broker_comes_from_the_parameter_or_the_path() -> None:
    """An id is taken as given, a host gets the web port, a table of ids goes before both."""
    assert LogOrigin(broker="b:80").broker_of("x") == "b:80"
    assert LogOrigin(broker_pattern=r"([^/]+)\.log").broker_of("/logs/broker-3.log") == "broker-3:8080"
    assert LogOrigin(broker="b3", broker_ids={"b3": "broker-3:8080"}).broker_of("x") == "broker-3:8080"
    assert LogOrigin(broker="b3", web_port=0).broker_of("x") == "b3"
    assert LogOrigin().broker_of("x") is None


def test_the_cluster_comes_from_the_path() -> None:
    """A pattern's first group, or all of what it finds, is the cluster."""
    assert LogOrigin(cluster_pattern=r"/(\w+)/broker").cluster_of("/logs/east/broker-1.log") == {"cluster": "east"}
    assert LogOrigin(cluster_pattern="east|west").cluster_of("/logs/west/b.log") == {"cluster": "west"}
    assert LogOrigin(cluster_pattern="north").cluster_of("/logs/west/b.log") == {}


def test_service_urls_become_ids() -> None:
    """A binary URL's port gives way to the web port, a web URL keeps its own, an id stays."""
    origin = LogOrigin(broker_ids={"pulsar://10.0.0.7:6650": "b7:8080"})
    assert origin.id_of("pulsar://b1.example:6650") == "b1.example:8080"
    assert origin.id_of("pulsar+ssl://b1:6651/") == "b1:8080"
    assert origin.id_of("http://b1:8443") == "b1:8443"
    assert origin.id_of("pulsar://10.0.0.7:6650") == "b7:8080"
    assert origin.id_of("b1:8080") == "b1:8080"
    assert origin.id_of("null") is None


def test_wrong_parameters_are_refused() -> None:
    """Zones, days and patterns are checked before any file is read."""
    with pytest.raises(ValueError, match="time zone 'Nowhere' is unknown"):
        LogOrigin(timezone="Nowhere")
    with pytest.raises(ValueError, match="Invalid isoformat string: 'yesterday'"):
        LogOrigin(date="yesterday")
    with pytest.raises(ValueError, match="broker_pattern is not a regular expression"):
        LogOrigin(broker_pattern="(")
