"""Choose what runs the tasks of a command: a Spark session, or this process, which then loads nothing of Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from lookup.commands.streams import note
from lookup.logs.jobs import InProcess, Workers, usable_cores
from lookup.model.quoting import quantity

__all__ = ["NO_SPARK", "java_version", "reach_of", "workers_of"]

#: Value of --master that means this process.
NO_SPARK = "none"
#: Rows of a log that are evaluated in this process without being asked to, if there is no Java.
_FEW_ROWS = 200_000


@contextmanager
def workers_of(
    master: str | None, rows: Callable[[], int] | None = None, *, wait_s: float | None = None
) -> Iterator[Workers]:
    """Yield what runs the tasks of a command: a Spark session, or this process.

    Args:
        master: Spark's URL, or "none" for this process; None: this machine, or the master of `spark-submit`.
        rows: counts the rows of the log; if there are few and there is no Java, this process is taken unasked.
        wait_s: how long to wait for a first worker of a cluster, in seconds; default: ten minutes.

    Raises:
        SettingsError: if Spark cannot start, or workers of a cluster do not come or lack something.
        PulsarLookupError: if its JVM ends before the body does.
    """
    if master == NO_SPARK or (master is None and rows is not None and _has_to_do_without_spark(rows)):
        yield InProcess(usable_cores())
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


def _has_to_do_without_spark(rows: Callable[[], int]) -> bool:
    """Return whether a log has few rows and there is no Java; say so if that is the case."""
    from pyspark.sql import SparkSession

    from lookup.replay.session import has_java

    if os.environ.get("JAVA_HOME") or has_java():
        return False
    count = rows()
    if count >= _FEW_ROWS or "PYSPARK_GATEWAY_PORT" in os.environ or SparkSession.getActiveSession() is not None:
        return False
    note(f"note: there is no Java, which Spark needs; {quantity(count, 'row')} are evaluated in this process")
    return True
