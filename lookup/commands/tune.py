"""Carry out `lookup tune`: from today's settings and a recorded log to the settings to change."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lookup.api.arguments import require_apart
from lookup.api.files import PAGE_PACKAGES
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
from lookup.tuning.wording import (
    SEALED,
    SEARCHED,
    Figures,
    answers,
    beside_today,
    confirmation,
    figure_rows,
    gain_text,
    label,
    number_of,
    restart_text,
    sentences,
)

if TYPE_CHECKING:
    # It needs what only `run` asks for.
    from lookup.api.tuning import Tuning

__all__ = ["COMMAND", "explain_candidate"]

#: Settings that are instants of one log.
_TIMES = ("since", "until", "scored_from")


def _add_arguments(parser: Parser) -> None:
    add_config(parser, "SEARCH", "TOML file with [tune] and [[spaces]]", "tune.candidates=200")
    parser.add_argument(
        "--broker-conf", metavar="FILE", help="broker.conf to improve, in place of SEARCH, with shipped spaces"
    )
    parser.add_argument(
        "--against",
        metavar="PATH",
        help="LOOKUPS of another log, in place of SEARCH, to judge the finalists in --output",
    )
    parser.instead["config"] = ("broker_conf", "against")
    add_output(parser, "the results. An interrupted search in it is resumed")
    parser.add_argument("--lookups", metavar="PATH", help="LOOKUPS table to read in place of inputs.lookups")
    parser.add_argument("--brokers", metavar="PATH", help="BROKERS table to read in place of inputs.brokers")
    parser.add_argument(
        "--no-holdout", action="store_true", help="search on all days of a short log, without confirmation"
    )
    add_master(parser)
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    """Search, print what was found, and return 0 with a recommendation or 4 with none."""
    names = {"config": "SEARCH", "broker_conf": "--broker-conf", "against": "--against"}
    searches = [name for dest, name in names.items() if getattr(arguments, dest) is not None]
    if len(searches) > 1:
        raise SettingsError(f"{searches[-1]}: stands for a whole search; leave {searches[0]} out")
    require_extra("tune", "pyspark", "pyarrow", "pandas", "scipy")
    if arguments.against is not None:
        return _run_against(arguments)
    # Python forgets an interruption that comes while an import gives its lock back.
    with interrupted_later():
        from lookup.api.evaluating import size_of
        from lookup.api.log_trials import LogTrials
        from lookup.api.selection import given_inputs, select
        from lookup.api.tuning import TuneRun
        from lookup.commands.workers import workers_of
        from lookup.logs.jobs import watched_by
        from lookup.settings.loader import load_tuning
        from lookup.settings.tuning import apart
        from lookup.tuning.sought import from_broker_conf

    tables = {f"inputs.{name}": path for name in ("lookups", "brokers") if (path := getattr(arguments, name))}
    own, rest = apart({**settings_flags(arguments), **tables})
    file = load_tuning(
        arguments.config if arguments.broker_conf is None else from_broker_conf(arguments.broker_conf), own
    )
    selection = select(file.tune.evaluation, rest, warn, source=COMMAND_LINE)
    inputs = {f"inputs.{name}": path for name, path in given_inputs(selection.settings).items()}
    if isinstance(file.tune.evaluation, str):
        inputs["tune.evaluation"] = file.tune.evaluation
    given = {"config": arguments.config, "broker_conf": arguments.broker_conf}
    require_apart({"output": arguments.output}, given | inputs)
    with ExitStack() as stack:
        report_stage = stack.enter_context(progress("checking the inputs"))
        trials = LogTrials.of(file, selection, holdout=not arguments.no_holdout)
        search = TuneRun.of(file, trials, arguments.output, force=arguments.force)
        trials.workers = stack.enter_context(
            workers_of(arguments.master, lambda: size_of(selection.settings), starting=report_stage)
        )
        stack.enter_context(watched_by(report_stage.done))
        try:
            found = search.finish(progress=report_stage, warn=warn)
        except BaseException as error:
            if is_interruption(error):
                without = " without --force" if arguments.force else ""
                raise KeyboardInterrupt(f"the same command{without} goes on with the search") from None
            raise
    return _deliver(found, arguments.format)


def _run_against(arguments: argparse.Namespace) -> int:
    """Judge the finalists of a finished search on another log, print the result, and return 0 or 4."""
    with interrupted_later():
        from lookup.api.evaluating import size_of
        from lookup.api.log_trials import SEALED
        from lookup.api.selection import given_inputs, select
        from lookup.api.tuning import confirm_elsewhere, open_tuning
        from lookup.commands.workers import workers_of
        from lookup.logs.jobs import watched_by
        from lookup.report.confirmation import new_seeds
        from lookup.report.figures import read_run, settings_given

    if arguments.lookups is not None or arguments.no_holdout or arguments.force:
        raise SettingsError("--against: judges a finished search; leave --lookups, --no-holdout and --force out")
    found = open_tuning(arguments.output)
    given = settings_flags(arguments) | {"inputs.lookups": arguments.against}
    given |= {} if arguments.brokers is None else {"inputs.brokers": arguments.brokers}
    if not found.document()["finalists"]:
        raise SettingsError(f"--against: the search in {found.folder} had no finalist, so there is nothing to confirm")
    sealed = read_run(f"{found.folder}/{SEALED}")
    settings = settings_given(sealed)
    kept = {key: value for key, value in settings["evaluation"].items() if key not in _TIMES}
    of_log = {f"inputs.{name}" for name in ("loads", "bundles", "ownership") if settings["inputs"].get(name)}
    if missing := sorted(of_log - given.keys()):
        raise SettingsError(
            [f"{key}: the search had this table of its own log; set the other log's" for key in missing]
        )
    selection = select(settings | {"evaluation": kept | new_seeds(sealed)}, given, warn, source=COMMAND_LINE)
    inputs = {f"inputs.{name}": path for name, path in given_inputs(selection.settings).items()}
    require_apart({"output": arguments.output}, {"against": arguments.against} | inputs)
    with ExitStack() as stack:
        report_stage = stack.enter_context(progress("checking the inputs"))
        workers = stack.enter_context(
            workers_of(arguments.master, lambda: size_of(selection.settings), starting=report_stage)
        )
        stack.enter_context(watched_by(report_stage.done))
        found = confirm_elsewhere(found, selection, workers, progress=report_stage, warn=warn)
    return _deliver(found, arguments.format)


def _deliver(found: Tuning, form: str | None) -> int:
    """Print what a search has found, and where it is; return its exit code."""
    from lookup.api.tuning import TUNE_PAGE
    from lookup.logs.outputs import keeps
    from lookup.tuning.document import read_figures

    with keeps(found.folder):
        document = found.document()
        if form == "json":
            print_json(document)
        else:
            _print(document, beside_today(read_figures(document)))
        missing = [package for package in PAGE_PACKAGES if find_spec(package) is None]
        if missing:
            note(f"no {TUNE_PAGE}, which needs {missing[0]}: install it with pip install 'pulsar-lookup[report]'")
        page = "" if missing else f"{TUNE_PAGE} for people, "
        parts = [("sealed", confirmation(document))] if document["finalists"] else []
        parts += [(log["folder"], log["log"]) for log in document["against"]]
        reports = "".join(f", in {folder}/ the report of the finalists on {days}" for folder, days in parts)
        note(f"results are in {found.folder}: {page}tune.json for programs{reports}")
    return found.exit_code


def explain_candidate(folder: str, number: int, form: str) -> int:
    """Print what one candidate of a search changes, what it did, and why it is not recommended; return 0."""
    require_extra("explain", "pyspark", "pyarrow", "pandas", "scipy")
    from lookup.api.tuning import open_tuning
    from lookup.tuning.document import read_figures

    found = open_tuning(folder)
    one = found.candidate(number)
    if form == "json":
        print_json(one)
        return 0
    document, figures = found.document(), beside_today(read_figures(found.document()))
    console = data_console()
    for line in _account(one, is_finalist=(number, SEALED) in figures):
        console.print(plain(line), soft_wrap=True)
    today, sealed, rows = figures[0, SEARCHED], figures.get((number, SEALED), {}), []
    for name, figure in figures.get((number, SEARCHED), {}).items():
        texts = number_of(today[name]), number_of(figure), gain_text(figure)
        rows.append((label(name, document), *texts, gain_text(sealed[name]) if sealed else "-"))
    console.print()
    plain_table(
        console, ("figure", "today", "candidate", "gain in the search", f"gain on {confirmation(document)}"), rows
    )
    return 0


def _account(one: Mapping[str, Any], *, is_finalist: bool) -> Iterator[str]:
    where = f", of the space {one['space']}" if one["space"] else ""
    yield f"candidate {one['candidate']}, {one['origin']}{where}"
    for key, value in one["changes"].items():
        yield f"{key} = {value}, today {one['before'][key]}"
    reasons = {
        "of": "it takes back changes of candidate {}",
        "idle": "it cannot act on this log: {}",
        "beaten_by": "candidate {} is significantly better",
        "objection": "not recommended: {}",
    }
    for key, text in reasons.items():
        if one.get(key) is not None:
            yield text.format(one[key])
    # A finalist has an answer, and so has who is out; of the others it is said how far they came.
    is_judged = is_finalist or one.get("idle") is not None or one.get("beaten_by") is not None
    if one.get("raced") is not None and not is_judged:
        yield (
            "not a finalist: in the last race other candidates gained more, or its gain was not significant"
            if one["raced"]
            else "not a finalist: other candidates looked better, so it was not in the last race"
        )
    if one.get("cycles") is not None:
        yield f"on the sealed days {one['cycles']}"


def _print(document: Mapping[str, Any], figures: Figures) -> None:
    console = data_console()
    for sentence in (*answers(document), *sentences(document)):
        console.print(plain(sentence), soft_wrap=True)
    if document["finalists"]:
        console.print()
        plain_table(console, *figure_rows(document, figures))
    for one in document["recommended"]:
        _print_recommended(one, figures[one["candidate"], SEALED]["moves"].value)


def _print_recommended(one: Mapping[str, Any], moves: float) -> None:
    console = data_console()
    lines = [f"candidate {one['candidate']} of the space {one['space']}:"]
    if not math.isnan(moves):
        lines.append(f"about {moves:,.0f} moves a day")
    lines += ["", "broker.conf:", *one["patch"].splitlines()] if one["patch"] else []
    lines += ["", one["caution"]] if one.get("caution") else []
    if one["dynamic"]:
        lines += ["", "in a running cluster:", *one["dynamic"], "", "and back:", *one["back"]]
    lines += ["", restart_text(one["restart"])] if one["restart"] else []
    lines += ["", "as a policy:", *to_toml({"policies": [one["policy"]]}).splitlines()]
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
        ("lookup tune --against logs/next-week --output tuned", "the finalists on another log"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
