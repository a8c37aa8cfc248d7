"""Carry out `lookup generate`: write a synthetic but realistic log from a seed; every figure of it is a flag."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, get_type_hints

from lookup.commands.options import Command, Parser, add_format, add_output, number, require_extra, whole
from lookup.commands.streams import data_console, plain_table, print_json, progress
from lookup.logs.generator.settings import LOGGING_POLICIES, GenerateSettings

__all__ = ["COMMAND"]

#: Meaning of every figure of `GenerateSettings`, in the order of the help.
_MEANINGS: Mapping[str, str] = {
    "lookups": "rows of LOOKUPS over all clusters, hops and reconnects included",
    "clusters": "clusters",
    "hours": "length of the log",
    "start": "start of the log, like 2026-01-05T00:00:00Z, a whole second from 1970-01-02 on; without offset UTC",
    "topics": "topics of each cluster, partitions counted",
    "tenants": "tenants",
    "namespaces": "namespaces",
    "bundles_per_namespace": "bundles of each namespace at the start",
    "brokers": "brokers of each cluster that are ever registered",
    "racks": "racks of each cluster",
    "clients": "clients of each cluster, unevenly spread over racks",
    "property_sets": "distinct sets of lookup properties, the empty one among them",
    "losses": "brokers of each cluster that vanish; all but the last come back",
    "joins": "brokers of each cluster that register late",
    "leaves": "brokers of each cluster that leave for good",
    "updates": "brokers of each cluster that get their rack by a later update",
    "unloads": "bundles of each cluster unloaded by an administrator",
    "sheds": "bundles of each cluster unloaded by the logging cluster itself",
    "splits": "bundles of each cluster that are split",
    "zipf": "exponent of the popularity of topics, 0 is uniform",
    "rack_affinity": "share of a topic's lookups that come from its team's rack, beside those by chance",
    "load_report_s": "seconds between load reports, 0 writes none",
    "logging_policy": f"how the logged brokers were chosen: {', '.join(LOGGING_POLICIES)}",
    "seed": "seed; the same seed and figures give the same rows",
}


def _start(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 2026-01-05T00:00:00Z") from None


#: Reader and name in the help of a flag's value, by type of the figure.
_VALUES: Mapping[type, tuple[Callable[[str], Any], str]] = {
    int: (whole, "N"),
    float: (number, "X"),
    datetime: (_start, "TIME"),
    str: (str, "NAME"),
}


def _add_arguments(parser: Parser) -> None:
    add_output(parser, "the tables")
    types, defaults = get_type_hints(GenerateSettings), GenerateSettings()
    for name, meaning in _MEANINGS.items():
        default = getattr(defaults, name)
        shown = default.isoformat() if isinstance(default, datetime) else default
        reader, metavar = _VALUES[types[name]]
        # No default for argparse: only figures that were given are passed on, and the dataclass has the defaults.
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=reader, metavar=metavar, help=f"{meaning} (default: {shown})"
        )
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    given = {name: getattr(arguments, name) for name in _MEANINGS if getattr(arguments, name) is not None}
    settings = GenerateSettings(**given)
    require_extra("generate", "pyarrow")
    from lookup.api.generating import generate_into

    with progress(f"writing {settings.lookups:,} lookups to {arguments.output}"):
        log = generate_into(arguments.output, settings, force=arguments.force, command=arguments.argv)
    if arguments.format == "json":
        print_json(log.document())
        return 0
    rows = [(name, f"{count:,}", f"{log.folder.rstrip('/')}/{name}") for name, count in log.report.rows.items()]
    plain_table(data_console(), ("table", "rows", "path"), rows)
    return 0


COMMAND = Command(
    name="generate",
    summary="write a synthetic but realistic log, for trials and demonstrations",
    examples=(
        ("lookup generate --output sample", "300,000 lookups of two clusters over six hours"),
        (
            "lookup generate --output big --lookups 20_000_000 --clusters 3 --hours 22 --topics 20000 --brokers 20",
            "a day of a large site",
        ),
        ("lookup generate --output storm --losses 4 --logging-policy rack-random --seed 7", "four brokers are lost"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
