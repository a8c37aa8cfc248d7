"""The canonical layout of Parquet files, and files that roll: all of a call appear whole or none does."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.logs.ingest import ingest
from lookup.logs.jobs import InProcess
from lookup.logs.readers import JsonLinesReader
from lookup.logs.schema import CANONICAL, RollingFiles, write_parquet
from tests.programs import Elsewhere, written


def test_other_programs_read_the_clusters_that_were_written(elsewhere: Elsewhere, tmp_path: Path) -> None:
    """A cluster is a text, also one that could be a number, a date, nothing, or part of a path."""
    clusters = "007 1.0 1e3 true 2026-01-05 null NaN a/b=c a%2Fb = é __HIVE_DEFAULT_PARTITION__".split()
    row = {"ts": "2026-01-05T23:59:59.5Z", "topic": "persistent://t/n/x", "properties": {"rack": "a"}}
    lines = [json.dumps({**row, "cluster": cluster}) for cluster in clusters]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    ingest(InProcess(), [str(tmp_path / "log.jsonl")], JsonLinesReader(), str(tmp_path / "out"))

    rows = elsewhere(tmp_path / "out" / "lookups", CANONICAL["lookups"])

    assert rows == written(tmp_path / "out" / "lookups", CANONICAL["lookups"])
    assert [name for name in clusters if sum(f"'cluster': {name!r}" in row for row in rows) != 1] == []


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
    """Return the names of all files of the table and beside it, hidden ones as well."""
    return sorted(path.name for path in Path(files.folder).rglob("*") if path.is_file())


def test_rows_and_metadata_are_in_the_files(files: RollingFiles) -> None:
    """Each file holds its rows, columns of maps too, and what was to be noted in it; one without rows can be read."""
    odds = (("a", 0.5), ("b", 0.5))
    files.write("rows", "part-1", [(1, odds, "x"), (2, odds, None)], {b"until": "7"})
    files.write("rows", "part-2", [], {b"until": "7"})

    first, second = (pq.ParquetFile(Path(files.folder, "rows", f"part-{number}")) for number in (1, 2))
    assert first.read().to_pylist() == [
        {"ts": 1, "odds": [*odds], "name": "x"}, {"ts": 2, "odds": [*odds], "name": None}
    ]  # fmt: skip
    assert second.read().schema.names == _SCHEMA.names
    assert first.metadata.metadata[b"until"] == second.metadata.metadata[b"until"] == b"7"


@pytest.mark.parametrize("value", ["no number", 1 << 70])
def test_a_file_that_cannot_be_written_is_not_there(files: RollingFiles, value: object) -> None:
    """Nothing half-written either."""
    with pytest.raises((pa.ArrowException, OverflowError)):
        files.write("rows", "part-1", [(1, (), "x"), (value, (), "x")])

    assert names(files) == []


def test_a_table_s_folder_holds_complete_files_alone(files: RollingFiles) -> None:
    """At no moment is there a file that is hidden or being written: not every program passes over one."""
    folder = Path(files.folder, "rows")
    folder.mkdir()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(
            lambda: [files.write("rows", f"part-{number}", [(1, (), "x")] * 1_000) for number in range(50)]
        )
        seen = set[str]()
        while not writing.done():
            seen |= {path.name for path in folder.iterdir()}

    assert seen - {f"part-{number}" for number in range(50)} == set()
    assert writing.exception() is None


def test_hidden_files_of_a_killed_process_are_removed(files: RollingFiles) -> None:
    """Files that never appeared are removed, the others stay; earlier releases wrote them in the tables' folders."""
    files.write("rows", "part-1", [(1, (), "x")])
    Path(files.folder, ".part-2.rows").write_text("half")
    Path(files.folder, "rows", ".part-2").write_text("half")

    files.remove_hidden()

    assert names(files) == ["part-1"]
