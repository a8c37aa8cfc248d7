"""Where output may be written, and where it is before it is complete: a hidden folder that is moved in one step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from pyarrow import fs as arrow_fs

from lookup.errors import InputError
from lookup.logs.sources import locate
from lookup.model.paths import special_kind

__all__ = ["as_given", "made_for", "output_place", "require_free", "staging_place"]

#: What Arrow puts before the system's own words: "Cannot create directory 'x'. Detail: [errno 30] Read-only ...".
_BEFORE = re.compile(r".*\. Detail: (?:\[errno \d+\] )?", re.DOTALL)


#: What would be right in place of an output that can be no folder.
_RIGHT = "name a folder that does not exist or is empty"


def output_place(output: str) -> tuple[arrow_fs.FileSystem, str]:
    """Return the file system of an output and the path in it, without a slash at its end.

    Raises:
        InputError: if the scheme of a URI is none that Arrow knows.
    """
    system, path = locate(output)
    return system, path.rstrip("/") or "/"


def require_free(output: str, *, force: bool) -> None:
    """Refuse an output that cannot become a folder, cannot be written, or is not empty without `force`.

    On a local disk a hidden folder is made and removed: no other test knows every limit and every right.

    Raises:
        InputError: in one sentence.
    """
    system, target = output_place(output)
    is_local = isinstance(system, arrow_fs.LocalFileSystem)
    folder = _nearest_folder(output, target) if is_local else target
    info = system.get_file_info(target)
    if info.is_file:
        raise InputError(f"--output: {output} is a file; {_RIGHT}")
    if info.type is arrow_fs.FileType.Directory and not force and system.get_file_info(arrow_fs.FileSelector(target)):
        raise InputError(
            f"--output: {output} is not empty; name another folder, or replace earlier results with --force"
        )
    if is_local:
        with made_for(output):
            trial = Path(folder) / staging_place(system, target).rpartition("/")[2]
            trial.mkdir()
            trial.rmdir()


def _nearest_folder(output: str, target: str) -> str:
    """Return the output or the folder above it that exists, and refuse everything but a folder there."""
    path = Path(target)
    with made_for(output):
        while not path.exists() and not path.is_symlink():
            path = path.parent
        if not path.exists():
            kind = f"a link to {path.readlink()}, which does not exist"
        else:
            kind = "" if path.is_dir() else special_kind(str(path)) or "a file"
    if kind:
        lies = "" if str(path) == target else f"lies under {path}, which "
        raise InputError(f"--output: {output} {lies}is {kind}; {_RIGHT}")
    return str(path)


@contextmanager
def made_for(output: str) -> Iterator[None]:
    """Tell of what the system refuses while a hidden folder is made which output it was for; users know no other.

    Raises:
        InputError: naming the output and what was refused.
    """
    try:
        yield
    except OSError as error:
        said = _BEFORE.sub("", str(error.strerror or error))
        raise InputError(f"--output: {output} cannot be written: {said}; name a folder that can") from error


def staging_place(system: arrow_fs.FileSystem, output: str) -> str:
    """Return the path of a hidden folder: in an output that exists, else beside it.

    An output that exists may be a volume mounted there: what lies beside it is then another disk, from which nothing
    can be moved, and often nobody may write there.
    """
    parent, _, name = output.rpartition("/")
    is_there = system.get_file_info(output).type is arrow_fs.FileType.Directory
    return f"{output if is_there else parent}/.{name}.{uuid4().hex[:8]}"


def as_given(output: str, located: str, path: str) -> str:
    """Return a path in or beside an output in the manner in which the output was given, as URI or path.

    Args:
        located: the output's path in its file system.
        path: what to name, in the same file system.
    """
    if "://" not in output:
        return path
    given = output.rstrip("/")
    if path.startswith(f"{located}/"):
        return given + path.removeprefix(located)
    return given.rpartition("/")[0] + path.removeprefix(located.rpartition("/")[0])
