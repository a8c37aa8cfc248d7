"""Check what a program gives to run tasks, before anything else touches it."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lookup.errors import SettingsError
from lookup.logs.jobs import InProcess
from lookup.model.quoting import shown
from lookup.model.sentences import Argument, Sentence

__all__ = ["check_workers"]


def check_workers(workers: object) -> None:
    """Refuse what is neither a Spark session nor `InProcess()`.

    Args:
        workers: as a function for programs got it; None stands for its default.

    Raises:
        SettingsError: that names the argument, the value and what it takes.
    """
    if workers is None or isinstance(workers, SparkSession | InProcess):
        return
    text = f": is {shown(workers)}; a Spark session, InProcess() of lookup.logs.jobs, or None would be right"
    raise SettingsError(Sentence(Argument("workers"), text))
