"""Run jobs with one task per item, and return answers in the order of the items, a user's mistake as a value.

Spark's workers run them, or this process, one by one or several at a time in forks. Tasks and answers are the same.

An exception that leaves a task reaches the driver as a Java stack trace, after Spark has tried the task again. A user's
mistake is therefore returned, and raised again on the driver.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import pickle
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, entry_points, version
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from uuid import uuid4

import pyarrow as pa

from lookup.errors import PulsarLookupError, SettingsError
from lookup.hooks.protocols import ENTRY_POINT_GROUP
from lookup.logs.sources import forks_are_safe
from lookup.model.quoting import join_names

if TYPE_CHECKING:
    # Spark is loaded by who starts it.
    from pyspark.sql import SparkSession

__all__ = [
    "Failed", "InProcess", "Watch", "Workers", "attempt", "is_remote", "parallelism", "run_tasks",
    "successes", "usable_cores", "watched_by",
]  # fmt: skip

_Answer = TypeVar("_Answer")
_Item = TypeVar("_Item")
_Shared = TypeVar("_Shared")

#: Called with the progress of a job, which is tasks done, tasks in all, and rows that all of them read, 0 if not known.
Watch = Callable[[int, int, int], None]

#: Jobs of Spark that run at the same time, and most tasks of a job, each of which is sent the items of all.
_JOBS, _TASKS = 8, 256
#: Bytes that a job may send to a Connect server, which accepts 128 MiB in all.
_MESSAGE_BYTES = 120 * 1024 * 1024
#: Distributions whose versions decide how figures come out.
_SAME = ("networkx", "numpy", "pyarrow")
#: Options of GNU's `mallopt`, the size from which freed memory is returned, -1 for never, and the maximum of mappings.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@dataclass(frozen=True)
class Failed:
    """A task that ended with a mistake of the user's."""

    kind: type[PulsarLookupError]
    message: str

    def error(self) -> PulsarLookupError:
        """Restore the mistake as it was raised in the task."""
        return self.kind(self.message)


@dataclass(frozen=True)
class InProcess:
    """A replacement for a Spark session that runs tasks without Java, in this process or in forks of it."""

    #: number of tasks at a time. With more than one, each runs in a fork, which may not suit a program with threads
    cores: int = 1


#: A Spark session, or this process.
Workers: TypeAlias = "SparkSession | InProcess"


def parallelism(workers: Workers) -> int:
    """Count the tasks that run at a time."""
    if isinstance(workers, InProcess):
        return workers.cores
    from pyspark.sql import functions as F  # noqa: PLC0415  a run without Spark does not load it

    # By default a table is cut into as many parts. The last row needs a job of one task.
    return int(workers.range(1 << 20).select(F.spark_partition_id()).tail(1)[0][0]) + 1


def is_remote(workers: Workers) -> bool:
    """Check whether a session is one of Spark Connect, whose module need not be installed."""
    return type(workers).__module__.startswith("pyspark.sql.connect")


def usable_cores() -> int:
    """Count the tasks of `InProcess` that may run at a time, which is 1 where forks are never safe."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


@contextmanager
def watched_by(watch: Watch) -> Iterator[None]:
    """Report how far the jobs of the body are."""
    before = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(before)


def attempt(work: Callable[[], _Answer], *, pauses_collector: bool = True) -> _Answer | Failed:
    """Run a task, and return a user's mistake as a value.

    Args:
        pauses_collector: whether Python's cycle collector is off meanwhile, for tasks that create no cycles.
    """
    # A replay makes many small objects and no cycles, and looking for these took a tenth of the time.
    if pauses_collector:
        gc.disable()
    try:
        return work()
    except PulsarLookupError as error:
        return Failed(type(error), str(error))
    finally:
        gc.enable()


def run_tasks(
    workers: Workers,
    items: Sequence[_Item],
    shared: _Shared,
    task: Callable[[_Item, _Shared], _Answer],
    *,
    rows: int = 0,
    pauses_collector: bool = True,
) -> list[_Answer]:
    """Run one task per item, and return the answers in the order of the items.

    Args:
        shared: second argument of every task, sent to every worker once, however many tasks it runs.
        rows: number of rows that all tasks read together, for `watched_by`, 0 if it is not known.
        pauses_collector: as for `attempt`.

    Raises:
        PulsarLookupError: the mistake of the first task, in the order of the items, that returned one.
    """
    if not items:
        return []
    watch = _WATCH.get()

    def report(done: int) -> None:
        if watch is not None:
            watch(done, len(items), rows)

    report(0)
    if isinstance(workers, InProcess):
        calls = [partial(attempt, partial(task, item, shared), pauses_collector=pauses_collector) for item in items]
        if workers.cores > 1 and len(calls) > 1 and forks_are_safe():
            return successes(_run_in_forks(calls, workers.cores, report))
        answers: list[_Answer | Failed] = []
        for call in calls:
            answers.append(call())
            # No other call runs at the same time, so no result is lost if the others are skipped.
            if isinstance(answers[-1], Failed):
                break
            report(len(answers))
        return successes(answers)
    here, packed = _list_versions(), pickle.dumps(shared)

    def run(item: bytes) -> bytes:
        call = partial(_check_versions, here, task, pickle.loads(item), pickle.loads(packed))
        return pickle.dumps(attempt(call, pauses_collector=pauses_collector))

    return successes(_run_in_jobs(workers, [pickle.dumps(item) for item in items], run, report, more_bytes=len(packed)))


@cache
def _list_versions() -> Sequence[tuple[str, str | None]]:
    """List the versions of the libraries and plug-ins on which results depend."""
    plugins = {point.dist.name for point in entry_points(group=ENTRY_POINT_GROUP) if point.dist is not None}
    return [(name, _version(name)) for name in (*_SAME, *sorted(plugins))]


def _check_versions(
    here: Sequence[tuple[str, str | None]], task: Callable[[_Item, _Shared], _Answer], item: _Item, shared: _Shared
) -> _Answer:
    versions = ((name, right, _version(name)) for name, right in here)
    others = [f"{name} {has or 'not installed'} instead of {right}" for name, right, has in versions if has != right]
    if others:
        raise SettingsError(
            f"worker {socket.gethostname()} has {join_names(others)}; "
            f"install for {sys.executable} what is installed here"
        )
    return task(item, shared)


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _run_in_jobs(
    session: SparkSession,
    items: Sequence[bytes],
    run: Callable[[bytes], bytes],
    report: Callable[[int], None],
    *,
    more_bytes: int,
) -> list[Any]:
    """Run tasks in several jobs of Spark at a time, since all sessions report only the end of a whole job.

    Spark gives the tasks of a job to free workers before those of later jobs, so no worker waits for a job.
    """
    from pyspark import inheritable_thread_target  # noqa: PLC0415  a run without Spark does not load it

    size, tag = min(_TASKS, -(-len(items) // _JOBS)), f"lookup-{uuid4().hex}"
    parts = [items[first : first + size] for first in range(0, len(items), size)]
    if is_remote(session) and (most := more_bytes + max(sum(map(len, part)) for part in parts)) > _MESSAGE_BYTES:
        raise PulsarLookupError(f"tasks need {most / 1e6:,.0f} MB, too much for Spark Connect: use other workers")

    def answers(part: Sequence[bytes]) -> list[Any]:
        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in (number for batch in batches for number in batch["id"].to_pylist()):
                yield pa.record_batch({"id": [number], "answer": [run(part[number])]})

        session.addTag(tag)
        # One partition per item, so that Spark hands them out as workers become free.
        rows = session.range(0, len(part), 1, len(part)).mapInArrow(work, "id long, answer binary").collect()
        return [pickle.loads(row["answer"]) for row in sorted(rows, key=lambda row: row["id"])]

    pool = ThreadPoolExecutor(_JOBS)
    # Threads have the properties of this one, by which a notebook finds its jobs.
    jobs = [pool.submit(inheritable_thread_target(session)(answers), part) for part in parts]
    try:
        for job in as_completed(jobs):
            job.result()
            report(sum(len(part) for part, each in zip(parts, jobs, strict=True) if each.done()))
    except BaseException:
        # Jobs of a session that is stopped next, or has no Java any more, are not waited for.
        pool.shutdown(wait=False, cancel_futures=True)
        with suppress(Exception):
            session.interruptTag(tag)
        raise
    pool.shutdown()
    return [answer for job in jobs for answer in job.result()]


def _run_in_forks(
    calls: Sequence[Callable[[], _Answer | Failed]], cores: int, report: Callable[[int], None]
) -> list[_Answer | Failed]:
    """Run calls in forks of this process, each one after the other, and return answers up to the first mistake.

    A fork needs no pickle of the calls. If this process was killed meanwhile, a fork ends by itself after its answer.
    """
    answers: dict[int, _Answer | Failed] = {}
    forks: list[_Fork] = []
    # Calls behind a mistake are not needed.
    begun, needed = 0, len(calls)
    # Arrow loads pandas, if installed, before its first value. This is done here, or every fork would do it.
    pa.scalar(0)
    try:
        forks.extend(_Fork(calls) for _ in range(min(cores, len(calls))))
        while len(answers) < needed:
            for fork in forks:
                if fork.running is None and begun < needed:
                    fork.begin(begun)
                    begun += 1
            busy = [fork for fork in forks if fork.running is not None]
            ready = wait([fork.pipe for fork in busy])
            for fork in [fork for fork in busy if fork.pipe in ready]:
                number, answer = fork.answer()
                answers[number] = answer
                if isinstance(answer, Failed):
                    needed = min(needed, number + 1)
            answers = {number: answer for number, answer in answers.items() if number < needed}
            report(len(answers))
    finally:
        for fork in forks:
            fork.end()
    return [answers[number] for number in range(needed)]


class _Fork:
    """A fork of this process that runs calls, each when it receives its number.

    One fork for each call would be simpler but slower, since each copies the pages that it or this process writes to.
    """

    def __init__(self, calls: Sequence[Callable[[], object]]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, other_end = context.Pipe()
        #: number of the call that runs
        self.running: int | None = None
        self._process = context.Process(target=_answer_calls, args=(other_end, self.pipe, calls))
        with warnings.catch_warnings():
            # Python 3.12 warns of threads, such as those of Arrow and numpy. Both prepare theirs for forks.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        # Held by the fork alone, so that its end can be read from the pipe.
        other_end.close()

    def begin(self, number: int) -> None:
        self.running = number
        # A fork that was killed while it waited is found out by who reads its answer.
        with suppress(BrokenPipeError):
            self.pipe.send(number)

    def answer(self) -> tuple[int, Any]:
        """Receive the number of the call that ran, and its answer.

        Raises:
            PulsarLookupError: if the fork ended before it answered.
            Exception: raised by the call.
        """
        assert self.running is not None
        number, self.running = self.running, None
        try:
            answer, error = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode or 0
            end = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise PulsarLookupError(f"a process that ran a task ended too early, with {end}; out of memory?") from None
        # No mistake of the user's, which would be an answer.
        if error is not None:
            raise error
        return number, answer

    def end(self) -> None:
        self.pipe.close()
        self._process.kill()
        self._process.join()


def _answer_calls(pipe: Connection, callers_end: Connection, calls: Sequence[Callable[[], object]]) -> None:
    """Send the results of calls, or the errors that they raise, by their numbers. It runs in a fork."""
    # Held by the process that forked alone, so that its end can be read from the pipe.
    callers_end.close()
    # Freed memory is kept for the next arrays, since a virtual machine provides new pages slowly.
    pa.set_memory_pool(pa.system_memory_pool())
    with suppress(OSError, AttributeError):  # another C library than GNU's
        library = ctypes.CDLL(None)
        library.mallopt(_M_TRIM_THRESHOLD, -1)
        library.mallopt(_M_MMAP_MAX, 0)
    # Ctrl-C reaches all processes in the foreground of the terminal, and the process that forked ends its forks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A line that moves on a terminal belongs to a thread, which a fork does not have, and may have kept its lock.
    sys.stdout = sys.stderr = sys.__stderr__
    with suppress(EOFError, OSError):
        while True:
            call = calls[pipe.recv()]
            try:
                sent: tuple[object, Exception | None] = call(), None
            except Exception as error:  # noqa: BLE001  it is raised again by the process that forked
                error.add_note(traceback.format_exc())
                sent = None, error
            pipe.send(sent)


def successes(answers: Sequence[_Answer | Failed]) -> list[_Answer]:
    """Collect the answers of tasks, or raise the first mistake among them."""
    for answer in answers:
        if isinstance(answer, Failed):
            raise answer.error()
    return [answer for answer in answers if not isinstance(answer, Failed)]
