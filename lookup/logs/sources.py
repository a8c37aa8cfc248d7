"""Log files: finding them on any file system, and reading their lines, compressed or not."""

from __future__ import annotations

import fnmatch
import glob
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyarrow import ArrowInvalid
from pyarrow import fs as arrow_fs

from lookup.errors import InputError
from lookup.model.documents import special_kind

__all__ = ["list_files", "locate", "open_lines"]

_WILDCARDS = frozenset("*?[")


def locate(path: str) -> tuple[arrow_fs.FileSystem, str]:
    """Return the file system of a path or URI, and the path in it.

    Raises:
        InputError: where the URI's scheme is none that Arrow knows.
    """
    if "://" not in path:
        return arrow_fs.LocalFileSystem(), os.path.abspath(path)
    try:
        found, inner = arrow_fs.FileSystem.from_uri(path)
    except (ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: no such file system: {error}") from error
    return found, inner


def list_files(sources: Sequence[str]) -> list[str]:
    """Return the files behind paths, directories, globs and URIs, sorted, each once.

    Files and folders whose name begins with `.` or `_` are left out of directories, as Spark does.

    Raises:
        InputError: naming the source that is not there or holds no file.
    """
    if not sources:
        raise InputError("no source is given; name at least one log file or directory")
    if not all(sources):
        raise InputError("source '' is empty; name a log file or a directory, `.` for the working folder")
    return sorted({file for source in sources for file in _expanded(source)})


def open_lines(path: str, encoding: str = "utf-8-sig") -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a text file, without their ends; `.gz`, `.bz2` and `.zst` are unpacked.

    Bytes that are no text become U+FFFD: a record with them is still a record.
    """
    system, inner = locate(path)
    with system.open_input_stream(inner, compression="detect") as stream:
        text = io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="\n")
        for number, line in enumerate(text, start=1):
            yield number, line.rstrip("\r\n")


def _expanded(source: str) -> list[str]:
    if _WILDCARDS.intersection(source):
        files = _globbed(source)
    else:
        files = _listed(source)
    if not files:
        raise InputError(f"source {source!r} holds no file; expected log files")
    return files


def _listed(source: str) -> list[str]:
    system, inner = locate(source)
    kind = special_kind(inner) if isinstance(system, arrow_fs.LocalFileSystem) else None
    if kind is not None:
        raise InputError(f"source {source!r} is {kind}, which cannot be read twice; expected a file or a directory")
    info = system.get_file_info(inner)
    if info.type is arrow_fs.FileType.NotFound:
        raise InputError(f"source {source!r} does not exist; expected a file, a directory or a glob")
    if info.is_file:
        return [source]
    base = source.rstrip("/")
    return [f"{base}/{name}" for name in _names_below(system, inner)]


def _names_below(system: arrow_fs.FileSystem, folder: str) -> list[str]:
    found = system.get_file_info(arrow_fs.FileSelector(folder, recursive=True))
    names = [os.path.relpath(info.path, folder) for info in found if info.is_file]
    return [name for name in names if not any(part.startswith((".", "_")) for part in name.split("/"))]


def _globbed(source: str) -> list[str]:
    if "://" not in source:
        return [path for path in glob.glob(source, recursive=True) if Path(path).is_file()]
    fixed = source[: min(source.find(mark) for mark in _WILDCARDS if mark in source)].rpartition("/")[0]
    system, inner = locate(fixed)
    return [
        path
        for path in (f"{fixed}/{name}" for name in _names_below(system, inner))
        if fnmatch.fnmatchcase(path, source)
    ]
