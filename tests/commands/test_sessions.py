"""Sessions of commands: what a command hears of a JVM that ends under it."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: The JVM is held still until a call lies unread in its socket: its end then breaks the call off in the middle.
CUT_OFF = """
import os, signal, threading
from pyspark import SparkContext
from lookup.commands.sessions import spark_session
from lookup.errors import PulsarLookupError

try:
    with spark_session("local[1]") as spark:
        java = SparkContext._gateway.proc.pid
        os.kill(java, signal.SIGSTOP)
        threading.Timer(0.5, os.kill, (java, signal.SIGKILL)).start()
        spark.sparkContext._jvm.java.lang.System.nanoTime()
except PulsarLookupError as error:
    print(error)
"""


@pytest.mark.spark
def test_a_call_that_the_end_of_the_jvm_cuts_off_is_one_sentence() -> None:
    """Py4J answers such a call with a name that does not exist, and a traceback of its own; neither reaches a user."""
    done = subprocess.run([sys.executable, "-c", CUT_OFF], capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Spark's Java process ended too early, with signal 9; out of memory?\n"
