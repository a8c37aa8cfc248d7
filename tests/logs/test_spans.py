"""How long a log is, by its first and last lines, or by the footers of a table."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.engine.plugins import load_plugins
from lookup.errors import InputError
from lookup.logs.recognising import recognise
from lookup.logs.sources import last_lines
from lookup.logs.spans import span_of

_SECOND = 1_000_000


def _lines(first: int, count: int) -> str:
    return "".join([f"{first + number}\t/page\n" for number in range(count)])


def _span(path: Path, mapping: str) -> tuple[int, int] | None:
    return span_of(str(path), mapping, load_plugins(()))


@pytest.fixture
def mapping(tmp_path: Path) -> str:
    """Return the mapping that is proposed for the logs of this module."""
    (tmp_path / "head").write_text(f"time\turl\n{_lines(1769860800, 10)}", encoding="utf-8")
    return recognise(str(tmp_path / "head"), load_plugins(())).mapping


def test_the_last_line_of_a_long_file_is_found(tmp_path: Path, mapping: str) -> None:
    """Neither the lines between nor those behind the first thousands are read."""
    path = tmp_path / "log"
    path.write_text(f"time\turl\n{_lines(1769860800, 40_000)}", encoding="utf-8")

    assert _span(path, mapping) == (1769860800 * _SECOND, (1769860800 + 39_999) * _SECOND)


def test_a_folder_lasts_from_its_first_file_to_its_last(tmp_path: Path, mapping: str) -> None:
    """In whatever order rotation has named them."""
    (tmp_path / "log").mkdir()
    for name, first in (("a", 1769900000), ("b", 1769860800)):
        (tmp_path / "log" / name).write_text(f"time\turl\n{_lines(first, 50)}", encoding="utf-8")

    assert _span(tmp_path / "log", mapping) == (1769860800 * _SECOND, 1769900049 * _SECOND)


def test_a_packed_file_has_no_cheap_end(tmp_path: Path, mapping: str) -> None:
    """Nothing is said about a log with one, since what it lacks is not known."""
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "a").write_text(f"time\turl\n{_lines(1769860800, 50)}", encoding="utf-8")
    (tmp_path / "log" / "b").write_bytes(gzip.compress(f"time\turl\n{_lines(1769900000, 50)}".encode()))

    assert _span(tmp_path / "log", mapping) is None


def test_a_table_has_its_times_in_its_footers(tmp_path: Path) -> None:
    """As numbers and as timestamps."""
    numbers = pa.array([5 * _SECOND, 2 * _SECOND], pa.int64())
    for name, ts in (("a", numbers), ("b", numbers.cast(pa.timestamp("us")))):
        pq.write_table(pa.table({"ts": ts, "cluster": ["x", "x"], "topic": ["t", "t"]}), tmp_path / f"{name}.parquet")
        assert _span(tmp_path / f"{name}.parquet", "") == (2 * _SECOND, 5 * _SECOND)


def test_what_is_not_there_is_a_sentence(tmp_path: Path, mapping: str) -> None:
    """As it is when the log is read."""
    with pytest.raises(InputError, match="does not exist"):
        _span(tmp_path / "nowhere", mapping)


def test_last_lines_are_whole(tmp_path: Path) -> None:
    """The first of them begins where a line begins; ends of lines are left out, Windows' too."""
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"%07d\r\n" % number for number in range(40_000)))

    lines = last_lines(str(path))

    assert lines is not None
    assert lines[-1] == "0039999"
    assert len(lines) > 20_000
    assert {len(line) for line in lines} == {7}
    assert last_lines("s3://bucket/log") is None
