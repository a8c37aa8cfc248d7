"""Carry out `lookup topics labels ...` and `lookup topics properties ...`, the commands for the pairs of topics.

Both kinds of pairs have the commands `set`, `get` and `remove`; labels can be listed as well.
"""

from __future__ import annotations

import argparse

from lookup.commands.options import Command, Parser, add_format
from lookup.commands.streams import note, print_json, stdout
from lookup.commands.topics import add_catalog, applied, labels_of, pairs_of, topic
from lookup.topics.catalog.naming import checked_namespace
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
        applied(arguments, SetPairs(kind, name, pairs))
        note(f"{name} has the {kind} {pairs_text(pairs)}")
        return 0

    return Command(f"topics {kind} set", examples, add_arguments, run)


def _get_command(kind: PairKind, *examples: tuple[str, str]) -> Command:

    def add_arguments(parser: Parser) -> None:
        parser.need("topic", nargs="?", metavar="TOPIC", help="name of a topic or partition")
        add_catalog(parser, server=True)
        add_format(parser, "text", "json")

    def run(arguments: argparse.Namespace) -> int:
        pairs = applied(arguments, GetPairs(kind, topic(arguments.topic))) or {}
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
        # Neither would remove nothing, both leave it open what is meant.
        if bool(keys) == arguments.all:
            arguments.parser.error("either KEY or --all must be given")
        if not all(keys):
            arguments.parser.error("KEY must not be empty")
        applied(arguments, RemovePairs(kind, name, tuple(keys), everything=arguments.all))
        note(f"removed {f'all {kind}' if arguments.all else ', '.join(keys)} of {name}")
        return 0

    return Command(f"topics {kind} remove", examples, add_arguments, run)


def _add_list_arguments(parser: Parser) -> None:
    parser.need("namespace", nargs="?", metavar="NAMESPACE", help="tenant/namespace")
    add_catalog(parser, server=True)
    add_format(parser, "text", "json")


def _run_list(arguments: argparse.Namespace) -> int:
    labels = labels_of(arguments, checked_namespace(arguments.namespace))
    if arguments.format == "json":
        print_json({key: list(values) for key, values in labels.items()})
    else:
        stdout().writelines(f"{key}={value}\n" for key, values in labels.items() for value in values)
    return 0


#: In the order of the help.
COMMANDS = (
    _set_command(LABELS, ("lookup topics labels set orders env=prod tier=gold", "add two labels")),
    _get_command(LABELS, ("lookup topics labels get orders --format json", "print a JSON object")),
    _remove_command(
        LABELS,
        ("lookup topics labels remove orders tier", "remove one label"),
        ("lookup topics labels remove orders --all", "remove every label"),
    ),
    Command(
        name="topics labels list",
        examples=(("lookup topics labels list public/default", "one key=value per line"),),
        add_arguments=_add_list_arguments,
        run=_run_list,
    ),
    _set_command(PROPERTIES, ("lookup topics properties set orders team=billing stage=raw", "add two properties")),
    _get_command(PROPERTIES, ("lookup topics properties get orders --format json", "print a JSON object")),
    _remove_command(PROPERTIES, ("lookup topics properties remove orders stage", "remove one property")),
)
