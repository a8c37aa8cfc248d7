"""What runs the tasks of a program: what it gives, which is checked before anything else touches it, or a default."""

from __future__ import annotations

from collections.abc import Callable

from lookup.errors import Argument, SettingsError
from lookup.logs.jobs import InProcess, Workers
from lookup.model.quoting import shown
from lookup.spark.choosing import Size, in_process

__all__ = ["check_workers", "workers_for"]


def check_workers(workers: object) -> None:
    """Refuse what is neither a Spark session nor `InProcess()`."""
    # Sessions of Spark Connect have a type of their own, which cannot be loaded without what it needs.
    is_session = type(workers).__module__.startswith("pyspark.sql") and type(workers).__name__ == "SparkSession"
    if workers is None or isinstance(workers, InProcess) or is_session:
        return
    text = f": is {shown(workers)}; a Spark session, InProcess() of lookup.logs.jobs, or None would be right"
    raise SettingsError(Argument("workers"), text)


def workers_for(given: Workers | None, size: Callable[[], Size], say: Callable[[str], object]) -> Workers:
    """Return what runs tasks: what is given, else the active session, else by the size of what is read.

    Args:
        size: how much that is; called if it decides.
        say: called with what was decided by it.
    """
    if chosen := given or in_process(size, say):
        return chosen
    from lookup.spark.session import create_session

    return create_session()
