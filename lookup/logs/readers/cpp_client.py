"""Read logs of the C++ client and the clients built on it, Python and Node, for answers to their lookups.

The client prints only answers, not requests. An answer may be a redirect that it follows, and looks the same, so
`result` is `unknown`. Source: `docs/pulsar/logs.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lookup.logs.readers.layouts import LineLayout, LogOrigin
from lookup.logs.readers.values import unreadable
from lookup.model.address import host_of
from lookup.model.documents import Row, Unreadable

__all__ = ["CppClientReader"]

_ANSWERED = re.compile(
    r"Lookup response for (?P<topic>.+?), lookup-broker-url (?P<broker>[^\s,]*)(?:,? from (?P<cnx>.*))?"
)
_FAILED = re.compile(r"Lookup failed for (?P<topic>.+?), result (?P<result>\S+)")
_CONNECTION = re.compile(r"\[(?P<here>\S+) -> (?P<there>(?:\[[^\]]*\]|[^\s\]])+)\]?")


@dataclass(frozen=True)
class CppClientReader(LogOrigin):
    """A reader of LOOKUPS in a client's log. `properties` gives the client's properties, which are not logged."""

    name: ClassVar[str] = "cpp-client"
    expects: ClassVar[str] = "lines `Lookup response for T, lookup-broker-url U` of a C++, Python or Node client"

    #: id of the client, or else the local host of its connection
    client: str = ""
    #: labels of this client, the same for all its lookups
    properties: Mapping[str, str] = field(default_factory=dict)

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield a row per answer."""
        layout = LineLayout(self, source)
        for number, line in lines:
            answer = _ANSWERED.search(line) or _FAILED.search(line)
            if answer is None:
                layout.pass_over(line)
                continue
            try:
                ts = layout.time_before(line, answer.start())
            except ValueError as error:
                yield unreadable(number, str(error), line)
                continue
            groups = answer.groupdict()
            connection = _CONNECTION.search(groups.get("cnx") or "")
            # Without the port, which differs in every run.
            host = host_of(connection["here"]) if connection else None
            values = {
                "ts": ts,
                "topic": answer["topic"],
                "client": self.client or host,
                "properties": dict(self.properties),
                "asked_broker": self.id_of(f"pulsar://{connection['there']}") if connection else None,
                "broker": self.id_of(groups.get("broker") or ""),
                "result": "failed" if "result" in groups else "unknown",
                **self.cluster_of(source),
            }
            yield Row("lookups", number, {name: value for name, value in values.items() if value is not None})
