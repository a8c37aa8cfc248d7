"""Carry out `lookup generate`, which writes a synthetic but realistic log from a seed."""

from __future__ import annotations

import argparse
from dataclasses import fields

from lookup.commands.options import Command, Parser, add_format, add_output, number, pairs, require_extra, whole
from lookup.commands.streams import data_console, plain_table, print_json, progress
from lookup.logs.generator.settings import GenerateSettings

__all__ = ["COMMAND"]

#: Figures with a flag of their own.
_FLAGS = ("lookups", "clusters", "hours", "seed", "policy")
_OTHERS = [field.name for field in fields(GenerateSettings) if field.name not in _FLAGS]


def _add_arguments(parser: Parser) -> None:
    add_output(parser, "the tables")
    # Without default in argparse. Only given figures are passed on, and the dataclass has the defaults.
    usual = GenerateSettings()
    parser.add_argument(
        "--lookups", type=whole, metavar="N", help=f"number of lookups in all clusters (default: {usual.lookups})"
    )
    parser.add_argument("--clusters", type=whole, metavar="N", help=f"number of clusters (default: {usual.clusters})")
    parser.add_argument(
        "--hours", type=number, metavar="X", help=f"length of the log in hours (default: {usual.hours})"
    )
    parser.add_argument("--seed", type=whole, metavar="N", help="seed of all random choices (default: 1)")
    parser.add_argument("--policy", metavar="POLICY", help=f"policy that ships, or TOML file (default: {usual.policy})")
    parser.many("--set", metavar="KEY=VALUE", help=f"another figure, like brokers=6, of {', '.join(_OTHERS)}")
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    require_extra("generate", "pyarrow")
    from lookup.api.generating import figures_of, generate_into

    flags = {name: getattr(arguments, name) for name in _FLAGS if getattr(arguments, name) is not None}
    settings = figures_of({**flags, **dict(pairs("--set", arguments.set, "brokers=6"))})
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
    examples=(
        ("lookup generate --output sample", "300,000 lookups of two clusters over six hours"),
        ("lookup generate --output big --lookups 20_000_000 --hours 22 --set brokers=20", "a day of a large site"),
        ("lookup generate --output storm --set losses=4 --policy stock-extensible-5.0", "the loss of four brokers"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
