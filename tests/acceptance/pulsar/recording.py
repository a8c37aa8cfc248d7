"""Records what a cluster publishes in its system topics while it runs, as JSON Lines."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pulsar

__all__ = ["JsonLines", "now_us", "recorded_topics"]

#: Topics of the extensible load manager, by the name of their file.
_TOPICS = {
    "service-unit-state": "persistent://pulsar/system/loadbalancer-service-unit-state",
    "broker-load-data": "non-persistent://pulsar/system/loadbalancer-broker-load-data",
    "top-bundles-load-data": "non-persistent://pulsar/system/loadbalancer-top-bundles-load-data",
}


def now_us() -> int:
    """Return the time, µs since the Unix epoch."""
    return time.time_ns() // 1_000


class JsonLines:
    """A file of JSON objects, one per line, that several threads write."""

    def __init__(self, path: Path) -> None:
        # Line by line: a record that is torn ends with a whole line.
        self._file = path.open("x", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()

    def write(self, row: dict[str, Any]) -> None:
        """Append one object; what comes after `close` is lost."""
        with self._lock:
            if not self._file.closed:
                self._file.write(json.dumps(row) + "\n")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


@contextmanager
def recorded_topics(client: pulsar.Client, folder: Path) -> Iterator[None]:
    """Record what a client reads: the state topic from its beginning and both load topics from now on, one file each.

    A line has `topic`, `key` (a bundle or a broker), `publish_time_ms`, `message_id` and `value`, null for a tombstone.
    """
    files = {topic: JsonLines(folder / f"{name}.jsonl") for name, topic in _TOPICS.items()}

    def keep(_reader: pulsar.Reader, message: pulsar.Message) -> None:
        position, text = message.message_id(), message.data()
        files[message.topic_name()].write(
            {
                "topic": message.topic_name(),
                "key": message.partition_key(),
                "publish_time_ms": message.publish_timestamp(),
                "message_id": f"{position.ledger_id()}:{position.entry_id()}:{position.batch_index()}",
                "value": json.loads(text) if text else None,
            }
        )

    # A topic that is not persistent has no earliest message: a reader sees what comes from now on.
    readers = [client.create_reader(topic, pulsar.MessageId.earliest, reader_listener=keep) for topic in files]
    try:
        yield
    finally:
        for reader in readers:
            reader.close()
        for file in files.values():
            file.close()
