"""Sessions of commands: the end of the JVM under a command is one sentence, and texts in use still exist."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from py4j import java_gateway
from pyspark.core import context

from tests.processes import output_of

#: The JVM is held still until a call lies unread in its socket: its end then breaks the call off in the middle.
CUT_OFF = """
import os, signal, sys, threading, time
import psutil
from lookup.commands.sessions import spark_session
from lookup.spark.session import java as started
from lookup.errors import PulsarLookupError

def end(java, caller):
    while sys._current_frames()[caller].f_code.co_name != "readinto":
        time.sleep(0.01)
    os.kill(java, signal.SIGKILL)

try:
    with spark_session("local[1]") as spark:
        java = started().process.pid
        os.kill(java, signal.SIGSTOP)
        while psutil.Process(java).status() != psutil.STATUS_STOPPED:
            time.sleep(0.01)
        threading.Thread(target=end, args=(java, threading.get_ident())).start()
        {call}
except PulsarLookupError as error:
    print(error)
"""

#: A JVM whose end is told seconds after its connections are broken, as by a system that has much else to do.
LATE_JAVA = """#!/bin/sh
exec "{python}" -c '
import subprocess, sys, time
code = subprocess.call(sys.argv[1:])
time.sleep(5 if code else 0)
sys.exit(abs(code))
' "{java}" "$@"
"""
LATE = """
import os, signal
from lookup.commands.sessions import spark_session
from lookup.errors import PulsarLookupError
from lookup.spark.session import java as started

try:
    with spark_session("local[1]") as spark:
        os.kill(started().gateway.jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
        spark.range(1).count()
except PulsarLookupError as error:
    print(error)
"""


@pytest.mark.spark
@pytest.mark.parametrize("call", ["spark.range(1).count()", "pass"], ids=["any", "stop"])
def test_a_call_that_the_end_of_the_jvm_cuts_off_is_one_sentence(call: str) -> None:
    """Py4J answers with a name that does not exist and a traceback, pyspark with a warning; none of them is shown."""
    assert re.fullmatch(r".* with signal 9; .*\n", output_of(CUT_OFF.format(call=call)))


@pytest.mark.spark
def test_the_end_of_the_jvm_may_be_told_late(tmp_path: Path) -> None:
    """A busy system may say that a process has ended long after its connections are gone; the sentence waits for it."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text(LATE_JAVA.format(python=sys.executable, java=java), encoding="utf-8")
    (tmp_path / "bin" / "java").chmod(0o755)

    assert re.fullmatch(r".* with exit code 9; .*\n", output_of(LATE, JAVA_HOME=str(tmp_path)))


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (java_gateway, '"KeyboardInterrupt while sending command."'),
        (java_gateway, '"Exception while sending command."'),
        (context, '"Unable to cleanly shutdown Spark JVM process."'),
    ],
)
def test_py4j_and_pyspark_still_word_it_so(module: object, text: str) -> None:
    """Texts that sessions silence are those of the installed releases; another wording would let tracebacks through."""
    assert text in inspect.getsource(module)  # type: ignore[arg-type]  # it is a module
