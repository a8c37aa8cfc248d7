"""Make the archive of Spark's classes; `class_archive.py` starts this as a process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Set
from pathlib import Path
from typing import Any

from lookup.logs.jobs import run_tasks, watched_by
from lookup.replay.class_archive import (
    PATIENCE_S,
    SILENT,
    archive_name,
    archive_of,
    command_file,
    finished_archive,
    marked,
)
from lookup.replay.session import create_session

__all__ = ["main"]

#: Archives that are kept, of the latest versions, and what one may take, bytes; it takes some 150 MB.
_KEPT, _LARGEST = 2, 400_000_000
#: What Spark's script runs.
_SCRIPTS_CLASS = "org.apache.spark.deploy.SparkSubmit"
_MONTH_S = 30 * 86_400.0
#: How long a task of Spark lasts while an archive is made.
_REST_S = 1.0


def main() -> int:
    """Make the archive that fits, unless another process does; return 0 if it is there afterwards."""
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
        words = _dump(draft)
        size = draft.stat().st_size if draft.exists() else 0
        if not 0 < size <= _LARGEST:
            # A Java that makes none is asked again when the mark is old, a month from now.
            later = time.time() + _MONTH_S
            os.utime(mark, (later, later))
            return 1
        archive = prefix.with_name(archive_name(prefix, size))
        command_file(archive).write_text("\0".join(words), encoding="utf-8")
        draft.replace(archive)
        _prune(prefix.parent)
        mark.unlink()
    except BaseException:
        mark.unlink(missing_ok=True)
        raise
    finally:
        draft.unlink(missing_ok=True)
    return 0


def _dump(draft: Path) -> list[str]:
    """Start Spark, have it do what an evaluation asks of it, and wait until its JVM has written what it has loaded.

    Returns:
        The words of Java's command line that are the same at every start; none where the system does not tell them.
    """
    options = f"-XX:ArchiveClassesAtExit={draft} {SILENT}"
    session = create_session("local[1]", settings={"spark.driver.extraJavaOptions": options})
    context = session.sparkContext
    gateway: Any = context._gateway
    words = _command_of(gateway.proc.pid, set(options.split()))
    # As a replay does: with progress, for which Spark's tracker is asked, and a value that all tasks share.
    with watched_by(lambda done, of, rows: None):
        run_tasks(session, [1, 2], 1, _rest)
    session.range(2).groupBy("id").count().collect()
    session.stop()
    gateway.shutdown()
    # It ends with its stdin, and writes the archive before.
    gateway.proc.stdin.close()
    gateway.proc.wait(PATIENCE_S)
    return words


def _rest(item: int, shared: int) -> int:
    """Return a sum after so long that progress is looked at meanwhile."""
    time.sleep(_REST_S)
    return item + shared


def _command_of(process: int, options: Set[str]) -> list[str]:
    """Return the command line of a Java up to the class that it runs, without some options."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8").split("\0")
        return [word for word in words[: words.index(_SCRIPTS_CLASS)] if word not in options]
    except (OSError, ValueError):
        return []


def _prune(folder: Path) -> None:
    """Remove archives of versions that were used before the latest ones, and what killed processes have left."""
    archives = sorted(folder.glob("spark-*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in archives[_KEPT:]:
        old.unlink(missing_ok=True)
        command_file(old).unlink(missing_ok=True)
    for draft in folder.glob("spark-*.[0-9]*"):
        if time.time() - draft.stat().st_mtime > PATIENCE_S:
            draft.unlink(missing_ok=True)


if __name__ == "__main__":
    raise SystemExit(main())
