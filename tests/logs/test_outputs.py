"""Output appears whole or not at all, and what can be no output is refused before anything is written."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest
from pyarrow import fs as arrow_fs

from lookup.errors import InputError
from lookup.logs import outputs, sources
from lookup.logs.outputs import draft, named_refusals, relation, require_free
from lookup.logs.sources import list_log

_DISK = arrow_fs.LocalFileSystem()
NAMES = ("report.md", "owners")


def _files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_nothing_is_there_before_the_end(tmp_path: Path) -> None:
    """While the body runs there is no output, afterwards all of it and nothing else."""
    output = tmp_path / "deep" / "o"

    with draft(str(output), NAMES, force=False) as target:
        target.write("report.md", b"new")
        assert not output.exists()

    assert _files(tmp_path) == {"deep/o/report.md": "new"}


def test_a_volume_is_written_in_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies beside a mounted output is another disk; there the manifest goes first and comes last."""
    output = tmp_path / "o"
    output.mkdir()
    monkeypatch.setattr("os.path.ismount", lambda path: str(path) == str(output))

    for content in (b"old", b"new"):
        with draft(str(output), NAMES, force=True) as target:
            assert [path.name for path in tmp_path.iterdir()] == ["o"]
            target.write("report.md", content)

    assert _files(tmp_path) == {"o/report.md": "new"}


def test_what_else_lies_in_an_output_stays(tmp_path: Path) -> None:
    """Files and folders of the user's, links too; what a run may leave and this one did not is gone."""
    output = tmp_path / "o"
    (output / "mine" / "deep").mkdir(parents=True)
    (output / "mine" / "deep" / "notes.txt").write_text("mine")
    (output / "link").symlink_to("mine/deep/notes.txt")
    (output / NAMES[-1]).write_text("old")

    with draft(str(output), NAMES, force=True) as target:
        target.write("report.md", b"new")

    assert _files(tmp_path) == {"o/mine/deep/notes.txt": "mine", "o/link": "mine", "o/report.md": "new"}
    assert (output / "link").is_symlink()


def test_the_later_of_two_writers_goes_on(tmp_path: Path) -> None:
    """The earlier one fails at its end, in one sentence; what a killed one has left is removed as well."""
    left = tmp_path / ".o.01234567"
    left.mkdir()
    (left / "half").write_text("half")

    def write_first() -> None:
        with draft(str(tmp_path / "o"), NAMES, force=True) as first:
            assert not left.exists()
            with draft(str(tmp_path / "o"), NAMES, force=True) as second:
                second.write("report.md", b"second")
            first.write("report.md", b"first")

    with pytest.raises(InputError, match=r"a later run writes .*/o, "):
        write_first()

    assert _files(tmp_path) == {"o/report.md": "second"}


def test_the_next_run_says_that_a_kill_came_between_two_renames(tmp_path: Path) -> None:
    """Both results are whole; the earlier ones are in their place then, and nothing is written."""
    for name, content in ((".o.old", "old"), (".o.01234567", "new")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.md").write_text(content)

    with pytest.raises(InputError, match="a run was killed"), draft(str(tmp_path / "o"), NAMES, force=True):
        pytest.fail("it goes on")

    assert _files(tmp_path) == {"o/report.md": "old", ".o.01234567/report.md": "new"}


def test_the_next_run_removes_what_a_kill_has_left_of_the_earlier_output(tmp_path: Path) -> None:
    """Once the new one is in its place; files of others are not lost."""
    output, old = tmp_path / "o", tmp_path / ".o.old"
    for folder, content in ((old, "old"), (output, "new")):
        folder.mkdir()
        (folder / "report.md").write_text(content)
    (old / "mine.txt").write_text("mine")

    with draft(str(output), NAMES, force=True) as target:
        target.write("owners", b"newest")

    assert _files(tmp_path) == {"o/owners": "newest", "o/mine.txt": "mine"}


def _fail_half_way(output: Path, error: type[BaseException]) -> None:
    with draft(str(output), NAMES, force=True) as target:
        target.write("report.md", b"half")
        raise error


@pytest.mark.parametrize("place", [1, 2, 3])
def test_an_interruption_ends_with_the_whole_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """Ctrl-C while folders change places leaves the new output, and says where it is."""
    output, count = tmp_path / "o", 0
    output.mkdir()
    (output / "report.md").write_text("old")
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count == place:
            raise KeyboardInterrupt
        return rename(self, target)

    def write() -> None:
        with draft(str(output), NAMES, force=True) as target:
            target.write("report.md", b"new")
            monkeypatch.setattr(Path, "rename", interrupted)

    (output / "mine.txt").write_text("mine")
    with pytest.raises(KeyboardInterrupt, match=re.escape(str(output))):
        write()

    assert _files(tmp_path) == {"o/report.md": "new", "o/mine.txt": "mine"}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failure_removes_the_draft(tmp_path: Path, error: type[BaseException]) -> None:
    """After any failure of the body the draft is gone and the output as it was."""
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "report.md").write_text("old")

    with pytest.raises(error):
        _fail_half_way(tmp_path / "o", error)

    assert _files(tmp_path) == {"o/report.md": "old"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make `store://` a file system that says of itself that it has no folders; return the folder behind it.

    What a real store does, `tests/replay/test_object_store.py` shows.
    """
    system = arrow_fs.SubTreeFileSystem(str(tmp_path), arrow_fs.LocalFileSystem())
    for module in (outputs, sources):
        monkeypatch.setattr(module, "locate", lambda path: (system, path.removeprefix("store://")))
    (tmp_path / "bucket" / "o" / "owners").mkdir(parents=True)
    return tmp_path / "bucket" / "o"


def test_output_in_a_store_is_written_in_place(store: Path) -> None:
    """It says of itself that it is unfinished until it is complete."""
    (store / "owners").rmdir()
    with draft("store://bucket/o/", NAMES, force=False) as target:
        assert target.path == "store://bucket/o"
        target.write("report.md", b"new")
        assert (store / "_unfinished").exists()

    assert _files(store) == {"report.md": "new"}


def test_output_in_a_store_that_fails_is_removed(store: Path) -> None:
    """With hidden folders of the work; what others have put there stays, and earlier results are gone."""
    (store / "mine.txt").write_text("mine")
    (store / "manifest.json").write_text("old")
    (store / "report.md").write_text("old")

    def fail() -> None:
        with draft("store://bucket/o", NAMES, force=True) as target:
            assert not (store / "manifest.json").exists()
            (store / ".work").mkdir()
            (store / ".work" / "codes").write_text("1")
            target.write("report.md", b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert _files(store) == {"mine.txt": "mine"}


def test_table_in_a_store_that_is_unfinished_is_refused(store: Path) -> None:
    """By a listing of it or of a folder in it; not what lies beside."""
    (store / "_unfinished").touch()

    for table in ("store://bucket/o/owners", "store://bucket/o"):
        with pytest.raises(InputError, match="is being written, since"):
            list_log(table, "ownership")
    with pytest.raises(InputError, match="holds no Parquet file"):
        list_log("store://bucket", "ownership")


@pytest.mark.parametrize(("output", "exists", "named"), [("o", False, ".o."), ("o/", True, ".o.")])
def test_drafts_are_named_as_the_output_was(tmp_path: Path, output: str, exists: bool, named: str) -> None:
    """Workers find a draft by the scheme of the output's URI."""
    if exists:
        (tmp_path / "o").mkdir()

    with draft(f"file://{tmp_path}/{output}", NAMES, force=False) as target:
        assert re.fullmatch(re.escape(f"file://{tmp_path}/{named}") + "[0-9a-f]{8}", target.path)
        assert Path(target.path.removeprefix("file://")).is_dir()


def test_a_draft_of_a_relative_path_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers have another working folder; nobody sees a folder of the output's name before it is complete."""
    monkeypatch.chdir(tmp_path)

    with draft("o", NAMES, force=False) as target:
        assert Path(target.path).parent == tmp_path
        assert Path(target.path).name.startswith(".o.")


def test_the_root_is_no_working_folder() -> None:
    """A slash alone is the root, with or without more slashes behind it."""
    for output in ("/", "//"):
        with pytest.raises(InputError, match=f"^output: {output} is not empty; "):
            require_free(output, force=False)


@pytest.mark.parametrize("maker", ["arrow", "pathlib"])
def test_what_the_system_refuses_is_told_with_the_output(tmp_path: Path, maker: str) -> None:
    """Users know the output they named, and no hidden folder."""
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "o"

    with pytest.raises(InputError) as caught, named_refusals(str(output)):
        _DISK.create_dir(str(output)) if maker == "arrow" else output.mkdir()

    assert str(caught.value).startswith(f"output: {output} cannot be written: ")


@pytest.fixture
def oddities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a file, a pipe, a socket and a link to nothing, and work in it."""
    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    return tmp_path


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("/dev/null", "is a device"),
        ("/dev/null/o", "lies under /dev/null, which is a device"),
        ("/dev/stdout", "is a stream of this process"),
        ("{folder}/file", "is a file"),
        ("{folder}/file/", "is a file"),
        ("{folder}/file/deep/o", "lies under {folder}/file, which is a file"),
        ("{folder}/pipe", "is a pipe"),
        ("{folder}/socket", "is a socket"),
        ("{folder}/link", "is a link to nothing, which does not exist"),
        ("{folder}/link/o", "lies under {folder}/link, which is a link to nothing, which does not exist"),
    ],
)
def test_what_cannot_become_a_folder_is_refused(oddities: Path, output: str, says: str, force: bool) -> None:
    """A device, a pipe, a socket, a file or a link to nothing, at the place or above it, is no output."""
    output, says = output.format(folder=oddities), says.format(folder=oddities)
    before = sorted(oddities.iterdir())

    with pytest.raises(InputError) as caught:
        require_free(output, force=force)

    assert str(caught.value).startswith(f"output: {output} {says}; ")
    assert sorted(oddities.iterdir()) == before


@pytest.mark.parametrize("output", ["/proc/o", "{folder}/" + "n" * 300, "{folder}/" + "n" * 250])
def test_a_folder_that_the_system_refuses_is_found_by_a_trial(tmp_path: Path, output: str) -> None:
    """Rights and limits differ from system to system, so a hidden folder is made and removed."""
    output = output.format(folder=tmp_path)

    with pytest.raises(InputError) as caught:
        require_free(output, force=False)

    assert str(caught.value).startswith(f"output: {output} cannot be written: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("output", ["o", "o/", "deep/deeper/o"])
def test_a_free_place_stays_as_it_is(tmp_path: Path, output: str) -> None:
    """A trial leaves nothing behind, neither the output nor a folder above it."""
    require_free(f"{tmp_path}/{output}", force=False)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a", "a", "is"),
        ("a/", "a", "is"),
        ("a/../a", "a", "is"),
        ("a/b", "a", "lies in"),
        ("a", "a/b/c", "holds"),
        ("a", "ab", None),
        ("ab/c", "a", None),
        ("/", "/a", "holds"),
        ("file:///x/y", "/x", "lies in"),
    ],
)
def test_a_place_is_compared_by_its_steps(one: str, other: str, expected: str | None) -> None:
    """A name that only begins alike is another place; a URI of this machine is a path."""
    assert relation(one, other) == expected


def test_links_are_followed(tmp_path: Path) -> None:
    """Links are compared by their targets, not by their names."""
    (tmp_path / "log").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "log")

    assert relation(str(tmp_path / "alias" / "x"), str(tmp_path / "log")) == "lies in"


def test_other_file_systems_are_other_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same path in a bucket and on this machine are two."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    # Other tests fork.
    monkeypatch.setattr(sources, "_CONNECTED", set())

    assert relation("s3://bucket/a", "/bucket/a") is None
    assert relation("s3://bucket/a/b", "s3://bucket/a/") == "lies in"
    assert not sources.forks_are_safe()
