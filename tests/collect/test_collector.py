"""The loop of a collector writes what the sources have put into the queue."""

from __future__ import annotations

from pathlib import Path
from queue import Queue
from threading import Event

import pyarrow.parquet as pq
import pytest

from lookup.collect.collector import _Recording
from lookup.collect.folder import RecordFolder
from lookup.collect.observing import BrokerReport, Observer, Record


def _run(folder: Path, stop: Event, *, for_s: float | None) -> list[int]:
    """Record five reports that wait, and return the rows of each file of LOADS before the end is marked."""
    records: Queue[Record] = Queue()
    for ts in range(5):
        records.put(BrokerReport("a:8080", "{}", ts))
    with RecordFolder(str(folder)) as record:
        recording = _Recording(record, Observer("east"), warn=lambda _: None)
        recording.run(records, stop, for_s=for_s, every_s=3600)
        rows = [pq.read_metadata(part).num_rows for part in sorted((folder / "loads").iterdir())]
        recording.end()
    return rows


def test_what_waits_at_the_end_is_written(tmp_path: Path) -> None:
    """A collector that is stopped takes what its sources have read already."""
    stop = Event()
    stop.set()

    _run(tmp_path, stop, for_s=None)

    assert pq.read_table(tmp_path / "loads").num_rows == 5


def test_many_rows_are_written_before_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that has grown long is written at once, so that memory stays bounded."""
    monkeypatch.setattr("lookup.collect.collector._MOST_ROWS", 2)

    assert _run(tmp_path, Event(), for_s=0.5) == [0, 2, 2]
