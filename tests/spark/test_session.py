"""The Spark session of a run."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from lookup.errors import SettingsError
from lookup.spark.session import create_session
from tests.processes import awaited, is_gone


@pytest.mark.spark
def test_settings_hold_and_a_session_is_used_again(spark: SparkSession) -> None:
    """The session speaks UTC on loopback, workers run this Python, and whoever asks again gets the same session."""
    assert create_session() is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect() == [sys.executable]


def test_without_java_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong JAVA_HOME and a path without java are told before anything starts."""
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(SettingsError, match="JAVA_HOME is '/nowhere'"):
        create_session()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SettingsError, match=r"there is no `java` on the path; .* with workers=InProcess\(\)$"):
        create_session()


_SCRIPT = """
import os, signal, time
from lookup.spark.session import create_session, java

mine = lambda number, frame: None
signal.signal(signal.SIGINT, mine)
create_session("local[1]")
jvm = java().process.pid
print(jvm, os.getpgid(jvm) != os.getpgid(0), signal.getsignal(signal.SIGINT) is mine, flush=True)
time.sleep(600)
"""


@pytest.mark.spark
def test_ctrl_c_is_the_callers_and_the_jvm_ends_with_it() -> None:
    """A handler stays in its place, the JVM is not in front of the terminal, and ends when its caller is killed."""
    caller = subprocess.Popen([sys.executable, "-c", _SCRIPT], stdout=subprocess.PIPE, text=True)
    assert caller.stdout is not None
    jvm, is_apart, is_handler_kept = caller.stdout.readline().split()

    caller.kill()
    caller.communicate(timeout=120)

    assert (is_apart, is_handler_kept) == ("True", "True")
    assert awaited(lambda: is_gone(int(jvm)))
