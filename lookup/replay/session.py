"""Start the Spark session of a run: every setting that is not Spark's own, with its reason.

The code that runs inside a session lives in the other modules of `replay` and `score`. An active session, a notebook's
or a `spark-submit`'s, is used as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from lookup.errors import SettingsError
from lookup.model.sentences import Argument, Sentence
from lookup.replay.class_archive import java_options, make_later

__all__ = ["create_session", "has_java", "is_local", "local_cores", "require_java", "start_context"]

_LOOPBACK = "127.0.0.1"
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\d+)?\])?\Z")

#: Settings of every session.
_EVERYWHERE = {
    # Workers put the working folder on their path: run inside another checkout they would load half of each.
    "spark.executorEnv.PYTHONSAFEPATH": "1",
    # Workers keep the memory of a day for the next one: a virtual machine may take its time to hand out new pages
    # (measured: 2 s per GB). Arrays, also Arrow's, come from the heap, and the heap is not given back.
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_MMAP_MAX_": "0",
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(16 * 1024**3),
    # A batch command needs no page, and its port may be taken.
    "spark.ui.enabled": "false",
    # Spark's bar writes over the lines of the command line's own progress.
    "spark.ui.showConsoleProgress": "false",
    # Warnings of Spark about itself (memory of a window, a big task) are nothing a user of a command could act on.
    "spark.log.level": "ERROR",
    # All timestamps of the tables are UTC; the machine's zone must not shift a day's partition.
    "spark.sql.session.timeZone": "UTC",
    # Batches of 10,000 rows, the default, cost a third more on the way to Python.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # INT96, once Spark's way, loses its statistics and is read slowly elsewhere.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    # 20,000 topics of 45 bytes overflow Parquet's page of 1 MiB, and the column silently falls back to plain strings.
    "spark.hadoop.parquet.dictionary.page.size": str(16 * 1024 * 1024),
}

#: Settings of a context whose only work is to hand tasks to Python.
_QUICK = {
    # Workers are forked from a process that has loaded their modules, those of pyspark as compiled before.
    "spark.python.daemon.module": "lookup.replay.spark_daemon",
}

#: Lines the JVM prints while it starts, before any log level holds; each says nothing about the run.
_STARTUP_NOISE = (
    # The JVM itself, about a module that Spark's launcher always adds.
    "WARNING: Using incubator modules",
    # Spark's logging reports that it is not configured, and how to do so in a shell.
    "Using Spark's default log4j profile",
    "Setting default log level to",
    "To adjust logging level use",
    "Setting Spark log level to",
    # Hadoop has no native library for pip installations; its Java classes do the same.
    "WARN NativeCodeLoader",
)


def create_session(
    master: str | None = "local[*]",
    app_name: str = "pulsar-lookup",
    *,
    settings: Mapping[str, str] | None = None,
    without: str | Argument = "workers=InProcess()",
) -> SparkSession:
    """Return the active session, or start one.

    Args:
        master: Spark's URL; None leaves it to `spark-submit`.
        app_name: what Spark's own pages call the run.
        settings: more of Spark's settings, over those of this module.
        without: what the caller may say to do without Spark, for the sentence about a missing Java.

    Raises:
        SettingsError: if there is no Java to start Spark with, or Spark refuses to start.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    require_java(without)
    return SparkSession(_context_of(master, app_name, _settings(master, settings or {})))


def start_context(master: str, *, is_wanted: Callable[[], bool] = lambda: True) -> SparkContext:
    """Start Spark on this machine for the tasks of a replay alone: sooner than a session, which also loads Spark's SQL.

    Each core has a worker with its modules loaded when this returns.

    Args:
        is_wanted: asked once Java has started.

    Raises:
        SettingsError: if Spark refuses to start, or is not wanted any more.
    """
    context = _context_of(master, "pulsar-lookup", _settings(master, _QUICK) | _quick_java(), is_wanted)
    context.parallelize(range(local_cores(master)), local_cores(master)).foreach(_nothing)
    return context


def _nothing(item: int) -> None:
    """Do nothing, on a worker that then is there."""


def _quick_java() -> dict[str, str]:
    """Return options of Java for tasks in Python: code that is compiled well pays only where Java does the work."""
    return {"spark.driver.extraJavaOptions": f"{java_options()} -XX:TieredStopAtLevel=1".strip()}


def _context_of(
    master: str | None, app_name: str, chosen: Mapping[str, str], is_wanted: Callable[[], bool] = lambda: True
) -> SparkContext:
    make_later()
    conf = SparkConf(loadDefaults=False).setAppName(app_name).setAll(list(chosen.items()))
    if is_local(master):
        # Workers must be this interpreter: the path's `python3` may have no pyarrow.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Without it Spark warns that the host's name resolves to a loopback address.
        os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return _start(conf, is_wanted)


def local_cores(master: str) -> int:
    """Return how many tasks a local master runs at a time."""
    match = _LOCAL.match(master)
    cores = match[1] if match else None
    if cores == "*":
        return os.cpu_count() or 1
    return int(cores or 1)


def is_local(master: str | None) -> bool:
    """Return whether a master is this machine."""
    return master is not None and _LOCAL.match(master) is not None


def _settings(master: str | None, extra: Mapping[str, str]) -> dict[str, str]:
    """Put together the settings for a master; the caller's win."""
    chosen = dict(_EVERYWHERE)
    options = java_options()
    if options:
        chosen["spark.driver.extraJavaOptions"] = options
    if master is not None:
        chosen["spark.master"] = master
    if master is not None and is_local(master):
        chosen |= {
            # The driver is the only machine: no port of it may be open to others, nor a host name be needed.
            "spark.driver.host": _LOOPBACK,
            "spark.driver.bindAddress": _LOOPBACK,
            # The default of 200 makes 200 files and tasks of nothing.
            "spark.sql.shuffle.partitions": str(local_cores(master)),
            # Executor and driver are one JVM here; 1 GiB, the default, spills when a big log is sorted.
            "spark.driver.memory": "2g",
        }
    return chosen | dict(extra)


def has_java() -> bool:
    """Return whether there is a Java to start Spark with: that of JAVA_HOME, else one on the path."""
    home = os.environ.get("JAVA_HOME")
    return (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None


def require_java(without: str | Argument) -> None:
    """Refuse to go on without a Java to start Spark with.

    Args:
        without: what the caller may say to do without Spark.

    Raises:
        SettingsError: that says what to install.
    """
    if has_java():
        return
    home = os.environ.get("JAVA_HOME")
    if home:
        raise SettingsError(f"JAVA_HOME is {home!r}, but there is no bin/java; Spark needs Java 17 or newer")
    raise SettingsError(
        Sentence(
            "Spark needs Java 17 or newer: there is no `java` on the path; install one (Debian, Ubuntu: "
            "`apt-get install openjdk-17-jre-headless`) or set JAVA_HOME; a small log needs neither with ",
            without,
        )
    )


def _start(conf: SparkConf, is_wanted: Callable[[], bool]) -> SparkContext:
    """Start Spark in a JVM whose start-up noise is taken out of stderr; a stopped session's JVM serves again."""
    if SparkContext._gateway is not None:
        return _context(conf, SparkContext._gateway)
    # A session of its own: Ctrl-C goes to everything in front of the terminal, and workers that it ends print
    # tracebacks. The JVM ends when its stdin does, with this process, however that ends.
    isolated: dict[str, Any] = {"stderr": subprocess.PIPE, "start_new_session": True}
    try:
        gateway = launch_gateway(conf, popen_kwargs={} if "PYSPARK_GATEWAY_PORT" in os.environ else isolated)
        process = getattr(gateway, "proc", None)
        if process is not None and process.stderr is not None:
            threading.Thread(target=_forward, args=(process.stderr,), daemon=True).start()
        if not is_wanted():
            raise SettingsError("Spark has started, and is not wanted any more")
        return _context(conf, gateway)
    except PySparkRuntimeError as error:
        raise SettingsError(f"Spark did not start: {error}; it needs Java 17 or newer, set JAVA_HOME") from error


def _context(conf: SparkConf, gateway: Any) -> SparkContext:
    """Start the context; if the caller has a handler of Ctrl-C, pyspark's own does not stay in its place."""
    before = signal.getsignal(signal.SIGINT)
    context = SparkContext(conf=conf, gateway=gateway)
    is_callers = before not in (signal.default_int_handler, None)
    if is_callers and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)
    return context


def _forward(source: IO[bytes]) -> None:
    """Copy the JVM's stderr to ours, line by line, until it ends."""
    for line in source:
        text = line.decode(errors="replace")
        if not any(noise in text for noise in _STARTUP_NOISE):
            sys.stderr.write(text)
            sys.stderr.flush()
