"""Read logs of Pulsar brokers for binary lookups at DEBUG, failures, and changes of bundle ownership.

Logs are text or JSON. A request and its answer are two lines, which are joined into one row. The text behind `Lookup
result` and `Received Lookup from` differs between releases and is read leniently. Lines about ownership are read in
`broker_ownership.py`. Source: `docs/pulsar/logs.md`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice, pairwise
from typing import Any, ClassVar

from lookup.errors import PulsarLookupError
from lookup.logs.readers.broker_ownership import OWNERSHIP_MESSAGES, OWNERSHIP_WORDS, BrokerLog, OwnershipLog
from lookup.logs.readers.layouts import LineLayout, LogEvent, LogOrigin, is_continuation
from lookup.logs.readers.pairing import Pairing
from lookup.logs.readers.values import unreadable
from lookup.logs.unwrapping import ANSWERS
from lookup.model.address import host_of
from lookup.model.documents import Refuted, Row, Unreadable

__all__ = ["LogEntry", "PulsarBrokerReader", "in_order"]

#: A line without any of these is not read any further.
_FIRST_WORDS = (
    "Received Lookup ",
    "Lookup result",
    # With a broker in the client's place it is the load manager that fails, not a lookup.
    "Failed to lookup(?! broker:)",
    "Failed lookup due to too many lookup-requests",
    "Lookup succeeded for topic",
    "Redirect lookup for topic",
    "No broker was found available for topic",
)

_RELEVANT = re.compile("|".join((*_FIRST_WORDS, *OWNERSHIP_WORDS)))

_TOPIC = r"(?P<topic>(?:non-)?persistent://.*?)"
# The brackets around an IPv6 address are not those of the record around it.
_URL = r"(?:\[[^\]]*\]|[^,\]})\s])+"
_BROKER_URL = re.compile(rf"brokerUrl=(?P<url>{_URL})|(?P<bare>pulsar(?:\+ssl)?://{_URL})")
# An answer of 5.0 has `authoritativeRedirect=false` as well.
_REDIRECT = re.compile(r"Redirect(?!=false)|redirect=true")
_Match = re.Match[str]
#: Events whose order is judged at once.
_PART = 1_000
#: Events that are held to be put in order, for a broker's log about 1 GB.
_MOST = 1_000_000
#: Maximum delay with which threads of a broker write lines, µs. A longer step back has another reason.
_LATE_US = 1_000_000
#: Share of such steps back above which a source counts as unordered. Joined files have a few.
_MOST_FAR = 0.05


@dataclass(frozen=True)
class PulsarBrokerReader(LogOrigin):
    """A reader of LOOKUPS and OWNERSHIP in the log of a broker, versions up to 5.0, text or JSON."""

    name: ClassVar[str] = "pulsar-broker"
    expects: ClassVar[str] = (
        "a broker's log with lookups (logged at DEBUG only), failed lookups or changes of bundle ownership"
    )
    #: one of them is in every line that is read
    words: ClassVar[re.Pattern[str]] = _RELEVANT

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable | Refuted]:
        """Yield lookups, each with its answer if the log has it, and changes of ownership."""
        rows = Pairing()
        lookups, ownership = _LookupLog(self, source, rows), OwnershipLog(self, source, rows)
        messages = [(pattern, partial(read, lookups)) for pattern, read in _MESSAGES]
        messages += [(pattern, partial(read, ownership)) for pattern, read in OWNERSHIP_MESSAGES]
        # A request is joined with an answer behind it.
        for entry in in_order(_read_entries(lines, LineLayout(self, source))):
            if entry.event is None:
                rows.put(unreadable(entry.line, entry.problem, entry.text))
            else:
                try:
                    for pattern, read in messages:
                        match = pattern.search(entry.event.message)
                        if match is not None:
                            # The first message that fits has the event.
                            read(entry.line, entry.event, match)
                            break
                except (ValueError, PulsarLookupError) as error:
                    rows.put(unreadable(entry.line, str(error), entry.text))
            yield from rows.ready(entry.ts)
        yield from rows.ready()


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line about lookups or ownership, with its event, or the reason why it does not have one."""

    line: int
    text: str
    #: µs since the Unix epoch, or that of the line before if it does not have one
    ts: int
    event: LogEvent | None = None
    problem: str = ""


def _read_entries(lines: Iterator[tuple[int, str]], layout: LineLayout) -> Iterator[LogEntry]:
    ts = 0
    for number, line in lines:
        # Nearly every line fails here, since one search is far cheaper than the patterns of the layouts.
        if _RELEVANT.search(line) is None:
            layout.pass_over(line)
            continue
        try:
            event = layout.read(line)
        except (ValueError, PulsarLookupError) as error:
            yield LogEntry(number, line, ts, problem=str(error))
            continue
        if event is not None:
            ts = event.ts
            yield LogEntry(number, line, ts, event)
        elif not is_continuation(line):
            yield LogEntry(number, line, ts, problem="the line is in none of the layouts of Pulsar's logs")


def in_order(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """Yield entries in their order as long as time mostly goes forward, and from there on in the order of time.

    Exports of log stores begin with the newest line. Entries in reverse order are reversed, so that entries of one
    instant are in order as well. Entries in no order are sorted.
    """
    source = iter(entries)
    # Parts are ordered separately, since a log may begin in order and continue with an export, newest line first.
    while part := list(islice(source, _PART)):
        forward, backward, far = _count_steps(part)
        if backward <= forward and far <= _MOST_FAR * len(part):
            yield from part
            continue
        window = [*part, *islice(source, _MOST - len(part))]
        if next(source, None) is not None:
            raise ValueError(
                f"lines go back in time, and more than {_MOST:,} are too many to be put in order; sort the file"
            )
        forward, backward, _ = _count_steps(window)
        if backward > 2 * forward:
            window.reverse()
        if _count_steps(window)[2]:
            window.sort(key=lambda entry: entry.ts)
        # A batch of a collector may have its own lines in order, and a request never comes behind its answer.
        for _, instant in groupby(window, key=lambda entry: entry.ts):
            yield from sorted(instant, key=lambda entry: ANSWERS.search(entry.text) is not None)


def _count_steps(entries: Sequence[LogEntry]) -> tuple[int, int, int]:
    steps = [later.ts - earlier.ts for earlier, later in pairwise(entries)]
    return sum(step > 0 for step in steps), sum(step < 0 for step in steps), sum(step < -_LATE_US for step in steps)


class _LookupLog(BrokerLog):
    """A builder of the rows of LOOKUPS from one log."""

    def lookup(self, line: int, event: LogEvent, topic: str | None, **values: Any) -> Row:
        """Build a LOOKUPS row. Raise ValueError if the topic is not valid."""
        if not topic:
            raise ValueError("the line names no topic")
        values |= {"ts": event.ts, "topic": topic, "asked_broker": self.broker, **self.fixed}
        return Row("lookups", line, {name: value for name, value in values.items() if value is not None})

    def read_request(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `[T] Received Lookup from X`, or 5.0's request with attributes."""
        groups = match.groupdict()
        if groups:
            topic, client, listener = groups["topic"], groups["client"], groups["listener"]
            # The text behind `for` differs between releases, and may be the topic.
            if not topic and "://" in (groups["rest"] or ""):
                topic = groups["rest"]
        else:
            names = ("topic", "remoteAddress", "advertisedListenerName")
            topic, client, listener = (event.attributes.get(name) for name in names)
        # The port identifies no client.
        host = host_of(client) if client else None
        listener = None if listener in ("", "(none)") else listener
        self.rows.ask(self.lookup(line, event, topic, client=host, listener=listener))

    def result(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `[T] Lookup result R`, or 5.0's result with attributes."""
        # So 5.0 calls the topic.
        topic = match["topic"] or event.attributes.get("toString")
        text = match["result"] or event.attributes.get("result", "")
        url = _BROKER_URL.search(text)
        broker = self.origin.id_of(url["url"] or url["bare"]) if url else None
        # Redirects and answers differ by the type in a printed result. In releases without it the result stays unknown.
        if _REDIRECT.search(text):
            result = "redirect"
        elif url is None:
            result = "failed" if "empty" in text else "unknown"
        else:
            result = "connect" if "BrokerUrl" in text or "redirect=false" in text else "unknown"
        self.rows.answer(self.lookup(line, event, topic, broker=broker, result=result))

    def read_failure(self, line: int, event: LogEvent, match: _Match) -> None:
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
        text = event.attributes.get("broker") or event.attributes.get("redirectUri") or groups.get("broker") or ""
        url = _BROKER_URL.search(text)
        broker = self.origin.id_of((url["url"] or url["bare"]) if url else text)
        self.rows.put(self.lookup(line, event, topic, broker=broker, result=result))


#: Every message that is read, with its pattern, and the function that builds its rows, in the order of trials.
_MESSAGES: tuple[tuple[re.Pattern[str], Callable[[_LookupLog, int, LogEvent, _Match], None]], ...] = (
    # 5.0 has constant messages, with variable parts in attributes (PIP-467).
    (re.compile(r"\AReceived Lookup request"), _LookupLog.read_request),
    (
        re.compile(
            rf"(?:\[{_TOPIC}\] )?Received Lookup from (?P<client>\S+)(?: for (?P<rest>.+?))?"
            r"(?: requesting listener (?P<listener>\S+))?\s*\Z"
        ),
        _LookupLog.read_request,
    ),
    (re.compile(rf"\ALookup result\Z|\[{_TOPIC}\] Lookup result (?P<result>.*)"), _LookupLog.result),
    (
        re.compile(r"Lookup succeeded for topic(?: (?P<topic>.+?) -- broker: (?P<broker>.+))?"),
        partial(_LookupLog.answered_over_http, result="connect"),
    ),
    (
        re.compile(r"Redirect lookup for topic(?: (?P<topic>.+) to (?P<broker>\S+))?"),
        partial(_LookupLog.answered_over_http, result="redirect"),
    ),
    (
        re.compile(r"No broker was found available for topic(?: (?P<topic>.+))?"),
        partial(_LookupLog.answered_over_http, result="failed"),
    ),
    (re.compile(r"Failed to lookup (?P<client>.*?) for topic (?P<topic>.+?) with error"), _LookupLog.read_failure),
    (re.compile(r"Failed lookup due to too many lookup-requests(?: (?P<topic>.+))?"), _LookupLog.read_failure),
    # Behind the full form: 5.0's constant text has topic and role in its attributes.
    (re.compile(r"\AFailed to lookup(?! broker\b)"), _LookupLog.read_failure),
)
