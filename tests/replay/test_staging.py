"""Where output is written before it is complete."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import fs as arrow_fs

from lookup.errors import InputError
from lookup.replay.staging import as_given, made_for, staging_place

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

    assert str(caught.value) == f"--output: {output} cannot be written: Not a directory"
