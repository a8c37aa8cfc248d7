"""Finding the files of a table and sharing their row groups out."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import InputError
from lookup.logs.parquet import LogFile, list_log, open_parquet, share_out
from tests.replay.layouts import write_rows
from tests.replay.plans import lookup


def test_files_are_found_in_order_and_hidden_ones_are_not(tmp_path: Path) -> None:
    """Paths are sorted; names that begin with `.` or `_`, and other suffixes, are no part of a table."""
    for name in ("b/x.parquet", "a.parquet", "_tmp/x.parquet", ".x.parquet"):
        write_rows([lookup()], "lookups", tmp_path / name)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "notes.txt").touch()

    assert [Path(file.path).relative_to(tmp_path).as_posix() for file in list_log(str(tmp_path))] == [
        "a.parquet",
        "b/x.parquet",
    ]


def test_a_folder_may_name_the_cluster(tmp_path: Path) -> None:
    """Hive's `cluster=` is decoded and stands for the column."""
    (tmp_path / "cluster=a%2Fb").mkdir()
    pq.write_table(pa.table({"ts": [1], "topic": ["t"]}), tmp_path / "cluster=a%2Fb" / "x.parquet")

    (file,) = list_log(str(tmp_path))
    assert (file.cluster, file.rows, file.columns) == ("a/b", 1, ("ts", "topic"))


def test_a_single_file_and_a_uri_are_tables(tmp_path: Path) -> None:
    """A path may be a file of any name, or a URI, which the files' paths keep."""
    write_rows([lookup()], "lookups", tmp_path / "log.parquet")
    path = str(tmp_path / "log.parquet")

    assert list_log(path)[0].path == path
    assert list_log(f"file://{path}")[0].path == f"file://{path}"


@pytest.mark.parametrize(
    ("path", "kind"), [("/dev/zero", "a device"), ("/dev/stdin", "a stream of this process"), ("pipe", "a pipe")]
)
def test_what_cannot_be_read_twice_is_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, kind: str
) -> None:
    """Tasks read a table wherever they run, each its own part: a device, a pipe or a stream cannot be one."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")

    with pytest.raises(InputError) as caught:
        list_log(path)

    assert (
        str(caught.value)
        == f"{path}: is {kind}, which cannot be read twice; expected a Parquet file or a folder of them"
    )


@given(
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=4),
    st.integers(1, 9),
)
def test_shares_cover_all_row_groups_once_and_in_order(files: list[list[int]], tasks: int) -> None:
    """Whatever the number of tasks, the shares one after the other are the log, and none is empty."""
    log = [LogFile(f"f{number}", tuple(groups), ()) for number, groups in enumerate(files)]
    shares = share_out(log, tasks)

    covered = [
        (split.file.path, group)
        for share in shares
        for split in share
        for group in range(split.first_group, split.first_group + split.groups)
    ]
    assert covered == [(file.path, group) for file in log for group in range(len(file.row_groups))]
    assert all(share for share in shares)
    assert len(shares) <= tasks
    for split in (split for share in shares for split in share):
        assert split.first_row == sum(split.file.row_groups[: split.first_group])


def test_types_are_what_the_table_says_or_mean_the_same(tmp_path: Path) -> None:
    """Dictionaries, large texts, whole weights and integers for timestamps are as good; others are refused."""
    good = {"ts": [1], "cluster": pa.array(["c"], pa.large_string()), "topic": pa.array(["t"]).dictionary_encode()}
    pq.write_table(pa.table({**good, "weight": [2], "seq": pa.array([1], pa.int32())}), tmp_path / "x.parquet")

    assert list_log(str(tmp_path))[0].rows == 1
    pq.write_table(pa.table({**good, "seq": [1.5]}), tmp_path / "y.parquet")
    with pytest.raises(InputError, match=r"y\.parquet: column 'seq' of the table lookups holds double, not whole numb"):
        list_log(str(tmp_path))


def test_what_is_no_parquet_is_told_in_a_sentence(tmp_path: Path) -> None:
    """Neither a text nor a missing file gets further than its first opening."""
    (tmp_path / "x.parquet").write_text("no")
    for name in ("x.parquet", "y.parquet"):
        with (
            pytest.raises(InputError, match=rf"{name}: cannot be read as Parquet: "),
            open_parquet(str(tmp_path / name)),
        ):
            pass
