"""Find the Java that Spark runs in, say what is missing, and take the noise out of what it prints."""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

from lookup.errors import Argument, SettingsError

__all__ = ["forward", "is_local", "is_submitted", "local_cores", "require_java"]

_LOCAL = re.compile(r"local(?:\[(\*|0*[1-9]\d*)(?:,\d+)?\])?\Z")
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


def is_submitted() -> bool:
    """Return whether `spark-submit` has started this process, and with it its own Spark."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


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


def require_java(without: str | Argument) -> None:
    """Refuse to go on without a Java to start Spark with: that of JAVA_HOME, else one on the path.

    Args:
        without: what the caller may say to do without Spark.

    Raises:
        SettingsError: that says what to install.
    """
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


def forward(source: IO[bytes], is_wanted: Callable[[], bool]) -> None:
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
