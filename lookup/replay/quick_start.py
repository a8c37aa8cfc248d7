"""Start Spark on this machine for the tasks of a replay alone, in steps beside which a command does its own work.

Java starts first (`java.py`). The command loads the modules of tasks meanwhile; a fork of it that has them becomes the
process that Spark's workers are forked from (`spark_daemon.py`). The context is no session, since Spark's SQL takes a
second to load.
"""

from __future__ import annotations

from pyspark import SparkContext

from lookup.logs.sources import forks_are_safe
from lookup.replay.java import EarlyJava
from lookup.replay.session import configured, connected, settings_of
from lookup.replay.spark_daemon import WaitingDaemon

__all__ = ["quick_context", "waiting_daemon"]


def waiting_daemon() -> WaitingDaemon | None:
    """Return a fork of this process that waits for Spark; None if there cannot be one.

    To be made while this process has no thread of Python but one, and the modules of tasks are loaded.
    """
    if not forks_are_safe():
        return None
    try:
        return WaitingDaemon()
    except OSError:
        # No memory for it, or a folder for files of the moment whose name is too long for a socket's.
        return None


def quick_context(master: str, java: EarlyJava, daemon: WaitingDaemon | None) -> SparkContext:
    """Wait for a Java that was started before, and start a context in it.

    Args:
        master: Spark's URL, of this machine.

    Raises:
        SettingsError: if Java ends, or Spark refuses to start.
    """
    variables = {} if daemon is None else daemon.variables
    chosen = {
        **settings_of(master),
        "spark.python.daemon.module": "lookup.replay.spark_daemon",
        **{f"spark.executorEnv.{name}": value for name, value in variables.items()},
    }
    return connected(configured(master, chosen), java.gateway())
