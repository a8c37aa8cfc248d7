"""Let Spark or this process run the tasks of a command; without Spark nothing of it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from lookup.commands.streams import note
from lookup.logs.jobs import InProcess, Workers, usable_cores
from lookup.spark.choosing import Size, in_process

__all__ = ["NO_SPARK", "java_version", "reach_of", "workers_of"]

#: Value of --master that means this process.
NO_SPARK = "none"


@contextmanager
def workers_of(
    master: str | None, size: Callable[[], Size], *, starting: Callable[[str], object] = lambda stage: None
) -> Iterator[Workers]:
    """Yield what runs the tasks of a command: a Spark session, or this process.

    Args:
        master: Spark's URL, or "none" for this process; None: by the size of what is read.
        size: how much that is.
        starting: called with a name for it before Spark starts.

    Raises:
        SettingsError: if Spark cannot start.
        PulsarLookupError: if its JVM ends before the body does.
    """
    chosen = InProcess(usable_cores()) if master == NO_SPARK else None
    if master is None:
        chosen = in_process(size, lambda text: note(f"{text} (--master decides otherwise)"))
    if chosen is not None:
        yield chosen
        return
    starting("starting Spark")
    from lookup.commands.sessions import spark_session

    with spark_session(master) as session:
        yield session


def reach_of(workers: Workers) -> Callable[[Sequence[str], str], None]:
    """Return a function that lets the workers of a cluster read files and write into a folder, and refuses others."""
    if isinstance(workers, InProcess):
        return lambda files, folder: None
    from lookup.spark.cluster import check_reach

    return partial(check_reach, workers)


def java_version(workers: Workers) -> str | None:
    """Return the version of the Java that Spark runs in, "none" without Spark; None if it is not known."""
    if isinstance(workers, InProcess):
        return "none"
    from lookup.spark.session import java

    started = java()
    return None if started is None else started.version
