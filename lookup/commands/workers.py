"""Choose what runs the tasks of a command: a Spark session, or this process, which then loads nothing of Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from lookup.commands.streams import note
from lookup.logs.jobs import InProcess, Workers, usable_cores
from lookup.logs.sources import locate
from lookup.model.quoting import quantity

if TYPE_CHECKING:
    # A run without Spark does not load it.
    from lookup.commands.early import EarlySpark

__all__ = ["NO_SPARK", "few_bytes", "few_rows", "java_version", "reach_of", "workers_of"]

#: Value of --master that means this process.
NO_SPARK = "none"
#: Rows of a log that are evaluated, and bytes of files that are read, in this process without being asked to, if there
#: is no Java.
_FEW_ROWS, _FEW_BYTES = 200_000, 20_000_000


@contextmanager
def workers_of(
    master: str | None, small: Callable[[], str | None], *, wait_s: float | None = None, early: EarlySpark | None = None
) -> Iterator[Workers]:
    """Yield what runs the tasks of a command: a Spark session, or this process.

    Args:
        master: Spark's URL, or "none" for this process; None: this machine, or the master of `spark-submit`.
        small: says what this process would do with a small log, None for a large one; if there is no Java, a small log
            is left to this process without being asked.
        wait_s: how long to wait for a first worker of a cluster, in seconds; default: ten minutes.
        early: a Spark that may have been started before.

    Raises:
        SettingsError: if Spark cannot start, or workers of a cluster do not come or lack something.
        PulsarLookupError: if its JVM ends before the body does.
    """
    if master == NO_SPARK or (master is None and _has_to_do_without_spark(small)):
        yield InProcess(usable_cores())
        return
    if early is not None and early.workers is not None:
        with early.running() as starting:
            yield starting
        return
    from lookup.commands.sessions import spark_session

    with spark_session(master, wait_s=wait_s) as session:
        yield session


def reach_of(workers: Workers) -> Callable[[Sequence[str], str], None]:
    """Return a function that lets the workers of a cluster read files and write into a folder, and refuses others."""
    if isinstance(workers, InProcess):
        return lambda files, folder: None
    # A run without Spark does not load it.
    from lookup.replay.spark_workers import check_reach

    return partial(check_reach, workers)


def java_version(workers: Workers) -> str:
    """Return the version of the Java that Spark runs in, "none" without Spark."""
    if isinstance(workers, InProcess):
        return "none"
    return str(workers.sparkContext._jvm.java.lang.System.getProperty("java.version"))  # type: ignore[union-attr]  # it runs


def few_rows(rows: int) -> str | None:
    """Say that the rows of a small log are evaluated."""
    return f"{quantity(rows, 'row')} are evaluated" if rows < _FEW_ROWS else None


def few_bytes(files: Sequence[str]) -> str | None:
    """Say that the lines of small files are read."""
    found = [system.get_file_info(inner).size or 0 for system, inner in map(locate, files)]
    return f"{sum(found) / 1e6:.1f} MB are read" if sum(found) < _FEW_BYTES else None


def _has_to_do_without_spark(small: Callable[[], str | None]) -> bool:
    """Return whether a log is small and there is no Java; say so if that is the case."""
    from pyspark.sql import SparkSession

    from lookup.replay.java import has_java

    if os.environ.get("JAVA_HOME") or has_java():
        return False
    what = small()
    if what is None or "PYSPARK_GATEWAY_PORT" in os.environ or SparkSession.getActiveSession() is not None:
        return False
    note(f"note: there is no Java, which Spark needs; {what} in this process")
    return True
