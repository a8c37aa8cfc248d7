"""Files between jobs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from lookup.logs.rows import Quarantined
from lookup.replay.work import WorkDir, write_quarantine


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
