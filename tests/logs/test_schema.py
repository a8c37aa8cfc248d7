"""The canonical layout of Parquet files, and files that roll: all of a call appear whole or none does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.logs.schema import CANONICAL, RollingFiles, partition_of, write_parquet


def test_a_cluster_of_any_name_is_one_folder() -> None:
    """Slashes and equal signs of a cluster's name are encoded as Hive does."""
    assert partition_of("a/b=c", "2026-01-31") == "cluster=a%2Fb%3Dc/date=2026-01-31"


def test_a_file_keeps_its_dictionaries(tmp_path: Path) -> None:
    """20,000 topics of 45 bytes stay dictionary-encoded in the one row group, and times are stored as differences."""
    topics = [f"persistent://tenant/namespace/topic-{number:09}" for number in range(20_000)]
    rows = [{"ts": place, "seq": place, "cluster": "c", "topic": topic} for place, topic in enumerate(topics * 2)]
    path = tmp_path / "part.parquet"
    write_parquet(pa.Table.from_pylist(rows, schema=CANONICAL["lookups"]), str(path))

    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    assert group.num_rows == 40_000
    assert columns["topic"].encodings == ("PLAIN", "RLE", "RLE_DICTIONARY")
    assert columns["topic"].total_uncompressed_size < 1.3 * 20_000 * 45
    assert "DELTA_BINARY_PACKED" in columns["ts"].encodings


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
