"""What interrupts a run, and what a failed Spark job or the system has to say, in sentences.

Spark's errors carry the traceback of a worker as text. They are known by the names of their modules only: this must
work where Spark is not installed.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

__all__ = ["ENDING", "is_interruption", "sentences_of_spark", "sentences_of_system"]

#: Signals that end a run as Ctrl-C does: of `kill`, and of a terminal that is closed (which Windows does not know).
ENDING = tuple({signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)})

#: What Spark says of a job that its own handler of Ctrl-C has cancelled.
_CANCELLED = "cancelled as part of cancellation of all jobs"
#: A class of ours before its sentence, as a traceback from a Spark task ends.
_WRAPPED = re.compile(
    r"^(?:\w+: )?lookup\.errors\.(?P<kind>\w+): (?P<sentence>.*?)(?=\n\s+at |\n\n|\n\tat |\nDriver stacktrace|\Z)",
    re.MULTILINE | re.DOTALL,
)
#: Distributions that raise what a failed job ends with.
_SPARK = frozenset({"py4j", "pyspark"})
_TRACEBACK = "Traceback (most recent call last):\n"
#: The name of a Java exception before what it says, and advice about settings of Spark behind that.
_JAVA = re.compile(r"(?:\w+\.)+\w+(?:Exception|Error): ")
_ADVICE = re.compile(r"\.? Consider .*")
_NUMBER = re.compile(r"^\[errno \d+\] ", re.IGNORECASE)
#: What is left of a worker, an executor or a JVM that the system has ended, mostly for want of memory.
_GONE = re.compile(
    r"worker exited unexpectedly|MemoryError|OutOfMemory|heap space|ExecutorLost|Executor heartbeat"
    r"|Answer from Java side is empty|Error while (?:sending|receiving)|Connection refused|Connection reset"
)


def is_interruption(error: BaseException) -> bool:
    """Tell Ctrl-C, and what Spark makes of it: its handler cancels all jobs, and who waits for one may fail first."""
    return any(isinstance(one, KeyboardInterrupt) or _CANCELLED in str(one) for one in _chain(error))


def sentences_of_spark(error: BaseException) -> list[str]:
    """Return the sentences of ours in an error of Spark, else one about the job that failed; none of other errors."""
    for one in _chain(error):
        found = list(_WRAPPED.finditer(str(one)))
        if found:
            return found[-1]["sentence"].strip().splitlines()
    failed = next((one for one in _chain(error) if type(one).__module__.partition(".")[0] in _SPARK), None)
    return [] if failed is None else [_about_job(str(failed))]


def sentences_of_system(error: BaseException) -> list[str]:
    """Return what the system has refused, like writing to a full disk; none of other errors."""
    if not isinstance(error, OSError) or error.errno is None:
        return []
    # Arrow has no field for the file, and a message in two parts: "Cannot create directory 'x'. Detail: [errno 30] ..."
    what, _, detail = str(error.strerror).partition(". Detail: ")
    return [": ".join(text for text in (error.filename, what, _NUMBER.sub("", detail)) if text)]


def _about_job(text: str) -> str:
    hint = "; out of memory?" if _GONE.search(text) else ""
    return f"a Spark task failed: {_cause(text)}{hint}"


def _cause(text: str) -> str:
    """Return the line that says most: the end of a worker's traceback, else what Java's innermost exception says."""
    if _TRACEBACK in text:
        lines = text.rpartition(_TRACEBACK)[2].splitlines()
        return next((line for line in lines if line and not line[0].isspace()), lines[-1])
    lines = text.strip().splitlines()
    said = next((line for line in lines if _JAVA.search(line)), lines[0] if lines else "Spark does not say why")
    return _ADVICE.sub("", _JAVA.split(said)[-1]).strip()


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
