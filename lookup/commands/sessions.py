"""Start Spark for a command, with sentences for possible failures, and stop it before files are removed.

Spark 4 and Py4J 0.10.9 do not have a public way to silence threads whose failure the main thread reports as well. Only
this file knows their log texts, and `tests/commands/test_sessions.py` fails if a release changes one.
"""

from __future__ import annotations

import logging
import re
import socket
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.accumulators import AccumulatorTCPServer
from pyspark.sql import SparkSession

from lookup.commands.failures import interrupted_later
from lookup.commands.streams import note
from lookup.errors import Argument, PulsarLookupError, SettingsError
from lookup.logs.jobs import is_remote
from lookup.spark.choosing import is_local, is_submitted
from lookup.spark.cluster import is_elsewhere, ship_code
from lookup.spark.session import create_session, java

__all__ = ["spark_session"]

#: Seconds that a server has to answer. Spark itself would try for a minute or ten without a reason for giving up.
_PATIENCE_S = 5.0
#: Seconds to wait for the end of Java once a call has failed, if Java still answers, and if it does not. In the second
#: case it has ended, and a busy system may take long to report that.
_END_S, _LAST_S = 0.5, 60.0
#: Messages that Py4J logs to the root logger, with a traceback, if a call is cut off. The call itself raises as well.
_CUT_OFF = frozenset({"KeyboardInterrupt while sending command.", "Exception while sending command."})
_MASTER = re.compile(r"yarn|local-cluster\[.+\]|(spark|k8s|sc)://.+")


@contextmanager
def spark_session(master: str | None) -> Iterator[SparkSession]:
    """Yield the active session, or a session that is stopped at the end.

    The workers of a cluster receive the code.

    Args:
        master: Spark's URL, None for this machine, or the master of `spark-submit`.

    Raises:
        SettingsError: if Spark cannot start.
        PulsarLookupError: if its JVM ends before the body does.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        ship_code(active)
        yield active
        return
    session: SparkSession | None = None
    try:
        # A JVM that is still starting would be left behind.
        with interrupted_later():
            session = _start_session(master)
    except KeyboardInterrupt:
        if session is not None:
            session.stop()
        raise
    with _stop_at_the_end(session):
        ship_code(session)
        if is_elsewhere(session) and not is_remote(session):
            # Spark itself waits in silence.
            where, memory = session.conf.get("spark.master"), session.conf.get("spark.executor.memory", "1g")
            note(f"tasks wait until a worker of {where} has a core and {memory} of memory free")
        yield session


@contextmanager
def _stop_at_the_end(session: SparkSession) -> Iterator[None]:
    """Stop Spark at the end, and report in a sentence that its JVM has ended, if that is why the body fails."""
    try:
        try:
            yield
        except KeyboardInterrupt:
            # Tasks that are killed on purpose log their failure, and threads of Java that they meet print theirs.
            # Java's output is cut off first, which takes no call, since on a busy machine Java may answer one late.
            started = java()
            if started is not None:
                started.silence()
                session.sparkContext.setLogLevel("OFF")
            raise
        finally:
            session.stop()
    except PulsarLookupError:
        raise
    except Exception as error:
        # Without Java every call fails in its own way, and none reports that the process has ended.
        code = _find_exit_code()
        if code is None:
            raise
        cause = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise PulsarLookupError(f"Spark's Java process ended too early, with {cause}; out of memory?") from error


def _start_session(master: str | None) -> SparkSession:
    if master is not None and not is_local(master) and not _MASTER.fullmatch(master):
        right = "local[*], local[4], none (this process), sc://host, spark://host:7077, yarn or k8s://https://host:443"
        raise SettingsError(f"--master: {master!r} is not a master that Spark knows; write {right}")
    if master is not None and master.startswith(("sc://", "spark://")):
        _require_answer(master)
    url = master or (None if is_submitted() else "local[*]")
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_news)
    # pyspark warns about an ended JVM whenever it stops a context, even if the context could not be started.
    warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM process", RuntimeWarning)
    # Its frames of pandas, of which it warns at the start, are not used.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    # The thread that adds accumulators up prints a traceback of its own if the JVM is killed.
    AccumulatorTCPServer.handle_error = lambda self, request, client_address: None  # type: ignore[method-assign]
    try:
        session = create_session(url, without=Argument("master", "none"))
    except Exception as error:
        if not hasattr(error, "java_exception"):
            raise
        reason = str(error.java_exception).partition("\n")[0]
        raise SettingsError(f"--master: Spark did not start with {url!r}: {reason}") from None
    # Failures are raised in Python as well and become sentences there. Java's stack traces would only hide them.
    if not is_remote(session):
        session.sparkContext.setLogLevel("FATAL")
    return session


def _is_news(record: logging.LogRecord) -> bool:
    # One function for all sessions of a process, since a logger keeps every filter that is new to it.
    return record.msg not in _CUT_OFF


def _require_answer(master: str) -> None:
    """Refuse a server that does not answer. Of several masters, as for high availability, one is enough."""
    reasons = []
    kind, _, addresses = master.partition("://")
    if kind == "sc":
        # Parameters follow the address, which may lack the port.
        host, colon, port = addresses.partition("/")[0].partition(":")
        addresses = f"{host}:{port if colon else 15002}"
    for address in addresses.split(","):
        host, colon, port = address.rpartition(":")
        if not (colon and port.isdecimal()):
            raise SettingsError(
                f"--master: {address!r} of {master!r} is not of the form host:port, like {kind}://host:7077"
            )
        try:
            socket.create_connection((host, int(port)), timeout=_PATIENCE_S).close()
        except (OSError, OverflowError) as error:
            reasons.append(f"{address}: {error}")
        else:
            return
    raise SettingsError(f"--master: nobody answers at {master}; {'; '.join(reasons)}")


def _find_exit_code() -> int | None:
    """Find the exit code of the JVM of this process, None if it runs or another process started it."""
    started = java()
    if started is None or started.process is None:
        return None
    try:
        started.gateway.jvm.java.lang.System.nanoTime()
        patience_s = _END_S
    except Exception:  # noqa: BLE001  any error means that Java does not answer
        patience_s = _LAST_S
    try:
        return started.process.wait(patience_s)
    except subprocess.TimeoutExpired:
        return None
