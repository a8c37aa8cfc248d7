"""Carry out `lookup collect`, which records a live cluster until a signal, and prints a summary."""

from __future__ import annotations

import argparse
import threading
from dataclasses import asdict

from lookup.commands.cluster_flags import CONNECTION, add_cluster, endpoints_of
from lookup.commands.failures import handled_by
from lookup.commands.options import Command, Parser, add_format, duration
from lookup.commands.streams import data_console, note, plain_table, print_json, warn
from lookup.errors import SettingsError
from lookup.model.quoting import quantity
from lookup.model.time import time_text

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.need(
        "--output", metavar="DIR", help="folder of the record. An earlier record of the cluster in it is continued"
    )
    add_cluster(parser)
    parser.add_argument(
        "--for",
        type=duration,
        dest="for_s",
        metavar="TIME",
        help="duration, like 30s, 10m or 2h (default: until Ctrl-C)",
    )
    parser.add_argument(
        "--every",
        type=duration,
        dest="every_s",
        default=60.0,
        metavar="TIME",
        help="time between two files, the most that a crash loses (default: 60s)",
    )
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    endpoints = endpoints_of(arguments)
    if not any(getattr(endpoints, name) for name in CONNECTION):
        raise SettingsError(f"--cluster: give a file with an address: {', '.join(CONNECTION)}")
    from lookup.collect.collector import CollectReport, collect

    stop = threading.Event()
    # Set by every signal that ends a run. Rows in memory are then written, which is the usual end.
    with handled_by(lambda *_: stop.set()):
        for sentence in endpoints.missing:
            warn(arguments.parser.in_flags(sentence))
        note(f"recording into {arguments.output}; Ctrl-C ends it")
        report: CollectReport = collect(
            endpoints,
            arguments.output,
            stop,
            for_s=arguments.for_s,
            every_s=arguments.every_s,
            warn=lambda sentence: warn(arguments.parser.in_flags(sentence)),
        )
    for source, count in report.refused.items():
        warn(f"left out: {quantity(count, 'message')} of {source}, for instance: {report.reasons[source]}")
    for table, count in report.lost.items():
        warn(f"lost, since nothing could be written: {quantity(count, 'row')} of {table}")
    if arguments.format == "json":
        print_json(asdict(report) | {"gap_since": time_text(report.gap_since_us)})
    else:
        rows = [(table, f"{count:,}", f"{report.output}/{table}") for table, count in report.rows.items()]
        plain_table(data_console(), ("table", "rows", "path"), rows)
    return 0


COMMAND = Command(
    name="collect",
    examples=(
        ("lookup collect --cluster cluster.toml --output record", "until Ctrl-C. It continues an earlier record"),
        ("lookup collect --cluster cluster.toml --output record --for 10m", "ten minutes"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
