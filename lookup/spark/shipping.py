"""Send the code that tasks need to the workers of a Spark cluster: nothing but wheels has to be installed there.

One archive holds this package and every installed distribution with plug-ins, and of each the metadata by which
plug-ins are found. Distributions with compiled modules stay behind, since Python loads none of these from an archive.
Plug-in files travel with the policies, see `tasks.py`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import sys
import tempfile
import weakref
import zipfile
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import Distribution, entry_points, packages_distributions
from pathlib import Path

from pyspark import SparkContext

from lookup.hooks.protocols import ENTRY_POINT_GROUP

__all__ = ["PROJECT_NAME", "ship_code", "unshipped"]

#: The name of our own distribution.
PROJECT_NAME = "pulsar-lookup"
#: Archives remember when a file was written; one date for all, so that equal code has equal bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


def ship_code(context: SparkContext) -> None:
    """Put the archive on the path of all Python workers of a context; of equal code only once."""
    contents = dict(_contents())
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    # Spark refuses a second file of a name.
    name = f"{PROJECT_NAME}-{digest.hexdigest()[:16]}.zip"
    if any(file.endswith(name) for file in context.listFiles):
        return
    folder = tempfile.mkdtemp(prefix="lookup-code-")
    # Workers that come late are sent it, too, so it stays as long as the context.
    weakref.finalize(context, shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / name
    with zipfile.ZipFile(path, "w") as archive:
        for inner, content in contents.items():
            archive.writestr(zipfile.ZipInfo(inner, _DATE), content, zipfile.ZIP_DEFLATED)
    before = list(sys.path)
    try:
        context.addPyFile(str(path))
    finally:
        # Spark puts it before everything else here as well, where the code is installed.
        sys.path[:] = before


def unshipped() -> dict[str, str]:
    """Return the versions of plug-in distributions that cannot be sent, by name."""
    return {
        distribution.name: distribution.version
        for distribution, modules in _distributions()
        if any(_is_compiled(file) for module in modules for _, file in _files(module))
    }


def _distributions() -> list[tuple[Distribution, list[str]]]:
    """Return the distributions with plug-ins, our own among them, and the top-level modules of each."""
    modules: dict[str, set[str]] = {}
    found: dict[str, Distribution] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.dist is not None:
            found[point.dist.name] = point.dist
            modules.setdefault(point.dist.name, set()).add(point.module.partition(".")[0])
    # What an entry point names may import other modules of its distribution.
    for module, names in packages_distributions().items():
        for name in modules.keys() & set(names):
            modules[name].add(module)
    return [(found[name], sorted(modules[name])) for name in sorted(found)]


def _contents() -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file of the archive."""
    left_out = unshipped()
    for distribution, modules in _distributions():
        if distribution.name in left_out:
            continue
        folder = f"{distribution.name.replace('-', '_')}-{distribution.version}.dist-info"
        metadata = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        yield f"{folder}/METADATA", metadata.encode()
        yield f"{folder}/entry_points.txt", (distribution.read_text("entry_points.txt") or "").encode()
        for module in modules:
            for name, file in _files(module):
                yield name, file.read_bytes()


def _files(module: str) -> Iterator[tuple[str, Path]]:
    """Yield the files of a top-level module, without bytecode, and the name of each in the archive."""
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


def _is_compiled(file: Path) -> bool:
    return file.name.endswith(tuple(EXTENSION_SUFFIXES))
