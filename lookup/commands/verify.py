"""Carry out `lookup verify`: take recorded decisions again, or measure what a plan of moves predicted."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from lookup.commands.cluster_flags import add_cluster
from lookup.commands.options import Command, Parser, add_format, add_plugin_files, duration, moment, require_extra
from lookup.commands.plan import add_lookups, source_of
from lookup.commands.streams import data_console, note, plain, plain_table, print_json, progress
from lookup.model.quoting import quantity

if TYPE_CHECKING:
    from lookup.moving.verifying import PlanMeasured
    from lookup.serve.verifying import Verified

__all__ = ["COMMAND"]

#: Seconds that brokers have to report.
_REPORTS_S = 60.0


def _add_arguments(parser: Parser) -> None:
    parser.need(
        "recorded", nargs="?", metavar="RECORD_OR_JOURNAL", help="record of `lookup serve` or journal of `lookup apply`"
    )
    parser.add_argument("--record", metavar="DIR", help="record of `lookup collect` to read in place of a live cluster")
    parser.add_argument("--at", type=moment, metavar="TIME", help="instant of --record (default: its end)")
    add_cluster(parser)
    add_lookups(parser)
    # What else a plan is made of.
    parser.set_defaults(namespaces=None)
    parser.add_argument(
        "--wait",
        type=duration,
        default=_REPORTS_S,
        dest="wait_s",
        metavar="TIME",
        help="longest wait for load reports (default: 60s)",
    )
    add_plugin_files(parser, "parts of the policies")
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    return (_verify_plan if Path(arguments.recorded).is_file() else _verify_decisions)(arguments)


def _verify_decisions(arguments: argparse.Namespace) -> int:
    """Verify a record, print the share that agrees and what does not, and return 0, or 1 if anything does not."""
    require_extra("verify", "pyarrow", extra="serve")
    from lookup.serve.verifying import verify

    verified = verify(arguments.recorded, plugin_files=arguments.plugin_file)
    _print_verified(verified, arguments.format)
    return 0 if verified.agree == verified.decisions else 1


def _print_verified(verified: Verified, form: str) -> None:
    if form == "json":
        examples = [asdict(entry) for entry in verified.examples]
        figures = {"decisions": verified.decisions, "agree": verified.agree, "share": verified.share}
        print_json({**figures, "causes": dict(verified.causes), "examples": examples})
        return
    console = data_console()
    share = f"{verified.agree:,} of {quantity(verified.decisions, 'decision')} agree, {verified.share:.2%}"
    console.print(plain(share))
    for cause, count in verified.causes.most_common():
        console.print(plain(f"{count:,} do not, by their {cause}"))
    for entry in verified.examples:
        console.print(plain(f"{entry.decision} of {entry.policy}, {entry.cause}: {entry.detail}"), soft_wrap=True)


def _verify_plan(arguments: argparse.Namespace) -> int:
    """Print the figures that a plan predicted beside those that are measured."""
    source = source_of(arguments)
    from lookup.api.moving import verify

    with progress("verifying a plan") as report_stage:
        measured = verify(arguments.recorded, source, progress=report_stage)
    if arguments.format == "json":
        print_json(measured.document())
    else:
        _print_measured(measured)
    if measured.unmade:
        steps = f"{quantity(len(measured.unmade), 'step')} of {len(measured.plan.steps)}"
        note(f"{steps} were not made as planned, and the prediction is of all")
    return 0


def _print_measured(measured: PlanMeasured) -> None:
    console = data_console()
    figures = [
        (of.planned.label, *(f"{value:.3f}" for value in (of.planned.before, of.planned.value, of.measured)))
        for of in measured.figures
    ]
    plain_table(console, ("figure", "before", "predicted", "measured"), figures)
    brokers = [(one.broker, _load(one.before), _load(one.predicted), _load(one.measured)) for one in measured.brokers]
    plain_table(console, ("broker", "B/s before", "B/s predicted", "B/s measured"), brokers)


def _load(load: float | None) -> str:
    return "-" if load is None else f"{load:,.0f}"


COMMAND = Command(
    name="verify",
    examples=(
        ("lookup verify record", "recompute all decisions of `lookup serve`. Exit code 1 if one differs"),
        ("lookup verify plan.json.journal --cluster cluster.toml", "each figure before, as predicted and as measured"),
        ("lookup verify plan.json.journal --record collected", "the same from a record of `lookup collect`"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
