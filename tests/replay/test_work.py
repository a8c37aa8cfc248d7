"""Files between jobs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from lookup.logs.rows import Quarantined
from lookup.replay.work import fetch, write_quarantine


def test_nothing_in_quarantine_is_no_file(tmp_path: Path) -> None:
    """A run in which all could be used leaves no quarantine."""
    write_quarantine([], "lookups", str(tmp_path / "quarantine"), "x.parquet")
    assert not (tmp_path / "quarantine").exists()

    write_quarantine([Quarantined("f", 3, "why", "text")], "lookups", str(tmp_path / "quarantine"), "x.parquet")
    assert pq.read_table(tmp_path / "quarantine").to_pylist() == [
        {"table": "lookups", "source": "f", "line": 3, "reason": "why", "text": "text"}
    ]


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_only_the_pieces_that_hold_wanted_rows_are_fetched(n_rows: int, low: int, high: int) -> None:
    """Of a file in an object store; the rows are those that a slice of the whole has."""
    sink = pa.BufferOutputStream()
    table = pa.table({"a": pa.array(range(n_rows), pa.int64())})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, 3)
    reader = _Counted(pa.ipc.open_file(sink.getvalue()))

    found = fetch(reader, slice(low, high), piece_rows=3)

    assert found.column("a").to_pylist() == list(range(n_rows))[low:high]
    assert len(reader.fetched) <= max(0, high - low) // 3 + 2
    assert fetch(reader, slice(None), piece_rows=3).equals(table)


class _Counted:
    """A reader of a file that notes which pieces were asked for."""

    def __init__(self, reader: pa.RecordBatchFileReader) -> None:
        self.fetched: list[int] = []
        self.schema, self.num_record_batches = reader.schema, reader.num_record_batches
        self._reader = reader

    def get_batch(self, number: int) -> pa.RecordBatch:
        self.fetched.append(number)
        return self._reader.get_batch(number)
