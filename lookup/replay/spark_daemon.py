"""The process that Spark's Python workers of this machine are forked from, with the modules of a replay loaded before.

Spark starts it in place of `pyspark.daemon` with its first task, and the modules take half a second to load. A command
that has loaded them anyhow therefore leaves a fork of itself waiting (`WaitingDaemon`). The process that Spark starts
hands over to it what Spark gave it, and stays until the fork ends, since Spark takes it for the one that it talks to.
If nothing waits, it loads the modules and does the work itself.

Spark may put `pyspark.zip` first on the path, whose modules have no bytecode and are compiled anew at every start, for
some 0.6 s; the installed package beside it is the same and has its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

__all__ = ["WaitingDaemon", "load", "without_archives"]

#: Environment variable of Spark's workers: the socket at which a fork waits.
_WAITING = "PULSAR_LOOKUP_DAEMON"
#: Sent with the files, and back when they are in use.
_SENT = b"."
_INTERRUPTIONS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
#: Seconds to wait at most for the end of a fork, and between two questions whether it has ended.
_ENDING_S, _POLL_S = 5.0, 0.01
#: Parameters of the C library's `mallopt`, and the largest value of an int.
_TRIM_THRESHOLD, _MMAP_MAX, _LARGEST = -1, -4, 2**31 - 1


class WaitingDaemon:
    """A fork of this process that waits for Spark; it ends with this process, or with Spark.

    Raises:
        OSError: if it cannot be made.
    """

    def __init__(self) -> None:
        # A folder for this user alone: who connects says what the fork does.
        path = Path(tempfile.mkdtemp(prefix="pulsar-lookup-")) / "daemon"
        #: environment variables that Spark has to give its workers
        self.variables: Mapping[str, str] = {_WAITING: str(path)}
        # The fork reads the end of the first when the second is closed: by `end`, or with this process.
        ended, alive = os.pipe()
        self._alive: int | None = alive
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
                listener.listen(1)
                # Ctrl-C must not be raised in both: nothing that this process does at its end is the fork's.
                before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTIONS)
                self._process = _fork()
                if self._process == 0:
                    try:
                        _wait_and_work(path, listener, ended)
                    finally:
                        os._exit(0)
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        except OSError:
            os.close(alive)
            shutil.rmtree(path.parent)
            raise
        finally:
            os.close(ended)

    def end(self) -> None:
        """End it if it still waits; else wait for its end, which is near once Spark has stopped. Once is enough."""
        if self._alive is None:
            return
        os.close(self._alive)
        self._alive = None
        deadline = time.monotonic() + _ENDING_S
        # The caller may wait for all its children by itself.
        with suppress(ChildProcessError):
            while os.waitpid(self._process, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
                time.sleep(_POLL_S)


def load() -> None:
    """Load what tasks name, once, before workers are forked."""
    import pyspark.worker

    import lookup.replay.shares
    import lookup.replay.tasks


def without_archives(path: Sequence[str], spark_home: str | None) -> list[str]:
    """Return a module path without Spark's own archives if Spark is the installed package itself."""
    if spark_home is None or not (Path(spark_home) / "__init__.py").exists():
        return list(path)
    archives = Path(spark_home) / "python" / "lib"
    return [entry for entry in path if Path(entry).parent != archives]


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns of threads, which those of Arrow and numpy are; both prepare theirs for forks.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _wait_and_work(path: Path, listener: socket.socket, ended: int) -> None:
    """Wait for the process that Spark starts, and work in its place; runs in a fork.

    Args:
        ended: a file whose end is read when the process that forked ends.
    """
    # Ctrl-C goes to the group of processes in front of the terminal, and the handlers are those of a command.
    os.setpgid(0, 0)
    for interruption in _INTERRUPTIONS:
        signal.signal(interruption, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTIONS)
    # Spark's Java and who reads a command's output wait for the ends of files that the fork would hold open.
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    kept = sorted((listener.fileno(), ended))
    os.closerange(3, kept[0])
    os.closerange(kept[0] + 1, kept[1])
    os.closerange(kept[1] + 1, os.sysconf("SC_OPEN_MAX"))
    try:
        ready, _, _ = select.select([listener.fileno(), ended], [], [])
        if listener.fileno() not in ready:
            return
        other, _ = listener.accept()
        listener.close()
    finally:
        path.unlink()
        path.parent.rmdir()
    _take_over(other)
    _keep_memory()
    _work()


def _take_over(other: socket.socket) -> None:
    """Take the files, path and environment that Spark has given to the process that it started."""
    _, files, _, _ = socket.recv_fds(other, len(_SENT), 3)
    given = json.loads(b"".join(iter(partial(other.recv, 65_536), b"")))
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
    sys.argv[:], sys.path[:] = given["argv"], given["path"]
    os.environ.clear()
    os.environ.update(given["environment"])
    other.sendall(_SENT)
    # Its end, which is that of this process, is waited for.
    other.detach()


def _keep_memory() -> None:
    """Let workers keep memory, as the variables of `session.py` say to processes that read them when they start."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
    library = ctypes.CDLL(None)
    # Not on every system; elsewhere workers only get their memory anew.
    if hasattr(library, "mallopt"):
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, _LARGEST)


def _handed_over(waiting: str) -> bool:
    """Hand over what Spark has given to the fork that waits, and return once it has ended; False if none waits."""
    given = {"argv": sys.argv, "path": sys.path, "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as other:
        try:
            other.connect(waiting)
            socket.send_fds(other, [_SENT], [0, 1, 2])
            other.sendall(json.dumps(given).encode())
            other.shutdown(socket.SHUT_WR)
            is_taken = other.recv(1) == _SENT
        except OSError:
            return False
        if is_taken:
            other.recv(1)
    return is_taken


def _work() -> None:
    # It loads what its arguments name.
    from pyspark import daemon

    daemon.manager()


if __name__ == "__main__":
    sys.path[:] = without_archives(sys.path, os.environ.get("SPARK_HOME"))
    if _WAITING not in os.environ or not _handed_over(os.environ[_WAITING]):
        load()
        _work()
