"""The recorded session of tests/assets as records of an observer, and rows as mappings."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lookup.collect.observing import JOURNAL, BrokerReport, Observer, Record, StateRecord, TopBundles
from lookup.logs.columns import TABLES

__all__ = ["records", "rows_of", "state_records", "taken"]

_SESSION = Path(__file__).parent.parent / "assets" / "pulsar-4.2.4" / "system-topics.jsonl.gz"


def records() -> Iterator[Record]:
    """Yield the messages of the three topics, one topic after the other."""
    with gzip.open(_SESSION, "rt", encoding="utf-8") as lines:
        for line in lines:
            message = json.loads(line)
            text = "" if message["value"] is None else json.dumps(message["value"])
            ts_us = message["publish_time_ms"] * 1_000
            if message["topic"].endswith("service-unit-state"):
                ledger, entry, index = map(int, message["message_id"].split(":"))
                yield StateRecord(message["key"], text, ts_us, (ledger, entry, index))
            elif message["topic"].endswith("broker-load-data"):
                yield BrokerReport(message["key"], text, ts_us)
            else:
                yield TopBundles(text, ts_us)


def state_records() -> list[StateRecord]:
    """Return the messages of the state topic, in its order."""
    return [record for record in records() if isinstance(record, StateRecord)]


def taken(observer: Observer, some: Sequence[Record]) -> Observer:
    """Let an observer take records, and return it."""
    for record in some:
        observer.take(record)
    return observer


def rows_of(observer: Observer, table: str) -> list[dict[str, Any]]:
    """Return the rows that wait, by column; what is null or the cluster is left out."""
    columns = [column.name for column in TABLES[table]] if table != "journal" else JOURNAL.split()
    names = [column.partition(":")[0] for column in columns]
    rows = (zip(names, row, strict=True) for row in observer.pending[table])
    return [{name: value for name, value in row if value is not None and name != "cluster"} for row in rows]
