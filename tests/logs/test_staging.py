"""Where output is written before it is complete."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from pyarrow import fs as arrow_fs

from lookup.errors import InputError
from lookup.logs.staging import as_given, made_for, output_place, require_free, staging_place

_DISK = arrow_fs.LocalFileSystem()


def test_an_output_that_is_not_there_is_written_beside_its_place(tmp_path: Path) -> None:
    """Nobody sees a folder of that name before it is complete."""
    place = Path(staging_place(_DISK, str(tmp_path / "o")))

    assert place.parent == tmp_path
    assert place.name.startswith(".o.")


def test_an_output_that_is_there_is_written_in_itself(tmp_path: Path) -> None:
    """What is beside a mounted volume is another disk."""
    (tmp_path / "o").mkdir()

    assert Path(staging_place(_DISK, str(tmp_path / "o"))).parent == tmp_path / "o"


@pytest.mark.parametrize(
    ("output", "located", "path", "named"),
    [
        ("s3://bucket/a/o", "bucket/a/o", "bucket/a/.o.1", "s3://bucket/a/.o.1"),
        ("s3://bucket/a/o/", "bucket/a/o", "bucket/a/o/.o.1", "s3://bucket/a/o/.o.1"),
        ("s3://bucket", "bucket", "bucket/.bucket.1", "s3://bucket/.bucket.1"),
        ("o", "/home/me/o", "/home/me/.o.1", "/home/me/.o.1"),
    ],
)
def test_places_are_named_as_the_output_was(output: str, located: str, path: str, named: str) -> None:
    """Workers find a place by the scheme of the output's URI."""
    assert as_given(output, located, path) == named


@pytest.mark.parametrize("maker", ["arrow", "pathlib"])
def test_what_the_system_refuses_is_told_with_the_output(tmp_path: Path, maker: str) -> None:
    """Users know the output they named, and no hidden folder."""
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "o"

    with pytest.raises(InputError) as caught, made_for(str(output)):
        _DISK.create_dir(str(output)) if maker == "arrow" else output.mkdir()

    assert str(caught.value) == f"--output: {output} cannot be written: Not a directory; name a folder that can"


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

    assert str(caught.value) == f"--output: {output} {says}; name a folder that does not exist or is empty"
    assert sorted(oddities.iterdir()) == before


@pytest.mark.parametrize("output", ["/proc/o", "{folder}/" + "n" * 300, "{folder}/" + "n" * 250])
def test_a_folder_that_the_system_refuses_is_found_by_a_trial(tmp_path: Path, output: str) -> None:
    """Rights and limits differ from system to system, so a hidden folder is made and removed."""
    output = output.format(folder=tmp_path)

    with pytest.raises(InputError) as caught:
        require_free(output, force=False)

    assert str(caught.value).startswith(f"--output: {output} cannot be written: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("output", ["o", "o/", "deep/deeper/o"])
def test_a_free_place_stays_as_it_is(tmp_path: Path, output: str) -> None:
    """A trial leaves nothing behind, neither the output nor a folder above it."""
    require_free(f"{tmp_path}/{output}", force=False)

    assert list(tmp_path.iterdir()) == []


def test_the_root_is_no_working_folder() -> None:
    """A slash alone is the root, with or without more slashes behind it."""
    assert [output_place(output)[1] for output in ("/", "//", "/o/")] == ["/", "/", "/o"]
