"""Find the Java that Spark runs in, say what is missing, and start one before Spark's own modules are loaded."""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from lookup.errors import SettingsError
from lookup.model.sentences import Argument, Sentence
from lookup.replay.class_archive import java_options, kept_command, pyspark_home

__all__ = [
    "LOCAL_MEMORY", "LOOPBACK", "EarlyJava", "forward", "has_java", "has_submit_arguments", "is_local", "is_submitted",
    "local_cores", "require_java",
]  # fmt: skip

#: Address of a Spark on this machine; without it Spark warns that the host's name resolves to a loopback address.
LOOPBACK = "127.0.0.1"
#: Executor and driver are one JVM on this machine; 1 GiB, the default, spills when a big log is sorted.
LOCAL_MEMORY = "2g"
_LOCAL = re.compile(r"local(?:\[(\*|0*[1-9]\d*)(?:,\d+)?\])?\Z")
#: Code that is compiled well pays only where Java does the work, and not where it hands tasks to Python.
_QUICK_CODE = "-XX:TieredStopAtLevel=1"
#: What runs in Java: it waits for calls, and ends with its stdin.
_GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
#: Seconds between two questions whether Java can be reached.
_POLL_S = 0.01
#: Seconds that a Java has to end by itself once it is asked to.
_STOPPING_S = 5.0
#: Lines the JVM prints while it starts, before any log level holds; each says nothing about the run.
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
    # Hadoop has no native library for pip installations; its Java classes do the same.
    "WARN NativeCodeLoader",
)


class EarlyJava:
    """A Java of Spark on this machine; it starts with the object, for tasks in Python alone."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pulsar-lookup-"))
        # Java writes there how it is reached.
        self._reached = self._folder / "gateway"
        variables = {
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._reached), "SPARK_CONNECT_MODE": "0", "SPARK_LOCAL_IP": LOOPBACK,
        }  # fmt: skip
        try:
            # A group of its own: Ctrl-C goes to everything in front of the terminal. It ends when its stdin does, with
            # this process, however that ends.
            self._process = subprocess.Popen(
                _command([*java_options(), _QUICK_CODE]),
                env={**os.environ, **variables},
                start_new_session=True, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        except BaseException:
            self._folder.rmdir()
            raise
        self._is_forwarded = self._is_stopped = False

    def forward(self) -> None:
        """Copy what it writes to stderr, in a thread, until it is stopped."""
        self._is_forwarded = True
        forward(_open(self._process.stderr), lambda: not self._is_stopped)

    def gateway(self) -> Any:
        """Wait until it can be reached, and return what calls it.

        Raises:
            SettingsError: if it ends before.
        """
        from pyspark.java_gateway import launch_gateway

        while not self._reached.exists():
            if self._process.poll() is not None:
                self.stop()
                raise SettingsError("Spark did not start: Java has ended; it needs Java 17 or newer, set JAVA_HOME")
            time.sleep(_POLL_S)
        about = self._reached.read_bytes()
        shutil.rmtree(self._folder)
        # The port, and the secret behind its length.
        port, length = struct.unpack(">ii", about[:8])
        # pyspark connects to a Java that runs if it finds these; nothing else of this process is to.
        os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=about[8 : 8 + length].decode())
        try:
            gateway = launch_gateway()
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        gateway.proc = self._process
        return gateway

    def stop(self) -> None:
        """End it, whatever it does."""
        self._is_stopped = True
        if self._process.poll() is None and self._is_forwarded:
            # With a context it has files of its own, which it removes if it is asked to end.
            os.killpg(self._process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOPPING_S)
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        _open(self._process.stdin).close()
        if not self._is_forwarded:
            _open(self._process.stderr).close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    """Return a pipe that was asked for."""
    assert pipe is not None
    return pipe


def _command(options: list[str]) -> list[str]:
    """Return the command line of Java: one that was kept with the archive of classes, else that of Spark's script."""
    kept = kept_command()
    if kept is not None:
        # The last of several limits of memory counts.
        return [*kept, f"-Xmx{LOCAL_MEMORY}", *options, _GATEWAY]
    script = Path(os.environ.get("SPARK_HOME") or pyspark_home() or "") / "bin" / "spark-submit"
    settings = {"spark.driver.memory": LOCAL_MEMORY, "spark.driver.extraJavaOptions": " ".join(options)}
    return [str(script), *(word for item in settings.items() for word in ("-c", "=".join(item))), "pyspark-shell"]


def is_submitted() -> bool:
    """Return whether `spark-submit` has started this process, and with it its own Spark."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def has_submit_arguments() -> bool:
    """Return whether the user says in a variable how pyspark is to start Java."""
    return "PYSPARK_SUBMIT_ARGS" in os.environ


def is_local(master: str | None) -> bool:
    """Return whether a master is this machine."""
    return master is not None and _LOCAL.match(master) is not None


def local_cores(master: str) -> int:
    """Return how many tasks a local master runs at a time."""
    match = _LOCAL.match(master)
    cores = match[1] if match else None
    if cores == "*":
        return os.cpu_count() or 1
    return int(cores or 1)


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


def forward(source: IO[bytes], is_wanted: Callable[[], bool] = lambda: True) -> None:
    """Copy the JVM's stderr to ours, line by line, without the noise of its start; in a thread, until it ends.

    Args:
        is_wanted: asked at each line: one that is ended on purpose may complain.
    """

    def copy() -> None:
        with source:
            for line in source:
                text = line.decode(errors="replace")
                if is_wanted() and not any(noise in text for noise in _STARTUP_NOISE):
                    sys.stderr.write(text)
                    sys.stderr.flush()

    threading.Thread(target=copy, daemon=True).start()
