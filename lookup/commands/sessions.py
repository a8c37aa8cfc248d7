"""Spark sessions of commands: started with sentences for what can go wrong, stopped before files are tidied up."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # has no annotations
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lookup.commands.failures import ENDING
from lookup.errors import PulsarLookupError, SettingsError
from lookup.replay.session import create_session

__all__ = ["java_version", "spark_session"]

_SIGNALS = (signal.SIGINT, *ENDING)
#: Seconds a standalone master has to answer; Spark itself would try for a minute and not say why it gave up.
_PATIENCE_S = 5.0
#: Seconds for Java to end once a call has failed: where it still answers, and where it does not, so that its end is
#: only not told yet, which may take a busy system long.
_END_S, _LAST_S = 0.5, 60.0
#: What Py4J writes to the root logger, with a traceback, of a call that is cut off; the call itself raises as well.
_CUT_OFF = frozenset({"KeyboardInterrupt while sending command.", "Exception while sending command."})
_MASTER = re.compile(r"local(\[[^\]]+\])?|yarn|local-cluster\[.+\]|(spark|k8s)://.+")


@contextmanager
def spark_session(master: str | None) -> Iterator[SparkSession]:
    """Hand out the active session, or one that is stopped at the end.

    Args:
        master: Spark's URL; None: this machine, or what `spark-submit` says.

    Raises:
        SettingsError: where Spark cannot start.
        PulsarLookupError: where its JVM ends before the body does.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with _ended_java_told():
        with _interrupted_later():
            session = _started(master)
        try:
            yield session
        except KeyboardInterrupt:
            # What breaks when tasks are killed on purpose is nobody's news.
            session.sparkContext.setLogLevel("OFF")
            raise
        finally:
            session.stop()


def java_version(spark: SparkSession) -> str:
    """Return the version of the Java that Spark runs in."""
    return str(spark.sparkContext._jvm.java.lang.System.getProperty("java.version"))  # type: ignore[union-attr]  # it runs


def _started(master: str | None) -> SparkSession:
    if master is not None and not _MASTER.fullmatch(master):
        right = "local[*], local[4], spark://host:7077, yarn or k8s://https://host:443"
        raise SettingsError(f"--master: {master!r} is no master that Spark knows; write {right}")
    if master is not None and master.startswith("spark://"):
        _require_answer(master)
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    wanted = master or (None if is_submitted else "local[*]")
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_news)
    # Of a JVM that has ended, from pyspark, whenever it stops a context: also one that could not be started.
    warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM process", RuntimeWarning)
    try:
        session = create_session(wanted)
    except Py4JJavaError as error:
        reason = str(error.java_exception).partition("\n")[0]
        raise SettingsError(f"--master: Spark did not start with {wanted!r}: {reason}") from None
    # What fails is raised here as well, where it becomes a sentence; Java's stack traces are in nobody's way.
    session.sparkContext.setLogLevel("FATAL")
    # The thread that adds accumulators up prints a traceback of its own where the JVM is ended.
    adder: Any = session.sparkContext._accumulatorServer
    adder.handle_error = _keep_quiet
    return session


def _require_answer(master: str) -> None:
    """Refuse a standalone master where nobody listens; of several, as for high availability, one is enough."""
    reasons = []
    for place in master.removeprefix("spark://").split(","):
        host, colon, port = place.rpartition(":")
        if not (colon and port.isdecimal()):
            raise SettingsError(
                f"--master: {place!r} of {master!r} is not of the form host:port, like spark://host:7077"
            )
        try:
            socket.create_connection((host, int(port)), timeout=_PATIENCE_S).close()
        except (OSError, OverflowError) as error:
            reasons.append(f"{place}: {error}")
        else:
            return
    raise SettingsError(f"--master: nobody answers at {master}; {'; '.join(reasons)}")


def _keep_quiet(request: object, address: object) -> None:
    """Leave it to the main thread to say what broke."""


def _is_news(record: logging.LogRecord) -> bool:
    return record.msg not in _CUT_OFF


@contextmanager
def _ended_java_told() -> Iterator[None]:
    """Say in one sentence that Java has ended: what it was asked for then fails in many ways, and none says why."""
    try:
        yield
    except PulsarLookupError:
        raise
    except Exception as error:
        code = _exit_code_of_java()
        if code is None:
            raise
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise PulsarLookupError(f"Spark's Java process ended too early, with {how}; out of memory?") from error


def _exit_code_of_java() -> int | None:
    """Return how the JVM that this process has started has ended; None where it runs, or is somebody else's."""
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        return process.wait(_END_S if _java_answers() else _LAST_S)
    except subprocess.TimeoutExpired:
        return None


def _java_answers() -> bool:
    try:
        SparkContext._jvm.java.lang.System.nanoTime()  # type: ignore[union-attr]  # it was started
    except Exception:  # noqa: BLE001  whatever comes back, it is no answer
        return False
    return True


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Hold signals that end a run back until the body is done: a JVM that is still starting would be left behind.

    The handlers of before are back afterwards, in place of pyspark's own for Ctrl-C, which prints what it cancels.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        """Keep a signal's number for later."""
        held.append(number)

    before = {number: signal.signal(number, hold) for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if held:
        SparkSession.getActiveSession().stop()  # type: ignore[union-attr]  # the body has started it
        raise KeyboardInterrupt
