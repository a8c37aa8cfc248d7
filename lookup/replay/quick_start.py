"""Start Spark on this machine for the tasks of a replay alone, in steps beside which a command does its own work.

Java starts first (`java.py`). The command loads its modules meanwhile; a fork of it that has them becomes the process
that Spark's workers are forked from (`spark_daemon.py`). The context is no session, since Spark's SQL takes a second to
load.
"""

from __future__ import annotations

import sys

from pyspark import SparkContext

from lookup.logs.sources import forks_are_safe
from lookup.replay.java import EarlyJava
from lookup.replay.session import configured, connected, settings_of
from lookup.replay.spark_daemon import WaitingDaemon

__all__ = ["QuickStart"]


class QuickStart:
    """A context that starts in a Java that was started before.

    To be made while this process has one thread and the modules of tasks are loaded: it forks.

    Args:
        master: Spark's URL, of this machine.
    """

    def __init__(self, master: str, java: EarlyJava) -> None:
        self._master, self._java = master, java
        # A fork is not safe everywhere: libraries of macOS start threads, and so do connections to a store.
        self._daemon = WaitingDaemon() if sys.platform == "linux" and forks_are_safe() else None
        java.listen()

    def context(self) -> SparkContext:
        """Wait for Java, and start the context.

        Raises:
            SettingsError: if Java ends, or Spark refuses to start.
        """
        variables = {} if self._daemon is None else self._daemon.variables
        chosen = {
            **settings_of(self._master),
            "spark.python.daemon.module": "lookup.replay.spark_daemon",
            **{f"spark.executorEnv.{name}": value for name, value in variables.items()},
        }
        return connected(configured(self._master, chosen), self._java.gateway())
