"""Carry out `lookup collect`: record a live cluster until told to stop, and print what was recorded."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from dataclasses import asdict
from pathlib import Path

from lookup.commands.failures import ENDING, handled_by
from lookup.commands.options import Command, Parser, add_format, cluster, duration, require_extra
from lookup.commands.streams import data_console, note, plain_table, print_json, warn
from lookup.errors import SettingsError
from lookup.model.names import url_problem
from lookup.model.quoting import quantity
from lookup.model.time import time_text

__all__ = ["COMMAND", "add_arguments", "run"]

#: Variable of the environment with the token.
TOKEN_VARIABLE = "PULSAR_TOKEN"
_SCHEMES = {"admin": ("http", "https"), "service_url": ("pulsar", "pulsar+ssl")}


def add_arguments(parser: Parser) -> None:
    """Add the flags of `lookup collect`."""
    parser.need("--output", metavar="DIR", help="folder of the record; a record of the cluster that it holds goes on")
    parser.add_argument("--admin", metavar="URL", help="admin REST, like http://broker-0:8080,broker-1:8080")
    parser.add_argument("--service-url", metavar="URL", help="brokers, like pulsar://broker-0:6650,broker-1:6650")
    parser.add_argument(
        "--zookeeper", metavar="HOSTS", help="like zk-0:2181,zk-1:2181, with /chroot behind or tls:// before them"
    )
    parser.add_argument("--cluster", type=cluster, metavar="NAME", help="name of the cluster; default: asks --admin")
    parser.add_argument(
        "--for",
        type=duration,
        dest="for_s",
        metavar="TIME",
        help="when to end, like 30s, 10m, 2h; default: when stopped",
    )
    parser.add_argument(
        "--every",
        type=duration,
        dest="every_s",
        default=60.0,
        metavar="TIME",
        help="time between files, which is what a crash may lose (default: 60s)",
    )
    parser.add_argument(
        "--token-file", metavar="FILE", help=f"file with a token; else the variable {TOKEN_VARIABLE} is the token"
    )
    parser.add_argument("--tls-ca", metavar="FILE", help="certificates to trust, PEM")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate of this client, PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="key of that certificate, PEM")
    add_format(parser, "table", "json")


def run(arguments: argparse.Namespace) -> int:
    """Record until the time is over or a signal comes, print how many rows there are, and return 0."""
    _check(arguments)
    require_extra("collect", "pyarrow", "kazoo", "pulsar", extra="collect")
    from lookup.collect.collector import CollectReport, Endpoints, collect
    from lookup.collect.sources import Credentials

    credentials = Credentials(
        token_file=arguments.token_file,
        token=os.environ.get(TOKEN_VARIABLE) or None,
        tls_ca=arguments.tls_ca,
        tls_cert=arguments.tls_cert,
        tls_key=arguments.tls_key,
    )
    endpoints = Endpoints(arguments.cluster, arguments.admin, arguments.service_url, arguments.zookeeper, credentials)
    stop = threading.Event()
    # Set by every signal that ends a run: what waits in memory is written, and that is the usual end. A signal that is
    # ignored, as SIGHUP under nohup, stays so.
    ending = [number for number in (*ENDING, signal.SIGINT) if signal.getsignal(number) != signal.SIG_IGN]
    with handled_by(lambda *_: stop.set(), ending):
        for sentence in endpoints.missing:
            warn(arguments.parser.in_flags(sentence))
        note(f"recording into {arguments.output}; Ctrl-C ends it")
        report: CollectReport = collect(
            endpoints,
            arguments.output,
            stop,
            for_s=arguments.for_s,
            every_s=arguments.every_s,
            warn=warn,
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


def _check(arguments: argparse.Namespace) -> None:
    """Refuse flags that cannot work; report all at once."""
    problems = []
    if not (arguments.admin or arguments.service_url or arguments.zookeeper):
        problems.append("nothing to record: give --admin, --service-url and --zookeeper, or some of them")
    for name, schemes in _SCHEMES.items():
        url = getattr(arguments, name)
        problem = None if url is None else url_problem(url, *schemes)
        if problem is not None:
            problems.append(f"--{name.replace('_', '-')}: {problem}")
    for name in ("token_file", "tls_ca", "tls_cert", "tls_key"):
        path = getattr(arguments, name)
        if path is not None and not Path(path).is_file():
            problems.append(f"--{name.replace('_', '-')}: there is no file {path}")
    if (arguments.tls_cert is None) != (arguments.tls_key is None):
        problems.append("--tls-cert, --tls-key: one needs the other")
    if problems:
        raise SettingsError(problems)


COMMAND = Command(
    name="collect",
    summary="record a live cluster into tables that evaluate reads",
    examples=(
        (
            "lookup collect --admin http://b0:8080 --service-url pulsar://b0:6650 --zookeeper zk0:2181 --output record",
            "until Ctrl-C or SIGTERM; the same line goes on with the record and marks the gap",
        ),
        (
            "lookup collect --service-url pulsar+ssl://b0:6651 --token-file token --cluster x --output rec --for 10m",
            "ten minutes, encrypted, with a token: ownership and load alone",
        ),
        (
            "lookup collect --admin http://b0:8080 --output record --for 30s --format json",
            "brokers without their properties, the leader and bundles; counts for a program",
        ),
    ),
    add_arguments=add_arguments,
    run=run,
)
