"""Record how an output was made, for repeating it, in `manifest.json` with fingerprints of the inputs.

Figures that differ between two equal runs (wall clock, machine) are only in the manifest.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.engine.plugins import Registry
from lookup.logs.sources import list_files, locate

__all__ = ["SCHEMA", "RunFacts", "fingerprint", "manifest_json"]

#: Version of the structure.
SCHEMA = 1
#: Packages whose versions may change a figure.
_PACKAGES = ("pulsar-lookup", "pyspark", "pyarrow", "pandas", "numpy", "pydantic")
#: Bytes at the end of a file that its fingerprint reads: Parquet keeps statistics and row counts there.
_TAIL_BYTES = 64 * 1024
#: Files that are read at the same time, since most of the time is spent waiting for a store.
_THREADS = 8


@dataclass(frozen=True)
class RunFacts:
    """Facts a command knows about its run."""

    #: the words of the command line, `lookup` not among them
    command: Sequence[str]
    exit_code: int
    #: resolved settings, JSON-able
    settings: Mapping[str, Any]
    #: source of each value that is no default, by key path
    sources: Mapping[str, str] = field(default_factory=dict)
    seeds: Sequence[int] = ()
    #: fingerprint of each input, by its name in the settings
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: figures that differ from run to run, seconds and rates
    wall_clock: Mapping[str, float | str] = field(default_factory=dict)


def manifest_json(facts: RunFacts, registry: Registry | None = None) -> bytes:
    """Write the manifest of a run as JSON text in UTF-8.

    Args:
        registry: registry of the loaded plug-ins, None if none were needed.
    """
    versions = {"python": platform.python_version(), "platform": platform.platform()}
    for package in _PACKAGES:
        # One of an extra may not be installed.
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    plugins = []
    for source in registry.sources if registry else ():
        file = Path(source.origin)
        # A file does not have a version, so its digest replaces it.
        digest = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest() if file.is_file() else None
        plugins.append({"name": source.name, "origin": source.origin, "blake2b": digest})
    content = {
        "schema": SCHEMA,
        "command": ["lookup", *facts.command],
        "exit_code": facts.exit_code,
        "versions": versions,
        "settings": facts.settings,
        "sources": facts.sources,
        "seeds": facts.seeds,
        "inputs": facts.inputs,
        "plugins": plugins,
        "wall_clock": facts.wall_clock,
    }
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def fingerprint(path: str) -> dict[str, Any]:
    """Describe an input as `path`, `files`, `bytes`, `rows` (None if a file is not Parquet) and `blake2b`.

    It is fast enough for every run and shows whether two runs read the same files. A file counts by its name below the
    input, its size and its last 64 KiB. A change in the middle of a big text file of unchanged size is not noticed.

    Raises:
        InputError: if the path does not contain a file.
    """
    files = list_files([path])
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="fingerprint") as pool:
        ends = list(pool.map(_end_of, files))
    digest = hashlib.blake2b(digest_size=16)
    for file, (size, end, _) in zip(files, ends, strict=True):
        # Names below the input, so that a moved folder has the same fingerprint.
        digest.update(f"{file[len(path) :]}\x1f{size}\x1f".encode() + end)
    rows = [count for _, _, count in ends if count is not None]
    return {
        "path": path,
        "files": len(files),
        "bytes": sum(size for size, _, _ in ends),
        "rows": sum(rows) if len(rows) == len(files) else None,
        "blake2b": digest.hexdigest(),
    }


def _end_of(path: str) -> tuple[int, bytes, int | None]:
    """Read the size of a file in bytes, the digest of its last bytes, and its number of rows if it is Parquet."""
    system, inner = locate(path)
    with system.open_input_file(inner) as source:
        size = source.size()
        source.seek(max(0, size - _TAIL_BYTES))
        digest = hashlib.blake2b(source.read()).digest()
    rows = None
    if path.endswith(".parquet"):
        # A file that is Parquet only by its name has no rows here. The run reports the fault.
        with suppress(pa.ArrowInvalid):
            rows = int(pq.read_metadata(inner, filesystem=system).num_rows)
    return size, digest, rows
