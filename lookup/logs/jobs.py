"""Run jobs: one task per item, answers in the order of the items, a user's mistake in a task as a value.

Spark's workers run them, or this process, one after the other: tasks and answers are the same.

An exception that leaves a task reaches the driver as a Java stack trace, after Spark has tried the task again. A user's
mistake is therefore returned, and raised again on the driver.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pyspark.sql import SparkSession

from lookup.errors import PulsarLookupError

__all__ = ["Failed", "InProcess", "Workers", "attempt", "parallelism", "run_tasks", "successes"]

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


class InProcess:
    """Stands where a Spark session stands: tasks run in this process, without Java."""


#: What runs tasks.
Workers = SparkSession | InProcess


def parallelism(workers: Workers) -> int:
    """Return how many tasks run at a time."""
    return 1 if isinstance(workers, InProcess) else workers.sparkContext.defaultParallelism


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
        answers: list[_Answer | Failed] = []
        for item in items:
            answers.append(attempt(partial(task, item, shared), pauses_collector=pauses_collector))
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


def successes(answers: Sequence[_Answer | Failed]) -> list[_Answer]:
    """Return what tasks answered, or raise the first mistake among them."""
    for answer in answers:
        if isinstance(answer, Failed):
            raise answer.error()
    return [answer for answer in answers if not isinstance(answer, Failed)]
