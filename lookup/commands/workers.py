"""Let Spark or this process run the tasks of a command. Without Spark it is not loaded at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lookup.commands.streams import note
from lookup.logs.jobs import InProcess, Workers, usable_cores
from lookup.spark.choosing import Size, in_process

__all__ = ["NO_SPARK", "workers_of"]

#: Value of --master that means this process.
NO_SPARK = "none"


@contextmanager
def workers_of(
    master: str | None, size: Callable[[], Size], *, starting: Callable[[str], object] = lambda stage: None
) -> Iterator[Workers]:
    """Yield the workers for the tasks of a command, which are a Spark session, or this process.

    Args:
        master: Spark's URL, "none" for this process, or None to decide by the size of the inputs.
        size: returns that size.
        starting: called with its name before Spark starts.

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
