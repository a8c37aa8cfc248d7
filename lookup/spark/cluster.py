"""Send the code to the workers of Spark, and refuse workers that do not reach the log or the output.

Workers are those of a cluster, or of a session on this machine whose Python is not this one. Only wheels have to be
installed there. The code of the tasks is sent in one archive, which holds this package and every installed distribution
with plug-ins, each with the metadata by which plug-ins are found. Distributions with compiled modules are not sent,
since Python cannot load these from an archive. Plug-in files travel with the policies. Tasks themselves compare the
versions of installed distributions (`lookup.logs.jobs`).
"""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import os
import shutil
import socket
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import Distribution, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard
from uuid import uuid4

from lookup.errors import InputError, SettingsError
from lookup.hooks.protocols import ENTRY_POINT_GROUP
from lookup.logs.jobs import InProcess, Workers, is_remote, parallelism, run_tasks
from lookup.logs.outputs import create_file
from lookup.logs.sources import list_files, locate
from lookup.replay.work import WorkDir
from lookup.spark.choosing import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_reach", "is_elsewhere", "is_foreign", "ship_code"]


def ship_code(workers: Workers) -> None:
    """Put the code on the path of all Python workers, once for each session, unless they have it already."""
    if not is_foreign(workers):
        return
    before = list(sys.path)
    try:
        # The same file again is no news to Spark.
        workers.addArtifacts(_write_archive(), pyfile=True)
    finally:
        # Spark puts it before everything else here as well, where the code is installed.
        sys.path[:] = before


@cache
def _write_archive() -> str:
    folder = tempfile.mkdtemp(prefix="lookup-code-")
    # Workers that come late are sent it, too.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "pulsar-lookup.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _iter_contents():
            archive.writestr(name, content)
    return str(path)


def check_reach(workers: Workers, paths: Sequence[str], folder: str) -> None:
    """Check that workers can read tables or logs, and see a file of this process in a folder.

    Args:
        workers: nothing is done unless they have a Python of their own.
        paths: inputs of the tasks.
        folder: output of the tasks. Files written there for the check are removed.

    Raises:
        SettingsError: with a worker and the path that it does not reach.
    """
    if not is_foreign(workers):
        return
    work = WorkDir(f"{folder}/.check")
    mark = f"{work.root}/{uuid4().hex}"
    try:
        with create_file(mark) as sink:
            sink.write(b"here")
        sizes_of = {path: _measure_sizes(path) for path in paths}
        run_tasks(workers, range(parallelism(workers)), (sizes_of, mark), lambda _, shared: _check_reach_here(*shared))
    finally:
        work.remove()


def _check_reach_here(sizes_of: Mapping[str, Mapping[str, int]], mark: str) -> None:
    worker = f"worker {socket.gethostname()} ({Path.cwd()})"
    for path, sizes in sizes_of.items():
        if (why := _explain_unreadable(path, sizes)) is not None:
            raise SettingsError(f"{worker} cannot read {path}: {why}")
    system, inner = locate(mark)
    if not system.get_file_info(inner).is_file:
        raise SettingsError(f"{worker} does not see the folder of the output; name an output that all workers reach")


def is_foreign(workers: Workers) -> TypeGuard[SparkSession]:
    """Check whether tasks run in another Python than this one, on a cluster, or in a local session that names one."""
    if isinstance(workers, InProcess):
        return False
    # A session that another program has started may use the path's `python3`.
    return is_elsewhere(workers) or shutil.which(os.environ.get("PYSPARK_PYTHON", "python3")) != sys.executable


def is_elsewhere(workers: Workers) -> bool:
    """Check whether tasks run in a cluster, whose workers do not see the files of this machine."""
    return is_remote(workers) or not (isinstance(workers, InProcess) or is_local(workers.conf.get("spark.master")))


def _measure_sizes(path: str) -> dict[str, int]:
    return {file: locate(file)[0].get_file_info(locate(file)[1]).size for file in list_files([path])}


def _explain_unreadable(path: str, sizes: Mapping[str, int]) -> str | None:
    """Explain why a table cannot be read here as it was elsewhere, None if it can."""
    try:
        here = _measure_sizes(path)
        if here != sizes:
            missing = [file for file in sizes if here.get(file) != sizes[file]]
            difference = f"{missing[0]} is missing or of another size" if missing else "there are more files"
            return f"{difference} than where the run was started"
        system, inner = locate(next(iter(sizes)))
        with system.open_input_file(inner) as stream:
            stream.read(1)
    except (OSError, InputError) as error:
        return str(error)
    return None


def _list_distributions() -> list[tuple[Distribution, list[str]]]:
    modules: dict[str, set[str]] = {}
    by_name: dict[str, Distribution] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.dist is not None:
            by_name[point.dist.name] = point.dist
            modules.setdefault(point.dist.name, set()).add(point.module.partition(".")[0])
    # The module of an entry point may import other modules of its distribution.
    for module, names in importlib.metadata.packages_distributions().items():
        for name in modules.keys() & set(names):
            modules[name].add(module)
    return [(by_name[name], sorted(modules[name])) for name in sorted(by_name)]


def _iter_contents() -> Iterator[tuple[str, bytes]]:
    for distribution, modules in _list_distributions():
        # Python loads no compiled module from an archive.
        compiled = tuple(EXTENSION_SUFFIXES)
        if any(file.name.endswith(compiled) for module in modules for _, file in _list_files(module)):
            continue
        folder = f"{distribution.name.replace('-', '_')}-{distribution.version}.dist-info"
        metadata = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        yield f"{folder}/METADATA", metadata.encode()
        yield f"{folder}/entry_points.txt", (distribution.read_text("entry_points.txt") or "").encode()
        for module in modules:
            for name, file in _list_files(module):
                yield name, file.read_bytes()


def _list_files(module: str) -> Iterator[tuple[str, Path]]:
    spec = importlib.util.find_spec(module)
    if spec is None:
        return
    if spec.submodule_search_locations is None:
        if spec.origin is not None:
            yield Path(spec.origin).name, Path(spec.origin)
        return
    for location in map(Path, spec.submodule_search_locations):
        for file in sorted(location.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield f"{module}/{file.relative_to(location).as_posix()}", file
