"""Drafts: output appears whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import fs as arrow_fs

from lookup.commands import drafts
from lookup.commands.drafts import draft, write_beside
from lookup.errors import InputError
from lookup.logs import staging

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


def test_an_output_that_is_there_is_written_in_itself(tmp_path: Path) -> None:
    """A folder that exists may be a mounted volume: nothing is written beside it, where another disk may be."""
    output = tmp_path / "o"
    output.mkdir()

    with draft(str(output), NAMES, force=False) as target:
        assert [path.name for path in tmp_path.iterdir()] == ["o"]
        target.write("report.md", b"new")

    assert _files(tmp_path) == {"o/report.md": "new"}


def _fail_half_way(output: Path, error: type[BaseException]) -> None:
    with draft(str(output), NAMES, force=True) as target:
        target.write("report.md", b"half")
        raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failure_removes_the_draft(tmp_path: Path, error: type[BaseException]) -> None:
    """Whatever ends the body, the draft is gone and the output as it was."""
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "report.md").write_text("old")

    with pytest.raises(error):
        _fail_half_way(tmp_path / "o", error)

    assert _files(tmp_path) == {"o/report.md": "old"}


def test_force_replaces_what_a_run_may_leave(tmp_path: Path) -> None:
    """Earlier results go even where the run leaves none of that name; files of others stay."""
    owners = tmp_path / "o" / "owners"
    owners.mkdir(parents=True)
    for path in (owners / "old.parquet", tmp_path / "o" / "report.md", tmp_path / "o" / "mine.txt"):
        path.write_text("old")

    with draft(str(tmp_path / "o"), NAMES, force=True) as target:
        target.write("report.md", b"new")

    assert _files(tmp_path) == {"o/mine.txt": "old", "o/report.md": "new"}


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    """An empty folder needs no force; a trailing slash makes no difference."""
    (tmp_path / "o").mkdir()

    with draft(f"{tmp_path}/o/", NAMES, force=False) as target:
        target.write("report.md", b"new")

    assert _files(tmp_path) == {"o/report.md": "new"}


@pytest.mark.parametrize("force", [True, False])
def test_a_file_is_refused(tmp_path: Path, force: bool) -> None:
    """A file in the place of the output is never replaced."""
    (tmp_path / "o").write_text("mine")

    with pytest.raises(InputError, match="is a file"), draft(str(tmp_path / "o"), NAMES, force=force):
        pass

    assert _files(tmp_path) == {"o": "mine"}


def test_other_file_systems_move_file_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where folders cannot be moved, their files are, with the same result."""
    system = arrow_fs.SubTreeFileSystem(str(tmp_path), arrow_fs.LocalFileSystem())
    for module in (drafts, staging):
        monkeypatch.setattr(module, "locate", lambda path: (system, path.removeprefix("store://")))
    (tmp_path / "bucket").mkdir()

    with draft("store://bucket/o", NAMES, force=False) as target:
        assert target.path.startswith("store://bucket/.o.")
        hidden = tmp_path / target.path.removeprefix("store://")
        (hidden / "owners" / "a").mkdir(parents=True)
        (hidden / "owners" / "a" / "1.parquet").write_text("rows")
        target.write("report.md", b"new")

    assert _files(tmp_path) == {"bucket/o/owners/a/1.parquet": "rows", "bucket/o/report.md": "new"}


def test_one_more_file(tmp_path: Path) -> None:
    """A file can be added to a finished output, replacing one of its name."""
    (tmp_path / "manifest.json").write_text("old")

    write_beside(str(tmp_path), "manifest.json", b"new")

    assert _files(tmp_path) == {"manifest.json": "new"}


def test_an_output_that_the_system_refuses_is_named(tmp_path: Path) -> None:
    """With the flag and what the system said, not with the hidden folder that nobody asked for."""
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "o"

    with pytest.raises(InputError) as caught, draft(str(output), NAMES, force=False):
        pass

    assert str(caught.value) == (
        f"--output: {output} lies under {tmp_path}/file, which is a file; name a folder that does not exist or is empty"
    )
