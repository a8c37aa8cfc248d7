"""How an evaluation is started: the one place of the benchmarks that knows the command and the functions behind it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from lookup.engine.plugins import load_plugins
from lookup.replay.run import replay
from lookup.replay.tasks import metrics_of
from lookup.score.scoring import Scored, ScoringPlan, score
from lookup.settings.evaluation import EvaluationSection
from lookup.settings.loader import load_evaluation

__all__ = [
    "EVALUATE_MODULES",
    "default_seeds",
    "evaluate_command",
    "evaluate_in_session",
    "seeds_variable",
    "table_variables",
]

#: What a run without Spark imports of this package, and by that all else.
EVALUATE_MODULES = ("lookup.cli", "lookup.api.evaluating", "lookup.commands.workers", "lookup.report.page")


def default_seeds() -> int:
    """Return how many replicates an evaluation has unless its settings say otherwise."""
    return len(EvaluationSection(incumbent="").drawn)


def evaluate_command(config: Path, lookups: Path, output: Path, master: str) -> list[str]:
    """Return the arguments of a Python interpreter that evaluates a log as a whole process."""
    return [
        *("-m", "lookup", "evaluate", str(config), "--lookups", str(lookups)),
        *("--output", str(output), "--master", master, "--force"),
    ]


def table_variables(config: Path, lookups: Path) -> dict[str, str]:
    """Return environment variables that take every other table of an evaluation from beside its LOOKUPS."""
    return {f"LOOKUP_INPUTS__{name.upper()}": path for name, path in _tables(config, lookups).items()}


def seeds_variable(seeds: int | None) -> dict[str, str]:
    """Return the environment variable that sets the number of replicates, none for the default."""
    return {} if seeds is None else {"LOOKUP_EVALUATION__SEEDS": str(seeds)}


def evaluate_in_session(spark: SparkSession, config: Path, lookups: Path, output: Path) -> Scored:
    """Evaluate a log with one replicate in a running session: settings, replay, score; the report is not written."""
    tables = {"lookups": str(lookups), **_tables(config, lookups)}
    flags = {f"inputs.{name}": path for name, path in tables.items()}
    settings = load_evaluation(config, {**flags, "evaluation.seeds": 1}, {})
    outcome = replay(spark, settings, str(output))
    names = tuple(policy.name for policy in settings.policies)
    return score(outcome, metrics_of(load_plugins()), ScoringPlan(names, settings.evaluation, settings.verdict))


def _tables(config: Path, lookups: Path) -> Mapping[str, str]:
    """Return the tables beside LOOKUPS which the evaluation file names."""
    named = load_evaluation(config, environ={}).inputs.model_dump(exclude_none=True)
    return {name: str(lookups.parent / name) for name in named if name != "lookups"}
