"""The canonical layout of Parquet files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.logs.schema import CANONICAL, partition_of, write_parquet


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
