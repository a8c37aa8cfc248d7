"""Rolling files: all of a call appear whole or none does, and what a killed process left is removed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.logs.rolling import RollingFiles

_SCHEMA = pa.schema([("ts", pa.int64()), ("odds", pa.map_(pa.string(), pa.float64())), ("name", pa.string())])


@pytest.fixture
def files(tmp_path: Path) -> RollingFiles:
    """Return the files of one table."""
    return RollingFiles(str(tmp_path), {"rows": _SCHEMA})


def names(files: RollingFiles) -> list[str]:
    """Return the names of all files below the table, hidden ones as well."""
    return sorted(path.name for path in (Path(files.folder, "rows")).rglob("*") if path.is_file())


def test_rows_and_metadata_are_in_the_files(files: RollingFiles) -> None:
    """Each file holds its rows, columns of maps too, and what was to be noted in it; one without rows can be read."""
    odds = (("a", 0.5), ("b", 0.5))
    files.write("rows", {"day=1/part-1": [(1, odds, "x"), (2, odds, None)], "day=2/part-1": []}, {b"until": "7"})

    first, second = (pq.ParquetFile(Path(files.folder, "rows", f"day={day}", "part-1")) for day in (1, 2))
    assert first.read().to_pylist() == [
        {"ts": 1, "odds": [*odds], "name": "x"}, {"ts": 2, "odds": [*odds], "name": None}
    ]  # fmt: skip
    assert second.read().schema.names == _SCHEMA.names
    assert first.metadata.metadata[b"until"] == second.metadata.metadata[b"until"] == b"7"


@pytest.mark.parametrize("value", ["no number", 1 << 70])
def test_files_appear_together_or_not_at_all(files: RollingFiles, value: object) -> None:
    """If one file cannot be written, none of the call is there, and nothing half-written either."""
    with pytest.raises((pa.ArrowException, OverflowError)):
        files.write("rows", {"part-1": [(1, (), "x")], "part-2": [(value, (), "x")]})

    assert names(files) == []


def test_file_in_the_way_is_an_error_of_the_system(files: RollingFiles) -> None:
    """What the disk refuses is an OSError; afterwards the same call works."""
    (Path(files.folder, "rows")).write_text("in the way")
    with pytest.raises(OSError, match="rows"):
        files.write("rows", {"part-1": [(1, (), "x")]})
    (Path(files.folder, "rows")).unlink()

    files.write("rows", {"part-1": [(1, (), "x")]})

    assert names(files) == ["part-1"]


def test_hidden_files_of_a_killed_process_are_removed(files: RollingFiles) -> None:
    """Files that never appeared are removed, the others stay."""
    files.write("rows", {"day=1/part-1": [(1, (), "x")]})
    (Path(files.folder, "rows") / "day=1" / ".part-2").write_text("half")

    files.remove_hidden()

    assert names(files) == ["part-1"]
