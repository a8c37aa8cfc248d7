"""The work of `lookup evaluate`: from settings to a folder of results and a comparison on stdout."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.commands.overlaps import relation
from lookup.commands.selection import Selection, select
from lookup.commands.sessions import java_version, spark_session
from lookup.commands.streams import data_console, progress, say, warn
from lookup.engine.ledger import MICRO
from lookup.errors import InputError, SettingsError
from lookup.hooks import Metric
from lookup.logs.outputs import Draft, draft
from lookup.logs.parquet import list_log
from lookup.model.documents import TableName
from lookup.replay.counted import check_by
from lookup.replay.outcome import ReplayOutcome
from lookup.replay.recipe import metrics_of
from lookup.replay.run import replay
from lookup.report.manifest import RunFacts, fingerprint, manifest_json
from lookup.report.markdown import markdown_report
from lookup.report.printing import Format, show
from lookup.score.metrics import lookup_register_metrics
from lookup.score.scoring import Plan, Scored, score
from lookup.score.summary import metrics_table, summary, to_json
from lookup.settings import EvaluationFile

__all__ = ["OUTPUTS", "Wanted", "evaluate"]

#: Everything an evaluation leaves in its output.
OUTPUTS = (
    "summary.json",
    "metrics.parquet",
    "decisions",
    "owners",
    "cycles",
    "quarantine",
    "manifest.json",
    "report.md",
)
_TABLES: tuple[TableName, ...] = ("lookups", "brokers", "loads", "bundles", "ownership")


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for."""

    config: str
    #: settings by key path, over those of the file
    flags: Mapping[str, object]
    output: str
    is_forced: bool
    master: str | None
    #: dimensions by which figures are told apart
    by: tuple[str, ...]
    form: Format
    #: words of the command line, for the manifest
    command: Sequence[str]


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
        """Note the seconds since the stage before."""
        now = time.monotonic()
        self.stages[f"{stage}_s"], self._last = round(now - self._last, 3), now

    def figures(self, inputs: Mapping[str, object]) -> dict[str, float | str]:
        """Return all stages, the whole, and rates of the replay."""
        seconds = self.stages.get("replay_s") or 0.001
        figures: dict[str, float | str] = {"started": self.started, **self.stages}
        figures["total_s"] = round(time.monotonic() - self.began, 3)
        for name in ("lookups", "decisions"):
            count = inputs.get(name)
            if isinstance(count, int):
                figures[f"{name}_per_s"] = round(count / seconds, 1)
        return figures


def evaluate(wanted: Wanted) -> int:
    """Run an evaluation and return its exit code.

    Raises:
        PulsarLookupError: in one sentence, for whatever the user has to change; the output is then as it was.
    """
    clock = _Clock()
    selection = select(wanted.config, wanted.flags)
    check_by(wanted.by, selection.settings.evaluation.balance_s * MICRO)
    _check_output(wanted, _inputs(selection.settings))
    with ExitStack() as stack:
        # Entered first, so left last: Spark has stopped writing when the draft is published or removed.
        target = stack.enter_context(draft(wanted.output, OUTPUTS, force=wanted.is_forced))
        tell = stack.enter_context(progress("checking the inputs"))
        _check_inputs(selection.settings)
        clock.stop("check")
        tell("starting Spark")
        spark = stack.enter_context(spark_session(wanted.master))
        clock.stop("spark")
        outcome = replay(spark, selection.settings, target.path, by=wanted.by, progress=tell, warn=warn)
        clock.stop("replay")
        tell("scoring")
        scored = _scored(selection, outcome)
        clock.stop("score")
        _write(target, scored)
        facts = _facts(wanted, selection, scored, versions={"java": java_version(spark)}, clock=clock)
        target.write("manifest.json", manifest_json(facts, selection.registry))
    _tell_failures(outcome)
    show(scored, wanted.form, data_console())
    say(f"results are in {wanted.output}; report.md is for people, summary.json for programs")
    return scored.exit_code


def _inputs(settings: EvaluationFile) -> dict[TableName, str]:
    """Return the paths of the tables that are given."""
    paths = {name: getattr(settings.inputs, name) for name in _TABLES}
    return {name: path for name, path in paths.items() if path is not None}


def _check_output(wanted: Wanted, inputs: Mapping[TableName, str]) -> None:
    """Refuse an output among the inputs: the next run would read results as a table, or lose its settings."""
    named = {"--config": wanted.config, **{f"inputs.{name}": path for name, path in inputs.items()}}
    problems = [
        f"--output: {wanted.output} {found} {path}, which is {name}; name a folder apart from the inputs"
        for name, path in named.items()
        if (found := relation(wanted.output, path)) is not None
    ]
    if problems:
        raise SettingsError(problems)


def _check_inputs(settings: EvaluationFile) -> None:
    """Find every input that is missing or no such table before Spark is started."""
    if settings.inputs.lookups is None:
        raise SettingsError("there is no log: give --lookups PATH, or inputs.lookups in the evaluation")
    problems = []
    for name, path in _inputs(settings).items():
        try:
            list_log(path, name)
        except InputError as error:
            problems.append(f"inputs.{name}: {error}")
    if problems:
        raise SettingsError(problems)


def _scored(selection: Selection, outcome: ReplayOutcome) -> Scored:
    settings = selection.settings
    names = tuple(policy.name for policy in settings.policies)
    plan = Plan(names, settings.evaluation, settings.verdict, labels=_labels(selection))
    return score(outcome, _metrics(selection), plan)


def _labels(selection: Selection) -> tuple[str, ...]:
    """Return the properties that a policy reads or that settings give to clients, sorted."""
    reads = frozenset[str]().union(*(policy.reads for policy in selection.policies))
    read = {field.removeprefix("properties.") for field in reads if field.startswith("properties.")}
    return tuple(sorted(read.union(*(entry.properties for entry in selection.settings.clients))))


def _metrics(selection: Selection) -> list[Metric]:
    """Return every registered metric: the built-in ones in the order of reports, then those of others by name."""
    order = [metric.name for metric in lookup_register_metrics()]
    return sorted(metrics_of(selection.registry), key=lambda metric: _place(order, metric.name))


def _place(order: Sequence[str], name: str) -> tuple[int, str]:
    return (order.index(name), "") if name in order else (len(order), name)


def _write(target: Draft, scored: Scored) -> None:
    target.write("summary.json", to_json(summary(scored)).encode())
    target.write("report.md", markdown_report(scored).encode())
    sink = pa.BufferOutputStream()
    pq.write_table(metrics_table(scored), sink, compression="zstd")
    target.write("metrics.parquet", sink.getvalue().to_pybytes())


def _facts(
    wanted: Wanted, selection: Selection, scored: Scored, *, versions: Mapping[str, str], clock: _Clock
) -> RunFacts:
    settings = selection.settings
    return RunFacts(
        command=wanted.command,
        exit_code=scored.exit_code,
        settings=settings.model_dump(mode="json"),
        sources=settings.sources,
        seeds=settings.evaluation.seeds,
        inputs={name: fingerprint(path) for name, path in _inputs(settings).items()},
        wall_clock=clock.figures(scored.inputs),
        versions=versions,
    )


def _tell_failures(outcome: ReplayOutcome) -> None:
    """Say which policies went on although a part of theirs raised."""
    failures = outcome.inputs.get("failures")
    if isinstance(failures, Mapping) and failures:
        counts = ", ".join(f"{policy} {count:,} times" for policy, count in failures.items())
        first = outcome.inputs.get("first_failure")
        warn(f"parts of policies failed and on_error let them go on: {counts}; the first: {first}")
