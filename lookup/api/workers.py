"""Choose the workers for the tasks of a program, which are its own, checked first, or a default."""

from __future__ import annotations

from collections.abc import Callable

from lookup.errors import Argument, SettingsError
from lookup.logs.jobs import InProcess, Workers
from lookup.model.quoting import shown
from lookup.spark.choosing import Size, in_process

__all__ = ["check_workers", "workers_for"]


def check_workers(workers: object) -> None:
    """Refuse objects other than a Spark session or `InProcess()`."""
    # Sessions of Spark Connect have a type of their own, which cannot be loaded without its dependencies.
    is_session = type(workers).__module__.startswith("pyspark.sql") and type(workers).__name__ == "SparkSession"
    if workers is None or isinstance(workers, InProcess) or is_session:
        return
    text = f": is {shown(workers)}; a Spark session, InProcess() of lookup.logs.jobs, or None would be right"
    raise SettingsError(Argument("workers"), text)


def workers_for(given: Workers | None, size: Callable[[], Size], say: Callable[[str], object]) -> Workers:
    """Choose the workers, which are the given ones, else the active session, else by the size of the inputs.

    Args:
        size: returns the size, called only if it decides.
        say: called with the decision by size.
    """
    if chosen := given or in_process(size, say):
        return chosen
    from lookup.spark.session import create_session

    return create_session()
