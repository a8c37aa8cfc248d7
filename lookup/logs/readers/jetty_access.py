"""Read access logs of Pulsar's web server for lookups over HTTP, `GET /lookup/v2/topic/...`.

Up to 4.2 a line is NCSA's extended form with the latency in ms behind it, alone or as the message of an event in any
layout. 5.0 writes an event with attributes, as text or JSON. Source: `docs/pulsar/logs.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qs

from lookup.logs.readers.layouts import LineLayout, LogOrigin
from lookup.logs.readers.values import LATIN_1, decode_percent, number_of, unreadable
from lookup.model.address import host_of
from lookup.model.documents import Row, Unreadable
from lookup.model.quoting import shown
from lookup.model.time import parse_access_time

__all__ = ["LOOKUP_PATH", "RESULT_OF_STATUS", "JettyAccessReader", "http_lookup"]

#: Results by the status of the answer. All others are failures.
RESULT_OF_STATUS = {"200": "connect", "307": "redirect"}
#: The path of every lookup over HTTP, in front of the topic.
LOOKUP_PATH = "/lookup/v2/topic/"
_NCSA = re.compile(
    # A user's name may have blanks, and a logger's name and the same mark may come before the client.
    r"(?P<client>\S+) - (?:(?! - ).){1,200}? \[(?P<time>\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "
    r"\"(?P<method>[A-Z]+) (?P<uri>\S+)[^\"]*\" (?P<status>\d{3}) (?:\d+|-)"
    # Servers before Pulsar write more of their own behind the common part.
    r"(?: \"[^\"]*\" \"(?:[^\"\\]|\\.)*\")?(?:(?: (?P<latency>\d+))?\s*|\s.*)\Z"
)
_URI = re.compile(r"(?:https?://(?P<asked>[^/]+))?/lookup/v2/topic/(?P<path>[^?#\s]*)(?:\?(?P<query>[^#\s]*))?")
#: A line with the path but none of these is of another log, like a client's. The last is the rest of a cut-off request.
_MARKS = ("RequestLog", "HTTP/", '"GET ')
_REQUEST = ("uri", "status", "method")


@dataclass(frozen=True)
class JettyAccessReader(LogOrigin):
    """A reader of LOOKUPS in access logs. Lookups over HTTP have no properties, and no broker is logged."""

    name: ClassVar[str] = "jetty-access"
    expects: ClassVar[str] = "requests GET /lookup/v2/topic/... in a web server's access log"

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield a row per lookup. Other requests are skipped."""
        layout = LineLayout(self, source)
        # A request with a whole URL names the host that received it. The reader's parameters have precedence over it.
        columns = {**self.cluster_of(source), "asked_broker": self.broker_of(source)}
        fixed = {name: value for name, value in columns.items() if value is not None}
        for number, line in lines:
            if LOOKUP_PATH not in line or not any(mark in line for mark in _MARKS):
                layout.pass_over(line)
                continue
            try:
                values = _request(line, layout)
                if values is not None:
                    present = {name: value for name, value in values.items() if value is not None}
                    yield Row("lookups", number, present | fixed)
            except ValueError as error:
                yield unreadable(number, str(error), line)


def _request(line: str, layout: LineLayout) -> dict[str, Any] | None:
    ncsa = _NCSA.search(line)
    if ncsa is not None:
        values = _lookup(ncsa["uri"], ncsa["status"], ncsa["method"])
        # Jetty writes the time when the request came in.
        return values and {
            **values,
            "ts": parse_access_time(ncsa["time"]),
            "client": host_of(ncsa["client"]),
            "latency_ms": None if ncsa["latency"] is None else float(ncsa["latency"]),
        }
    event = layout.read(line)
    if event is None or not all(name in event.attributes for name in _REQUEST):
        raise ValueError("the line is neither NCSA's extended form nor an event with uri, status and method")
    attributes = event.attributes
    latency = number_of(attributes.get("durationMs") or "0", "durationMs")
    # The event is written with the answer, so the lookup arrived before.
    arrived = event.ts - round(latency * 1_000)
    values = _lookup(attributes["uri"], attributes["status"], attributes["method"])
    client = host_of(attributes.get("clientAddr") or "") or None
    return values and {**values, "ts": arrived, "client": client, "latency_ms": latency}


def _lookup(uri: str, status: str, method: str) -> dict[str, Any] | None:
    values = http_lookup(uri) if method == "GET" else None
    return values and {**values, "result": RESULT_OF_STATUS.get(status, "failed")}


def http_lookup(uri: str) -> dict[str, Any] | None:
    """Read topic, authoritative, listener and receiving broker of a lookup over HTTP, None for another request."""
    match = _URI.search(uri)
    if match is None:
        return None
    parts = match["path"].strip("/").split("/")
    # `.../bundle` reads the range of a topic's bundle and assigns no broker.
    if len(parts) == 5 and parts[4] == "bundle":
        return None
    if len(parts) != 4:
        raise ValueError(f"path {shown(match['path'])} is not of the form domain/tenant/namespace/topic")
    query = parse_qs(match["query"] or "", errors=LATIN_1)
    return {
        "topic": f"{parts[0]}://{parts[1]}/{parts[2]}/{decode_percent(parts[3])}",
        "authoritative": query.get("authoritative", ["false"])[-1].lower() == "true",
        "listener": query.get("listenerName", [None])[-1],
        "asked_broker": match["asked"],
    }
