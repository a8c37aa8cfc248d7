"""Carry out `lookup plan`, which computes the moves to make now, or shows a plan."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lookup.api.arguments import require_apart
from lookup.commands.cluster_flags import CONNECTION, add_cluster, cluster_of, endpoints_of
from lookup.commands.options import (
    Command,
    Parser,
    add_format,
    add_plugin_files,
    duration,
    moment,
    number,
    require_extra,
    settings_path,
    whole,
)
from lookup.commands.streams import data_console, note, plain, plain_table, print_json, progress, warn
from lookup.errors import SettingsError

if TYPE_CHECKING:
    from lookup.api.moving import ClusterSource
    from lookup.moving.plan import MovePlan
    from lookup.report.blocks import Table

__all__ = ["COMMANDS"]

#: Seconds of waiting for reports of a running cluster unless --wait sets it.
_WAIT_S = 60.0
#: Rows of a table unless all are asked for.
_ROWS = 20


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("--record", metavar="DIR", help="record of `lookup collect` to read in place of a live cluster")
    parser.add_argument("--at", type=moment, dest="at", metavar="TIME", help="instant of --record (default: its end)")
    add_cluster(parser)
    parser.add_argument(
        "--wait", type=duration, dest="wait_s", metavar="TIME", help="longest wait for load reports (default: 60s)"
    )
    parser.add_argument(
        "--namespaces",
        metavar="FILE",
        help="TOML file with [[namespaces]] (default: those of the record or the cluster)",
    )
    parser.add_argument(
        "--lookups", metavar="PATH", help="LOOKUPS table of the cluster, for the locations of clients in the day before"
    )
    parser.add_argument("--output", metavar="DIR", help="new or empty folder for plan.json")
    parser.add_argument("--force", action="store_true", help="replace an earlier plan in it, but no other file")
    parser.add_argument(
        "--policy", type=settings_path, metavar="FILE", help="TOML file of a policy (default: shipped:rebalance)"
    )
    parser.add_argument("--max-moves", type=whole, metavar="N", help="largest number of moves")
    parser.add_argument("--max-weight", type=number, metavar="B/S", help="largest load to move, in bytes per second")
    parser.many("--only", metavar="NAMESPACE", help="namespace whose bundles may move")
    parser.many("--drain", metavar="BROKER", help="broker to empty first, by id or host")
    add_plugin_files(parser, "parts of policies")
    _add_print_flags(parser)


def _source_of(arguments: argparse.Namespace) -> ClusterSource:
    problems = []
    if arguments.record is None and not any(getattr(cluster_of(arguments), name) for name in CONNECTION):
        problems.append("no cluster is given: give --record DIR or --cluster FILE")
    if arguments.record is None and arguments.at is not None:
        problems.append("--at: is an instant of a record; give --record as well")
    if arguments.record is not None and arguments.wait_s is not None:
        problems.append("--wait: is for a cluster that is read now; --record has the reports that it has, leave it out")
    if arguments.namespaces is not None and not Path(arguments.namespaces).is_file():
        problems.append(f"--namespaces: there is no file {arguments.namespaces}")
    if problems:
        raise SettingsError(problems)
    require_extra("plan", "scipy", extra="report")
    endpoints = endpoints_of(arguments)
    from lookup.api.moving import ClusterSource

    return ClusterSource(
        arguments.record,
        arguments.at,
        endpoints,
        _WAIT_S if arguments.wait_s is None else arguments.wait_s,
        arguments.namespaces,
        arguments.lookups,
    )


def _run(arguments: argparse.Namespace) -> int:
    source = _source_of(arguments)
    if arguments.force and arguments.output is None:
        raise SettingsError("--force: replaces an earlier plan in --output, which is not given")
    from lookup.api.moving import DEFAULT_POLICY, plan
    from lookup.logs.outputs import require_free
    from lookup.moving.plan import PLAN

    if arguments.output is not None:
        # Before a cluster is read, which may take a minute.
        inputs = ("record", "policy", "namespaces", "lookups")
        require_apart({"output": arguments.output}, {name: getattr(arguments, name) for name in inputs})
        require_free(arguments.output, force=arguments.force)
    with progress("reading settings") as stage:
        result = plan(
            source,
            policy=arguments.policy or DEFAULT_POLICY,
            max_moves=arguments.max_moves,
            max_weight=arguments.max_weight,
            only=arguments.only,
            drain=arguments.drain,
            plugin_files=arguments.plugin_file,
            progress=stage,
        )
        if arguments.output is not None:
            result.write(arguments.output, force=arguments.force)
    if arguments.output is not None:
        note(f"the plan is {arguments.output}/{PLAN}; nothing was moved")
    return _print(result.plan, arguments)


def _print(document: MovePlan, arguments: argparse.Namespace) -> int:
    exit_code = 0 if document.steps else 4
    if arguments.format == "json":
        print_json(document.model_dump(mode="json"))
        return exit_code
    from lookup.report.plans import brokers_table, figures_table, plan_notes, refused_table, steps_table

    console = data_console()
    headline = f"{len(document.steps):,} moves to make" if document.steps else "nothing is worth moving"
    console.print(plain(f"cluster {document.cluster}, {document.made:%Y-%m-%d %H:%M:%S} UTC: {headline}", style="bold"))
    why, *notes = plan_notes(document)
    console.print(plain(why), soft_wrap=not console.is_terminal)
    _print_table(figures_table(document))
    if document.steps:
        _print_table(steps_table(document), whole=arguments.whole)
    _print_table(brokers_table(document), whole=arguments.whole)
    if document.refused:
        _print_table(refused_table(document), whole=arguments.whole)
    missing = set(document.missing)
    for sentence in notes:
        if sentence in missing:
            warn(sentence)
        else:
            console.print(plain(sentence), soft_wrap=not console.is_terminal)
    return exit_code


def _print_table(table: Table, *, whole: bool = True) -> None:
    rows = [[cell.text for cell in row] for row in table.cells]
    head = rows if whole else rows[:_ROWS]
    plain_table(data_console(), table.columns, head)
    if len(head) < len(rows):
        note(f"{len(rows) - len(head):,} more; --all shows them")


def _add_show_arguments(parser: Parser) -> None:
    parser.need("plan", metavar="PLAN", help="plan.json, or its folder", nargs="?")
    _add_print_flags(parser)


def _add_print_flags(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", dest="whole", help="print every row of every table")
    add_format(parser, "table", "json")


def _run_show(arguments: argparse.Namespace) -> int:
    # Not by `lookup.api`, which loads the modules that make plans.
    from lookup.moving.plan import read_plan

    return _print(read_plan(arguments.plan), arguments)


COMMANDS = (
    Command(
        name="plan",
        examples=(
            ("lookup plan --cluster cluster.toml --output plan", "the moves of shipped:rebalance"),
            ("lookup plan --record record --at 2026-01-01T12:00:00Z", "plan at an instant of a record"),
            ("lookup plan --record record --drain broker-2 --max-moves 40", "empty broker-2, then balance"),
            ("lookup plan --record record --policy tuned.toml --only shop/orders", "plan with a policy of your own"),
        ),
        add_arguments=_add_arguments,
        run=_run,
    ),
    Command(
        name="plan show",
        examples=(("lookup plan show plan", "its figures, moves and brokers, and the bundles that must stay"),),
        add_arguments=_add_show_arguments,
        run=_run_show,
    ),
)
