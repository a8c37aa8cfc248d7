"""Spark sessions of commands: started with sentences for what can go wrong, stopped before files are tidied up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # has no annotations
from pyspark.sql import SparkSession

from lookup.errors import SettingsError
from lookup.replay.session import create_session

__all__ = ["java_version", "spark_session"]


@contextmanager
def spark_session(master: str | None) -> Iterator[SparkSession]:
    """Hand out the active session, or one that is stopped at the end.

    Args:
        master: Spark's URL; None: this machine, or what `spark-submit` says.

    Raises:
        SettingsError: where Spark cannot start.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    session = _started(master)
    try:
        yield session
    finally:
        session.stop()


def java_version(spark: SparkSession) -> str:
    """Return the version of the Java that Spark runs in."""
    return str(spark.sparkContext._jvm.java.lang.System.getProperty("java.version"))  # type: ignore[union-attr]  # it runs


def _started(master: str | None) -> SparkSession:
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    wanted = master or (None if is_submitted else "local[*]")
    try:
        return create_session(wanted)
    except Py4JError as error:
        reason = str(getattr(error, "java_exception", error)).partition("\n")[0]
        raise SettingsError(f"--master: Spark did not start with {wanted!r}: {reason}") from None
