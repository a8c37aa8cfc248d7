"""Spark jobs that failed or were cancelled, in sentences."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

import pytest
from pyspark.sql import SparkSession

from lookup.commands.failures import is_interruption, sentences_of_spark

_LOST = "Job aborted due to stage failure: Task 2 in stage 1.0 failed 1 times, most recent failure: Lost task 2.0"
_CRASHED = (
    "Python worker exited unexpectedly (crashed). Consider setting 'x.faulthandler.enabled' for a better traceback."
)
DIED = f"""An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: {_LOST} (TID 3) (driver): org.apache.spark.SparkException: {_CRASHED}
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonRunner.scala:1136)
Caused by: java.io.EOFException

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.$anonfun$abortStage$3(DAGScheduler.scala:4568)
"""
RAISED = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/worker.py", line 4327, in invoke_udf
    run_process()
  File "/x/part.py", line 15, in score
    raise SystemExit(7)
SystemExit: 7
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)
"""


class Py4JJavaError(Exception):
    """An error of Java, as Py4J raises it."""

    __module__ = "py4j.protocol"


#: What Py4J raises, and the sentence that users meet.
SENTENCES = [
    (DIED, "a Spark task failed: Python worker exited unexpectedly (crashed); out of memory?"),
    (RAISED, "a Spark task failed: SystemExit: 7"),
    (RAISED.replace("SystemExit: 7", "MemoryError"), "a Spark task failed: MemoryError; out of memory?"),
    (
        f": org.apache.spark.SparkException: {_LOST}: java.io.IOException: No space left on device\n\tat x.y(z:1)",
        "a Spark task failed: No space left on device",
    ),
    (
        "An error occurred\n: java.lang.OutOfMemoryError: Java heap space\n\tat x.y(z:1)",
        "a Spark task failed: Java heap space; out of memory?",
    ),
    ("Answer from Java side is empty", "a Spark task failed: Answer from Java side is empty; out of memory?"),
    ("", "a Spark task failed: Spark gives no reason"),
]


@pytest.mark.parametrize(("text", "sentence"), SENTENCES)
def test_a_failed_job_is_one_sentence(text: str, sentence: str) -> None:
    """The end of the worker's traceback or what Java says; memory is suspected where somebody was ended."""
    assert sentences_of_spark(Py4JJavaError(text)) == [sentence]


def test_other_errors_are_not_spark_s() -> None:
    """A mistake of ours keeps its traceback."""
    assert sentences_of_spark(ZeroDivisionError("division by zero")) == []
    assert not is_interruption(ZeroDivisionError())


@pytest.mark.spark
def test_a_cancelled_job_is_an_interruption(spark: SparkSession) -> None:
    """Spark still says of a cancelled job that all jobs were cancelled, which is how an interruption is recognised."""

    def sleep(rows: Iterable[object]) -> Iterator[object]:
        time.sleep(60)
        yield from rows

    def cancel() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not tracker.getActiveJobsIds():
            time.sleep(0.05)
        spark.sparkContext.cancelAllJobs()

    threading.Thread(target=cancel, daemon=True).start()
    with pytest.raises(Exception, match="cancel") as caught:
        spark.sparkContext.parallelize([1], 1).mapPartitions(sleep).collect()

    assert is_interruption(caught.value)


@pytest.mark.spark
def test_a_sentence_of_a_task_is_found_in_the_error_of_its_job(spark: SparkSession) -> None:
    """Spark still ends the traceback of a worker with class and sentence of the error that a task raised."""

    def fail(rows: Iterable[object]) -> Iterator[object]:
        from lookup.errors import InputError  # noqa: PLC0415  within the worker

        raise InputError("row 7 has no topic")

    with pytest.raises(Exception, match="row 7") as caught:
        spark.sparkContext.parallelize([1], 1).mapPartitions(fail).collect()

    assert sentences_of_spark(caught.value) == ["row 7 has no topic"]
