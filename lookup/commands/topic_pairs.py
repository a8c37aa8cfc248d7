"""Carry out `lookup topics labels ...` and `lookup topics properties ...`, the commands for the pairs of topics.

Both kinds of pairs have the commands `set`, `get` and `remove`; labels can be listed and queried as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lookup.commands.options import Command, Parser, add_format
from lookup.commands.streams import note, print_json, stdout
from lookup.commands.topics import (
    add_catalog,
    add_mode,
    applied,
    labels_of,
    pairs_of,
    print_names,
    selected_of,
    settings_of,
    topic,
)
from lookup.topics.catalog.naming import checked_namespace
from lookup.topics.catalog.operations import LABELS, PROPERTIES, GetPairs, RemovePairs, SetPairs
from lookup.topics.catalog.pairs import PairKind, pairs_text, parse_keys
from lookup.topics.listing import TopicQuery
from lookup.topics.listing.selectors import parse

__all__ = ["COMMANDS"]


@dataclass(frozen=True, slots=True)
class _Flags:
    """The flags that take the same as the arguments, with their metavar and help: of `set` and of `remove`."""

    kind: PairKind
    set_flags: tuple[str, ...]
    set_help: Mapping[str, Any]
    remove_flags: tuple[str, ...]
    remove_help: Mapping[str, Any]


def _set_command(flags: _Flags, *examples: tuple[str, str]) -> Command:
    kind = flags.kind

    def add_arguments(parser: Parser) -> None:
        help_text = f"name of the topic. Its partitions get the {kind} as well"
        parser.need("topic", nargs="?", metavar="TOPIC", help=help_text)
        parser.add_argument("pairs", nargs="*", metavar="KEY=VALUE", help=f"{kind}, KEY=VALUE or KEY:VALUE")
        parser.many(*flags.set_flags, dest="again", **flags.set_help)
        add_catalog(parser, server=True)

    def run(arguments: argparse.Namespace) -> int:
        name, pairs = topic(arguments.topic), pairs_of([*arguments.pairs, *arguments.again])
        # Either form will do: arguments, or the flag of PIP-451 or pulsar-admin.
        if not pairs:
            arguments.parser.error(f"KEY=VALUE or {flags.set_flags[0]} must be given")
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


def _remove_command(flags: _Flags, *examples: tuple[str, str]) -> Command:
    kind = flags.kind

    def add_arguments(parser: Parser) -> None:
        parser.need("topic", nargs="?", metavar="TOPIC", help="name of a topic")
        parser.add_argument("keys", nargs="*", metavar="KEY", help=f"keys of the {kind} to remove")
        parser.many(*flags.remove_flags, dest="again", **flags.remove_help)
        parser.add_argument("--all", action="store_true", help=f"remove all {kind}")
        add_catalog(parser, server=True)

    def run(arguments: argparse.Namespace) -> int:
        name = topic(arguments.topic)
        keys = [*arguments.keys, *(key for text in arguments.again for key in parse_keys(text))]
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


def _add_query_arguments(parser: Parser) -> None:
    parser.need(
        "selector", nargs="?", metavar="SELECTOR", help="conditions with commas between, like k=v, k in (a,b) or k"
    )
    parser.many("--namespace", metavar="NAMESPACE", help="namespace to search (default: topics.namespace)")
    add_mode(parser)
    add_catalog(parser, server=True)
    add_format(parser, "text", "json")


def _run_query(arguments: argparse.Namespace) -> int:
    # Parsed before the catalog is opened: a selector that is wrong is wrong for any catalog.
    settings, selector = settings_of(arguments).topics, parse(arguments.selector)
    # Each is asked once; PIP-451: no namespace means one's own.
    namespaces = dict.fromkeys(map(checked_namespace, arguments.namespace or [settings.namespace]))
    queries = [TopicQuery(namespace, arguments.mode, selector=selector) for namespace in namespaces]
    print_names(selected_of(arguments, queries), arguments.format)
    return 0


_LABELS = _Flags(
    LABELS,
    set_flags=("--labels",),
    set_help={"metavar": "PAIRS", "help": "labels, as in k1=v1,k2=v2"},
    remove_flags=("--labels",),
    remove_help={"metavar": "KEYS", "help": "keys, as in key1,key2"},
)
_PROPERTIES = _Flags(
    PROPERTIES,
    set_flags=("-p", "--property"),
    set_help={"metavar": "KEY=VALUE", "help": "same as the argument"},
    remove_flags=("-k", "--key"),
    remove_help={"metavar": "KEY", "help": "same as the argument"},
)

#: In the order of the help.
COMMANDS = (
    _set_command(
        _LABELS,
        ("lookup topics labels set orders env=prod tier=gold", "add two labels"),
        ("lookup topics labels set orders --labels env=prod,tier=gold", "the same in the form of Pulsar's PIP-451"),
    ),
    _get_command(LABELS, ("lookup topics labels get orders --format json", "print a JSON object")),
    _remove_command(
        _LABELS,
        ("lookup topics labels remove orders tier", "remove one label"),
        ("lookup topics labels remove orders --all", "remove every label"),
    ),
    Command(
        name="topics labels list",
        examples=(("lookup topics labels list public/default", "one key=value per line"),),
        add_arguments=_add_list_arguments,
        run=_run_list,
    ),
    Command(
        name="topics labels query",
        examples=(
            ("lookup topics labels query 'env=prod,tier in (gold,pro)' --mode all", "topics of the default namespace"),
            ("lookup topics labels query team --namespace acme/eu --namespace public/default", "of two namespaces"),
        ),
        add_arguments=_add_query_arguments,
        run=_run_query,
    ),
    _set_command(
        _PROPERTIES, ("lookup topics properties set orders -p team=billing -p stage=raw", "add two properties")
    ),
    _get_command(PROPERTIES, ("lookup topics properties get orders --format json", "print a JSON object")),
    _remove_command(_PROPERTIES, ("lookup topics properties remove orders -k stage", "remove one property")),
)
