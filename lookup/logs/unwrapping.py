"""Unwrap the lines of a log once, before all readers. One line of a file may hold none, one or many events.

Container runtimes, collectors and log stores put their own text around a program's lines. This module removes it, such
as prefixes and cut lines of CRI and Docker, JSON at any depth, arrays of records, JSON within texts, texts as arrays of
bytes. A reader of lines gets plain lines. A reader of JSON objects gets the objects, one to a line.

The time in a program's own line stays. Only a line without one gets the time of its envelope, which may be hours later.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lookup.model.documents import json_value
from lookup.model.time import counted_unit, moment_at, parse_iso, time_parser, time_text

__all__ = ["ANSWERS", "REQUESTS", "Events", "where_text_is"]

#: Phrases that only lookups in a log of Pulsar have, a request and an answer. A lookup over HTTP is both in one line.
REQUESTS = re.compile(r"Received Lookup (?:from|request)|Lookup succeeded for topic")
ANSWERS = re.compile(r"Lookup result\b|Lookup response for |Lookup succeeded for topic")
#: Keys of envelopes whose value is a program's text, in lower case, the surest first.
_TEXT_KEYS = (
    "log", "message", "msg", "line", "_raw", "textpayload", "body", "original", "full_message", "short_message", "text",
    "event", "payload", "content", "logentry", "raw", "value", "data",
)  # fmt: skip
_RANKS = {name: rank for rank, name in enumerate(_TEXT_KEYS)}
#: Keys of the times of an event, the surest first, followed by those of an envelope.
_TIME_KEYS = (
    "instant", "timeMillis", "timeUnixNano", "@timestamp", "timestamp", "Timestamp", "time", "ts", "_time", "eventTime",
    "__REALTIME_TIMESTAMP", "TimeGenerated", "date", "observedTimeUnixNano",
)  # fmt: skip
#: Keys that only a program's own JSON has, whose time is that of the event.
_OWN_JSON = frozenset({"instant", "timeMillis", "loggerName", "logger_name", "log.logger", "ecs.version"})
_CRI = re.compile(r"(?P<prefix>.{0,100}?)(?P<time>\d{4}-\d\d-\d\dT\S+) (?P<stream>stdout|stderr) (?P<tag>[PF])\S* ?")
#: Where JSON may begin behind a prefix.
_JSON = re.compile(r'\{\s*"|\[\s*(?:["{\[]|\])|\A"')
_DATE = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d|\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d"
_CLOCK = re.compile(r"(?<![\d:.T])\d\d:\d\d:\d\d[.,]\d{3}(?!\d)")
#: The beginning of a line that has a time of its own. A topic may contain one as well.
_TIMED = re.compile(rf"(?:(?!://).){{0,120}}?(?:{_DATE}|{_CLOCK.pattern})")
_DATED = re.compile(rf"(?:(?!://).){{0,120}}?(?:{_DATE})")
_LEVEL = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b")
#: Lines of a JSON document that is spread over several lines.
_SPREAD = re.compile(r'\s*(?:["{}\[\]]|-?\d[\d.eE+-]*,?\s*\Z|true|false|null)')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
#: Lines that may hold a part of a line, or a text as numbers.
_PART = re.compile(r' std(?:out|err) P|(?<!\\n)",\s*"stream"|partial|logtag|:\s*\[\s*\d')
#: Docker cuts lines into parts of so many bytes.
_DOCKER_PART = 16 * 1024
#: The usual keys of the arrays of records in the answers of stores.
_ARRAY_KEYS = frozenset(
    "hits records Records events logEvents rows items Items results result data value entries logs messages".split()
)
#: Text that every envelope around records has.
_NESTED = re.compile(r'\[\s*\{|:\s*"\s*[\[{]|\A"')
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*")
#: Characters in front of an envelope at most.
_PREFIX = 200


@dataclass(frozen=True, slots=True)
class _Event:
    """A program's line, with the time and the context that its envelope has for it."""

    text: str
    #: µs since the epoch, None without an envelope
    ts: int | None = None
    #: source of that time, which is a key, or the runtime
    clock: str = ""
    #: None for a whole line, otherwise the attributes of an event whose JSON has the bare message
    context: Mapping[str, str] | None = None
    logger: str = ""

    @property
    def has_own_time(self) -> bool:
        """Whether the program itself has written the time."""
        return self.clock in _OWN_JSON if self.context is not None else _TIMED.match(self.text) is not None

    def line(self) -> str:
        """Build the event's line for readers, with the envelope's time if it lacks one."""
        if self.context is not None:
            record = {"loggerName": self.logger, "message": self.text, "contextMap": self.context}
            return json.dumps({"@timestamp": time_text(self.ts), **record} if self.ts is not None else record)
        # Only the lines of Pulsar may have a clock alone, or no time.
        if self.ts is None or _DATED.match(self.text) or not _LEVEL.search(self.text, 0, _PREFIX):
            return self.text
        clock = _CLOCK.search(self.text, 0, _PREFIX)
        if clock is None or self.clock == "runtime":
            return f"{time_text(self.ts)} {self.text}"
        # A collector may be late, so only its day is used. It is the day on which the clock is nearest.
        near = moment_at(self.ts)
        time = datetime.combine(near.date(), datetime.strptime(clock[0][:8], "%H:%M:%S").time(), UTC)
        day = (time + timedelta(days=round((near - time) / timedelta(days=1)))).date()
        return f"{self.text[: clock.start()]}{day}T{self.text[clock.start() :]}"


@dataclass
class Events:
    """The events of a source, which are an iterator of numbered lines, and counts of the lines read so far.

    An event has the number of its line, or a later one if the lines before held more than one event.
    """

    lines: Iterator[tuple[int, str]]
    #: whether the reader takes JSON objects, which then stay whole
    keeps_objects: bool = False
    #: finds the lines that the reader uses. Others are not unwrapped, which takes longer than everything else
    words: re.Pattern[str] | None = None
    #: requests and answers of lookups in the lines as they were in the file
    requests: int = 0
    answers: int = 0
    #: lookups whose time is that of an envelope, by its key
    borrowed: Counter[str] = field(default_factory=Counter)
    #: lines that were cut in parts, the last of which is missing
    unfinished: int = 0
    number: int = 0
    _parts: dict[tuple[str, str], str] = field(default_factory=dict)
    _docker_ends_lines: bool = False

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Yield the events."""
        number = 0
        for number, line in self._iter_documents():
            is_used = self.words is None or self._parts or self.words.search(line) or _PART.search(line)
            for text in self._unwrap(line) if is_used else (line,):
                yield self._number_event(number, text)
        self.unfinished += len(self._parts)
        for text in self._parts.values():
            yield self._number_event(number, text)

    def _number_event(self, line: int, text: str) -> tuple[int, str]:
        self.number = max(self.number + 1, line)
        return self.number, text

    def _iter_documents(self) -> Iterator[tuple[int, str]]:
        pending: list[tuple[int, str]] = []
        depth, is_array = 0, False
        for number, line in self.lines:
            self.requests += _count(REQUESTS, line)
            self.answers += _count(ANSWERS, line)
            bare = line.strip()
            # The elements of an array that is the whole file are documents of their own.
            if (number == 1 and bare == "[") or (is_array and not pending and bare == "]"):
                is_array = not is_array
                continue
            if is_array and not pending and _is_json(bare.rstrip(",")):
                yield number, bare.rstrip(",")
                continue
            if not pending and (not bare.startswith(("{", "[")) or not bare.endswith(("{", "[", ","))):
                yield number, line
                continue
            if pending and not _SPREAD.match(line):
                yield from (*pending, (number, line))
                pending, depth = [], 0
                continue
            marks = _STRING.sub("", line)
            depth += sum(map(marks.count, "{[")) - sum(map(marks.count, "}]"))
            pending.append((number, line))
            if depth <= 0:
                document = "".join(text for _, text in pending).strip().rstrip(",")
                yield from [(pending[0][0], document)] if _is_json(document) else pending
                pending, depth = [], 0
        yield from pending

    def _unwrap(self, line: str) -> Iterator[str]:
        when: str | None = None
        prefix = ""
        part = _CRI.match(line) if " std" in line else None
        if part is not None:
            prefix, when = part["prefix"], part["time"]
            text = self._join_parts((prefix, part["stream"]), line[part.end() :], is_cut=part["tag"] == "P")
            if text is None:
                return
            line = text
        start = _JSON.search(line, 0, _PREFIX)
        if start is not None and (line.rstrip()[-1] not in '}]"' or _LEVEL.search(line, 0, start.start())):
            start = None
        body = "" if start is None else line[start.start() :]
        # Most rows of a table are no envelopes, and the reader parses them anyway.
        values = None if start is None or (self.keeps_objects and not _NESTED.search(body)) else _values(body)
        if start is None or values is None:
            line = body if self.keeps_objects and body else line
            yield self._build_line(_Event(line, _us(when), "runtime")) if when else line
            return
        prefix += line[: start.start()]
        stamp = _STAMP.search(prefix)
        ts = _us(when or (stamp[0] if stamp else ""))
        for value in values:
            whole = self._join_record(value, prefix)
            if whole is None:
                continue
            if self.keeps_objects:
                records = _list_objects(whole)
                yield from [body] if records == values else map(_dump, records)
                continue
            events = _list_events(whole, ts, "runtime")
            yield from map(self._build_line, events) if events else [line if len(values) == 1 else _dump(value)]

    def _join_record(self, value: Any, prefix: str) -> Any:
        """Join a record of a container runtime to its whole line, None for a part that is continued."""
        text = value.get("log") if isinstance(value, dict) else None
        if not isinstance(text, str):
            return value
        self._docker_ends_lines |= text.endswith("\n")
        is_docker = "stream" in value and "logtag" not in value and not text.endswith("\n")
        is_cut = value.get("logtag") == "P" or str(value.get("partial_last")).lower() == "false"
        is_cut |= is_docker and (self._docker_ends_lines or len(text.encode()) >= _DOCKER_PART)
        text = self._join_parts((prefix, str(value.get("stream"))), text, is_cut=is_cut)
        return None if text is None else {**value, "log": text}

    def _join_parts(self, source: tuple[str, str], text: str, *, is_cut: bool) -> str | None:
        """Join a line to the parts before it, None if it is continued."""
        text = self._parts.pop(source, "") + text
        if not is_cut:
            return text
        self._parts[source] = text
        return None

    def _build_line(self, event: _Event) -> str:
        if (
            event.ts is not None
            and not event.has_own_time
            and (REQUESTS.search(event.text) or ANSWERS.search(event.text))
        ):
            self.borrowed[event.clock] += 1
        return event.line()


def _count(phrase: re.Pattern[str], line: str) -> int:
    count = len(phrase.findall(line))
    if count < 2:
        return count
    return len(set(re.findall(rf'(?:\[[^\]"]{{0,300}}\] )?(?:{phrase.pattern})[^"\\]{{0,200}}', line)))


def where_text_is(line: str) -> str:
    """Describe the form of a line, and the key of JSON with the phrase of a lookup."""
    start = _JSON.search(line, 0, _PREFIX)
    values = None if start is None else _values(line[start.start() :])
    path = next(filter(None, map(_find_phrase_path, values or ())), None)
    return "lines of text in no layout that is known" if path is None else f"JSON, under the key {path}"


def _find_phrase_path(value: Any) -> str | None:
    if isinstance(value, str):
        return "" if REQUESTS.search(value) or ANSWERS.search(value) else None
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = ((key, _find_phrase_path(inner)) for key, inner in pairs)
    return next((f"{key}.{path}".rstrip(".") for key, path in below if path is not None), None)


def _values(text: str) -> list[Any] | None:
    """Read the JSON values of a text, one after the other, None if it has anything else."""
    try:
        return [json_value(text)]
    except ValueError:
        # Stores of AWS write objects without anything between them.
        pieces = re.sub(r"\}\s*\{", "}\n{", text).split("\n") if text.startswith("{") else []
    try:
        return [json_value(piece) for piece in pieces] or None
    except ValueError:
        return None


def _is_json(text: str) -> bool:
    return _values(text) is not None


def _dump(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _list_objects(value: Any) -> list[Any]:
    """List the records within a value, for a reader of objects. A record stays as it is."""
    if isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        return [record for inner in value for record in _list_objects(inner)]
    if not isinstance(value, dict):
        return [value]
    for name in sorted(value, key=_rank):
        inner = value[name]
        if isinstance(inner, str) and name.lower() in _RANKS and inner.lstrip().startswith(("{", "[")):
            values = _values(inner.strip())
            if values is not None:
                return _list_objects(values)
    return _find_array(value) or [value]


def _find_array(value: Mapping[str, Any]) -> list[Any]:
    """List the records of the array in a store's answer, under one of the usual keys, empty if it has none."""
    for name, inner in value.items() if set(_TIME_KEYS).isdisjoint(value) else ():
        if name not in _ARRAY_KEYS:
            continue
        if isinstance(inner, dict) and (records := _find_array(inner)):
            return records
        if isinstance(inner, list) and any(isinstance(each, dict) for each in inner):
            return [
                record
                for each in inner
                for record in _list_objects(each.get("_source", each) if isinstance(each, dict) else each)
            ]
    return []


def _list_events(value: Any, ts: int | None, clock: str) -> list[_Event]:
    if isinstance(value, list):
        # Loki has pairs of a time and a line.
        if value and isinstance(value[0], str | int) and (own := _us(str(value[0]))) is not None:
            ts, clock = own, "values"
        return [event for inner in value for event in _list_events(inner, ts, clock)]
    if not isinstance(value, dict):
        return _list_line_events(value, "line", ts, clock)
    key, own = _time_of(value)
    is_docker = "stream" in value and isinstance(value.get("log"), str)
    ts, clock = (ts, clock) if own is None else (own, "runtime" if is_docker else key)
    if is_docker:
        return _list_line_events(value["log"], "log", ts, clock, is_text=True)
    # Arrays hold several events. Other keys hold the same event once more, best as a whole line.
    several: list[_Event] = []
    lines: list[_Event] = []
    bare: list[_Event] = []
    for name in sorted(value, key=_rank):
        inner = _text_of(value[name])
        if isinstance(inner, list):
            several += _list_events(inner, ts, clock)
        elif isinstance(inner, dict):
            below = _list_events(inner, ts, clock)
            lines = lines or [event for event in below if event.context is None]
            bare = bare or below
        elif isinstance(inner, str) and not lines:
            lines = _list_line_events(inner, name.lower(), ts, clock)
            if not lines and not bare and name.lower() in _RANKS and (ts is not None or REQUESTS.search(inner)):
                whose = next(iter(_OWN_JSON.intersection(value)), clock)
                bare = [_Event(inner, ts, whose, _collect_context(value), str(value.get("loggerName", "")))]
    return several or lines or bare


def _rank(name: str) -> int:
    return _RANKS.get(name.lower(), len(_RANKS))


def _text_of(value: Any) -> Any:
    """Unwrap a value that a format wraps once more, such as OTLP texts and pairs, and journald arrays of bytes."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("stringValue", "string_value"):
        return next(iter(value.values()))
    if not isinstance(value, list) or not value:
        return value
    if all(isinstance(each, dict) and {"key", "value"} <= each.keys() for each in value):
        return {str(each["key"]): _text_of(each["value"]) for each in value}
    is_bytes = len(value) > 1 and all(type(each) is int and 0 <= each < 256 for each in value)
    return bytes(value).decode(errors="replace") if is_bytes else value


def _list_line_events(text: Any, key: str, ts: int | None, clock: str, *, is_text: bool = False) -> list[_Event]:
    """List the events of a text, if it holds JSON or begins with a line of a log, or is known to be a text."""
    if not isinstance(text, str):
        return []
    if text.lstrip().startswith(("{", "[", '"')) and (values := _values(text.strip())) is not None:
        return [event for value in values for event in _list_events(value, ts, clock)]
    timed = _TIMED.match(text)
    is_line = timed is not None and len(text) > timed.end() + 16
    if not is_text and not (is_line and (key in _RANKS or _LEVEL.search(text, 0, _PREFIX))):
        return []
    return [_Event(line, ts, clock) for line in re.split(r"\r\n|\n|\r", text) if line]


def _collect_context(record: Mapping[str, Any]) -> dict[str, str]:
    context: dict[str, str] = {}
    for name in ("contextMap", "mdc", "attributes"):
        attributes = _text_of(record.get(name))
        context |= {str(key): str(value) for key, value in attributes.items()} if isinstance(attributes, dict) else {}
    return context


def _time_of(record: Mapping[str, Any]) -> tuple[str, int | None]:
    for key in _TIME_KEYS:
        value = record.get(key)
        if key == "instant" and isinstance(value, dict):
            seconds, nanos = value.get("epochSecond"), value.get("nanoOfSecond", 0)
            if isinstance(seconds, int) and isinstance(nanos, int):
                return key, seconds * 1_000_000 + nanos // 1_000
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            us = _us(str(value))
            if us is not None:
                return key, us
    return "", None


def _us(text: str | None) -> int | None:
    if not text:
        return None
    unit = counted_unit(text)
    # A day alone is no time.
    if unit is None and not {":", "T"}.intersection(text):
        return None
    try:
        return parse_iso(text) if unit is None else time_parser(unit, UTC)(text)
    except ValueError:
        return None
