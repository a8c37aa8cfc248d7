"""Replays of a few written rows in a folder: a log, small tables beside it, and an evaluation of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lookup.logs.jobs import InProcess
from lookup.replay.outcome import ReplayOutcome
from lookup.replay.run import replay
from lookup.settings.evaluation import EvaluationFile
from tests.replay.layouts import write_rows
from tests.replay.worlds import START_US

__all__ = ["BROKER", "LOOKUP", "evaluation_in", "replayed", "write_log", "write_table"]

#: A row of LOOKUPS.
LOOKUP = {"ts": START_US, "cluster": "east", "topic": "persistent://t/n/topic", "properties": "{}"}
#: A `[[brokers]]` entry.
BROKER = {"id": "b1:8080", "properties": {"lookup.rack": "a"}}


def evaluation_in(folder: Path, **given: Any) -> EvaluationFile:
    """Return an evaluation of the tables in a folder: one policy, one broker, and what is given."""
    inputs = {
        name: str(folder / name) for name in ("brokers", "ownership", "loads", "bundles") if (folder / name).exists()
    }
    base: dict[str, Any] = {
        "evaluation": {"incumbent": "p", "max_quarantine_ratio": 1.0, "seeds": [1]},
        "inputs": {"lookups": str(folder / "lookups"), **inputs},
        "brokers": [BROKER],
        "policies": [{"name": "p", "selector": "random"}],
    }
    base["evaluation"] |= given.pop("evaluation", {})
    return EvaluationFile.model_validate(base | given)


def replayed(folder: Path, **given: Any) -> ReplayOutcome:
    """Replay the tables in a folder without Spark."""
    return replay(InProcess(), evaluation_in(folder, **given), str(folder / "output"))


def write_log(folder: Path, *rows: dict[str, Any]) -> None:
    """Write a log: one lookup, or one that differs from it for each row given."""
    write_rows([{**LOOKUP, **row} for row in rows or ({},)], "lookups", folder / "lookups" / "part.parquet")


def write_table(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    """Write the rows of a small table."""
    write_rows(rows, name, folder / name / "part.parquet")
