"""Logs of the C++ client and the clients built on it, Python and Node: lookups as the client saw them answered.

Source: `docs/pulsar/logs.md`. The client prints no request, only answers, and an answer may be a redirect that
it follows: the log does not tell the two apart, so `result` is `unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lookup.logs.readers.layouts import LineLayout
from lookup.logs.readers.origin import LogOrigin
from lookup.logs.readers.records import unreadable
from lookup.model.documents import Row, Unreadable
from lookup.model.names import looks_like_pattern
from lookup.model.quoting import shown

__all__ = ["CppClientReader"]

_ANSWERED = re.compile(
    r"Lookup response for (?P<topic>.+?), lookup-broker-url (?P<broker>[^\s,]*)(?:,? from (?P<cnx>.*))?"
)
_FAILED = re.compile(r"Lookup failed for (?P<topic>.+?), result (?P<result>\S+)")
_CONNECTION = re.compile(r"\[(?P<here>\S+) -> (?P<there>[^\s\]]+)\]?")


@dataclass(frozen=True)
class CppClientReader(LogOrigin):
    """Reads LOOKUPS from a client's log; the client sends no properties, `properties` says what it would send."""

    name: ClassVar[str] = "cpp-client"
    expects: ClassVar[str] = "lines `Lookup response for T, lookup-broker-url U` of a C++, Python or Node client"

    #: id of the client; else the local host of its connection
    client: str = ""
    #: labels of this client, the same for all its lookups
    properties: Mapping[str, str] = field(default_factory=dict)

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield a row per answer."""
        layout = LineLayout(self, source)
        for number, line in lines:
            found = _ANSWERED.search(line) or _FAILED.search(line)
            if found is None:
                layout.pass_over(line)
                continue
            try:
                yield self._row(number, found, layout.time_before(line, found.start()), source)
            except ValueError as error:
                yield unreadable(number, str(error), line)

    def _row(self, number: int, found: re.Match[str], ts: int, source: str) -> Row:
        groups = found.groupdict()
        topic = found["topic"]
        if looks_like_pattern(topic):
            raise ValueError(f"{shown(topic)} is a regular expression of a topic list watcher, not a topic")
        connection = _CONNECTION.search(groups.get("cnx") or "")
        values = {
            "ts": ts,
            "topic": topic,
            "client": self.client or (_host(connection["here"]) if connection else None),
            "properties": dict(self.properties),
            "asked_broker": self.names.id_of(f"pulsar://{connection['there']}") if connection else None,
            "broker": self.names.id_of(groups.get("broker") or ""),
            "result": "failed" if "result" in groups else "unknown",
            **self.cluster_of(source),
        }
        return Row("lookups", number, {name: value for name, value in values.items() if value is not None})


def _host(address: str) -> str:
    return address.rpartition(":")[0] or address
