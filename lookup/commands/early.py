"""Start Spark on this machine beside the imports and checks of a command, and stop it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lookup.commands.failures import interrupted_later
from lookup.replay.java import EarlyJava, has_java, has_submit_arguments, is_local, is_submitted, local_cores

if TYPE_CHECKING:
    # Loaded while Java starts.
    from pyspark import SparkContext

    from lookup.logs.jobs import StartingSpark
    from lookup.replay.spark_daemon import WaitingDaemon

__all__ = ["EarlySpark", "early_spark"]


class EarlySpark:
    """A Spark of this machine, whose Java starts with the object.

    Nothing is started for another master, under `spark-submit` or with arguments for it, if this process has a Spark,
    or without Java: `workers_of` finds out by itself what to do then.

    Args:
        master: Spark's URL, or "none"; None: this machine.
    """

    def __init__(self, master: str | None) -> None:
        self._master = master or "local[*]"
        self._started: Future[SparkContext] = Future()
        self._java: EarlyJava | None = None
        self._daemon: WaitingDaemon | None = None
        #: what runs tasks, once it begins; None if nothing was started
        self.workers: StartingSpark | None = None
        is_ours = is_local(self._master) and not is_submitted() and not has_submit_arguments()
        if is_ours and has_java() and not _has_spark():
            self._java = EarlyJava()

    def load(self) -> None:
        """Load the modules of tasks."""
        if self._java is not None:
            from lookup.replay.spark_daemon import load

            load()

    def begin(self) -> None:
        """Start the context; to be called once the modules are loaded, while Python has no other thread."""
        if self._java is None:
            return
        from lookup.logs.jobs import StartingSpark
        from lookup.replay.quick_start import waiting_daemon

        self._daemon = waiting_daemon()
        self.workers = StartingSpark(local_cores(self._master), self._started)
        self._java.forward()
        threading.Thread(target=self._start, args=(self._java,), daemon=True).start()

    @contextmanager
    def running(self) -> Iterator[StartingSpark]:
        """Yield what runs tasks, and stop it at the end.

        Raises:
            PulsarLookupError: if its JVM ends before the body does.
        """
        from lookup.commands.sessions import stopped_at_the_end

        assert self.workers is not None
        with stopped_at_the_end(self._context, self.stop):
            yield self.workers

    def stop(self) -> None:
        """Stop it; if it has not started yet, end its Java."""
        context = self._context()
        if context is not None:
            context.stop()
        elif self._java is not None:
            self._java.stop()
        if self._daemon is not None:
            self._daemon.end()

    def _context(self) -> SparkContext | None:
        """Return the context, None if there is none, or none yet."""
        is_there = self._started.done() and self._started.exception() is None
        return self._started.result() if is_there else None

    def _start(self, java: EarlyJava) -> None:
        from lookup.commands.sessions import silenced
        from lookup.replay.quick_start import quick_context

        try:
            context = silenced(self._master, lambda: quick_context(self._master, java, self._daemon))
        except BaseException as error:  # noqa: BLE001  it is raised again by who waits for the context
            self._started.set_exception(error)
        else:
            self._started.set_result(context)


@contextmanager
def early_spark(master: str | None) -> Iterator[EarlySpark]:
    """Let a Spark of this machine start, if a command is going to need one; a mistake in the body ends it."""
    early: EarlySpark | None = None
    try:
        with interrupted_later():
            early = EarlySpark(master)
        yield early
    except BaseException:
        if early is not None:
            early.stop()
        raise


def _has_spark() -> bool:
    """Return whether this process has had a Spark: its Java is used again."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark import SparkContext

    return SparkContext._gateway is not None
