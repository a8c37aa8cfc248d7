"""Read the system topics of Pulsar's load manager, dumped as JSON Lines: ownership, brokers' load and top bundles.

A line is one message with the keys `topic`, `key`, `publish_time_ms` and `value`, null for a tombstone; others, such as
`message_id`, are not read. A source has the records of the state topic in the topic's order.

Source: `docs/pulsar/logs.md`, "State records beside the log".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from lookup.engine.service_unit import ServiceUnitStateData
from lookup.errors import PulsarLookupError
from lookup.logs.readers.values import unreadable
from lookup.logs.system_topics import (
    BROKER_LOAD_TOPIC,
    STATE_TOPIC,
    TOP_BUNDLES_TOPIC,
    OwnershipChanges,
    bundle_rows,
    load_row,
)
from lookup.model.documents import Row, Unreadable, mapping, parsed_object, text, whole_number

__all__ = ["SystemTopicsReader"]


@dataclass(frozen=True)
class SystemTopicsReader:
    """Reads OWNERSHIP, LOADS and BUNDLES from messages of the load manager's system topics, in JSON Lines."""

    name: ClassVar[str] = "pulsar-system-topics"
    expects: ClassVar[str] = (
        "one JSON object per line with topic, key, publish_time_ms and value of a message in a system topic of the "
        "extensible load manager"
    )

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield changes of ownership and the load that brokers report; messages of other topics are passed over."""
        changes = OwnershipChanges()
        for number, line in lines:
            if not line.strip():
                continue
            try:
                # A message is used whole or not at all.
                yield from list(_rows(number, parsed_object(line, "the line"), changes))
            except PulsarLookupError as error:
                yield unreadable(number, str(error), line)


def _rows(line: int, record: dict[str, Any], changes: OwnershipChanges) -> Iterator[Row]:
    """Yield the rows of one message.

    Raises:
        PulsarLookupError: if the message is not as Pulsar writes it.
    """
    topic = text(record.get("topic"), "topic")
    if topic not in (BROKER_LOAD_TOPIC, STATE_TOPIC, TOP_BUNDLES_TOPIC):
        return
    key, ts_us = text(record.get("key"), "key"), whole_number(record.get("publish_time_ms"), "publish_time_ms") * 1_000
    value = record.get("value")
    message = None if value is None else json.dumps(mapping(value, "value"), separators=(",", ":"))
    if topic == STATE_TOPIC:
        change = changes.take(key, None if message is None else ServiceUnitStateData.from_json(message), ts_us)
        if change is not None:
            yield Row("ownership", line, change)
    # A tombstone says that a broker is gone, for which there is the registry.
    elif message is not None and topic == BROKER_LOAD_TOPIC:
        yield Row("loads", line, load_row(key, message, ts_us))
    elif message is not None:
        yield from (Row("bundles", line, row) for row in bundle_rows(message, ts_us))
