"""Carry out `lookup evaluate`, from settings to a folder of results and a comparison on stdout."""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from lookup.api.arguments import require_apart
from lookup.api.outputs import OUTPUTS, PAGE, PAGE_PACKAGE, can_draw
from lookup.commands.failures import interrupted_later
from lookup.commands.gates import Demands, add_gate
from lookup.commands.options import (
    COMMAND_LINE,
    Command,
    Parser,
    add_config,
    add_format,
    add_master,
    add_output,
    require_extra,
    settings_flags,
)
from lookup.commands.streams import data_console, note, plain, progress, say, warn
from lookup.errors import SettingsError

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    add_config(parser)
    parser.add_argument(
        "--confirm", metavar="RUN_DIR", help="replay a finished run's winner with new seeds, in place of EVALUATION"
    )
    parser.instead["config"] = ("confirm",)
    parser.add_argument("--candidate", metavar="NAME", help="candidate to replay with --confirm in place of the winner")
    add_output(parser, "the results")
    parser.add_argument("--lookups", metavar="PATH", help="LOOKUPS table to read in place of inputs.lookups")
    add_master(parser)
    parser.add_argument(
        "--by",
        # Names stay in the order given, which is that of the report's columns. A repeated name counts once.
        type=lambda text: tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip())),
        default=(),
        metavar="DIMENSIONS",
        help="split figures by some of tenant, namespace, rack and hour, as in --by tenant,hour",
    )
    # Only affects printing, since the output always has the report as JSON and as Markdown.
    add_format(parser, "table", "json", "markdown")
    parser.add_argument("--all", action="store_true", help="print every figure and note")
    add_gate(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Evaluate, and return 0, or 3 or 4 by the verdict, or 4 or 5 by a budget."""
    if arguments.config is not None and arguments.confirm is not None:
        raise SettingsError("--confirm: has the settings of the run it names; leave EVALUATION out")
    if arguments.candidate is not None and arguments.confirm is None:
        raise SettingsError("--candidate: is for a run to confirm; give --confirm RUN_DIR as well")
    require_extra("evaluate", "pyspark", "pyarrow", "pandas", "scipy")
    # Python forgets an interruption that comes while an import gives its lock back.
    with interrupted_later():
        from lookup.api.evaluating import Clock, check_inputs, evaluate_into, given_inputs, size_of
        from lookup.api.selection import select
        from lookup.commands.workers import workers_of
        from lookup.engine.ledger import MICRO
        from lookup.logs.jobs import watched_by
        from lookup.logs.outputs import draft, keeps
        from lookup.replay.counted import check_by
        from lookup.replay.tasks import metrics_of
        from lookup.report.confirmation import confirming, remaining_changes
        from lookup.report.figures import read_run
        from lookup.report.manifest import fingerprint
        from lookup.report.terminal import show

    clock, demands = Clock(), Demands(arguments)
    earlier = None if arguments.confirm is None else read_run(arguments.confirm)
    config = arguments.config if earlier is None else confirming(earlier, arguments.candidate)
    # `--lookups` takes precedence over `--set`, since it is the shorter form.
    lookups = {} if arguments.lookups is None else {"inputs.lookups": arguments.lookups}
    selection = select(config, {**settings_flags(arguments), **lookups}, warn, source=COMMAND_LINE)
    settings = selection.settings
    check_by(arguments.by, settings.evaluation.balance_s * MICRO)
    files = {name: getattr(arguments, name) for name in ("config", "confirm", "against", "budget")}
    inputs = {f"inputs.{name}": path for name, path in given_inputs(settings).items()}
    require_apart({name: getattr(arguments, name) for name in ("output", "junit")}, files | inputs)
    with ExitStack() as stack:
        # Entered first, so left last: Spark has stopped writing when the draft is published or removed.
        target = stack.enter_context(draft(arguments.output, OUTPUTS, force=arguments.force))
        report_stage = stack.enter_context(progress("checking the inputs"))
        check_inputs(settings)
        if not demands.is_empty:
            tables = {str(name): fingerprint(path) for name, path in given_inputs(settings).items()}
            directions = {metric.name: metric.better for metric in metrics_of(selection.registry)}
            demands.check(directions, settings.model_dump(mode="json"), tables)
        clock.stop("check")
        workers = stack.enter_context(workers_of(arguments.master, lambda: size_of(settings), starting=report_stage))
        clock.stop("spark")
        stack.enter_context(watched_by(report_stage.done))
        _, results = evaluate_into(
            target,
            selection,
            workers,
            by=arguments.by,
            progress=report_stage,
            warn=warn,
            command=arguments.argv,
            clock=clock,
        )
    with keeps(arguments.output):
        show(
            results,
            arguments.format,
            data_console(),
            folder=arguments.output,
            rest="--all prints all, report.md has them",
            detail="quiet" if arguments.quiet else "all" if arguments.all else "usual",
        )
        if earlier is not None:
            for sentence in remaining_changes(earlier, results):
                if arguments.format == "table":
                    data_console().print(plain(sentence), soft_wrap=True)
                else:
                    say(sentence)
        if not can_draw():
            note(f"no {PAGE}, which needs {PAGE_PACKAGE}: install it with pip install 'pulsar-lookup[report]'")
        pages = f"{PAGE} and report.md are" if can_draw() else "report.md is"
        note(f"results are in {arguments.output}; {pages} for people, summary.json for programs")
        if demands.is_empty:
            return results.exit_code
        return demands.deliver(read_run(arguments.output), is_printed=arguments.format == "table")


COMMAND = Command(
    name="evaluate",
    examples=(
        ("lookup evaluate evaluation.toml --output report", "print the comparison, and write it to report/"),
        ("lookup evaluate evaluation.toml --output report --force --by tenant,hour", "split by tenant and hour"),
        ("lookup evaluate evaluation.toml --output report --set evaluation.seeds=30", "thirty replicates"),
        ("lookup evaluate evaluation.toml --output report --budget budget.toml", "exit code 5 above the budget"),
        ("lookup evaluate --confirm report --lookups logs/tuesday --output confirmed", "the winner with new seeds"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
