"""Output that appears whole or not at all: it is written into a hidden folder and moved to its place at the end.

Works on every file system Arrow knows; on a local one each move is a single step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from pyarrow import fs as arrow_fs

from lookup.logs.sources import locate
from lookup.logs.staging import as_given, made_for, output_place, require_free, staging_place

__all__ = ["Draft", "draft", "write_beside"]


@dataclass(frozen=True)
class Draft:
    """A folder that becomes the output."""

    #: path or URI, in the manner of the output's
    path: str

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the folder."""
        system, folder = locate(self.path)
        with system.open_output_stream(f"{folder}/{name}") as sink:
            sink.write(content)


@contextmanager
def draft(output: str, names: Sequence[str], *, force: bool) -> Iterator[Draft]:
    """Hand out a hidden folder; when the body ends well it takes the place of `output`, else it is removed.

    Args:
        names: everything a run may leave in the output; with `force` only these are replaced, other files stay.

    Raises:
        InputError: if the output can be no folder, or is not empty without `force`; nothing was touched then.
    """
    require_free(output, force=force)
    system, target = output_place(output)
    with made_for(output):
        folder = staging_place(system, target)
        system.create_dir(folder, recursive=True)
    try:
        yield Draft(as_given(output, target, folder))
        _publish(system, folder, target, names)
    finally:
        _remove(system, folder)


def write_beside(output: str, name: str, content: bytes) -> None:
    """Write one more file into an output that is complete; it appears whole."""
    system, folder = output_place(output)
    hidden = f"{folder}/.{name}.{uuid4().hex[:8]}"
    with system.open_output_stream(hidden) as sink:
        sink.write(content)
    system.move(hidden, f"{folder}/{name}")


def _publish(system: arrow_fs.FileSystem, folder: str, target: str, names: Sequence[str]) -> None:
    system.create_dir(target, recursive=True)
    for name in names:
        _remove(system, f"{target}/{name}")
    for info in system.get_file_info(arrow_fs.FileSelector(folder)):
        _move(system, info, f"{target}/{info.base_name}")


def _move(system: arrow_fs.FileSystem, info: arrow_fs.FileInfo, target: str) -> None:
    if info.is_file or isinstance(system, arrow_fs.LocalFileSystem):
        system.move(info.path, target)
        return
    # Object stores know no folders that could be moved.
    for inner in system.get_file_info(arrow_fs.FileSelector(info.path, recursive=True)):
        if inner.is_file:
            place = target + inner.path[len(info.path) :]
            system.create_dir(place.rpartition("/")[0], recursive=True)
            system.move(inner.path, place)


def _remove(system: arrow_fs.FileSystem, path: str) -> None:
    info = system.get_file_info(path)
    if info.type is arrow_fs.FileType.Directory:
        system.delete_dir(path)
    elif info.is_file:
        system.delete_file(path)
