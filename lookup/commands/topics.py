"""Carry out `lookup topics list`, `create` and `delete` for topics of a catalog.

Flags, settings, catalog and lister are shared with the other commands about topics.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import TypeVar

from lookup.commands.options import (
    Command,
    Parser,
    add_format,
    add_plugin_files,
    add_set,
    settings_flags,
    settings_path,
    whole,
)
from lookup.commands.streams import note, print_json, stdout, warn
from lookup.engine.build import build_lister
from lookup.engine.plugins import load_plugins
from lookup.errors import ArgumentError, NotFoundError, SettingsError
from lookup.hooks import Lister
from lookup.model.names import TopicName
from lookup.model.quoting import BREAKING, forbidden_character, one_line, shown, unseen
from lookup.serve.client import TopicServer
from lookup.settings import ListingSection, TopicsFile, load_topics
from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.catalog.naming import MODES, checked_namespace, namespace_of
from lookup.topics.catalog.operations import CatalogOperation, apply
from lookup.topics.catalog.pairs import parse_each
from lookup.topics.listing import TopicLister, TopicQuery
from lookup.topics.listing.listers import interests_of
from lookup.topics.listing.selectors import parse

__all__ = [
    "COMMANDS", "CREATE", "DELETE", "add_catalog", "add_query", "add_server", "apply_operation",
    "lister_of", "on_a_line", "pairs_of", "server_of", "settings_of", "topic",
    "warn_of_ignored_properties",
]  # fmt: skip

_Answer = TypeVar("_Answer")


# Flags


def add_catalog(parser: Parser, *, server: bool = False) -> None:
    """Add `--catalog`, `--config` and `--set`, which every command about topics has.

    Args:
        server: whether the command can use a server instead. It then has `--server` and `--token-file`.
    """
    if server:
        add_server(parser, "URL of a decision server, in place of --catalog")
    parser.add_argument("--catalog", metavar="FILE", help="SQLite file of the catalog (default: topics.db)")
    parser.add_argument("--config", type=settings_path, metavar="FILE", help="TOML file with [topics]")
    add_set(parser, "topics.lister=indexed")


def add_server(parser: Parser, what: str, *, is_needed: bool = False) -> None:
    """Add `--server` and `--token-file`."""
    (parser.need if is_needed else parser.add_argument)("--server", metavar="URL", help=what)
    parser.add_argument("--token-file", metavar="FILE", help="file with the token for the server")


def add_query(parser: Parser) -> None:
    """Add the flags that restrict a list by properties, pattern, labels and mode."""
    parser.many(
        "-p", "--properties", metavar="KEY=VALUE", help="property for the lister, or several with commas between"
    )
    parser.add_argument(
        "--pattern",
        type=_read_pattern,
        metavar="RE",
        help="regular expression for the whole name, tenant/namespace/topic",
    )
    parser.add_argument("--labels", metavar="SELECTOR", help="label selector, like 'env=prod,tier in (a,b),team'")
    parser.add_argument(
        "--mode", choices=MODES, metavar="MODE", default=MODES[0], help="persistent (default), non-persistent or all"
    )


# Values


def topic(text: str) -> str:
    """Complete the name of a topic, which may be short."""
    return str(TopicName.expand(text))


def _read_pattern(text: str) -> str:
    """Read a pattern. An empty one, as of an unset variable, is a mistake and does not mean everything."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty and matches no topic; leave it out to list every topic")
    return text


def pairs_of(texts: Iterable[str]) -> dict[str, str]:
    """Read all pairs of some texts.

    Raises:
        ArgumentError: with the first piece that is not a pair or holds invisible characters, or the first key
            with two values, since either may be the intended one.
    """
    values: dict[str, str] = {}
    for key, value in chain.from_iterable(map(parse_each, texts)):
        # Of a key with invisible characters no later command could find the pair.
        for noun, text in (("key", key), ("value", value)):
            fault = unseen(text)
            if fault is not None:
                raise ArgumentError(f"{shown(f'{key}={value}')}: the {noun} {fault}")
        if values.setdefault(key, value) != value:
            raise ArgumentError(f"{shown(key)} is given twice, as {shown(values[key])} and as {shown(value)}")
    return values


def settings_of(arguments: argparse.Namespace) -> TopicsFile:
    """Read the settings of topics from flags, environment and files."""
    # `--catalog` takes precedence over `--set`, since it is the shorter form. None leaves the key unchanged.
    return load_topics(arguments.config, {**settings_flags(arguments), "topics.catalog": arguments.catalog})


@contextmanager
def open_catalog(settings: ListingSection, *, create: bool = False) -> Iterator[Catalog]:
    """Open the catalog that the settings name, and close it in the end."""
    timeout = settings.lock_timeout_s
    with closing(SqliteStorage(settings.catalog, lock_timeout_s=timeout, must_exist=not create)) as storage:
        yield Catalog(storage, allowed_label_keys=settings.allowed_label_keys)


def server_of(arguments: argparse.Namespace) -> TopicServer | None:
    """Find the server in the flags, None if there is none."""
    if arguments.server is None:
        if arguments.token_file is not None:
            raise SettingsError("--token-file: it is for --server, which is not given")
        return None
    if getattr(arguments, "catalog", None) is not None:
        raise SettingsError("--server, --catalog: topics are in one of the two")
    if getattr(arguments, "plugin_file", None):
        raise SettingsError("--server, --plugin-file: the server has listers of its own settings")
    return TopicServer(arguments.server, arguments.token_file)


def apply_operation(arguments: argparse.Namespace, operation: CatalogOperation) -> Mapping[str, str] | None:
    """Apply an operation to the catalog that settings name, or at the server that the flags name."""
    settings, server = settings_of(arguments).topics, server_of(arguments)
    if server is not None:
        return server.apply(operation)
    with open_catalog(settings) as catalog:
        return apply(operation, catalog)


def lister_of(settings: TopicsFile, plugin_files: Sequence[str], properties: Mapping[str, str] | None = None) -> Lister:
    """Build the lister that the settings choose, and warn if it ignores the properties it is to filter by."""
    registry = load_plugins([*settings.plugin_files, *plugin_files])
    lister = build_lister(registry, settings.topics.lister, "topics.lister")
    # Created in any case, since a lister that breaks its contract is rejected before a catalog is opened.
    interests = interests_of(lister)
    if properties and "properties" not in interests:
        use = "--set topics.lister=indexed"
        warn(f"lister {lister.name!r} does not look at properties and lists every topic; {use} filters by them")
    return lister


def on_a_line(name: str) -> str:
    """Format a name for a line of text, with a line feed or a terminal sequence as an escape."""
    return name if forbidden_character(name, categories=BREAKING) is None else one_line(name)


def print_names(names: Sequence[str], form: str) -> None:
    """Print names, one per line or as a JSON list."""
    if form == "json":
        print_json(list(names))
    else:
        stdout().writelines(f"{on_a_line(name)}\n" for name in names)


# The commands


def _add_list_arguments(parser: Parser) -> None:
    parser.need("namespace", nargs="?", metavar="NAMESPACE", help="tenant/namespace")
    add_query(parser)
    add_plugin_files(parser, "a lister")
    parser.add_argument("--include-system", action="store_true", help="list Pulsar's own topics as well")
    add_catalog(parser, server=True)
    add_format(parser, "text", "json")


def _run_list(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    request = TopicQuery(
        checked_namespace(arguments.namespace),
        arguments.mode,
        pattern=arguments.pattern,
        selector=() if arguments.labels is None else parse(arguments.labels),
        properties=pairs_of(arguments.properties),
        include_system=arguments.include_system,
    )
    server = server_of(arguments)
    if server is not None:
        answer = server.list_topics(request)
        warn_of_ignored_properties(request.properties, reads_properties=answer["readsProperties"])
        names, hashed = answer["topics"], answer["topicsHash"]
    else:
        names, hashed = _list_here(settings, arguments.plugin_file, request)
    if arguments.format == "json":
        print_json({"topics": list(names), "hash": hashed})
    else:
        print_names(names, "text")
    return 0


def warn_of_ignored_properties(properties: Collection[str], *, reads_properties: bool) -> None:
    """Warn if the properties that a server was sent change nothing there."""
    if properties and not reads_properties:
        warn("the server's lister does not look at properties and lists every topic")


def _list_here(settings: TopicsFile, plugin_files: Sequence[str], request: TopicQuery) -> tuple[Sequence[str], str]:
    lister = lister_of(settings, plugin_files, request.properties)
    with open_catalog(settings.topics) as catalog, TopicLister(lister, catalog, settings.topics) as at_work:
        answer = at_work.answer(request)
    return answer.topics, answer.topics_hash


def _add_create_arguments(parser: Parser) -> None:
    parser.need("topic", nargs="?", metavar="TOPIC", help="name. A short one means persistent://public/default/NAME")
    parser.add_argument(
        "--partitions", type=whole, metavar="N", help="number of partitions (default: a topic without partitions)"
    )
    parser.many("-p", "--properties", metavar="KEY=VALUE", help="KEY=VALUE to attach")
    parser.many("--labels", metavar="KEY=VALUE", help="KEY=VALUE to attach")
    parser.add_argument("--create-namespace", action="store_true", help="create the namespace if there is none")
    add_catalog(parser)


def _run_create(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments).topics
    name = topic(arguments.topic)
    if not Path(settings.catalog).exists():
        # Tried in memory first, since a topic that an empty catalog rejects must not leave a file behind.
        _put(name, arguments, Catalog(allowed_label_keys=settings.allowed_label_keys))
    with open_catalog(settings, create=True) as catalog:
        _put(name, arguments, catalog)
    note(f"created {name}")
    return 0


def _put(name: str, arguments: argparse.Namespace, catalog: Catalog) -> None:
    properties, labels = pairs_of(arguments.properties), pairs_of(arguments.labels)
    # One transaction, since a namespace is not made for a topic that is then rejected.
    with catalog.together():
        if arguments.create_namespace:
            catalog.create_namespace(namespace_of(name))
        try:
            catalog.create(name, partitions=arguments.partitions, properties=properties, labels=labels)
        except NotFoundError as error:  # of its namespace
            raise NotFoundError(f"{error}; with --create-namespace it is made") from None


def _add_delete_arguments(parser: Parser) -> None:
    parser.need("topic", nargs="?", metavar="TOPIC", help="name of the topic, without a partition")
    add_catalog(parser)


def _run_delete(arguments: argparse.Namespace) -> int:
    name = topic(arguments.topic)
    with open_catalog(settings_of(arguments).topics) as catalog:
        catalog.delete(name)
    note(f"deleted {name}")
    return 0


LIST = Command(
    name="topics list",
    examples=(
        ("lookup topics list public/default", "every persistent topic, one per line"),
        ("lookup topics list public/default --set topics.lister=indexed -p team=billing", "topics with a property"),
        ("lookup topics list public/default --pattern 'public/default/orders-.*'", "topics with a matching name"),
        ("lookup topics list public/default --labels 'env=prod,tier in (gold,silver)' --mode all", "matching labels"),
        ("lookup topics list public/default --server http://10.0.0.9:8900 -p team=billing", "topics of a live cluster"),
    ),
    add_arguments=_add_list_arguments,
    run=_run_list,
)
CREATE = Command(
    name="topics create",
    examples=(
        ("lookup topics create orders --create-namespace --labels env=prod -p team=billing", "a first topic"),
        ("lookup topics create persistent://acme/eu/orders --partitions 4 --create-namespace", "four partitions"),
    ),
    add_arguments=_add_create_arguments,
    run=_run_create,
)
DELETE = Command(
    name="topics delete",
    examples=(("lookup topics delete persistent://acme/eu/orders", "the topic with all its partitions"),),
    add_arguments=_add_delete_arguments,
    run=_run_delete,
)
#: In the order of the help.
COMMANDS = (LIST, CREATE, DELETE)
