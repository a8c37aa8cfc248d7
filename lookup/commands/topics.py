"""Carry out `lookup topics list`, `create` and `delete`, the commands for the topics of a catalog."""

from __future__ import annotations

import argparse
from pathlib import Path

from lookup.commands.catalogs import (
    add_catalog,
    add_lister,
    lister_of,
    opened,
    pairs_of,
    print_names,
    settings_of,
    topic,
)
from lookup.commands.options import Command, Parser, add_format, whole
from lookup.commands.streams import print_json, say
from lookup.errors import NotFoundError, SettingsError
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import checked_namespace, namespace_of
from lookup.topics.listing import ListRequest, TopicLister, topics_hash
from lookup.topics.listing.selectors import parse
from lookup.topics.rules import rules_of

__all__ = ["COMMANDS", "CREATE", "DELETE"]


def _add_list(parser: Parser) -> None:
    parser.need("namespace", nargs="?", metavar="NAMESPACE", help="tenant/namespace")
    add_lister(parser)
    parser.add_argument("--include-system", action="store_true", help="show Pulsar's own topics as well")
    add_catalog(parser)
    add_format(parser, "text", "json")


def _list(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    request = ListRequest(
        checked_namespace(arguments.namespace),
        arguments.mode,
        pattern=arguments.pattern,
        properties=pairs_of(arguments.properties),
        include_system=arguments.include_system,
    )
    # A server without pattern filtering answers with every topic and leaves the pattern to its client; here there is
    # no client that would apply it.
    if request.pattern and not settings.topics.pattern_filtering:
        raise SettingsError("--pattern: patterns are switched off by topics.pattern_filtering = false")
    selector = None if arguments.labels is None else parse(arguments.labels)
    lister = lister_of(settings, arguments.plugin_file, request.properties)
    with opened(settings.topics) as catalog, TopicLister(lister, catalog, rules_of(settings.topics).listing) as at_work:
        answer = at_work.answer(request)
        if request.pattern and not answer.filtered:
            length = len(request.pattern)
            raise SettingsError(f"--pattern: it has {length} characters, more than topics.pattern_max_length permits")
        names = list(answer.topics)
        if selector is not None:
            selected = set(catalog.selected(request.namespace, selector))
            names = [name for name in names if name in selected]
    if arguments.format == "json":
        print_json({"topics": names, "hash": topics_hash(names)})
    else:
        print_names(names, "text")
    return 0


def _add_create(parser: Parser) -> None:
    parser.need("topic", nargs="?", metavar="TOPIC", help="name; a short one means persistent://public/default/NAME")
    parser.add_argument("--partitions", type=whole, metavar="N", help="make a partitioned topic of N partitions")
    parser.add_argument("-p", "--properties", action="append", default=[], metavar="KEY=VALUE", help="repeatable")
    parser.add_argument("--labels", action="append", default=[], metavar="KEY=VALUE", help="repeatable")
    parser.add_argument("--create-namespace", action="store_true", help="make the namespace if there is none")
    add_catalog(parser)


def _create(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments).topics
    name = topic(arguments.topic)
    if not Path(settings.catalog).exists():
        # Tried in memory first: a topic that an empty catalog refuses must not leave a file behind.
        _put(name, arguments, Catalog(allowed_label_keys=settings.allowed_label_keys))
    with opened(settings, create=True) as catalog:
        _put(name, arguments, catalog)
    say(f"created {name}")
    return 0


def _put(name: str, arguments: argparse.Namespace, catalog: Catalog) -> None:
    properties, labels = pairs_of(arguments.properties), pairs_of(arguments.labels)
    # One transaction: a namespace is not made for a topic that is then refused.
    with catalog.together():
        if arguments.create_namespace:
            catalog.create_namespace(namespace_of(name))
        try:
            catalog.create(name, partitions=arguments.partitions, properties=properties, labels=labels)
        except NotFoundError as error:  # of its namespace
            raise NotFoundError(f"{error}; with --create-namespace it is made") from None


def _add_delete(parser: Parser) -> None:
    parser.need("topic", nargs="?", metavar="TOPIC", help="name, of a partitioned topic without partition")
    add_catalog(parser)


def _delete(arguments: argparse.Namespace) -> int:
    name = topic(arguments.topic)
    with opened(settings_of(arguments).topics) as catalog:
        catalog.delete(name)
    say(f"deleted {name}")
    return 0


LIST = Command(
    name="topics list",
    summary="list the topics of a namespace, filtered by pattern, properties and labels",
    examples=(
        ("lookup topics list public/default", "every persistent topic, one per line"),
        ("lookup topics list public/default --set topics.lister=indexed -p team=billing", "by property"),
        ("lookup topics list public/default --pattern 'public/default/orders-.*'", "by name"),
        ("lookup topics list public/default --labels 'env=prod,tier in (gold,silver)' --mode all", "by labels"),
    ),
    add_arguments=_add_list,
    run=_list,
)
CREATE = Command(
    name="topics create",
    summary="put a topic into the catalog",
    examples=(
        ("lookup topics create orders --create-namespace --labels env=prod -p team=billing", "the first topic of all"),
        ("lookup topics create persistent://acme/eu/orders --partitions 4 --create-namespace", "partitioned"),
    ),
    add_arguments=_add_create,
    run=_create,
)
DELETE = Command(
    name="topics delete",
    summary="take a topic out of the catalog",
    examples=(("lookup topics delete persistent://acme/eu/orders", "with all its partitions"),),
    add_arguments=_add_delete,
    run=_delete,
)
#: In the order of the help.
COMMANDS = (LIST, CREATE, DELETE)
