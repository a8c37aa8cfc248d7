"""Carry out `lookup tune`, from today's settings and a recorded log to the settings to change."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from lookup.api.arguments import require_apart
from lookup.commands.failures import interrupted_later, is_interruption
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
from lookup.commands.show import to_toml
from lookup.commands.streams import data_console, note, plain, plain_table, print_json, progress, warn
from lookup.errors import SettingsError
from lookup.tuning.wording import SEALED, Figures, beside_today, confirmation, figure_rows, restart_text, sentences

if TYPE_CHECKING:
    # It needs modules that only `run` loads.
    from lookup.api.tuning import Tuning

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    add_config(parser, "SEARCH", "TOML file with [tune] and [[spaces]]", "tune.candidates=200")
    parser.add_argument(
        "--broker-conf", metavar="FILE", help="broker.conf to improve, in place of SEARCH, with shipped spaces"
    )
    parser.instead["config"] = ("broker_conf",)
    add_output(parser, "the results. An interrupted search in it is resumed")
    parser.add_argument("--lookups", metavar="PATH", help="LOOKUPS table to read in place of inputs.lookups")
    parser.add_argument("--brokers", metavar="PATH", help="BROKERS table to read in place of inputs.brokers")
    parser.add_argument(
        "--no-holdout", action="store_true", help="search on all days of a short log, without confirmation"
    )
    add_master(parser)
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.config is not None and arguments.broker_conf is not None:
        raise SettingsError("--broker-conf: stands for a whole search; leave SEARCH out")
    require_extra("tune", "pyspark", "pyarrow", "pandas", "scipy")
    # Python forgets an interruption that comes while an import gives its lock back.
    with interrupted_later():
        from lookup.api.evaluating import size_of
        from lookup.api.log_trials import LogTrials
        from lookup.api.selection import given_inputs, select
        from lookup.api.tuning import TuneRun
        from lookup.commands.workers import workers_of
        from lookup.logs.jobs import watched_by
        from lookup.settings.loader import load_tuning
        from lookup.settings.tuning import split_overrides
        from lookup.tuning.sought import from_broker_conf

    tables = {f"inputs.{name}": path for name in ("lookups", "brokers") if (path := getattr(arguments, name))}
    own, rest = split_overrides({**settings_flags(arguments), **tables})
    file = load_tuning(
        arguments.config if arguments.broker_conf is None else from_broker_conf(arguments.broker_conf), own
    )
    selection = select(file.tune.evaluation, rest, warn, source=COMMAND_LINE)
    inputs = {f"inputs.{name}": path for name, path in given_inputs(selection.settings).items()}
    if isinstance(file.tune.evaluation, str):
        inputs["tune.evaluation"] = file.tune.evaluation
    files = {"config": arguments.config, "broker_conf": arguments.broker_conf}
    require_apart({"output": arguments.output}, files | inputs)
    with ExitStack() as stack:
        report_stage = stack.enter_context(progress("checking the inputs"))
        trials = LogTrials.of(file, selection, holdout=not arguments.no_holdout)
        search = TuneRun.of(file, trials, arguments.output, force=arguments.force)
        trials.workers = stack.enter_context(
            workers_of(arguments.master, lambda: size_of(selection.settings), starting=report_stage)
        )
        stack.enter_context(watched_by(report_stage.done))
        try:
            result = search.finish(progress=report_stage, warn=warn)
        except BaseException as error:
            if is_interruption(error):
                without = " without --force" if arguments.force else ""
                raise KeyboardInterrupt(f"the same command{without} goes on with the search") from None
            raise
    return _deliver(result, arguments.format)


def _deliver(result: Tuning, form: str | None) -> int:
    from lookup.logs.outputs import keeps
    from lookup.tuning.document import read_figures

    with keeps(result.folder):
        document = result.document()
        if form == "json":
            print_json(document)
        else:
            _print(document, beside_today(read_figures(document)))
        report = (
            f", in sealed/ the report of the finalists on {confirmation(document)}" if document["finalists"] else ""
        )
        note(f"results are in {result.folder}: tune.json for programs{report}")
    return result.exit_code


def _print(document: Mapping[str, Any], figures: Figures) -> None:
    console = data_console()
    for sentence in (document["conclusion"], *sentences(document)):
        console.print(plain(sentence), soft_wrap=True)
    if document["finalists"]:
        console.print()
        plain_table(console, *figure_rows(document, figures))
    for candidate in document["recommended"]:
        _print_recommended(candidate, figures[candidate["candidate"], SEALED]["moves"].value)


def _print_recommended(candidate: Mapping[str, Any], moves: float) -> None:
    console = data_console()
    lines = [f"candidate {candidate['candidate']} of the space {candidate['space']}:"]
    if not math.isnan(moves):
        lines.append(f"about {moves:,.0f} moves a day")
    lines += ["", "broker.conf:", *candidate["patch"].splitlines()] if candidate["patch"] else []
    lines += ["", candidate["caution"]] if candidate.get("caution") else []
    if candidate["dynamic"]:
        lines += ["", "in a running cluster:", *candidate["dynamic"], "", "and back:", *candidate["back"]]
    lines += ["", restart_text(candidate["restart"])] if candidate["restart"] else []
    lines += ["", "as a policy:", *to_toml({"policies": [candidate["policy"]]}).splitlines()]
    console.print()
    for line in lines:
        console.print(plain(line), soft_wrap=True)


COMMAND = Command(
    name="tune",
    examples=(
        (
            "lookup tune --broker-conf broker.conf --lookups logs/lookups --output tuned",
            "keys of broker.conf to change",
        ),
        ("lookup tune tune.toml --output tuned --set tune.minutes=10", "ten minutes with spaces of your own"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
