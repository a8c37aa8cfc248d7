"""Running readers over lines in tests, and lines that no reader may trip over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from lookup.hooks import LogReader
from lookup.logs.unwrapping import Events
from lookup.model.documents import Refuted, Row, Unreadable

__all__ = ["BROKER_PHRASES", "hostile_lines", "one_row", "read_lines", "unrefuted"]

#: Beginnings and ends of the messages that readers look for.
BROKER_PHRASES = (
    "2026-01-31T12:00:00,000+0000 [main] INFO  a.b.C - ",
    "12:00:00.000 [main] DEBUG a.b.C - ",
    "Received Lookup from /10.0.0.1:5 for ",
    "Received Lookup request {topic=",
    "[persistent://t/ns/x] Lookup result ",
    "Failed to lookup null for topic ",
    " with error ",
    "Successfully acquired ownership of OwnedBundle(bundle=",
    "t/ns/0x00000000_0xffffffff",
    "Unloading bundle: ",
    "ServiceUnitStateData[state=Owned, dstBroker=",
    "b:1 handled Transfer:Releasing event for serviceUnit:t/ns/0x00000000_0xffffffff, cur:",
    "Overriding inactiveBroker:b:1, ownership serviceUnit:t/ns/0x00000000_0xffffffff from orphanData:",
    " to overrideData:",
    "Skipped the message from topic persistent://pulsar/system/loadbalancer-service-unit-state. key=",
    " value=",
    " prev=",
    "[null] Unloading namespace bundle ",
    "[null] Successfully unloaded namespace bundle 0x00000000_0xffffffff",
    "Successfully split t/ns/0x00000000_0xffffffff parent namespace-bundle to [",
    ", sourceBroker=b:1, force=false, timestamp=",
    '{"topic": "persistent://pulsar/system/loadbalancer-service-unit-state", "publish_time_ms": 1, "key": ',
    '"t/ns/0x00000000_0xffffffff", "value": {"state": "Splitting", "sourceBroker": "b:1", ',
    '"splitServiceUnitToDestBroker": {"x": null}}}',
    "splitServiceUnitToDestBroker={0x00000000_0x40000000=, 0x40000000_0x20000000}",
    '{"instant":{"epochSecond":1,"nanoOfSecond":2},"message":"Received Lookup request","contextMap":{"topic":',
    '{"log":"',
    '{"message":1}',
    "/lookup/v2/topic/",
    ' - - [07/Nov/2018:12:27:31 +0000] "GET ',
    ' HTTP/1.1" 200 5 "-" "x" 7',
    "Lookup response for ",
    ", lookup-broker-url ",
    ", from [a:1 -> b:2]",
    "persistent://t/ns/x",
    "}",
    "]",
    '"',
    " - ",
    " | ",
)


def hostile_lines() -> st.SearchStrategy[list[str]]:
    """Draw lines of arbitrary text and of pieces of what readers look for, in any order."""
    pieces = st.one_of(st.sampled_from(BROKER_PHRASES), st.text(max_size=20))
    return st.lists(st.lists(pieces, max_size=6).map("".join), max_size=8)


def read_lines(reader: LogReader, *lines: str, source: str = "broker.log") -> list[Row | Unreadable | Refuted]:
    """Run a reader over the events of some lines, as an ingest does."""
    events = Events(iter(enumerate(lines, start=1)), keeps_objects=getattr(reader, "reads_objects", False))
    return list(reader.parse(iter(events), source))


def unrefuted(entries: Iterable[Row | Unreadable | Refuted]) -> list[Row | Unreadable]:
    """Leave out the rows that others refute, as an ingest does, and what refutes them."""
    kept = list(entries)
    refuted = [entry for entry in kept if isinstance(entry, Refuted)]
    return [
        entry
        for entry in kept
        if isinstance(entry, Unreadable)
        or (isinstance(entry, Row) and not any(_covers(wrong, entry) for wrong in refuted))
    ]


def _covers(wrong: Refuted, row: Row) -> bool:
    return (
        row.table == wrong.table
        and wrong.from_us <= row.values["ts"] < wrong.until_us
        and all(row.values.get(name) == value for name, value in wrong.values.items())
    )


def one_row(reader: LogReader, *lines: str, source: str = "broker.log") -> dict[str, Any]:
    """Return the values of the only row of some lines."""
    (row,) = read_lines(reader, *lines, source=source)
    assert isinstance(row, Row), row
    return dict(row.values)
