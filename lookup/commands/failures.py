"""Turn the early ends of a run into sentences, such as interruptions, failed Spark jobs and system errors.

Spark's errors contain the traceback of a worker as text, and pyspark does not have a type or field for the cause. So
their texts are matched, only here, and their types are recognised by module name, because commands must fail well
without pyspark, too. `tests/commands/test_failures.py` makes Spark fail and notices if a release changes the words.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = [
    "ENDING", "handled_by", "interrupted_later", "is_interruption", "remaining_files", "sentences_of_spark",
    "sentences_of_system",
]  # fmt: skip

#: Signals that end a run as Ctrl-C does, from `kill`, and from a closed terminal (which Windows does not know).
ENDING = tuple({signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)})

#: Spark's message for a job that pyspark's own handler of Ctrl-C has cancelled.
_CANCELLED = "cancelled as part of cancellation of all jobs"
#: A class of ours before its sentence, as a traceback from a Spark task ends.
_WRAPPED = re.compile(
    r"^(?:\w+: )?lookup\.errors\.(?P<kind>\w+): (?P<sentence>.*?)(?=\n\s+at |\n\n|\n\tat |\nDriver stacktrace|\Z)",
    re.MULTILINE | re.DOTALL,
)
#: Distributions whose exceptions a failed job raises.
_SPARK = frozenset({"py4j", "pyspark"})
_TRACEBACK = "Traceback (most recent call last):\n"
#: The name of a Java exception before its message, and the advice about Spark's settings behind the message.
_JAVA = re.compile(r"(?:\w+\.)+\w+(?:Exception|Error): ")
_ADVICE = re.compile(r"\.? Consider .*")
_NUMBER = re.compile(r"^\[errno \d+\] ", re.IGNORECASE)
#: Traces of a worker, an executor or a JVM that the system has killed, mostly for want of memory.
_GONE = re.compile(
    r"worker exited unexpectedly|MemoryError|OutOfMemory|heap space|ExecutorLost|Executor heartbeat"
    r"|Answer from Java side is empty|Error while (?:sending|receiving)|Connection refused|Connection reset"
)


@contextmanager
def handled_by(
    handler: Callable[[int, FrameType | None], object], numbers: Iterable[int] | None = None
) -> Iterator[None]:
    """Handle signals by a function while the body runs. Outside the main thread, which alone gets any, do nothing.

    By default these are all signals that end a run, except ignored ones, as SIGHUP is under nohup.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if numbers is None:
        numbers = [number for number in (signal.SIGINT, *ENDING) if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Delay signals that end a run until the body is done, and then raise `KeyboardInterrupt`.

    The previous handlers are then restored, in place of pyspark's for Ctrl-C, which prints the jobs it cancels.
    """
    received: list[int] = []
    with handled_by(lambda number, frame: received.append(number)):
        yield
    if received:
        raise KeyboardInterrupt


def is_interruption(error: BaseException) -> bool:
    """Check whether an error is Ctrl-C or a consequence of it.

    Pyspark's handler cancels all jobs, so a thread that waits for a job may fail before the interruption arrives.
    """
    return any(isinstance(link, KeyboardInterrupt) or _CANCELLED in str(link) for link in _iter_chain(error))


def remaining_files(error: BaseException) -> str | None:
    """Describe the remains of an interrupted command as a clause, None if there are none."""
    return next((str(link) for link in _iter_chain(error) if isinstance(link, KeyboardInterrupt) and link.args), None)


def sentences_of_spark(error: BaseException) -> list[str]:
    """Find the sentences of our own error within a Spark error, else one about the job, none for other errors."""
    for link in _iter_chain(error):
        wrapped = list(_WRAPPED.finditer(str(link)))
        if wrapped:
            # A traceback ends with the error that was raised last, which is the one a user can act on.
            return wrapped[-1]["sentence"].strip().splitlines()
    failed = next((link for link in _iter_chain(error) if type(link).__module__.partition(".")[0] in _SPARK), None)
    if failed is None:
        return []
    text = str(failed)
    if _TRACEBACK in text:
        # The frames of a traceback are indented. The first line that is not indented has the exception.
        lines = text.rpartition(_TRACEBACK)[2].splitlines()
        cause = next((line for line in lines if line and not line[0].isspace()), lines[-1])
    else:
        lines = text.strip().splitlines()
        cause = next((line for line in lines if _JAVA.search(line)), lines[0] if lines else "Spark gives no reason")
        # Exceptions of Java name each other in one line, outermost first, and the reason follows the last name.
        cause = _ADVICE.sub("", _JAVA.split(cause)[-1]).strip()
    return [f"a Spark task failed: {cause}{'; out of memory?' if _GONE.search(text) else ''}"]


def sentences_of_system(error: BaseException) -> list[str]:
    """Describe a refusal of the operating system, like a write to a full disk, or return none for other errors."""
    if not isinstance(error, OSError) or error.errno is None:
        return []
    # Arrow has no field for the file, and a message in two parts: "Cannot create directory 'x'. Detail: [errno 30] ..."
    message, _, detail = str(error.strerror).partition(". Detail: ")
    return [": ".join(text for text in (error.filename, message, _NUMBER.sub("", detail)) if text)]


def _iter_chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
