"""Carry out `lookup apply`, which makes a plan's moves, rolls them back, or restores shedding after a kill."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING

from lookup.commands.cluster_flags import add_cluster, endpoints_of
from lookup.commands.failures import handled_by
from lookup.commands.options import Command, Parser, add_format, duration, whole
from lookup.commands.streams import data_console, note, plain, plain_table, print_json, say
from lookup.errors import SettingsError
from lookup.model.names import url_problem
from lookup.model.quoting import quantity

if TYPE_CHECKING:
    from lookup.moving.applying import Applied

__all__ = ["COMMAND"]

#: Flags that determine how bundles are moved.
_OF_MOVES = (
    "yes", "rate", "in_flight", "max_moves", "freeze_shedding", "max_load_age_s", "prometheus", "guard",
)  # fmt: skip
#: Exit codes for skipped steps or steps left because of a guard, and for a requested end.
_STOPPED, _INTERRUPTED = 4, 130
_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)/(s|min|h)", re.ASCII)
#: Seconds of the units of a rate.
_PER = {"s": 1.0, "min": 60.0, "h": 3600.0}


def rate(text: str) -> float:
    """Read a rate such as `2/min`, as the seconds between two."""
    match = _RATE.fullmatch(text)
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate like 2/min, 10/h or 1/s")
    return _PER[match[2]] / float(match[1])


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "plan", nargs="?", metavar="PLAN", help="plan.json of `lookup plan`. The same command resumes it"
    )
    parser.add_argument("--rollback", metavar="JOURNAL", help="return bundles to their first owners, in place of PLAN")
    parser.add_argument("--recover", metavar="JOURNAL", help="restore shedding after a killed apply, in place of PLAN")
    parser.add_argument("--yes", action="store_true", help="unload bundles (default: a dry run)")
    parser.add_argument("--journal", metavar="FILE", help="journal of the plan (default: PLAN.journal)")
    parser.add_argument(
        "--rate", type=rate, default=30.0, metavar="N/UNIT", help="most moves per s, min or h (default: 2/min)"
    )
    parser.add_argument("--in-flight", type=whole, default=1, metavar="N", help="moves at the same time (default: 1)")
    parser.add_argument(
        "--max-moves", type=whole, metavar="N", help="largest number of moves. The same command makes the next ones"
    )
    parser.add_argument("--freeze-shedding", action="store_true", help="switch Pulsar's shedder off during the moves")
    parser.add_argument(
        "--max-load-age",
        type=duration,
        default=1200.0,
        dest="max_load_age_s",
        metavar="TIME",
        help="stop at an older load report (default: 20m)",
    )
    parser.add_argument("--prometheus", metavar="URL", help="URL of Prometheus, for --guard")
    parser.many("--guard", metavar="QUERY", help="stop at a result of this query other than 0")
    add_cluster(parser)
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    """Carry out, roll back or recover. Return 0, 4 after skipped steps or a stop by a guard, 130 after Ctrl-C."""
    _check(arguments)
    parser = arguments.parser
    endpoints = endpoints_of(arguments)
    from lookup.api.applying import How, apply, journal_of, recover, rollback
    from lookup.moving.applying import Pace
    from lookup.moving.guards import Tolerances

    if arguments.recover is not None:
        if not recover(arguments.recover, endpoints, say):
            note(f"{arguments.recover} shows that shedding is as before; nothing was changed")
        return 0
    tolerances = Tolerances(
        max_load_age_s=arguments.max_load_age_s, prometheus=arguments.prometheus, queries=tuple(arguments.guard)
    )

    pace = Pace(arguments.rate, arguments.in_flight, arguments.max_moves)
    options = How(
        pace,
        tolerances,
        freeze_shedding=arguments.freeze_shedding,
        stop=Event(),
        say=lambda it: note(parser.in_flags(it)),
    )
    with _handle_stops(options.stop, arguments.rollback or arguments.journal or journal_of(arguments.plan)):
        if arguments.rollback is not None:
            run = rollback(arguments.rollback, endpoints, yes=arguments.yes, how=options)
        else:
            run = apply(arguments.plan, endpoints, yes=arguments.yes, journal=arguments.journal, how=options)
    _print(run, arguments)
    if run.is_interrupted:
        return _INTERRUPTED
    return 0 if run.is_whole else _STOPPED


@contextmanager
def _handle_stops(stop: Event, journal: str) -> Iterator[None]:
    """Let Ctrl-C and other signals that end a run end it after the current step. A second signal ends it at once."""
    received: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        received.append(number)
        stop.set()
        if len(received) == 1:
            note("stops after the current step. Interrupt again to stop at once; the journal lists the unknown steps")
        # Restoring shedding is not interrupted a third time.
        elif len(received) == 2:
            raise KeyboardInterrupt(f"the journal is in {journal}")

    with handled_by(end):
        yield


def _check(arguments: argparse.Namespace) -> None:
    """Refuse flags that cannot work, and report all at once."""
    problems = []
    modes = [name for name in ("plan", "rollback", "recover") if getattr(arguments, name) is not None]
    if len(modes) != 1:
        problems.append("one of PLAN, --rollback JOURNAL and --recover JOURNAL must be given")
    if arguments.journal is not None and "plan" not in modes:
        problems.append("--journal: --rollback and --recover name the journal themselves")
    if arguments.recover is not None:
        # A value equal to the default may have been given, which changes nothing.
        names = [name for name in _OF_MOVES if getattr(arguments, name) != arguments.parser.get_default(name)]
        flags = (f"--{name.removesuffix('_s').replace('_', '-')}" for name in names)
        problems += [f"{flag}: --recover moves nothing; leave it out" for flag in flags]
    if arguments.prometheus is not None and (problem := url_problem(arguments.prometheus, "http", "https")) is not None:
        problems.append(f"--prometheus: {problem}")
    for name in ("in_flight", "max_moves"):
        value = getattr(arguments, name)
        if value is not None and value <= 0:
            problems.append(f"--{name.replace('_', '-')}: {value:g} should be above 0")
    if (arguments.prometheus is None) != (not arguments.guard):
        problems.append("--prometheus, --guard: one needs the other")
    if problems:
        raise SettingsError(problems)


def _print(run: Applied, arguments: argparse.Namespace) -> None:
    if arguments.format == "json":
        print_json(asdict(run))
        return
    console = data_console()
    words = {"moved": "would move", "skipped": "would be skipped"} if run.is_dry else {}
    rows = []
    for step in run.outcomes:
        outcome = ": ".join(filter(None, (words.get(step.event, step.event), step.reason)))
        rows.append((str(step.step), step.bundle, step.source, step.destination, outcome))
    if rows:
        plain_table(console, ("step", "bundle", "from", "to", "outcome"), rows)
    for sentence in _write_sentences(run, arguments):
        console.print(plain(sentence), soft_wrap=True)


def _write_sentences(run: Applied, arguments: argparse.Namespace) -> Iterator[str]:
    if run.earlier:
        yield f"{quantity(run.earlier, 'step')} of earlier runs ended otherwise than planned, see {run.journal}"
    moved, others = len(run.steps("moved")), len(run.steps("elsewhere", "skipped", "failed"))
    if run.is_dry:
        yield f"{quantity(moved, 'step')} would be made, {others} not; nothing was changed, --yes makes them"
        yield f"looked at before each step: {'; '.join(run.checks)}"
        if run.stopped is not None:
            yield f"a guard would stop it at once: {run.stopped}"
        return
    yield f"{quantity(moved, 'step')} made, {others} not as planned, {run.left} left; the journal is {run.journal}"
    if run.stopped is not None:
        yield f"stopped: {run.stopped}"
    if run.left:
        yield "the same command goes on"
    if moved and arguments.rollback is None:
        yield f"the way back: lookup apply --rollback {run.journal}"


COMMAND = Command(
    name="apply",
    examples=(
        ("lookup apply plan.json --cluster cluster.toml", "a dry run, with the moves and the state of the guards"),
        ("lookup apply plan.json --cluster cluster.toml --yes --freeze-shedding", "two moves a minute"),
        ("lookup apply --rollback plan.json.journal --cluster cluster.toml --yes", "return every bundle"),
        ("lookup apply --recover plan.json.journal --cluster cluster.toml", "restore shedding after kill -9"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
