"""Choose between this process with its forks and Spark on this machine, if the user names neither.

On one machine forks of this process are quicker than Spark, which is for logs that outgrow it, and for clusters.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from lookup.logs.jobs import InProcess, usable_cores
from lookup.logs.sources import locate
from lookup.model.quoting import quantity

__all__ = ["Size", "bytes_of", "in_process", "is_local", "is_submitted", "local_cores", "rows_of"]

#: Rows, and bytes of files that are not tables yet, from which on it is Spark.
_MANY_ROWS, _MANY_BYTES = 200_000, 20_000_000
_LOCAL = re.compile(r"local(?:\[(\*|0*[1-9]\d*)(?:,\d+)?\])?\Z")


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a run's input."""

    #: in words
    text: str
    #: the least that is for Spark, in words
    limit: str
    is_small: bool


def rows_of(count: int) -> Size:
    """Build the size of a table."""
    return Size(quantity(count, "row"), f"{_MANY_ROWS:,}", count < _MANY_ROWS)


def bytes_of(files: Sequence[str]) -> Size:
    """Measure the size of files, by name."""
    total = sum(system.get_file_info(inner).size or 0 for system, inner in map(locate, files))
    return Size(f"{total / 1e6:.1f} MB", f"{_MANY_BYTES / 1e6:.0f} MB", total < _MANY_BYTES)


def in_process(size: Callable[[], Size], say: Callable[[str], object]) -> InProcess | None:
    """Choose this process for a run, or Spark by returning None, as if there is a session already.

    Args:
        size: called if it decides.
        say: called with the decision if the size decided.
    """
    if is_submitted() or _has_session():
        return None
    read = size()
    if read.is_small:
        say(f"{read.text}, fewer than {read.limit}: read by this process and forks of it, without Spark")
        return InProcess(usable_cores())
    # Measured in docs/benchmarks.md.
    faster = "; this process and forks of it are quicker" if usable_cores() > 1 else ""
    say(f"{read.text}, {read.limit} or more: read by Spark on this machine{faster}")
    return None


def _has_session() -> bool:
    if "pyspark.sql" not in sys.modules:
        return False
    from pyspark.sql import SparkSession  # noqa: PLC0415  a run without Spark does not load it

    return SparkSession.getActiveSession() is not None


def is_submitted() -> bool:
    """Check whether `spark-submit` has started this process, and with it its own Spark."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def is_local(master: str | None) -> TypeGuard[str]:
    """Check whether a master is this machine."""
    return master is not None and _LOCAL.match(master) is not None


def local_cores(master: str) -> int:
    """Count the tasks that a local master runs at a time."""
    match = _LOCAL.match(master)
    cores = match[1] if match else None
    if cores == "*":
        return os.cpu_count() or 1
    return int(cores or 1)
