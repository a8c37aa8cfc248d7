"""`lookup topics labels ...`: labels of topics, and topics by labels."""

from __future__ import annotations

import argparse
import sys

from lookup.commands.catalogs import (
    add_catalog,
    add_mode,
    entry_of,
    namespace,
    opened,
    pairs_of,
    print_names,
    print_pairs,
    settings_of,
    topic,
)
from lookup.commands.options import Command, Parser, add_format
from lookup.commands.streams import print_json, say
from lookup.topics.naming import schemes_of
from lookup.topics.pairs import parse_keys
from lookup.topics.selectors import parse, selected_in

__all__ = ["GET", "LIST", "QUERY", "REMOVE", "SET"]


def _add_set(parser: Parser) -> None:
    parser.need(
        "topic", nargs="?", metavar="TOPIC", help="name; a partitioned topic's partitions get the labels as well"
    )
    parser.add_argument("pairs", nargs="*", metavar="KEY=VALUE", help="labels, KEY=VALUE or KEY:VALUE")
    parser.add_argument("--labels", action="append", default=[], metavar="PAIRS", help="the same, as in k1=v1,k2=v2")
    add_catalog(parser)


def _set(arguments: argparse.Namespace) -> int:
    name, labels = topic(arguments.topic), pairs_of([*arguments.pairs, *arguments.labels])
    if not labels:
        arguments.parser.error("KEY=VALUE or --labels must be given")
    with opened(settings_of(arguments).topics) as catalog:
        catalog.set_labels(name, labels)
    say(f"{name} has the labels {', '.join(f'{key}={labels[key]}' for key in sorted(labels))}")
    return 0


def _add_get(parser: Parser) -> None:
    parser.need("topic", nargs="?", metavar="TOPIC", help="name of a topic or partition")
    add_catalog(parser)
    add_format(parser, "text", "json")


def _get(arguments: argparse.Namespace) -> int:
    with opened(settings_of(arguments).topics) as catalog:
        labels = entry_of(catalog, topic(arguments.topic)).labels
    print_pairs(labels, arguments.format)
    return 0


def _add_remove(parser: Parser) -> None:
    parser.need("topic", nargs="?", metavar="TOPIC", help="name of a topic")
    parser.add_argument("keys", nargs="*", metavar="KEY", help="keys of the labels to remove")
    parser.add_argument("--labels", action="append", default=[], metavar="KEYS", help="the same, as in key1,key2")
    parser.add_argument("--all", action="store_true", help="remove every label")
    add_catalog(parser)


def _remove(arguments: argparse.Namespace) -> int:
    name = topic(arguments.topic)
    keys = [*arguments.keys, *(key for text in arguments.labels for key in parse_keys(text))]
    if bool(keys) == arguments.all:
        arguments.parser.error("either KEY or --all must be given")
    with opened(settings_of(arguments).topics) as catalog:
        catalog.remove_labels(name, keys, everything=arguments.all)
    say(f"removed {'all labels' if arguments.all else ', '.join(keys)} of {name}")
    return 0


def _add_list(parser: Parser) -> None:
    parser.need("namespace", nargs="?", metavar="NAMESPACE", help="tenant/namespace")
    add_catalog(parser)
    add_format(parser, "text", "json")


def _list(arguments: argparse.Namespace) -> int:
    with opened(settings_of(arguments).topics) as catalog:
        found = catalog.labels_in(namespace(arguments.namespace))
    if arguments.format == "json":
        print_json({key: list(values) for key, values in found.items()})
    else:
        sys.stdout.writelines(f"{key}={value}\n" for key, values in found.items() for value in values)
    return 0


def _add_query(parser: Parser) -> None:
    parser.need(
        "selector", nargs="?", metavar="SELECTOR", help="conditions that must all hold: k=v, k:v, k in (a,b), k"
    )
    parser.add_argument(
        "--namespace",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="where to look; repeatable; default: topics.namespace, one's own",
    )
    add_mode(parser)
    add_catalog(parser)
    add_format(parser, "text", "json")


def _query(arguments: argparse.Namespace) -> int:
    settings, selector = settings_of(arguments).topics, parse(arguments.selector)
    places, starts = [*map(namespace, arguments.namespace)], schemes_of(arguments.mode)
    with opened(settings) as catalog:
        found = selected_in(catalog, selector, places, own=settings.namespace)
    print_names([name for name in found if name.startswith(starts)], arguments.format)
    return 0


SET = Command(
    name="topics labels set",
    summary="add labels to a topic's, over those with the same keys",
    examples=(
        ("lookup topics labels set orders env=prod tier=gold", "two labels; others stay"),
        ("lookup topics labels set orders --labels env=prod,tier=gold", "as Pulsar's PIP-451 writes it"),
    ),
    add_arguments=_add_set,
    run=_set,
)
GET = Command(
    name="topics labels get",
    summary="print a topic's labels",
    examples=(("lookup topics labels get orders --format json", "as a JSON object"),),
    add_arguments=_add_get,
    run=_get,
)
REMOVE = Command(
    name="topics labels remove",
    summary="remove labels of a topic, some or all",
    examples=(
        ("lookup topics labels remove orders tier", "one label"),
        ("lookup topics labels remove orders --all", "every label"),
    ),
    add_arguments=_add_remove,
    run=_remove,
)
LIST = Command(
    name="topics labels list",
    summary="list every key and value that labels of a namespace have",
    examples=(("lookup topics labels list public/default", "one key=value per line"),),
    add_arguments=_add_list,
    run=_list,
)
QUERY = Command(
    name="topics labels query",
    summary="list the topics whose labels fit a selector",
    examples=(
        ("lookup topics labels query 'env=prod,tier in (gold,silver)' --mode all", "in one's own namespace"),
        ("lookup topics labels query team --namespace acme/eu --namespace acme/us", "in two namespaces"),
    ),
    add_arguments=_add_query,
    run=_query,
)
