"""`lookup topics labels ...`: labels of topics, and topics by labels."""

from __future__ import annotations

import argparse
from operator import attrgetter

from lookup.commands.catalogs import add_catalog, add_mode, namespace, opened, print_names, settings_of
from lookup.commands.options import Command, Parser, add_format
from lookup.commands.streams import print_json, stdout
from lookup.commands.topic_pairs import PairsKind, get_command, remove_command, set_command
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import schemes_of
from lookup.topics.listing.selectors import parse, selected_in

__all__ = ["GET", "LIST", "QUERY", "REMOVE", "SET"]


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
        stdout().writelines(f"{key}={value}\n" for key, values in found.items() for value in values)
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


_LABELS = PairsKind(
    "labels",
    set_flags=("--labels",),
    set_help={"metavar": "PAIRS", "help": "the same, as in k1=v1,k2=v2"},
    remove_flags=("--labels",),
    remove_help={"metavar": "KEYS", "help": "the same, as in key1,key2"},
    read=attrgetter("labels"),
    write=Catalog.set_labels,
    remove=Catalog.remove_labels,
)

SET = set_command(
    _LABELS,
    ("lookup topics labels set orders env=prod tier=gold", "two labels; others stay"),
    ("lookup topics labels set orders --labels env=prod,tier=gold", "as Pulsar's PIP-451 writes it"),
)
GET = get_command(_LABELS, ("lookup topics labels get orders --format json", "as a JSON object"))
REMOVE = remove_command(
    _LABELS,
    ("lookup topics labels remove orders tier", "one label"),
    ("lookup topics labels remove orders --all", "every label"),
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
        ("lookup topics labels query team --namespace acme/eu --namespace public/default", "in two namespaces"),
    ),
    add_arguments=_add_query,
    run=_query,
)
