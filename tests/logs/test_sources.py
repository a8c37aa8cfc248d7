"""Finding log files and reading their lines."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import InputError
from lookup.logs.sources import list_files, open_lines


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Make a folder of logs with hidden files in it."""
    for name in ("b.log", "a.log", "deep/c.log.gz", ".hidden.log", "_tmp/d.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    return tmp_path


def _names(folder: Path, *sources: str) -> list[str]:
    return [str(Path(path).relative_to(folder)) for path in list_files([f"{folder}/{source}" for source in sources])]


def test_a_directory_holds_all_files_below_it(logs: Path) -> None:
    """Files come sorted; what Spark would not read is left out."""
    assert _names(logs, "") == ["a.log", "b.log", "deep/c.log.gz"]


def test_an_empty_source_is_not_the_working_folder() -> None:
    """A variable of a shell that is not set would read whatever lies there."""
    with pytest.raises(InputError, match=r"^source '' is empty; name a log file or a directory"):
        list_files(["a.log", ""])


@pytest.mark.parametrize(
    ("source", "kind"),
    [("/dev/zero", "a device"), ("/dev/stdin", "a stream of this process"), ("{folder}/pipe", "a pipe")],
)
def test_what_cannot_be_read_twice_is_refused(tmp_path: Path, source: str, kind: str) -> None:
    """A log is read by workers, and again for its fingerprint: what ends with one reading, or never, is no log."""
    os.mkfifo(tmp_path / "pipe")
    source = source.format(folder=tmp_path)

    with pytest.raises(InputError) as caught:
        list_files([source])

    assert (
        str(caught.value) == f"source {source!r} is {kind}, which cannot be read twice; expected a file or a directory"
    )


def test_globs_and_files_are_taken_once(logs: Path) -> None:
    """A file named twice is one source, in the order of paths and not of arguments."""
    assert _names(logs, "b.log", "*.log", "**/*.gz") == ["a.log", "b.log", "deep/c.log.gz"]


def test_uris_are_listed_like_paths(logs: Path) -> None:
    """A URI of a file system, with or without a glob, gives URIs."""
    assert list_files([f"file://{logs}"])[0] == f"file://{logs}/a.log"
    assert list_files([f"file://{logs}/*/*.gz"]) == [f"file://{logs}/deep/c.log.gz"]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("nowhere", "does not exist; expected a file, a directory or a glob"),
        ("*.txt", "holds no file; expected log files"),
        ("empty", "holds no file; expected log files"),
    ],
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


def test_lines_are_unpacked_and_numbered(tmp_path: Path) -> None:
    """Compressed text, line ends of both kinds and a byte order mark are undone; odd bytes stay a line."""
    path = tmp_path / "x.log.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfone\rmore\r\ntwo \xff\n\nfour"))
    assert list(open_lines(str(path))) == [(1, "one\rmore"), (2, "two \ufffd"), (3, ""), (4, "four")]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\ufeff"))))
def test_only_newlines_part_lines(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    """Separators of other alphabets, form feeds and the like stay inside their line."""
    path = tmp_path_factory.mktemp("lines") / "x.log"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    assert [line for _, line in open_lines(str(path))] == lines
