"""Read text and JSON logs of Pulsar brokers: binary lookups at DEBUG, failures, and changes of bundle ownership.

A request and its answer are two lines, which are joined into one row. The text behind `Lookup result` and
`Received Lookup from` differs between releases and is read leniently. Source: `docs/pulsar/logs.md`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from lookup.errors import InvalidNameError
from lookup.logs.readers.layouts import LineLayout, LogEvent, LogOrigin, is_continuation
from lookup.logs.readers.values import unreadable
from lookup.model.documents import Row, Unreadable
from lookup.model.names import NamespaceName, looks_like_pattern, pinned_broker
from lookup.model.quoting import shown

__all__ = ["Pairing", "PulsarBrokerReader"]

#: A line without any of these is not read any further.
_FIRST_WORDS = (
    "Received Lookup ",
    r"\] Lookup result ",
    "Failed to lookup",
    "Failed lookup due to too many lookup-requests",
    "Lookup succeeded for topic",
    "Redirect lookup for topic",
    "No broker was found available for topic",
    "Successfully acquired ownership of",
    "Selected new owner broker",
    "Successfully unloaded namespace bundle",
    "Unloading bundle: ",
    r"ServiceUnitStateData\[",
)

_RELEVANT = re.compile("|".join(_FIRST_WORDS))

_TOPIC = r"(?P<topic>(?:non-)?persistent://.*?)"
# `bundle=` may stand right before the name, which itself may hold `=` and `:`.
_BUNDLE = re.compile(r"(?<![-=:.\w/])(?:\w+=)?(?P<bundle>[-=:.\w]+(?:/[-=:.\w]+)+/0x[0-9a-fA-F]{8}_0x[0-9a-fA-F]{8})")
_RANGE = re.compile(r"0x[0-9a-fA-F]{8}_0x[0-9a-fA-F]{8}")
_BROKER_URL = re.compile(r"brokerUrl=(?P<url>[^,\]})\s]+)|(?P<bare>pulsar(?:\+ssl)?://[^,\]})\s]+)")
# A socket address as Java prints it, `/10.1.2.3:51234` or `host/10.1.2.3:51234`; the port identifies no client.
_ADDRESS = re.compile(r"(?:.*/)?(?P<host>\[[^\]]+\]|[^/]+?)(?::\d+)?\Z")
#: The admin call by which a shedder carries out its decision ends within this time after the decision, µs.
_SHED_LASTS_US = 60_000_000
#: A client gives a lookup up after 30 s (`operation_timeout_seconds`); no answer comes later than that.
_PATIENCE_US = 30_000_000
#: Rows held back at most, if the clock of a log stands still.
_MOST_HELD = 100_000

_Match = re.Match[str]


@dataclass(frozen=True)
class PulsarBrokerReader(LogOrigin):
    """Reads LOOKUPS and OWNERSHIP from the log of a broker, versions up to 5.0, text or JSON."""

    name: ClassVar[str] = "pulsar-broker"
    expects: ClassVar[str] = (
        "a broker's log with lookups (logged at DEBUG only), failed lookups or changes of bundle ownership"
    )

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield lookups, each with its answer if the log has it, and changes of ownership."""
        layout = LineLayout(self, source)
        log = _BrokerLog(self, source)
        now = 0
        for number, line in lines:
            # Nearly every line fails here: one search is far cheaper than the patterns of the layouts.
            if _RELEVANT.search(line) is None:
                layout.pass_over(line)
                continue
            try:
                event = layout.read(line)
                if event is not None:
                    now = event.ts
                    log.take(number, event)
                elif not is_continuation(line):
                    log.rows.put(unreadable(number, "the line is in none of the layouts of Pulsar's logs", line))
            except ValueError as error:
                log.rows.put(unreadable(number, str(error), line))
            yield from log.rows.ready(now)
        yield from log.rows.rest()


@dataclass(slots=True)
class _Entry:
    """A row or unreadable record on its way out."""

    line: int
    ts: int
    values: dict[str, Any] | None = None
    unreadable: Unreadable | None = None
    table: Any = "lookups"
    #: topic whose answer the request waits for; None if it waits for nothing
    topic: str | None = None


class Pairing:
    """Joins requests with their answers and yields rows in the order of the source.

    Rows are held back while an earlier request waits for its answer. Answers carry no id of their request: the oldest
    waiting request of the topic gets the answer.
    """

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self._waiting: dict[str, deque[_Entry]] = {}

    def ask(self, row: Row) -> None:
        """Take a request, a row of LOOKUPS that may still get an answer."""
        topic = row.values["topic"]
        request = _Entry(row.line, row.values["ts"], dict(row.values), topic=topic)
        self._entries.append(request)
        self._waiting.setdefault(topic, deque()).append(request)

    def answer(self, row: Row) -> None:
        """Give an answer to the request that waits for it; without one it is a row of its own.

        The request keeps its own time and client.
        """
        request = self._take(row.values["topic"])
        if request is None or request.values is None:
            self.put(row)
        else:
            # Threads write late: an answer may bear an earlier time than its request.
            latency_ms = max(row.values["ts"] - request.ts, 0) / 1_000
            request.values = {**row.values, **request.values, "latency_ms": latency_ms}

    def put(self, record: Row | Unreadable) -> None:
        """Take a row or record that waits for nothing."""
        if isinstance(record, Unreadable):
            self._entries.append(_Entry(record.line, 0, unreadable=record))
        else:
            self._entries.append(_Entry(record.line, record.values["ts"], dict(record.values), table=record.table))

    def ready(self, now: int) -> Iterator[Row | Unreadable]:
        """Yield what need not be held any longer at a time, µs."""
        while self._entries:
            first = self._entries[0]
            if first.topic is not None and now - first.ts <= _PATIENCE_US and len(self._entries) <= _MOST_HELD:
                return
            yield self._released()

    def rest(self) -> Iterator[Row | Unreadable]:
        """Yield everything that is still held."""
        while self._entries:
            yield self._released()

    def _take(self, topic: str) -> _Entry | None:
        """Return the oldest waiting request of a topic and let it wait no longer."""
        queue = self._waiting.get(topic)
        if queue is None:
            return None
        request = queue.popleft()
        request.topic = None
        # Empty queues go, or a log with many topics would fill the memory.
        if not queue:
            del self._waiting[topic]
        return request

    def _released(self) -> Row | Unreadable:
        entry = self._entries.popleft()
        if entry.topic is not None:
            # The oldest entry of all is the oldest of its topic as well.
            self._take(entry.topic)
        return entry.unreadable or Row(entry.table, entry.line, entry.values or {})


class _BrokerLog:
    """Rows of one log on their way out, and the facts that later lines depend on."""

    def __init__(self, origin: LogOrigin, source: str) -> None:
        self.rows = Pairing()
        self.origin = origin
        #: the broker whose log it is
        self.broker = origin.broker_of(source)
        self._fixed = origin.cluster_of(source)
        #: when a shedder last named a bundle, µs
        self.shed_at: dict[str, int] = {}
        #: last printed state of each bundle; every broker that sees a record prints it
        self.states: dict[str, tuple[str, str | None]] = {}

    def take(self, line: int, event: LogEvent) -> None:
        """Make the rows of an event; the first message that fits has it, an event that none fits is passed over.

        Raises:
            ValueError: if a message fits but cannot be used.
        """
        for pattern, read in _MESSAGES:
            match = pattern.search(event.message)
            if match is not None:
                read(self, line, event, match)
                return

    def lookup(self, line: int, event: LogEvent, topic: str | None, **values: Any) -> Row:
        """Make a LOOKUPS row; ValueError if the topic is none."""
        if not topic:
            raise ValueError("the line names no topic")
        # Java watchers look their pattern up as if it were a topic.
        if looks_like_pattern(topic):
            raise ValueError(f"{shown(topic)} is a regular expression of a topic list watcher, not a topic")
        values |= {"ts": event.ts, "topic": topic, "asked_broker": self.broker, **self._fixed}
        return Row("lookups", line, {name: value for name, value in values.items() if value is not None})

    def ownership(self, line: int, ts: int, values: Mapping[str, Any]) -> None:
        """Put an OWNERSHIP row."""
        present = {name: value for name, value in values.items() if value is not None}
        self.rows.put(Row("ownership", line, {"ts": ts, **present, **self._fixed}))

    def asked(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `[T] Received Lookup from X`, or 5.0's request with attributes."""
        groups = match.groupdict()
        if groups:
            topic, client = groups["topic"], groups["client"]
            # The text behind `for` differs between releases; it may be the topic.
            if not topic and "://" in (groups["rest"] or ""):
                topic = groups["rest"]
        else:
            topic, client = event.attributes.get("topic"), event.attributes.get("remoteAddress")
        address = _ADDRESS.match(client or "")
        host = address["host"] if address else None
        listener = event.attributes.get("advertisedListenerName") or None
        self.rows.ask(self.lookup(line, event, topic, client=host, listener=listener))

    def result(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `[T] Lookup result R`."""
        text = match["result"]
        url = _BROKER_URL.search(text)
        broker = self.origin.id_of(url["url"] or url["bare"]) if url else None
        # Redirects and answers differ by the type that a result prints; releases without it leave that open.
        if "Redirect" in text or "redirect=true" in text:
            result = "redirect"
        elif url is None:
            result = "failed" if "empty" in text else "unknown"
        else:
            result = "connect" if "BrokerUrl" in text or "redirect=false" in text else "unknown"
        self.rows.answer(self.lookup(line, event, match["topic"], broker=broker, result=result))

    def failed(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `Failed to lookup CLIENT for topic T with error E`, and lookups refused because there were too many."""
        groups = match.groupdict()
        topic = event.attributes.get("topic") or groups.get("topic")
        client = groups.get("client") or event.attributes.get("authRole")
        # Without authentication the client's id is the word null.
        client = None if client in (None, "", "null") else client
        self.rows.answer(self.lookup(line, event, topic, client=client, result="failed"))

    def answered_over_http(self, line: int, event: LogEvent, match: _Match, *, result: str) -> None:
        """Read a line about a lookup over HTTP, which names topic and answer at once."""
        groups = match.groupdict()
        topic = event.attributes.get("topic") or groups.get("topic")
        text = event.attributes.get("broker") or groups.get("broker") or ""
        url = _BROKER_URL.search(text)
        broker = self.origin.id_of((url["url"] or url["bare"]) if url else text)
        self.rows.put(self.lookup(line, event, topic, broker=broker, result=result))

    def acquired(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `Successfully acquired ownership of OwnedBundle(bundle=b, ...)`: by the broker whose log it is."""
        bundle, broker = _bundle(event), self.broker
        if not broker:
            # A heartbeat or SLA namespace names its broker; of others the line says no more.
            try:
                broker = pinned_broker(str(NamespaceName.parse(bundle.rpartition("/")[0])))
            except InvalidNameError:
                broker = None
        self.ownership(line, event.ts, {"bundle": bundle, "event": "owned", "broker": broker})

    def selected(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `Selected new owner broker: B for bundle: b.`."""
        broker = self.origin.id_of(event.attributes.get("broker") or match["broker"] or "")
        values = {"bundle": _bundle(event), "event": "owned", "broker": broker, "by": "policy"}
        self.ownership(line, event.ts, values)

    def unloaded(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `Successfully unloaded namespace bundle b`: an admin's, unless a shedder had just named the bundle."""
        bundle = _bundle(event)
        is_shed = event.ts - self.shed_at.get(bundle, -_SHED_LASTS_US) < _SHED_LASTS_US
        by = "policy" if is_shed else "admin"
        self.ownership(line, event.ts, {"bundle": bundle, "event": "unloaded", "broker": self.broker, "by": by})

    def shed(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `Unloading bundle: b from broker B`, or an unload that prints its record."""
        bundle = _bundle(event)
        self.shed_at[bundle] = event.ts
        broker = self.origin.id_of(match["broker"] or match["source"] or event.attributes.get("broker") or "")
        self.ownership(line, event.ts, {"bundle": bundle, "event": "unloaded", "broker": broker, "by": "policy"})

    def state(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read a service unit's state record if the state changes the owner of the bundle: Owned, Free, Splitting."""
        state, rest = match["state"], match["rest"]
        if state not in ("Owned", "Free", "Splitting"):
            return
        bundle = _bundle(event)
        owner = _field(rest, "dstBroker")
        if self.states.get(bundle) == (state, owner):
            return
        self.states[bundle] = (state, owner)
        if state == "Owned":
            change: dict[str, Any] = {"event": "owned", "broker": owner}
        elif state == "Free":
            change = {"event": "unloaded", "broker": _field(rest, "sourceBroker")}
        else:
            # The children's ranges, both ends of the parent included.
            ends = {end for bounds in _RANGE.findall(rest) for end in bounds.split("_")}
            change = {"event": "split", "broker": owner, "boundaries": sorted(ends, key=lambda end: int(end, 16))}
        self.ownership(line, event.ts, {"bundle": bundle, **change})


def _field(record: str, name: str) -> str | None:
    """Return the value of a field of a printed record, None if it is absent or null."""
    match = re.search(rf"{name}=([^,\]]+)", record)
    return None if match is None or match[1] == "null" else match[1]


def _bundle(event: LogEvent) -> str:
    """Return the bundle an event names; ValueError if it names none."""
    match = _BUNDLE.search(event.attributes.get("bundle") or event.message)
    if match is None:
        raise ValueError("the line names no bundle of the form tenant/namespace/0x00000000_0x40000000")
    return match["bundle"]


#: Every message that is read: its pattern, and the function that makes its rows. Tried in this order.
_MESSAGES: tuple[tuple[re.Pattern[str], Callable[[_BrokerLog, int, LogEvent, _Match], None]], ...] = (
    # 5.0 has constant messages, with what varies in attributes (PIP-467).
    (re.compile(r"\AReceived Lookup request"), _BrokerLog.asked),
    (re.compile(rf"(?:\[{_TOPIC}\] )?Received Lookup from (?P<client>\S+)(?: for (?P<rest>.+))?"), _BrokerLog.asked),
    (re.compile(rf"\[{_TOPIC}\] Lookup result (?P<result>.*)"), _BrokerLog.result),
    (
        re.compile(r"Lookup succeeded for topic(?: (?P<topic>.+?) -- broker: (?P<broker>.+))?"),
        partial(_BrokerLog.answered_over_http, result="connect"),
    ),
    (
        re.compile(r"Redirect lookup for topic(?: (?P<topic>.+) to (?P<broker>\S+))?"),
        partial(_BrokerLog.answered_over_http, result="redirect"),
    ),
    (
        re.compile(r"No broker was found available for topic(?: (?P<topic>.+))?"),
        partial(_BrokerLog.answered_over_http, result="failed"),
    ),
    (re.compile(r"Failed to lookup (?P<client>.*?) for topic (?P<topic>.+?) with error"), _BrokerLog.failed),
    (re.compile(r"Failed lookup due to too many lookup-requests(?: (?P<topic>.+))?"), _BrokerLog.failed),
    # Behind the full form: 5.0's constant text has topic and role in its attributes.
    (re.compile(r"\AFailed to lookup"), _BrokerLog.failed),
    (re.compile(r"Successfully acquired ownership of\b"), _BrokerLog.acquired),
    (re.compile(r"Selected new owner broker(?:: (?P<broker>\S+) for bundle: )?"), _BrokerLog.selected),
    (re.compile(r"Successfully unloaded namespace bundle\b"), _BrokerLog.unloaded),
    (
        re.compile(r"Unloading bundle: .*?(?:from broker (?P<broker>\S+)|sourceBroker=(?P<source>[^,\]\s]+)|$)"),
        _BrokerLog.shed,
    ),
    (re.compile(r"ServiceUnitStateData\[state=(?P<state>\w+)(?P<rest>.*)"), _BrokerLog.state),
)
