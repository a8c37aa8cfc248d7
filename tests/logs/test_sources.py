"""Finding log files and tables, reading lines, and sharing row groups out."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import InputError
from lookup.logs.sources import LogFile, list_files, list_log, locate, open_lines, open_parquet, share_out
from tests.replay.layouts import write_rows
from tests.replay.plans import lookup


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Make a folder of logs with hidden files in it."""
    for name in ("b.log", "a.log", "deep/c.log.gz", ".hidden.log", "_tmp/d.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    return tmp_path


def _names(folder: Path, *sources: str) -> list[str]:
    return [str(Path(path).relative_to(folder)) for path in list_files([f"{folder}/{source}" for source in sources])]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("s3://key:hidden@bucket/a", "s3://bucket/a: credentials"),
        ("s3://key:hidden/and/more@bucket/a", "s3://bucket/a: credentials"),
        ("s3://key:hidden/a", "an s3 path: credentials"),
        ("s3://bucket/a?region=eu-west-1", "settings of a store"),
        ("s3:///a", "names no bucket"),
    ],
)
def test_the_path_of_a_store_is_a_name_and_nothing_else(path: str, sentence: str) -> None:
    """What is secret in it is not repeated: sentences end up in logs."""
    with pytest.raises(InputError) as caught:
        locate(path)

    assert sentence in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_an_empty_source_is_not_the_working_folder() -> None:
    """A variable of a shell that is not set would read whatever lies there."""
    with pytest.raises(InputError, match=r"^source '' is empty"):
        list_files(["a.log", ""])


@pytest.mark.parametrize(
    ("source", "kind"), [("/dev/zero", "a device"), ("/dev/stdin", "a stream of this process"), ("pipe", "a pipe")]
)
def test_what_cannot_be_read_twice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, kind: str
) -> None:
    """A log or a table is read by workers, and again for its fingerprint; devices and pipes allow one reading."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")

    with pytest.raises(InputError, match=f"^source '{source}' is {kind}"):
        list_files([source])
    with pytest.raises(InputError, match=f"^{source}: is {kind}"):
        list_log(source)


def test_globs_and_files_are_taken_once(logs: Path) -> None:
    """A file named twice is one source, in the order of paths and not of arguments."""
    assert _names(logs, "b.log", "*.log", "**/*.gz") == ["a.log", "b.log", "deep/c.log.gz"]


def test_uris_are_listed_like_paths(logs: Path) -> None:
    """A URI of a file system, with or without a glob, gives URIs."""
    assert list_files([f"file://{logs}"])[0] == f"file://{logs}/a.log"
    assert list_files([f"file://{logs}/*/*.gz"]) == [f"file://{logs}/deep/c.log.gz"]


@pytest.mark.parametrize(
    ("source", "sentence"), [("nowhere", "does not exist"), ("*.txt", "holds no file"), ("empty", "holds no file")]
)
def test_a_source_without_files_is_named(logs: Path, source: str, sentence: str) -> None:
    """A missing path, an empty directory or a glob without match is an input error."""
    (logs / "empty").mkdir()
    with pytest.raises(InputError, match=sentence):
        list_files([f"{logs}/{source}"])


def test_no_source_and_unknown_schemes_are_refused() -> None:
    """Nothing to read and a file system nobody knows are sentences."""
    with pytest.raises(InputError, match="no source is given"):
        list_files([])
    with pytest.raises(InputError, match="no such file system"):
        list_files(["nonsense://x/y"])


def test_colours_of_a_terminal_are_left_out(tmp_path: Path) -> None:
    """As in a log that was copied from a console; other bytes stay."""
    (tmp_path / "x.log").write_bytes(b"12:00 \x1b[1;32mDEBUG\x1b[0m\x1b[K [a] \x1b]0;x\x07\n")

    assert list(open_lines(str(tmp_path / "x.log"))) == [(1, "12:00 DEBUG [a] \x1b]0;x\x07")]


def test_lines_are_unpacked_and_numbered(tmp_path: Path) -> None:
    """Compressed text, line ends of both kinds and a byte order mark are undone; bytes of Latin-1 are its letters."""
    path = tmp_path / "x.log.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfone\rmore\r\ntwo \xff\n\nfour"))
    assert list(open_lines(str(path))) == [(1, "one\rmore"), (2, "two ÿ"), (3, ""), (4, "four")]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\ufeff"))))
def test_only_newlines_part_lines(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    """Separators of other alphabets, form feeds and the like stay inside their line."""
    path = tmp_path_factory.mktemp("lines") / "x.log"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    assert [line for _, line in open_lines(str(path))] == lines


@pytest.mark.parametrize("name", ["a.log", "a.log.1", "a.log.gz"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress], ids=["plain", "gzip", "bzip2"])
def test_content_says_whether_a_file_is_packed(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    """The ending of a name does not: rotation takes it off, and what unpacks a file may leave it on."""
    (tmp_path / name).write_bytes(pack(b"one\r\ntwo\r\n"))
    assert list(open_lines(str(tmp_path / name))) == [(1, "one"), (2, "two")]


def test_text_may_be_in_utf_16(tmp_path: Path) -> None:
    """Spreadsheets save it so, with a mark at the beginning; an archive of files is refused."""
    (tmp_path / "a.csv").write_text("Größe\n1\n", encoding="utf-16")
    assert list(open_lines(str(tmp_path / "a.csv"))) == [(1, "Größe"), (2, "1")]
    (tmp_path / "b.csv").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(OSError, match="a zip archive"):
        list(open_lines(str(tmp_path / "b.csv")))


def test_a_lone_carriage_return_may_end_lines(tmp_path: Path) -> None:
    """In a file that has no other line end, as some exports write it."""
    (tmp_path / "x.log").write_bytes(b"one\rtwo\r\rfour\r")
    assert list(open_lines(str(tmp_path / "x.log"))) == [(1, "one"), (2, "two"), (3, ""), (4, "four")]


@pytest.mark.parametrize(
    ("packed", "what"),
    [
        (lzma.compress(b"one\n"), "packed by xz"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"Rar!\x1a\x07", "a rar archive"),
    ],
)
def test_what_is_packed_otherwise_is_refused(tmp_path: Path, packed: bytes, what: str) -> None:
    """By its content, with what to do."""
    (tmp_path / "a.log").write_bytes(packed)
    with pytest.raises(OSError, match=f"it is {what}; unpack it"):
        list(open_lines(str(tmp_path / "a.log")))


def test_a_folder_of_several_tables_is_named(tmp_path: Path) -> None:
    """What `ingest` writes is such a folder, and the one of its tables is named in the sentence."""
    for table in ("lookups", "quarantine"):
        write_rows([lookup()], "lookups", tmp_path / table / "a.parquet")
    assert list_log(str(tmp_path / "lookups"))
    with pytest.raises(InputError, match=f"holds several tables; .* {tmp_path}/lookups$"):
        list_log(str(tmp_path))
    with pytest.raises(InputError, match="`lookup ingest`"):
        list_log(str(tmp_path / "trial" / "lookups"))


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


def test_a_table_of_delta_is_read_by_its_log(tmp_path: Path) -> None:
    """Files that the log has removed are there, and are no part of the table; partitions are folders."""
    rows = pa.table({"ts": [1, 2], "topic": ["a", "b"], "cluster": ["east", "west"]})
    write_deltalake(str(tmp_path), rows, partition_by=["cluster"])
    write_deltalake(str(tmp_path), rows.slice(1), partition_by=["cluster"], mode="overwrite")

    (file,) = list_log(str(tmp_path))

    assert len([*tmp_path.rglob("*.parquet")]) == 3
    assert (file.cluster, file.rows) == ("west", 1)


@pytest.mark.parametrize(
    ("mark", "table", "sentence"),
    [
        ("t/metadata/v1.metadata.json", "t", "is a table of Iceberg"),
        ("t/metadata/v1.metadata.json", "t/data", "is a table of Iceberg"),
        ("t/.hoodie/hoodie.properties", "t", "is a table of Hudi"),
        ("t/east/_delta_log/0.json", "t", "holds a table of Delta further below"),
        ("t/_delta_log/00000000000000000000.json", "t", "cannot be read as a table of Delta"),
    ],
)
def test_tables_of_lakes_are_never_read_file_by_file(tmp_path: Path, mark: str, table: str, sentence: str) -> None:
    """Only their metadata says which files count: what cannot read it refuses them by name."""
    write_rows([lookup()], "lookups", tmp_path / "t" / "data" / "a.parquet")
    (tmp_path / mark).parent.mkdir(parents=True)
    (tmp_path / mark).write_text("{}", encoding="utf-8")

    with pytest.raises(InputError, match=sentence):
        list_log(str(tmp_path / table))


@pytest.mark.parametrize("unit", [1, 1_000])
def test_a_table_in_seconds_or_ms_is_refused(tmp_path: Path, unit: int) -> None:
    """Whole numbers that count another unit than µs are a table of January 1970, with the unit that is likely."""
    times = [unit * second for second in (1_711_372_749, 1_711_459_149)]
    pq.write_table(pa.table({"ts": times, "topic": ["a", "b"], "cluster": ["c", "c"]}), tmp_path / "a.parquet")

    with pytest.raises(InputError, match=f"of March 2024 as {'ms' if unit == 1_000 else 'seconds'}"):
        list_log(str(tmp_path))


def test_times_beyond_the_calendar_are_no_span(tmp_path: Path) -> None:
    """Rows with such times are refused when they are read; the table is found all the same."""
    times = pa.array([-(10**18), 0], pa.int64()).cast(pa.timestamp("us"))
    pq.write_table(pa.table({"ts": times, "topic": ["a", "b"], "cluster": ["c", "c"]}), tmp_path / "a.parquet")

    (file,) = list_log(str(tmp_path))

    assert file.span is None


def test_brokers_without_times_are_always_there(tmp_path: Path) -> None:
    """A table of brokers may be a list: of a column `broker` or `id`, and no `ts` and `event`."""
    pq.write_table(pa.table({"id": ["b1:8080", "b2:8080"], "cluster": ["c", "c"]}), tmp_path / "a.parquet")
    assert list_log(str(tmp_path), "brokers")
    pq.write_table(pa.table({"id": ["b1:8080"], "cluster": ["c"], "event": ["registered"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="has no column 'ts', 'broker'"):
        list_log(str(tmp_path), "brokers")


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_may_have_any_encoding(tmp_path: Path, encoding: str) -> None:
    """Arrow makes no dictionaries of some: those columns are read as they are."""
    rows = pa.table({"topic": ["a", "b", "b"], "client": ["x", "x", "y"]})
    pq.write_table(rows, tmp_path / "a", use_dictionary=["client"], column_encoding={"topic": encoding})

    with open_parquet(str(tmp_path / "a"), dictionaries=["topic", "client"]) as parquet:
        read = parquet.read()

    assert read.column("topic").to_pylist() == ["a", "b", "b"]
    assert pa.types.is_dictionary(read.schema.field("client").type)


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


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=4), st.integers(1, 9))
def test_shares_cover_all_row_groups_once_and_in_order(files: list[list[int]], tasks: int) -> None:
    """For any number of tasks, the shares one after the other are the log, and none is empty."""
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
    with pytest.raises(InputError, match=r"y\.parquet: column 'seq' .* double"):
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


@pytest.mark.parametrize("column", ["ts", "topic", "note"])
def test_a_column_that_is_there_twice_is_refused(tmp_path: Path, column: str) -> None:
    """Whether the table needs it, knows it or does not; by its name."""
    write_rows([lookup(0)], "lookups", tmp_path / "once.parquet")
    table = pq.read_table(tmp_path / "once.parquet").append_column("note", pa.array(["x"]))
    pq.write_table(table.append_column(column, table[column]), tmp_path / "twice.parquet")

    with pytest.raises(InputError, match=f"twice.parquet: column '{column}' is there 2 times"):
        list_log(str(tmp_path / "twice.parquet"))
