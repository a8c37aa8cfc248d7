"""Run jobs: one task per item, answers in the order of the items, a user's mistake in a task as a value.

Spark's workers run them, or this process, one after the other or several at a time in forks of it: tasks and answers
are the same.

An exception that leaves a task reaches the driver as a Java stack trace, after Spark has tried the task again. A user's
mistake is therefore returned, and raised again on the driver.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from lookup.errors import PulsarLookupError

__all__ = ["Failed", "InProcess", "Workers", "attempt", "parallelism", "run_tasks", "successes", "usable_cores"]

_Answer = TypeVar("_Answer")
_Item = TypeVar("_Item")
_Shared = TypeVar("_Shared")


@dataclass(frozen=True)
class Failed:
    """A task that ended with a mistake of the user's."""

    kind: type[PulsarLookupError]
    message: str

    def error(self) -> PulsarLookupError:
        """Return the mistake as it was raised in the task."""
        return self.kind(self.message)


@dataclass(frozen=True)
class InProcess:
    """Stands where a Spark session stands: tasks run without Java, in this process or in forks of it."""

    #: how many tasks run at a time; with more than one each runs in a fork, which a program with threads may not want
    cores: int = 1


#: What runs tasks.
Workers = SparkSession | InProcess


def parallelism(workers: Workers) -> int:
    """Return how many tasks run at a time."""
    return workers.cores if isinstance(workers, InProcess) else workers.sparkContext.defaultParallelism


def usable_cores() -> int:
    """Return how many tasks of `InProcess` may run at a time; one where a fork is not safe."""
    # macOS: its own libraries, which numpy calls, start threads that do not survive a fork.
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def attempt(work: Callable[[], _Answer], *, pauses_collector: bool = True) -> _Answer | Failed:
    """Run a task; return a user's mistake as a value.

    Args:
        pauses_collector: switch Python's cycle collector off meanwhile; for tasks that create no cycles.
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
    pauses_collector: bool = True,
) -> list[_Answer]:
    """Run one task per item and return the answers in the order of the items.

    Args:
        shared: second argument of every task; sent to every worker once, however many tasks it runs.
        pauses_collector: as for `attempt`.

    Raises:
        PulsarLookupError: the mistake of the first task, in that order, that returned one.
    """
    if not items:
        return []
    if isinstance(workers, InProcess):
        calls = [partial(attempt, partial(task, item, shared), pauses_collector=pauses_collector) for item in items]
        if workers.cores > 1 and len(calls) > 1:
            return successes(_in_forks(calls, workers.cores))
        answers: list[_Answer | Failed] = []
        for call in calls:
            answers.append(call())
            # Nothing runs beside it, so nothing is lost by not trying the others.
            if isinstance(answers[-1], Failed):
                break
        return successes(answers)
    context = workers.sparkContext
    broadcast = context.broadcast(shared)

    def run(item: _Item) -> _Answer | Failed:
        """Run one task on a worker."""
        # Read before the attempt: unpickling it switches Python's collector on again.
        value = broadcast.value
        return attempt(lambda: task(item, value), pauses_collector=pauses_collector)

    try:
        # One partition per item, so that Spark hands them out as workers become free.
        answers = context.parallelize(items, len(items)).map(run).collect()
    finally:
        broadcast.destroy()
    return successes(answers)


def _in_forks(calls: Sequence[Callable[[], _Answer | Failed]], cores: int) -> list[_Answer | Failed]:
    """Run each call in a fork of this process, so many at a time; return the answers up to the first mistake.

    A fork needs no pickle of what it is given, and ends by itself once it has answered, even if this process is killed.
    """
    forks = multiprocessing.get_context("fork")
    answers: dict[int, _Answer | Failed] = {}
    running: dict[Connection, tuple[int, ForkProcess]] = {}
    # Calls behind a mistake are not needed.
    begun, needed = 0, len(calls)
    try:
        while len(answers) < needed:
            while begun < needed and len(running) < cores:
                receiver, sender = forks.Pipe(duplex=False)
                process = forks.Process(target=_answer_into, args=(sender, calls[begun]))
                with warnings.catch_warnings():
                    # Python 3.12 warns of threads, which those of Arrow and numpy are; both prepare theirs for forks.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
                sender.close()
                running[receiver] = begun, process
                begun += 1
            ready = wait(list(running))
            for receiver in [each for each in running if each in ready]:
                number, process = running.pop(receiver)
                answers[number] = _received(receiver, process)
                if isinstance(answers[number], Failed):
                    needed = min(needed, number + 1)
            answers = {number: answer for number, answer in answers.items() if number < needed}
    finally:
        for receiver, (_, process) in running.items():
            process.kill()
            process.join()
            receiver.close()
    return [answers[number] for number in range(needed)]


def _answer_into(sender: Connection, call: Callable[[], object]) -> None:
    """Send what a call returns, or the error that it raises; runs in a fork."""
    # Ctrl-C goes to everything in front of the terminal; the process that forked ends its forks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A line that moves on a terminal belongs to a thread, which a fork does not have, and may have kept its lock.
    sys.stdout = sys.stderr = sys.__stderr__
    try:
        answer = call()
    except Exception as error:  # noqa: BLE001  it is raised again by the process that forked
        error.add_note(traceback.format_exc())
        answer = _Crash(error)
    sender.send(answer)


@dataclass(frozen=True)
class _Crash:
    """An error that is no mistake of the user's, on its way out of a fork."""

    error: Exception


def _received(receiver: Connection, process: ForkProcess) -> Any:
    """Return the answer of a fork that has ended or is about to."""
    try:
        answer = receiver.recv()
    except EOFError:
        process.join()
        code = process.exitcode or 0
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise PulsarLookupError(f"a process that ran a task ended too early, with {how}; out of memory?") from None
    finally:
        receiver.close()
    process.join()
    if isinstance(answer, _Crash):
        raise answer.error
    return answer


def successes(answers: Sequence[_Answer | Failed]) -> list[_Answer]:
    """Return what tasks answered, or raise the first mistake among them."""
    for answer in answers:
        if isinstance(answer, Failed):
            raise answer.error()
    return [answer for answer in answers if not isinstance(answer, Failed)]
