"""Evaluate policies over a log, from settings to a folder of results, and confirm a finished run with new seeds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.api.arguments import names_of, policies_of, require_path
from lookup.api.given import FRAME, Table, given_tables
from lookup.api.outputs import OUTPUTS, PAGE, can_draw, result_folder
from lookup.api.results import Evaluation
from lookup.api.selection import Selection, given_inputs, unreadable_inputs
from lookup.engine.ledger import MICRO
from lookup.errors import Argument, InputError, SettingsError
from lookup.logs.jobs import Workers
from lookup.logs.outputs import Draft, draft
from lookup.logs.sources import list_log
from lookup.model.documents import TableName
from lookup.replay.counted import check_by
from lookup.replay.outcome import InputFacts, ReplayOutcome
from lookup.replay.reports import report_paths
from lookup.replay.run import replay
from lookup.replay.tasks import metrics_of
from lookup.report.confirmation import confirming, remaining_changes
from lookup.report.figures import Results, read_run, results_of, summary, to_json
from lookup.report.manifest import RunFacts, fingerprint, manifest_json
from lookup.report.markdown import markdown_report
from lookup.report.sentences import no_answer_sentences
from lookup.score.figures import figures_table
from lookup.score.metrics import lookup_register_metrics
from lookup.score.scoring import Scored, ScoringPlan, score
from lookup.settings import EvaluationFile
from lookup.spark.choosing import Size, rows_of
from lookup.spark.cluster import check_reach, ship_code

if TYPE_CHECKING:
    # A run without Spark does not load it.
    from pyspark.sql import DataFrame

__all__ = ["Clock", "check_inputs", "confirm", "evaluate", "evaluate_into", "given_inputs", "size_of"]


@dataclass
class Clock:
    """Seconds of the stages of a run."""

    began: float = field(default_factory=time.monotonic)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    stages: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.monotonic)

    def stop(self, stage: str) -> None:
        """Record the seconds since the stage before."""
        now = time.monotonic()
        self.stages[f"{stage}_s"], self._last = round(now - self._last, 3), now

    def figures(self, inputs: InputFacts) -> dict[str, float | str]:
        """Compute the times of all stages, the total, and rates of the replay."""
        # A log of a few rows may take less than the millisecond that stages are rounded to.
        seconds = self.stages.get("replay_s") or 0.001
        figures: dict[str, float | str] = {"started": self.started, **self.stages}
        figures["total_s"] = round(time.monotonic() - self.began, 3)
        counts = {"lookups": inputs.lookups, "decisions": inputs.decisions}
        return figures | {f"{name}_per_s": round((count or 0) / seconds, 1) for name, count in counts.items()}


def evaluate(  # noqa: PLR0913  each is a choice of its own, and few are needed
    lookups: Table | None = None,
    *,
    policies: Sequence[str | os.PathLike[str] | Mapping[str, object]] | None = None,
    incumbent: str | None = None,
    settings: str | os.PathLike[str] | Mapping[str, object] | None = None,
    brokers: Table | None = None,
    loads: Table | None = None,
    bundles: Table | None = None,
    ownership: Table | None = None,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    by: str | Sequence[str] = (),
    overrides: Mapping[str, object] | None = None,
    workers: Workers | None = None,
    progress: Callable[[str], None] = lambda message: None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> Evaluation:
    """Replay policies over a log and compare them with the incumbent.

    A table is a path, frame (pandas, Arrow, Polars, DuckDB, Spark) or list of mappings. Arguments override settings.

    Args:
        lookups: the log, a table LOOKUPS. A DataFrame of Spark is read by its own session and needs `seq`.
        policies: each is the name of a shipped policy, the path of a TOML file, or the content of such a file.
        incumbent: name of the policy that the others are compared with, which your cluster runs today.
        settings: path of an evaluation, or its content. Only needed for settings without an argument.
        brokers: a table BROKERS with times of registrations, or without times, rows as in `brokers` of the settings.
        loads: a table LOADS with reports of brokers, for `evaluation.load = "reported"`.
        bundles: a table BUNDLES, statistics of bundles.
        ownership: a table OWNERSHIP, with first owners, unloads by administrators, and splits.
        output: new or empty folder for the results, by default a temporary one, removed with the returned object.
        force: replace earlier results in `output`.
        by: one or several dimensions by which figures are also reported, from tenant, namespace, rack, hour.
        overrides: settings by key path, `{"evaluation.seeds": 30}`.
        workers: a Spark session, or `InProcess()`. The default is the active session, else this process and forks of it
            for a log of fewer than 200,000 rows, else a local session, which stays.
        progress: called with one short sentence at each step.
        warn: called with a sentence that a user should read.

    Raises:
        PulsarLookupError: in one sentence, for anything that the caller has to change. `output` is then unchanged.
    """
    from lookup.api.workers import check_workers, workers_for

    if settings is None and (policies is None or incumbent is None):
        raise SettingsError("which policies? give policies and incumbent, or settings")
    by = names_of("by", by)
    check_workers(workers)
    clock = Clock()
    chosen = {"policies": policies_of(policies), "evaluation.incumbent": incumbent}
    tables = {"lookups": lookups, "brokers": brokers, "loads": loads, "bundles": bundles, "ownership": ownership}
    with result_folder(output) as (folder, ties), given_tables(tables, chosen, keeps_log=True) as inputs:
        selection = inputs.select({} if settings is None else settings, overrides, warn)
        check_by(by, selection.settings.evaluation.balance_s * MICRO)
        check_inputs(selection.settings, has_frame=inputs.lookups is not None)
        clock.stop("check")
        of_frame = None if inputs.lookups is None else inputs.lookups.sparkSession
        runs_on = workers_for(workers or of_frame, lambda: size_of(selection.settings), progress)
        # A frame is read by its own session, whatever runs the rest.
        executor = runs_on if of_frame is None else of_frame
        ship_code(executor)
        clock.stop("spark")
        with draft(folder, OUTPUTS, force=force) as target:
            _, results = evaluate_into(
                target,
                selection,
                runs_on,
                by=by,
                lookups=inputs.lookups,
                frames=tuple(inputs.files.values()),
                progress=progress,
                warn=warn,
                command=["evaluate"],
                clock=clock,
            )
        evaluation = Evaluation(folder, results)
        ties(evaluation)
    return evaluation


def evaluate_into(  # noqa: PLR0913  what a command and a program give differently
    target: Draft,
    selection: Selection,
    workers: Workers,
    *,
    by: Sequence[str],
    lookups: DataFrame | None = None,
    frames: Collection[TableName] = (),
    progress: Callable[[str], None],
    warn: Callable[[str], None],
    command: Sequence[str],
    clock: Clock,
) -> tuple[Scored, Results]:
    """Replay, score and write all results into a draft. The page is written only if its drawing code is installed.

    Args:
        frames: tables whose files belong to this call only.
    """
    settings = selection.settings
    executor = workers if lookups is None else lookups.sparkSession
    # Tasks read all tables but BROKERS.
    log = settings.inputs.lookups if lookups is None else None
    check_reach(executor, [*([] if log is None else [log]), *report_paths(settings).values()], target.path)
    outcome = replay(workers, settings, target.path, by=by, progress=progress, warn=warn, lookups=lookups)
    clock.stop("replay")
    progress("scoring")
    scored = scored_of(selection, outcome)
    settings = settings.model_copy(update={"evaluation": scored.plan.evaluation})
    clock.stop("score")
    results = results_of(scored)
    target.write("summary.json", to_json(summary(results)).encode())
    target.write("report.md", markdown_report(results).encode())
    # Written in memory, since a draft may be on any file system.
    sink = pa.BufferOutputStream()
    pq.write_table(figures_table(results.figures), sink, compression="zstd")
    target.write("metrics.parquet", sink.getvalue().to_pybytes())
    # After the results, since it has their time. The page is drawn from its content.
    facts = RunFacts(
        command=command,
        exit_code=scored.exit_code,
        settings=settings.model_dump(mode="json"),
        sources=settings.sources,
        seeds=outcome.seeds,
        inputs={
            name: fingerprint(path) | ({"path": FRAME} if name in frames else {})
            for name, path in given_inputs(settings).items()
        },
        wall_clock=clock.figures(scored.inputs),
    )
    written = manifest_json(facts, selection.registry)

    if can_draw():
        from lookup.report.page import html_report

        progress("drawing the page")
        try:
            page = html_report(read_run(target.path, manifest=written), folder=target.output).encode()
        # The results are complete without the page and may have taken hours of replays. The page can be drawn again.
        except Exception as error:  # noqa: BLE001  any fault of a chart
            warn(f"{PAGE} could not be drawn, all other results are complete: {type(error).__name__}: {error}")
        else:
            target.write(PAGE, page)
    # The last file of all. A run without a manifest is not complete, and is not read.
    target.write("manifest.json", written)
    for sentence in no_answer_sentences(results):
        warn(sentence)
    if outcome.inputs.failures:
        counts = ", ".join(f"{policy} {count:,} times" for policy, count in outcome.inputs.failures.items())
        first = outcome.inputs.first_failure
        warn(f"parts of policies failed and on_error let them go on: {counts}; the first: {first}")
    return scored, results


def size_of(settings: EvaluationFile) -> Size:
    """Measure the size of a run's inputs."""
    log = settings.inputs.lookups
    return rows_of(sum(file.rows for file in list_log(log)) if log else 0)


def check_inputs(settings: EvaluationFile, *, has_frame: bool = False) -> None:
    """Report every table that is missing or malformed, before Spark takes seconds to start.

    Args:
        has_frame: whether the log is given as a DataFrame, so that settings need not name one.
    """
    if settings.inputs.lookups is None and not has_frame:
        raise SettingsError(
            "there is no log: give ", Argument("lookups", "PATH"), ", or inputs.lookups in the evaluation"
        )
    problems = unreadable_inputs(given_inputs(settings))
    if problems:
        raise SettingsError(problems)


def scored_of(selection: Selection, outcome: ReplayOutcome) -> Scored:
    """Score a replay. Its settings contain the drawn seeds, with which readers can replay the run."""
    settings = selection.settings
    evaluation = settings.evaluation.model_copy(update={"seeds": outcome.seeds, "draw": 0})
    # Built-in metrics in the order of the reports, then metrics of plug-ins by name, since registries have no order.
    builtin = {metric.name: rank for rank, metric in enumerate(lookup_register_metrics())}
    metrics = sorted(
        metrics_of(selection.registry),
        key=lambda metric: (builtin[metric.name], "") if metric.name in builtin else (len(builtin), metric.name),
    )
    # Properties that a policy reads, or that settings give to clients, which distinguish clients in the scores.
    reads = {name for policy in selection.policies for name in policy.reads if name.startswith("properties.")}
    labels = {name.removeprefix("properties.") for name in reads}
    labels.update(*(entry.properties for entry in settings.clients))
    policies = tuple(policy.name for policy in settings.policies)
    plan = ScoringPlan(policies, evaluation, settings.verdict, labels=tuple(sorted(labels)))
    return score(outcome, metrics, plan)


def confirm(
    run: str | os.PathLike[str], lookups: Table | None = None, *, candidate: str | None = None, **given: Any
) -> tuple[Evaluation, list[str]]:
    """Replay the winner of a run and its incumbent with new seeds, and describe the remaining difference.

    Args:
        run: folder of an earlier evaluation.
        lookups: another log, by default that of the run. The same applies to the other tables.
        candidate: replaces the winner.
        given: other arguments of `evaluate`, except policies and settings.

    Returns:
        The evaluation, and a sentence for each figure with a significant difference.
    """
    earlier = read_run(require_path("run", run))
    for name, recorded in earlier.manifest["inputs"].items():
        if recorded["path"] == FRAME and {**given, "lookups": lookups}.get(name) is None:
            raise InputError(Argument(name), ": the run was given a frame, which is gone; give it again")
    evaluation = evaluate(lookups, settings=confirming(earlier, candidate), **given)
    return evaluation, remaining_changes(earlier, evaluation.results)
