"""Read the layouts of Pulsar's logs. A line of text or JSON becomes an event with time, message and attributes.

Readers interpret the messages. This module also has the common parameters of readers of such logs.

    A     12:27:31.643 [thread] INFO  logger - message                         <= 4.2, no date
    B     2023-09-20T08:27:32,188+0000 [thread] INFO  logger - message         <= 4.2 and 5.0
    5.0   ... logger - message {key=value, key2=value2}                        with %X in the layout
    JSON  {"@timestamp": ..., "loggerName": ..., "message": ..., "contextMap": {...}}, as `unwrapping.py` has it
    test  2024-10-26T01:32:04,373 - INFO  - [thread:Class] - message
    pipe  2020-11-06 14:13:16,906 | WARN  | [thread] | message | logger (File.java:775)

A line of text may begin with a prefix of a container runtime or a collector. Source: `docs/pulsar/logs.md`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from lookup.model.address import host_of
from lookup.model.documents import json_value
from lookup.model.time import parse_iso, parse_time_of_day, zone_of

__all__ = ["LineLayout", "LogEvent", "LogOrigin", "is_continuation"]

_SERVICE_URL = re.compile(
    r"(?:pulsar(?:\+ssl)?|https?)://(?P<host>\[[^\]]*\]|[^/:,\s]+)(?::(?P<port>\d+))?", re.IGNORECASE
)
_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)"
# A thread's name may contain brackets, but is shorter than 200 characters. The bound limits the cost of hostile lines,
# which would otherwise grow with the square of their length.
_LAYOUTS = (
    re.compile(rf"\[.{{0,200}}?\]\s+{_LEVEL}\s+[\w.$@/-]+\s+-\s(?P<message>.*)"),
    re.compile(rf"\s-\s{_LEVEL}\s+-\s\[.{{0,200}}?:[\w.$]+\]\s-\s(?P<message>.*)"),
    re.compile(rf"\|\s*{_LEVEL}\s*\|\s*\[.{{0,200}}?\]\s*\|\s(?P<message>.*)\s\|\s[\w.$]+\s\([^()]*\)"),
)
_DATED = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\s?(Z|[+-]\d\d:?\d\d)?")
_CLOCK = re.compile(r"(?<![\d:.])(\d\d:\d\d:\d\d[.,]\d{3})(?!\d)")
_DAY_IN_PATH = re.compile(r"(?<!\d)(\d{4})[-_.]?(\d\d)[-_.]?(\d\d)(?!\d)")
#: A clock that goes back by more than this has passed midnight. Threads that write late go back by less.
_HALF_DAY_US = 12 * 3_600 * 1_000_000
# Only "word=" after " {" starts a context map. `LookupData{brokerUrl=...}` has no blank before the brace.
_ATTRIBUTES = re.compile(r"(?P<message>[^{]*)\s\{(?P<attributes>[A-Za-z_][\w.]*=.*)\}\s*\Z")
# Values are not escaped, so a comma is a separator only if a key follows.
_SEPARATOR = re.compile(r", (?=[A-Za-z_][\w.]*=)")
_OPEN_RECORD = re.compile(r"[A-Z]\w*\[[^\]]*\Z")
_CONTINUATION = re.compile(r"\s*at\s+[\w.$/]+|\s*Caused by:|\s*\.\.\. \d+ |\s*Suppressed:|[\w.$]+(?:Exception|Error)\b")


@dataclass(frozen=True)
class LogOrigin:
    """The common parameters of all readers of servers' and clients' text logs.

    They give facts that are not in the text of a log, which are its broker, its day and its zone.
    """

    #: id of the broker whose log it is, `host:webPort`
    broker: str = ""
    #: regular expression that finds that broker in the source's path, by its first group or by the whole match
    broker_pattern: str = ""
    #: regular expression that finds the cluster in the source's path, likewise
    cluster_pattern: str = ""
    #: port in the brokers' ids, since service URLs in a log have another one, 0 keeps the URL's
    web_port: int = 8080
    #: ids of brokers whose URLs or names the port alone does not get right
    broker_ids: Mapping[str, str] = field(default_factory=dict)
    #: zone of timestamps without offset
    timezone: str = "UTC"
    #: day of the first line, `2026-01-31`, for layouts without a date, by default the path's
    date: str = ""

    def __post_init__(self) -> None:
        """Refuse parameters that cannot work. Raise ValueError with their names."""
        # Each is read again with every file, but mistakes should show before the first file is opened.
        zone_of(self.timezone)
        if self.date:
            date.fromisoformat(self.date)
        for name in ("broker_pattern", "cluster_pattern"):
            try:
                re.compile(getattr(self, name))
            except re.error as error:
                raise ValueError(f"{name} is not a regular expression: {error}") from None

    def id_of(self, text: str) -> str | None:
        """Convert a service URL or id to the id in the registry, `host:webPort`, None for an empty text or null."""
        text = text.strip()
        if not text or text == "null":
            return None
        if text in self.broker_ids:
            return self.broker_ids[text]
        url = _SERVICE_URL.match(text)
        if url is None:
            return text
        # The port of a binary URL is never the web port, that of a web URL always is.
        is_web = text.lower().startswith("http")
        port = url["port"] if is_web or not self.web_port else str(self.web_port)
        return f"{url['host']}:{port}" if port else url["host"]

    def broker_of(self, source: str) -> str | None:
        """Find the id of the broker that wrote a source, None if it is not known."""
        name = self.broker or _first_group(self.broker_pattern, source)
        if not name or name in self.broker_ids:
            return self.broker_ids.get(name or "")
        host = host_of(name)
        if host not in (name, name[1:-1]) or not self.web_port:
            return name
        return f"[{host}]:{self.web_port}" if ":" in host else f"{host}:{self.web_port}"

    def cluster_of(self, source: str) -> dict[str, str]:
        """Read the column `cluster` of all rows of a source from its path, empty if the path does not name it."""
        cluster = _first_group(self.cluster_pattern, source)
        return {"cluster": cluster} if cluster else {}


def _first_group(pattern: str, source: str) -> str | None:
    match = re.search(pattern, source) if pattern else None
    if match is None:
        return None
    groups: tuple[str | None, ...] = match.groups()
    return groups[0] if groups else match[0]


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event of a log."""

    #: µs since the Unix epoch
    ts: int
    message: str
    attributes: Mapping[str, str] = field(default_factory=dict)


def is_continuation(line: str) -> bool:
    """Report whether a line belongs to a stack trace and does not begin an event."""
    return _CONTINUATION.match(line) is not None


class LineLayout:
    """A reader of the lines of one source, which keeps the current day, since layout A leaves it out.

    Args:
        origin: zone, and the day if it is given.
        source: path that may name the day.
    """

    def __init__(self, origin: LogOrigin, source: str) -> None:
        self._zone = zone_of(origin.timezone)
        self._day = date.fromisoformat(origin.date) if origin.date else _find_day(source)
        self._latest: int | None = None

    def pass_over(self, line: str) -> None:
        """Note the clock of a line that no reader reads, so that midnight is not missed."""
        if self._day is None or _DATED.match(line):
            return
        # Only the beginning is searched, since messages contain clocks of their own.
        clock = _CLOCK.search(line, 0, 80)
        if clock is not None:
            self._resolve_clock(clock[1], self._day)

    def read(self, line: str) -> LogEvent | None:
        """Read the line's event, None if the line is in none of the layouts."""
        record = _parse_json_record(line)
        if record is not None:
            message, attributes = _split_attributes(record["message"])
            if "@timestamp" not in record:
                raise ValueError("the JSON event has no `instant`")
            return LogEvent(parse_iso(record["@timestamp"]), message, {**attributes, **record["contextMap"]})
        for layout in _LAYOUTS:
            match = layout.search(line)
            if match is not None:
                message, attributes = _split_attributes(match["message"])
                # The match may begin too early, since `[pod/broker-0/broker]` before the time looks like the thread.
                return LogEvent(self.time_before(line, match.start("level")), message, attributes)
        return None

    def time_before(self, line: str, end: int) -> int:
        """Find the last complete timestamp in the first `end` characters, or the clock's on the current day, µs."""
        # The last time counts, since a collector puts its own time before the log's.
        dated = _DATED.findall(line, 0, end)
        if dated:
            day, clock, offset = dated[-1]
            return parse_iso(f"{day}T{clock}{offset}", self._zone)
        clocks = _CLOCK.findall(line, 0, end)
        if not clocks:
            raise ValueError("the line has no timestamp")
        if self._day is None:
            raise ValueError("the layout has no date: give the reader `date`, or put it into the file's name")
        return self._resolve_clock(clocks[-1], self._day)

    def _resolve_clock(self, clock: str, day: date) -> int:
        """Turn a clock into a moment, on the next day if it went back by more than half of one."""
        moment = parse_time_of_day(clock, day, self._zone)
        if self._latest is not None and moment < self._latest - _HALF_DAY_US:
            self._day = day + timedelta(days=1)
            moment = parse_time_of_day(clock, self._day, self._zone)
        self._latest = moment if self._latest is None else max(moment, self._latest)
        return moment


def _find_day(source: str) -> date | None:
    for year, month, day in reversed(_DAY_IN_PATH.findall(source)):
        # Eight digits may be something else, such as an id or a build.
        try:
            return date(int(year), int(month), int(day))
        except ValueError:
            continue
    return None


def _parse_json_record(line: str) -> dict[str, Any] | None:
    if not line.startswith('{"'):
        return None
    try:
        record = json_value(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "contextMap" in record else None


def _split_attributes(message: str) -> tuple[str, Mapping[str, str]]:
    match = _ATTRIBUTES.match(message)
    if match is None:
        return message, {}
    attributes: dict[str, str] = {}
    key = ""
    for pair in _SEPARATOR.split(match["attributes"]):
        # A record that Java printed, `Name[a=1, b=2]`, has separators of its own.
        if _OPEN_RECORD.match(attributes.get(key, "")):
            attributes[key] += f", {pair}"
        else:
            key, _, attributes[key] = pair.partition("=")
    return match["message"].rstrip(), attributes
