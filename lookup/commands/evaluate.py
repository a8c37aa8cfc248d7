"""Carry out `lookup evaluate`: from settings to a folder of results and a comparison on stdout."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

from lookup.commands.options import (
    Command,
    Parser,
    add_config,
    add_format,
    add_master,
    add_output,
    require_extra,
    settings_flags,
)
from lookup.commands.report import PACKAGES, PAGE
from lookup.commands.selection import Selection, select
from lookup.commands.streams import data_console, progress, say, warn
from lookup.engine.ledger import MICRO
from lookup.errors import InputError, SettingsError
from lookup.model.documents import TableName
from lookup.settings import EvaluationFile

if TYPE_CHECKING:
    from lookup.logs.outputs import Draft
    from lookup.replay.outcome import ReplayOutcome
    from lookup.report.manifest import RunFacts
    from lookup.score.scoring import Scored

__all__ = ["COMMAND", "OUTPUTS", "add_arguments", "run"]

#: Everything an evaluation leaves in its output.
OUTPUTS = (
    "summary.json",
    "metrics.parquet",
    "decisions",
    "owners",
    "cycles",
    "cells",
    "flows",
    "quarantine",
    "manifest.json",
    "report.md",
    PAGE,
)
_TABLES: tuple[TableName, ...] = ("lookups", "brokers", "loads", "bundles", "ownership")


@dataclass
class _Clock:
    """Seconds of the stages of a run."""

    began: float = field(default_factory=time.monotonic)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    stages: dict[str, float] = field(default_factory=dict)
    _last: float = 0.0

    def __post_init__(self) -> None:
        self._last = self.began

    def stop(self, stage: str) -> None:
        """Record the seconds since the stage before."""
        now = time.monotonic()
        self.stages[f"{stage}_s"], self._last = round(now - self._last, 3), now

    def figures(self, inputs: Mapping[str, object]) -> dict[str, float | str]:
        """Return all stages, the total, and rates of the replay; `inputs` has the counts of lookups and decisions."""
        # A log of a few rows may take less than the millisecond that stages are rounded to.
        seconds = self.stages.get("replay_s") or 0.001
        figures: dict[str, float | str] = {"started": self.started, **self.stages}
        figures["total_s"] = round(time.monotonic() - self.began, 3)
        for name in ("lookups", "decisions"):
            count = inputs.get(name)
            if isinstance(count, int):
                figures[f"{name}_per_s"] = round(count / seconds, 1)
        return figures


def add_arguments(parser: Parser) -> None:
    """Add the flags of `lookup evaluate`."""
    add_config(parser)
    add_output(parser, "the results")
    parser.add_argument("--lookups", metavar="PATH", help="the LOOKUPS table, in place of inputs.lookups")
    add_master(parser)
    parser.add_argument(
        "--by",
        # Names stay in the order given, which is that of the report's columns; a name that is repeated counts once.
        type=lambda text: tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip())),
        default=(),
        metavar="DIMENSIONS",
        help="tell figures apart by tenant, namespace, rack and hour, or some of them: --by tenant,hour",
    )
    # What is printed only; the output has the report as JSON and as Markdown in any case.
    add_format(parser, "table", "json", "markdown")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, and return 0, or 3 or 4 by the verdict.

    Raises:
        PulsarLookupError: in one sentence, for whatever the user has to change; the output is then as it was.
    """
    require_extra("evaluate", "pyspark", "pyarrow", "pandas", "scipy")
    from lookup.commands.sessions import NO_SPARK, java_version, workers_of
    from lookup.logs.outputs import draft
    from lookup.replay.counted import check_by
    from lookup.replay.run import replay
    from lookup.report.manifest import manifest_json
    from lookup.report.printing import show

    clock = _Clock()
    # `--lookups` wins over `--set`, being the shorter way to say the same.
    lookups = {} if arguments.lookups is None else {"inputs.lookups": arguments.lookups}
    selection = select(arguments.config, {**settings_flags(arguments), **lookups})
    settings = selection.settings
    check_by(arguments.by, settings.evaluation.balance_s * MICRO)
    _check_output(arguments, settings)
    with ExitStack() as stack:
        # Entered first, so left last: Spark has stopped writing when the draft is published or removed.
        target = stack.enter_context(draft(arguments.output, OUTPUTS, force=arguments.force))
        report_stage = stack.enter_context(progress("checking the inputs"))
        _check_inputs(settings)
        clock.stop("check")
        if arguments.master != NO_SPARK:
            report_stage("starting Spark")
        workers = stack.enter_context(workers_of(arguments.master, lambda: _rows(settings)))
        clock.stop("spark")
        outcome = replay(workers, settings, target.path, by=arguments.by, progress=report_stage, warn=warn)
        clock.stop("replay")
        report_stage("scoring")
        scored = _scored(selection, outcome)
        clock.stop("score")
        _write_results(target, scored)
        # After the results, since it has the time that these have taken; the page is drawn from what stands there.
        facts = _facts(arguments, settings, scored, java=java_version(workers), clock=clock)
        target.write("manifest.json", manifest_json(facts, selection.registry))
        missing = [package for package in PACKAGES if find_spec(package) is None]
        if not missing:
            from lookup.report.folder import read_run
            from lookup.report.page import html_report

            report_stage("drawing the page")
            target.write(PAGE, html_report(read_run(target.path)).encode())
    failures = outcome.inputs.get("failures")
    if isinstance(failures, Mapping) and failures:
        counts = ", ".join(f"{policy} {count:,} times" for policy, count in failures.items())
        first = outcome.inputs.get("first_failure")
        warn(f"parts of policies failed and on_error let them go on: {counts}; the first: {first}")
    show(scored, arguments.format, data_console())
    if missing:
        say(f"no {PAGE}, which needs {missing[0]}: install it with pip install 'pulsar-lookup[report]'")
    pages = "report.md is" if missing else f"{PAGE} and report.md are"
    say(f"results are in {arguments.output}; {pages} for people, summary.json for programs")
    return scored.exit_code


def _rows(settings: EvaluationFile) -> int:
    from lookup.logs.sources import list_log

    return sum(file.rows for file in list_log(settings.inputs.lookups)) if settings.inputs.lookups else 0


def _given_inputs(settings: EvaluationFile) -> dict[TableName, str]:
    """Return the path of every table that is given."""
    paths = {name: getattr(settings.inputs, name) for name in _TABLES}
    return {name: path for name, path in paths.items() if path is not None}


def _check_output(arguments: argparse.Namespace, settings: EvaluationFile) -> None:
    """Refuse an output among the inputs: the next run would read results as a table, or lose its settings."""
    from lookup.logs.outputs import relation

    inputs = {f"inputs.{name}": path for name, path in _given_inputs(settings).items()}
    problems = [
        f"--output: {arguments.output} {overlap} {path}, which is {name}; name a folder apart from the inputs"
        for name, path in {"--config": arguments.config, **inputs}.items()
        if (overlap := relation(arguments.output, path)) is not None
    ]
    if problems:
        raise SettingsError(problems)


def _check_inputs(settings: EvaluationFile) -> None:
    """Report every table that is missing or malformed, before Spark takes seconds to start."""
    from lookup.logs.sources import list_log

    if settings.inputs.lookups is None:
        raise SettingsError("there is no log: give --lookups PATH, or inputs.lookups in the evaluation")
    problems = []
    for name, path in _given_inputs(settings).items():
        try:
            list_log(path, name)
        except InputError as error:
            problems.append(f"inputs.{name}: {error}")
    if problems:
        raise SettingsError(problems)


def _scored(selection: Selection, outcome: ReplayOutcome) -> Scored:
    from lookup.replay.tasks import metrics_of
    from lookup.score.metrics import lookup_register_metrics
    from lookup.score.scoring import Plan, score

    settings = selection.settings
    # Built-in metrics in the order of the reports, then those of plug-ins by name: registries have no order.
    builtin = {metric.name: rank for rank, metric in enumerate(lookup_register_metrics())}
    metrics = sorted(
        metrics_of(selection.registry),
        key=lambda metric: (builtin[metric.name], "") if metric.name in builtin else (len(builtin), metric.name),
    )
    # Properties that a policy reads, or that settings give to clients: by these the scores tell clients apart.
    reads = {name for policy in selection.policies for name in policy.reads if name.startswith("properties.")}
    labels = {name.removeprefix("properties.") for name in reads}
    labels.update(*(entry.properties for entry in settings.clients))
    policies = tuple(policy.name for policy in settings.policies)
    plan = Plan(policies, settings.evaluation, settings.verdict, labels=tuple(sorted(labels)))
    return score(outcome, metrics, plan)


def _write_results(target: Draft, scored: Scored) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lookup.report.markdown import markdown_report
    from lookup.score.summary import metrics_table, summary, to_json

    target.write("summary.json", to_json(summary(scored)).encode())
    target.write("report.md", markdown_report(scored).encode())
    # Written in memory, since a draft may be on any file system.
    sink = pa.BufferOutputStream()
    pq.write_table(metrics_table(scored), sink, compression="zstd")
    target.write("metrics.parquet", sink.getvalue().to_pybytes())


def _facts(
    arguments: argparse.Namespace, settings: EvaluationFile, scored: Scored, *, java: str, clock: _Clock
) -> RunFacts:
    from lookup.report.manifest import RunFacts, fingerprint

    return RunFacts(
        command=arguments.argv,
        exit_code=scored.exit_code,
        settings=settings.model_dump(mode="json"),
        sources=settings.sources,
        seeds=settings.evaluation.seeds,
        inputs={name: fingerprint(path) for name, path in _given_inputs(settings).items()},
        wall_clock=clock.figures(scored.inputs),
        versions={"java": java},
    )


COMMAND = Command(
    name="evaluate",
    summary="replay policies over a lookup log and compare them with the incumbent",
    examples=(
        (
            "lookup evaluate --config evaluation.toml --output report",
            "print the comparison; summary.json, metrics.parquet, report.md and more go to report/",
        ),
        (
            "lookup evaluate --config evaluation.toml --lookups logs/lookups --output report --force --by tenant,hour",
            "another log, earlier results replaced, figures also by tenant and hour",
        ),
        (
            "lookup evaluate --config evaluation.toml --output report --set evaluation.seeds=30 --format json",
            "thirty replicates, for narrower intervals; the summary on stdout for a program",
        ),
    ),
    add_arguments=add_arguments,
    run=run,
)
