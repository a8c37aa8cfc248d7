"""What `lookup topics labels` and `lookup topics properties` share: set, get and remove, for one kind of pairs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lookup.commands.catalogs import add_catalog, entry_of, opened, pairs_of, print_pairs, settings_of, topic
from lookup.commands.options import Command, Parser, add_format
from lookup.commands.streams import say
from lookup.model.catalog import TopicEntry
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.pairs import pairs_text, parse_keys

__all__ = ["PairsKind", "get_command", "remove_command", "set_command"]


@dataclass(frozen=True, slots=True)
class PairsKind:
    """Labels or properties, as a command names, reads and writes them."""

    #: "labels" or "properties"
    name: str
    #: the flag that says again what the arguments say, and how argparse is told of it, to set and to remove
    set_flags: tuple[str, ...]
    set_help: Mapping[str, str]
    remove_flags: tuple[str, ...]
    remove_help: Mapping[str, str]
    read: Callable[[TopicEntry], Mapping[str, str]]
    write: Callable[[Catalog, str, Mapping[str, str]], None]
    #: takes whether everything is removed, too
    remove: Callable[..., None]


def set_command(kind: PairsKind, *examples: tuple[str, str]) -> Command:
    """Return `set`, which merges."""

    def add_arguments(parser: Parser) -> None:
        help_text = f"name; a partitioned topic's partitions get the {kind.name} as well"
        parser.need("topic", nargs="?", metavar="TOPIC", help=help_text)
        parser.add_argument("pairs", nargs="*", metavar="KEY=VALUE", help=f"{kind.name}, KEY=VALUE or KEY:VALUE")
        _add_again(parser, kind.set_flags, kind.set_help)
        add_catalog(parser)

    def run(arguments: argparse.Namespace) -> int:
        name, pairs = topic(arguments.topic), pairs_of([*arguments.pairs, *arguments.again])
        if not pairs:
            arguments.parser.error(f"KEY=VALUE or {kind.set_flags[0]} must be given")
        with opened(settings_of(arguments).topics) as catalog:
            kind.write(catalog, name, pairs)
        say(f"{name} has the {kind.name} {pairs_text(pairs)}")
        return 0

    summary = f"add {kind.name} to a topic's, over those with the same keys"
    return Command(f"topics {kind.name} set", summary, examples, add_arguments, run)


def get_command(kind: PairsKind, *examples: tuple[str, str]) -> Command:
    """Return `get`."""

    def add_arguments(parser: Parser) -> None:
        parser.need("topic", nargs="?", metavar="TOPIC", help="name of a topic or partition")
        add_catalog(parser)
        add_format(parser, "text", "json")

    def run(arguments: argparse.Namespace) -> int:
        with opened(settings_of(arguments).topics) as catalog:
            pairs = kind.read(entry_of(catalog, topic(arguments.topic)))
        print_pairs(pairs, arguments.format)
        return 0

    return Command(f"topics {kind.name} get", f"print a topic's {kind.name}", examples, add_arguments, run)


def remove_command(kind: PairsKind, *examples: tuple[str, str]) -> Command:
    """Return `remove`, of some keys or of all."""

    def add_arguments(parser: Parser) -> None:
        parser.need("topic", nargs="?", metavar="TOPIC", help="name of a topic")
        parser.add_argument("keys", nargs="*", metavar="KEY", help=f"keys of the {kind.name} to remove")
        _add_again(parser, kind.remove_flags, kind.remove_help)
        parser.add_argument("--all", action="store_true", help=f"remove all {kind.name}")
        add_catalog(parser)

    def run(arguments: argparse.Namespace) -> int:
        name = topic(arguments.topic)
        keys = [*arguments.keys, *(key for text in arguments.again for key in parse_keys(text))]
        if bool(keys) == arguments.all:
            arguments.parser.error("either KEY or --all must be given")
        with opened(settings_of(arguments).topics) as catalog:
            kind.remove(catalog, name, keys, everything=arguments.all)
        say(f"removed {f'all {kind.name}' if arguments.all else ', '.join(keys)} of {name}")
        return 0

    summary = f"remove {kind.name} of a topic, some or all"
    return Command(f"topics {kind.name} remove", summary, examples, add_arguments, run)


def _add_again(parser: Parser, flags: tuple[str, ...], words: Mapping[str, Any]) -> None:
    parser.add_argument(*flags, dest="again", action="append", default=[], **words)
