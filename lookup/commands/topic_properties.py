"""`lookup topics properties ...`: the properties of topics, which listers filter by."""

from __future__ import annotations

import argparse

from lookup.commands.catalogs import add_catalog, entry_of, opened, pairs_of, print_pairs, settings_of, topic
from lookup.commands.options import Command, Parser, add_format
from lookup.commands.streams import say

__all__ = ["GET", "REMOVE", "SET"]


def _add_set(parser: Parser) -> None:
    parser.need(
        "topic", nargs="?", metavar="TOPIC", help="name; a partitioned topic's partitions get the properties as well"
    )
    parser.add_argument("pairs", nargs="*", metavar="KEY=VALUE", help="properties, KEY=VALUE or KEY:VALUE")
    parser.add_argument(
        "-p", "--property", action="append", default=[], metavar="KEY=VALUE", help="the same; repeatable"
    )
    add_catalog(parser)


def _set(arguments: argparse.Namespace) -> int:
    name, properties = topic(arguments.topic), pairs_of([*arguments.pairs, *arguments.property])
    if not properties:
        arguments.parser.error("KEY=VALUE or -p must be given")
    with opened(settings_of(arguments).topics) as catalog:
        catalog.set_properties(name, properties)
    say(f"{name} has the properties {', '.join(f'{key}={properties[key]}' for key in sorted(properties))}")
    return 0


def _add_get(parser: Parser) -> None:
    parser.need("topic", nargs="?", metavar="TOPIC", help="name of a topic or partition")
    add_catalog(parser)
    add_format(parser, "text", "json")


def _get(arguments: argparse.Namespace) -> int:
    with opened(settings_of(arguments).topics) as catalog:
        properties = entry_of(catalog, topic(arguments.topic)).properties
    print_pairs(properties, arguments.format)
    return 0


def _add_remove(parser: Parser) -> None:
    parser.need("topic", nargs="?", metavar="TOPIC", help="name of a topic")
    parser.add_argument("keys", nargs="*", metavar="KEY", help="keys of the properties to remove")
    parser.add_argument("-k", "--key", action="append", default=[], metavar="KEY", help="the same; repeatable")
    add_catalog(parser)


def _remove(arguments: argparse.Namespace) -> int:
    name, keys = topic(arguments.topic), [*arguments.keys, *arguments.key]
    if not keys:
        arguments.parser.error("KEY must be given")
    with opened(settings_of(arguments).topics) as catalog:
        catalog.remove_properties(name, keys)
    say(f"removed {', '.join(keys)} of {name}")
    return 0


SET = Command(
    name="topics properties set",
    summary="add properties to a topic's, over those with the same keys",
    examples=(("lookup topics properties set orders -p team=billing -p stage=raw", "two properties; others stay"),),
    add_arguments=_add_set,
    run=_set,
)
GET = Command(
    name="topics properties get",
    summary="print a topic's properties",
    examples=(("lookup topics properties get orders --format json", "as a JSON object"),),
    add_arguments=_add_get,
    run=_get,
)
REMOVE = Command(
    name="topics properties remove",
    summary="remove properties of a topic",
    examples=(("lookup topics properties remove orders -k stage", "one property"),),
    add_arguments=_add_remove,
    run=_remove,
)
