"""Fingerprints of inputs: cheap enough for every run, exact enough to tell whether two runs read the same files.

A file counts by its name below the input, its size and its last 64 KiB, where Parquet keeps statistics and row counts;
a change in the middle of a big text file of unchanged size goes unnoticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.logs.sources import list_files, locate

__all__ = ["fingerprint"]

_TAIL_BYTES = 64 * 1024
_THREADS = 8


def fingerprint(path: str) -> dict[str, Any]:
    """Describe an input: `path`, `files`, `bytes`, `rows` (None where a file is no Parquet) and `blake2b`.

    Raises:
        InputError: where the path holds no file.
    """
    files = list_files([path])
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="fingerprint") as pool:
        described = list(pool.map(_described, files))
    digest = hashlib.blake2b(digest_size=16)
    for file, (size, tail, _) in zip(files, described, strict=True):
        digest.update(f"{file[len(path) :]}\x1f{size}\x1f".encode() + tail)
    rows = [count for _, _, count in described]
    return {
        "path": path,
        "files": len(files),
        "bytes": sum(size for size, _, _ in described),
        "rows": _total(rows),
        "blake2b": digest.hexdigest(),
    }


def _described(path: str) -> tuple[int, bytes, int | None]:
    """Return size, digest of the end and rows of a file."""
    system, inner = locate(path)
    with system.open_input_file(inner) as source:
        size = source.size()
        source.seek(max(0, size - _TAIL_BYTES))
        tail = hashlib.blake2b(source.read()).digest()
    return size, tail, _rows(path)


def _rows(path: str) -> int | None:
    if not path.endswith(".parquet"):
        return None
    system, inner = locate(path)
    try:
        return int(pq.read_metadata(inner, filesystem=system).num_rows)
    except pa.ArrowInvalid:
        return None


def _total(rows: Sequence[int | None]) -> int | None:
    known = [count for count in rows if count is not None]
    return sum(known) if len(known) == len(rows) else None
