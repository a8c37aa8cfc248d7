"""Files between jobs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from lookup.logs.rows import Quarantined
from lookup.replay.work import WorkDir, fetched, write_quarantine


def test_columns_and_the_note_come_back(tmp_path: Path) -> None:
    """Numbers keep type and value, truth values become numbers, the note stays JSON."""
    work = WorkDir(str(tmp_path / "work"))
    work.write("deep/name.arrow", {"a": np.array([1, -2], np.int16), "b": np.array([True, False])}, {"weight": 3})

    columns, note = work.read("deep/name.arrow")

    assert (columns["a"].dtype, columns["a"].tolist(), columns["b"].tolist()) == (np.int16, [1, -2], [1, 0])
    assert note == {"weight": 3}


def test_empty_columns_come_back_empty(tmp_path: Path) -> None:
    """A table without rows keeps its columns."""
    work = WorkDir(str(tmp_path))
    work.write("none.arrow", {"ts": np.empty(0, np.int64)})

    columns, _ = work.read("none.arrow")

    assert (columns["ts"].dtype, len(columns["ts"])) == (np.int64, 0)


def test_other_file_systems_hold_the_same(tmp_path: Path) -> None:
    """A folder named by a URI is one like any other."""
    work = WorkDir(f"file://{tmp_path}/work")
    work.write("x.arrow", {"a": np.array([1.5])})

    assert work.read("x.arrow")[0]["a"].tolist() == [1.5]


def test_removing_leaves_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    """The folder goes with all it holds; that it is not there is no mistake."""
    work = WorkDir(str(tmp_path / "work"))
    work.write("x/y.arrow", {"a": np.array([1])})
    work.remove()
    work.remove()

    assert list(tmp_path.iterdir()) == []


def test_what_a_task_leaves_the_driver_finds(tmp_path: Path) -> None:
    """An object comes back by the name it was left under, on whatever file system."""
    work = WorkDir(f"file://{tmp_path}/work")

    name = work.dump("scored/1-0", [("p", np.arange(3))])

    [(policy, sums)] = work.load(name)
    assert (name, policy, sums.tolist()) == ("scored/1-0", "p", [0, 1, 2])


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

    found = fetched(reader, slice(low, high), piece_rows=3)

    assert found.column("a").to_pylist() == list(range(n_rows))[low:high]
    assert len(reader.fetched) <= max(0, high - low) // 3 + 2
    assert fetched(reader, slice(None), piece_rows=3).equals(table)


class _Counted:
    """A reader of a file that notes which pieces were asked for."""

    def __init__(self, reader: pa.RecordBatchFileReader) -> None:
        self.fetched: list[int] = []
        self.schema, self.num_record_batches = reader.schema, reader.num_record_batches
        self._reader = reader

    def get_batch(self, number: int) -> pa.RecordBatch:
        self.fetched.append(number)
        return self._reader.get_batch(number)
