"""Write output that appears whole or not at all, into a hidden folder, which then replaces the output.

This works on every file system that Arrow supports. On a local one the earlier output is moved away before the new one
gets its name, and is removed last. A kill in between leaves both, whole, and the next run reports it. An object store
does not have folders, so a move would copy all objects. Output goes directly to its place there, with an object that
marks it as unfinished. All files but single reports are written here, so all commands refuse an output alike.

    .NAME.xxxxxxxx    being written, or whole and about to become NAME. The next run on this output removes it
    .NAME.old         the earlier output, to be removed once NAME is the new one
"""

from __future__ import annotations

import errno
import glob
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from pyarrow import fs as arrow_fs

from lookup.errors import Argument, InputError
from lookup.logs.sources import UNFINISHED, has_folders, locate
from lookup.model.documents import special_kind

__all__ = [
    "Draft", "Relation", "create_file", "draft", "keep_on_disk", "keeps", "named_refusals", "relation", "remove_folder",
    "require_free", "write_beside",
]  # fmt: skip

Relation = Literal["is", "lies in", "holds"]

#: Arrow's words before the system's own: "Cannot create directory 'x'. Detail: [errno 30] Read-only ...".
_ARROW_PREFIX = re.compile(r".*\. Detail: (?:\[errno \d+\] )?", re.DOTALL)
#: Folders in folders of an output, at most.
_DEEPEST = 6
#: File of a hidden folder until it is finished. A later run removes it with the folder.
_MARK = ".writing"
#: Advice at the end of a refusal.
_RIGHT = "name a folder that does not exist or is empty"


@dataclass(frozen=True)
class Draft:
    """A folder that becomes the output. It is a hidden folder, or in an object store the output itself."""

    #: path or URI, in the manner of the output's
    path: str
    #: that of the output
    output: str

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the folder."""
        with create_file(f"{self.path}/{name}") as sink:
            sink.write(content)


@contextmanager
def draft(output: str, names: Sequence[str], *, force: bool) -> Iterator[Draft]:
    """Yield a hidden folder, which replaces `output` if the body succeeds, and is removed otherwise.

    Of two runs that write one output at the same time the later one continues, and the earlier one fails at its end.

    In an object store earlier results are removed at once, and files that the body writes are removed if it fails.

    Args:
        output: path or URI.
        names: all files that a run may leave in the output. With `force` only these are replaced, other files stay.

    Raises:
        InputError: if it cannot be a folder or, without `force`, is not empty (unchanged), or a later run writes it.
    """
    system, target = _locate_output(output)
    is_local = isinstance(system, arrow_fs.LocalFileSystem)
    path, old = Path(target), Path(target).parent / f".{Path(target).name}.old"
    if is_local and path.name and old.exists():
        _finish_killed(output, path, old, names)
    require_free(output, force=force)
    if not has_folders(system):
        with _unfinished_marker(system, output, names):
            yield Draft(output.rstrip("/"), output)
        return
    with named_refusals(output):
        folder, draft_path = _make_hidden_folder(output, system, target)
    # Under a volume that is mounted there, or a link, no folder can change places.
    is_beside = is_local and Path(folder).parent != path and not path.is_symlink()
    try:
        yield Draft(draft_path, output)
        if is_local:
            _require_ours(Path(folder), output)
        if not is_beside:
            with named_refusals(output):
                _move_into(system, folder, target, names)
    except BaseException:
        _remove(system, folder)
        raise
    if not is_beside:
        _remove(system, folder)
        return
    with keeps(output), named_refusals(output):
        try:
            _replace(path, Path(folder), old, names)
        except KeyboardInterrupt:
            _replace(path, Path(folder), old, names)
            raise


def _finish_killed(output: str, path: Path, old: Path, names: Sequence[str]) -> None:
    """Remove the earlier output that a killed run has left, or put it back if there is no other."""
    with named_refusals(output):
        if path.exists():
            _remove_earlier(old, path, names)
            return
        old.rename(path)
    problem = f": a run was killed while it replaced {output}; the earlier results are back, so begin again"
    raise InputError(Argument("output"), problem)


def _require_ours(folder: Path, output: str) -> None:
    try:
        Path(folder, _MARK).unlink()
    except FileNotFoundError:
        problem = f": a later run writes {output}, and has taken the place of this one; name another folder"
        raise InputError(Argument("output"), problem) from None


def _replace(path: Path, new: Path, old: Path, names: Sequence[str]) -> None:
    if new.exists():
        if path.exists():
            path.rename(old)
        new.rename(path)
    if old.exists():
        _remove_earlier(old, path, names)


def _remove_earlier(old: Path, path: Path, names: Sequence[str]) -> None:
    """Remove the earlier output. Files whose names no run uses are moved into the new one."""
    for other in old.iterdir():
        if other.name not in names and not (path / other.name).exists():
            other.rename(path / other.name)
    shutil.rmtree(old)


def _move_into(system: arrow_fs.FileSystem, folder: str, target: str, names: Sequence[str]) -> None:
    """Move the content of a folder into an output one by one, after removing the mark of a complete run."""
    system.create_dir(target, recursive=True)
    # A table that this run did not make is removed as well, since it would otherwise be read as part of this run.
    for name in dict.fromkeys(("manifest.json", *names)):
        _remove(system, f"{target}/{name}")
    moved = sorted(
        system.get_file_info(arrow_fs.FileSelector(folder)), key=lambda info: info.base_name == "manifest.json"
    )
    for info in moved:
        system.move(info.path, f"{target}/{info.base_name}")


@contextmanager
def keeps(output: str) -> Iterator[None]:
    """Have an interruption of the body carry the name of an output that is complete by then."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"results are in {output}") from None


@contextmanager
def _unfinished_marker(system: arrow_fs.FileSystem, output: str, names: Sequence[str]) -> Iterator[None]:
    """Keep an object in an output that marks it as unfinished, and remove the body's files if it fails."""
    target = _locate_output(output)[1]
    # The manifest marks a complete run, so it is removed first.
    replaced = dict.fromkeys(("manifest.json", *names))
    with named_refusals(output):
        _write_file(system, f"{target}/{UNFINISHED}", b"being written, or left by a process that was killed\n")
        for name in replaced:
            _remove(system, f"{target}/{name}")
    try:
        yield
    except BaseException:
        listed = system.get_file_info(arrow_fs.FileSelector(target))
        for info in listed:
            if info.base_name in replaced or info.base_name.startswith("."):
                _remove(system, info.path)
        raise
    finally:
        _remove(system, f"{target}/{UNFINISHED}")


def require_free(output: str, *, force: bool) -> None:
    """Refuse an output that cannot become a folder, cannot be written, or is not empty without `force`.

    On a local disk a hidden folder is made and removed, since no other test covers every limit and every right.

    Raises:
        InputError: in one sentence.
    """
    system, target = _locate_output(output)
    is_local = isinstance(system, arrow_fs.LocalFileSystem)
    folder = _find_nearest_folder(output, target) if is_local else target
    with named_refusals(output):
        info = system.get_file_info(target)
        is_folder = info.type is arrow_fs.FileType.Directory
        is_filled = is_folder and bool(system.get_file_info(arrow_fs.FileSelector(target)))
    if info.is_file:
        raise InputError(Argument("output"), f": {output} is a file; {_RIGHT}")
    if is_filled and not force:
        advice = "name another folder, or replace earlier results with "
        raise InputError(Argument("output"), f": {output} is not empty; {advice}", Argument("force", value=True))
    if is_local:
        with named_refusals(output):
            trial = Path(folder) / f".{Path(target).name}.{uuid4().hex[:8]}"
            trial.mkdir()
            trial.rmdir()


@contextmanager
def named_refusals(output: str, key: str | None = None) -> Iterator[None]:
    """Convert errors of the system to a sentence that names the output, since users do not know the hidden folder.

    Args:
        key: the setting that names it, None if it is an argument.
    """
    try:
        yield
    except OSError as error:
        reason = _ARROW_PREFIX.sub("", str(error.strerror or error))
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        advice = "make room there, or name another folder" if is_full else "name a folder that can"
        raise InputError(key or Argument("output"), f": {output} cannot be written: {reason}; {advice}") from error


def write_beside(output: str, name: str, content: bytes) -> None:
    """Write one more file into an output, which is made if it does not exist. The file appears whole."""
    system, folder = _locate_output(output)
    if not has_folders(system):
        _write_file(system, f"{folder}/{name}", content)
        return
    system.create_dir(folder, recursive=True)
    hidden = f"{folder}/.{name}.{uuid4().hex[:8]}"
    try:
        _write_file(system, hidden, content)
        if isinstance(system, arrow_fs.LocalFileSystem):
            keep_on_disk(Path(hidden))
        system.move(hidden, f"{folder}/{name}")
    except BaseException:
        _remove(system, hidden)
        raise


def keep_on_disk(path: Path) -> None:
    """Wait until the disk has a file. If it is moved afterwards, a power cut leaves it whole or absent."""
    with path.open("rb") as written:
        os.fsync(written.fileno())


@contextmanager
def create_file(path: str) -> Iterator[Any]:
    """Open a file for writing bytes, as Arrow's stream, and make the folders above it.

    Args:
        path: path or URI. A body that fails leaves part of the file, so it belongs into a draft.

    Raises:
        OSError: with the folder of the draft, if the file cannot be written, for example because the disk is full.
    """
    system, inner = locate(path)
    try:
        if has_folders(system):
            system.create_dir(inner.rpartition("/")[0], recursive=True)
        with system.open_output_stream(inner) as sink:
            yield sink
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        reason = _ARROW_PREFIX.sub("", str(error.strerror))
        # Up to the first hidden folder, which no user knows.
        parts = takewhile(lambda part: not part.startswith(".") or not part.strip("."), path.split("/"))
        raise OSError(error.errno, reason, "/".join(parts) or ".") from error


def _locate_output(output: str) -> tuple[arrow_fs.FileSystem, str]:
    system, path = locate(output)
    return system, path.rstrip("/") or "/"


def _find_nearest_folder(output: str, target: str) -> str:
    """Find the output or the nearest folder above it that exists, and refuse everything but a folder there."""
    path = Path(target)
    with named_refusals(output):
        # A link to nothing does not "exist", yet no folder can take its place.
        while not path.exists() and not path.is_symlink():
            path = path.parent
        if not path.exists():
            kind = f"a link to {path.readlink()}, which does not exist"
        else:
            kind = "" if path.is_dir() else special_kind(str(path)) or "a file"
    if kind:
        position = "" if str(path) == target else f"lies under {path}, which "
        raise InputError(Argument("output"), f": {output} {position}is {kind}; {_RIGHT}")
    return str(path)


def _make_hidden_folder(output: str, system: arrow_fs.FileSystem, target: str) -> tuple[str, str]:
    # An existing output may be a mounted volume, whose parent is on another disk (no moves) and often not writable.
    path = output.rstrip("/") if "://" in output else target
    parent, _, name = target.rpartition("/")
    hidden = f".{name}.{uuid4().hex[:8]}"
    exists = system.get_file_info(target).type is arrow_fs.FileType.Directory
    is_inside = exists and (os.path.ismount(target) or not os.access(parent or "/", os.W_OK))
    around, around_given = (target, path) if is_inside else (parent, path.rpartition("/")[0])
    is_local = isinstance(system, arrow_fs.LocalFileSystem)
    if is_local:
        for leftover in Path(around or "/").glob(f"{glob.escape(f'.{name}.')}{'[0-9a-f]' * 8}"):
            shutil.rmtree(leftover, ignore_errors=True)
    system.create_dir(f"{around}/{hidden}", recursive=True)
    if is_local:
        Path(f"{around}/{hidden}", _MARK).touch()
    return f"{around}/{hidden}", f"{around_given}/{hidden}"


def relation(path: str, other: str) -> Relation | None:
    """Compare the places of two paths or URIs, since a run must not replace its own input. Links are followed.

    Returns:
        "is" for the same place, "lies in" if `path` is below `other`, "holds" for the reverse, None if neither.

    Raises:
        InputError: if Arrow does not support the scheme of a URI.
    """
    (system, here), (other_system, there) = _resolve_place(path), _resolve_place(other)
    if not system.equals(other_system):
        return None
    if here == there:
        return "is"
    # The comparison adds a slash, because `ab` begins with `a` and is not in it. The root already ends with a slash.
    if here.startswith(there.rstrip("/") + "/"):
        return "lies in"
    return "holds" if there.startswith(here.rstrip("/") + "/") else None


def _resolve_place(path: str) -> tuple[arrow_fs.FileSystem, str]:
    system, inner = locate(path)
    # Only local paths have links and `..`. In a bucket both would be ordinary names.
    return system, os.path.realpath(inner) if isinstance(system, arrow_fs.LocalFileSystem) else inner.rstrip("/")


def _write_file(system: arrow_fs.FileSystem, path: str, content: bytes) -> None:
    with system.open_output_stream(path) as sink:
        sink.write(content)


def remove_folder(system: arrow_fs.FileSystem, path: str) -> None:
    """Remove a folder and everything in it, or raise OSError if that is refused."""
    # A store on top of a disk has folders as objects of their own, each of which is removed when it is empty. So each
    # pass removes one level of folders, while other stores remove all at once.
    for tries in range(_DEEPEST, -1, -1):
        try:
            system.delete_dir(path)
        except FileNotFoundError:
            # Folders that are only parts of names disappeared with the last of their objects.
            if has_folders(system):
                raise
            return
        except OSError:
            if has_folders(system) or not tries:
                raise
        else:
            return


def _remove(system: arrow_fs.FileSystem, path: str) -> None:
    info = system.get_file_info(path)
    if info.type is arrow_fs.FileType.Directory:
        remove_folder(system, path)
    elif info.is_file:
        system.delete_file(path)
