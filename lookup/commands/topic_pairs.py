"""Carry out `lookup topics labels ...` and `lookup topics properties ...`, the commands for the pairs of topics.

Both kinds of pairs have the commands `set`, `get` and `remove`.
"""

from __future__ import annotations

import argparse

from lookup.commands.options import Command, Parser, add_format
from lookup.commands.streams import note, print_json, stdout
from lookup.commands.topics import add_catalog, apply_operation, pairs_of, topic
from lookup.topics.catalog.operations import LABELS, PROPERTIES, GetPairs, RemovePairs, SetPairs
from lookup.topics.catalog.pairs import PairKind, pairs_text

__all__ = ["COMMANDS"]


def _set_command(kind: PairKind, *examples: tuple[str, str]) -> Command:

    def add_arguments(parser: Parser) -> None:
        help_text = f"name of the topic. Its partitions get the {kind} as well"
        parser.need("topic", nargs="?", metavar="TOPIC", help=help_text)
        parser.need("pairs", nargs="*", metavar="K=V", help=f"{kind}, KEY=VALUE or KEY:VALUE")
        add_catalog(parser, server=True)

    def run(arguments: argparse.Namespace) -> int:
        name, pairs = topic(arguments.topic), pairs_of(arguments.pairs)
        apply_operation(arguments, SetPairs(kind, name, pairs))
        note(f"{name} has the {kind} {pairs_text(pairs)}")
        return 0

    return Command(f"topics {kind} set", examples, add_arguments, run)


def _get_command(kind: PairKind, *examples: tuple[str, str]) -> Command:

    def add_arguments(parser: Parser) -> None:
        parser.need("topic", nargs="?", metavar="TOPIC", help="name of a topic or partition")
        add_catalog(parser, server=True)
        add_format(parser, "text", "json")

    def run(arguments: argparse.Namespace) -> int:
        pairs = apply_operation(arguments, GetPairs(kind, topic(arguments.topic))) or {}
        if arguments.format == "json":
            print_json(dict(sorted(pairs.items())))
        else:
            stdout().writelines(f"{key}={pairs[key]}\n" for key in sorted(pairs))
        return 0

    return Command(f"topics {kind} get", examples, add_arguments, run)


def _remove_command(kind: PairKind, *examples: tuple[str, str]) -> Command:

    def add_arguments(parser: Parser) -> None:
        parser.need("topic", nargs="?", metavar="TOPIC", help="name of a topic")
        parser.add_argument("keys", nargs="*", metavar="KEY", help=f"keys of the {kind} to remove")
        parser.add_argument("--all", action="store_true", help=f"remove all {kind}")
        add_catalog(parser, server=True)

    def run(arguments: argparse.Namespace) -> int:
        name, keys = topic(arguments.topic), arguments.keys
        # With neither nothing would be removed, and with both the intention is unclear.
        if bool(keys) == arguments.all:
            arguments.parser.error("either KEY or --all must be given")
        if not all(keys):
            arguments.parser.error("KEY must not be empty")
        apply_operation(arguments, RemovePairs(kind, name, tuple(keys), everything=arguments.all))
        note(f"removed {f'all {kind}' if arguments.all else ', '.join(keys)} of {name}")
        return 0

    return Command(f"topics {kind} remove", examples, add_arguments, run)


#: In the order of the help.
COMMANDS = (
    _set_command(LABELS, ("lookup topics labels set orders env=prod tier=gold", "add two labels")),
    _get_command(LABELS, ("lookup topics labels get orders --format json", "print a JSON object")),
    _remove_command(
        LABELS,
        ("lookup topics labels remove orders tier", "remove one label"),
        ("lookup topics labels remove orders --all", "remove every label"),
    ),
    _set_command(PROPERTIES, ("lookup topics properties set orders team=billing stage=raw", "add two properties")),
    _get_command(PROPERTIES, ("lookup topics properties get orders --format json", "print a JSON object")),
    _remove_command(PROPERTIES, ("lookup topics properties remove orders stage", "remove one property")),
)
