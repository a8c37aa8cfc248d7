"""`lookup.ingest`: log files become tables, without Spark unless a session is active."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lookup
from lookup.errors import PulsarLookupError
from lookup.logs.jobs import InProcess


def test_a_log_becomes_tables(tmp_path: Path) -> None:
    """A reader by name, one source, no session."""
    log = tmp_path / "lookups.jsonl"
    log.write_text('{"ts": 1, "topic": "persistent://t/n/x"}\n', encoding="utf-8")

    report = lookup.ingest(log, tmp_path / "out", reader="jsonl", cluster="east", workers=InProcess())

    assert report.rows == {"lookups": 1}
    assert pq.read_table(tmp_path / "out" / "lookups", partitioning=None)["topic"].to_pylist() == ["persistent://t/n/x"]


def test_a_mistake_is_a_sentence(tmp_path: Path) -> None:
    """The output stays as it was."""
    with pytest.raises(PulsarLookupError, match="does not exist"):
        lookup.ingest(tmp_path / "nothing.log", tmp_path / "out", reader="jsonl", workers=InProcess())

    assert not (tmp_path / "out").exists()
