"""How an evaluation is started: the one place of the benchmarks that knows the command and the function behind it."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

__all__ = ["evaluate_command", "evaluate_in_session"]


def evaluate_command(config: Path, lookups: Path, output: Path, master: str) -> list[str]:
    """Return the arguments of a Python interpreter that evaluates a log as a whole process.

    BROKERS and OWNERSHIP are taken from beside the LOOKUPS.
    """
    return [
        *("-m", "lookup.cli", "evaluate", "--config", str(config), "--lookups", str(lookups)),
        *("--output", str(output), "--master", master, "--force"),
    ]


def evaluate_in_session(spark: SparkSession, config: str, lookups: str, output: Path) -> None:
    """Evaluate a log in a running session."""
    raise NotImplementedError
