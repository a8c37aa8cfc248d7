"""Start a run's Spark session, with a reason for each setting, or use one of a notebook or `spark-submit` as it is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from lookup.errors import Argument, SettingsError
from lookup.spark.choosing import is_local, is_submitted, local_cores

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]  # has no annotations

__all__ = ["Java", "create_session", "java"]

#: Address of a Spark on this machine. Without it Spark warns that the host's name resolves to a loopback address.
_LOOPBACK = "127.0.0.1"
#: Settings of every session.
_EVERYWHERE = {
    # Workers put the working folder on their path. In the folder of another checkout they would load half of each.
    "spark.executorEnv.PYTHONSAFEPATH": "1",
    # Workers keep the memory of a day for the next one, since a virtual machine may provide new pages slowly (measured:
    # 2 s per GB). Arrays, also Arrow's, come from the heap, and the heap is not returned.
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_MMAP_MAX_": "0",
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(16 * 1024**3),
    # A batch command needs no page, and its port may be taken.
    "spark.ui.enabled": "false",
    # Spark's bar writes over the lines of the command line's own progress.
    "spark.ui.showConsoleProgress": "false",
    # Warnings of Spark about itself (memory of a window, a big task) are nothing a user of a command could act on.
    "spark.log.level": "ERROR",
    # All timestamps of the tables are UTC, and the machine's zone must not shift a day's partition.
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

#: Settings of a local session. Shuffles have a partition per core, since the default makes 200 empty files and tasks.
_LOCAL = {
    # The driver is the only machine, so it does not need a host name, and no port of it may be open to others.
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
    # Nor to other users of this machine: Spark makes a secret for its own processes.
    "spark.authenticate": "true",
    # Python does the work, and the JVM distributes it. Java's second compiler takes as much processor time while Spark
    # starts as everything else together (8.0 s with it, 4.5 s without).
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    # Executor and driver are one JVM on this machine. The default of 1 GiB spills when a big log is sorted.
    "spark.driver.memory": "2g",
}
#: Lines that the JVM prints while it starts, before any log level applies. None is about the run.
_STARTUP_NOISE = (
    # The JVM itself, about a module that Spark's launcher always adds.
    "WARNING: Using incubator modules",
    # Newer JVMs, about packages that Spark's launcher opens and that are no more.
    "WARNING: package sun.security.action not in java.base",
    # Spark's logging reports that it is not configured, and how to do so in a shell.
    "Using Spark's default log4j profile",
    "Setting default log level to",
    "To adjust logging level use",
    "Setting Spark log level to",
    # Hadoop has no native library for pip installations, but its Java classes do the same.
    "WARN NativeCodeLoader",
)


@dataclass
class Java:
    """The JVM that this process drives Spark in."""

    gateway: JavaGateway
    #: whether its stderr is shown
    is_heard: bool = True

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """Its process, None if another process has started it."""
        started: subprocess.Popen[bytes] | None = getattr(self.gateway, "proc", None)
        return started

    def silence(self) -> None:
        """Hide its output from now on, since tasks that are killed on purpose complain."""
        self.is_heard = False
        if self.process is None:
            streams = self.gateway.jvm.java.io
            self.gateway.jvm.java.lang.System.setErr(streams.PrintStream(streams.OutputStream.nullOutputStream()))


_JAVA: Java | None = None


def java() -> Java | None:
    """Return the JVM of the sessions that were started here, None before the first. All of a process share one."""
    return _JAVA


def create_session(
    master: str | None = "local[*]",
    app_name: str = "pulsar-lookup",
    *,
    settings: Mapping[str, str] | None = None,
    without: str | Argument = "workers=InProcess()",
) -> SparkSession:
    """Use the active session, or start one.

    Args:
        master: Spark's URL, None to leave it to `spark-submit`.
        app_name: name of the run on Spark's own pages.
        settings: more of Spark's settings, which replace those of this module.
        without: the caller's advice on running without Spark, for the message about a missing Java.

    Raises:
        SettingsError: if there is no Java to start Spark with, Spark refuses to start, or a Connect server to answer.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if master is not None and master.startswith("sc://"):
        return _connect(master)
    _require_java(without)
    if is_local(master):
        # Workers must be this interpreter, since `python3` on the path may have no pyarrow.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = dict(_EVERYWHERE)
    if master is not None:
        chosen["spark.master"] = master
    if is_local(master):
        chosen |= {**_LOCAL, "spark.sql.shuffle.partitions": str(local_cores(master))}
    chosen |= settings or {}
    return _start_jvm({"spark.app.name": app_name, **chosen})


def _connect(url: str) -> SparkSession:
    try:
        session = SparkSession.builder.remote(url).getOrCreate()
        session.version  # noqa: B018  the first call of the server
    except ImportError as error:
        raise SettingsError(f"{url} needs more of pyspark: pip install 'pulsar-lookup[connect]' ({error})") from error
    except PySparkException as error:
        raise SettingsError(f"{url}: {error}") from error
    return session


def _start_jvm(settings: Mapping[str, str]) -> SparkSession:
    """Start Spark in a JVM without its start-up noise in stderr. A stopped session's JVM is used again."""
    global _JAVA  # noqa: PLW0603  pyspark keeps one JVM for a process as well
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  not in `pyspark-client`, which is Connect alone
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415  likewise

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    # A session of its own: Ctrl-C goes to everything in front of the terminal, and workers that it ends print
    # tracebacks. The JVM ends when its stdin does, with this process, however that ends.
    isolated: dict[str, Any] = {"stderr": subprocess.PIPE, "start_new_session": True}
    try:
        if _JAVA is None:
            started = Java(launch_gateway(conf, popen_kwargs={} if is_submitted() else isolated))
            if started.process is not None and started.process.stderr is not None:
                _forward_stderr(started.process.stderr, lambda: started.is_heard)
            _JAVA = started
        _JAVA.is_heard = True
        # If the caller has a handler of Ctrl-C, pyspark's own does not stay in its place.
        before = signal.getsignal(signal.SIGINT)
        context = SparkContext(conf=conf, gateway=_JAVA.gateway)
    except PySparkRuntimeError as error:
        raise SettingsError(f"Spark did not start: {error}; it needs Java 17 or newer, set JAVA_HOME") from error
    is_callers = before not in (signal.default_int_handler, None)
    if is_callers and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)
    return SparkSession(context)


def _require_java(without: str | Argument) -> None:
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():
        raise SettingsError(f"JAVA_HOME is {home!r}, but there is no bin/java; Spark needs Java 17 or newer")
    if not home and shutil.which("java") is None:
        raise SettingsError(
            "Spark needs Java 17 or newer: there is no `java` on the path; install one (Debian, Ubuntu: "
            "`apt-get install openjdk-17-jre-headless`) or set JAVA_HOME; a log of this machine needs "
            "neither with ",
            without,
        )


def _forward_stderr(source: IO[bytes], is_wanted: Callable[[], bool]) -> None:
    """Copy the JVM's stderr to this process, without the noise of its start, in a thread, until it ends."""

    def copy() -> None:
        with source:
            for line in source:
                text = line.decode(errors="replace")
                if is_wanted() and not any(noise in text for noise in _STARTUP_NOISE):
                    sys.stderr.write(text)
                    sys.stderr.flush()

    threading.Thread(target=copy, daemon=True).start()
