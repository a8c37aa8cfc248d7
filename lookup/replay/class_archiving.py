"""Make the archive of Spark's classes; `class_archive.py` starts this as a process of its own."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from lookup.replay.class_archive import PATIENCE_S, SILENT, archive_name, archive_of, finished_archive, marked
from lookup.replay.session import create_session

__all__ = ["main"]

#: Archives that are kept, of the latest versions, and what one may take, bytes; it takes some 150 MB.
_KEPT, _LARGEST = 2, 400_000_000
_MONTH_S = 30 * 86_400.0


def main() -> int:
    """Make the archive of this Java and pyspark, unless another process does; return 0 if it is there afterwards."""
    prefix = archive_of()
    if prefix is None:
        return 1
    if finished_archive() is not None:
        return 0
    prefix.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    mark = marked(prefix)
    if mark is None:
        return 1
    draft = prefix.with_suffix(f".{os.getpid()}")
    try:
        _dump(draft)
        size = draft.stat().st_size if draft.exists() else 0
        if not 0 < size <= _LARGEST:
            # A Java that makes none is asked again when the mark is old, a month from now.
            later = time.time() + _MONTH_S
            os.utime(mark, (later, later))
            return 1
        draft.replace(prefix.with_name(archive_name(prefix, size)))
        _prune(prefix.parent)
        mark.unlink()
    except BaseException:
        mark.unlink(missing_ok=True)
        raise
    finally:
        draft.unlink(missing_ok=True)
    return 0


def _dump(draft: Path) -> None:
    """Start Spark, have it do what an evaluation asks of it, and wait until its JVM has written what it has loaded."""
    options = f"-XX:ArchiveClassesAtExit={draft} {SILENT}"
    session = create_session("local[1]", settings={"spark.driver.extraJavaOptions": options})
    context = session.sparkContext
    gateway: Any = context._gateway
    shared = context.broadcast(1)
    context.parallelize([1], 1).map(lambda item: item + shared.value).collect()
    session.range(2).groupBy("id").count().collect()
    session.stop()
    gateway.shutdown()
    # It ends with its stdin, and writes the archive before.
    gateway.proc.stdin.close()
    gateway.proc.wait(PATIENCE_S)


def _prune(folder: Path) -> None:
    """Remove archives of versions that were used before the latest ones."""
    archives = sorted(folder.glob("spark-*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in archives[_KEPT:]:
        old.unlink(missing_ok=True)


if __name__ == "__main__":
    raise SystemExit(main())
