"""What the commands about topics share: their flags, the settings they stand for, the catalog, a lister at work."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain

from lookup.commands.options import Parser, add_plugin_files, add_set, settings_flags
from lookup.commands.streams import print_json, stdout
from lookup.engine.build import PartBuilder
from lookup.engine.plugins import load_plugins
from lookup.errors import ArgumentError, SettingsError
from lookup.hooks import Lister
from lookup.model.catalog import TopicEntry
from lookup.model.names import TopicName
from lookup.model.quoting import shown, unseen
from lookup.settings import TopicsFile, TopicsSection, load_topics
from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.catalog.naming import MODES, checked_name, checked_namespace
from lookup.topics.catalog.pairs import parse_each
from lookup.topics.listing.listers import interests_of

__all__ = [
    "add_catalog",
    "add_lister",
    "add_mode",
    "entry_of",
    "lister_of",
    "namespace",
    "opened",
    "pairs_of",
    "print_names",
    "print_pairs",
    "settings_of",
    "topic",
]


# Flags


def add_catalog(parser: Parser) -> None:
    """Add what every command about topics has: where the catalog is, and settings."""
    parser.add_argument("--catalog", metavar="FILE", help="the SQLite file that holds the topics; default: topics.db")
    parser.add_argument("--config", metavar="FILE", help="settings: a TOML file with [topics], or a broker.conf")
    add_set(parser, "topics.lister=indexed")


def add_lister(parser: Parser) -> None:
    """Add what goes into a listing: properties, pattern, labels."""
    parser.add_argument(
        "-p",
        "--properties",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="property the lister filters by, KEY=VALUE or KEY:VALUE, several separated by commas; repeatable",
    )
    parser.add_argument(
        "--pattern", type=_pattern, metavar="RE", help="regular expression over tenant/namespace/topic, whole name"
    )
    parser.add_argument(
        "--labels", metavar="SELECTOR", help="only topics whose labels fit, like 'env=prod,tier in (a,b),team'"
    )
    add_mode(parser)
    add_plugin_files(parser, "a lister")


def add_mode(parser: Parser) -> None:
    """Add `--mode`."""
    parser.add_argument(
        "--mode",
        choices=MODES,
        default=MODES[0],
        help="which topics: persistent (default), non-persistent or all",
    )


# Values


def namespace(text: str) -> str:
    """Read a namespace.

    Raises:
        InvalidNameError, ArgumentError: where it is not of the form tenant/namespace, or too long.
    """
    return checked_namespace(text)


def topic(text: str) -> str:
    """Read a topic, whose name may be short.

    Raises:
        InvalidNameError, ArgumentError: where it is not written as Pulsar writes it, or too long.
    """
    return str(checked_name(str(TopicName.expand(text))))


def _pattern(text: str) -> str:
    """Read a pattern; an empty one, as of a variable that is not set, is a mistake and does not mean everything."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty and matches no topic; leave it out to list every topic")
    return text


def pairs_of(texts: Iterable[str]) -> dict[str, str]:
    """Read all pairs of some texts.

    Raises:
        ArgumentError: naming the first piece that is no pair, or holds what nobody sees, and the first key that is
            given two values: which of them was meant, nobody can know.
    """
    found: dict[str, str] = {}
    for key, value in chain.from_iterable(map(parse_each, texts)):
        _refuse_unseen(key, value)
        if found.setdefault(key, value) != value:
            raise ArgumentError(f"{shown(key)} is given twice, as {shown(found[key])} and as {shown(value)}")
    return found


def _refuse_unseen(key: str, value: str) -> None:
    for what, text in (("key", key), ("value", value)):
        fault = unseen(text)
        if fault is not None:
            raise ArgumentError(f"{shown(f'{key}={value}')}: the {what} {fault}")


def settings_of(arguments: argparse.Namespace) -> TopicsFile:
    """Return the settings that flags, environment and files give.

    Raises:
        SettingsError: all mistakes together.
    """
    return load_topics(arguments.config, {**settings_flags(arguments), "topics.catalog": arguments.catalog})


@contextmanager
def opened(settings: TopicsSection, *, create: bool = False) -> Iterator[Catalog]:
    """Open the catalog that the settings name, and close it in the end.

    Raises:
        InputError: where there is none and none is to be made, or the file is no catalog.
    """
    with closing(SqliteStorage(settings.catalog, must_exist=not create)) as storage:
        yield Catalog(storage, allowed_label_keys=settings.allowed_label_keys)


def entry_of(catalog: Catalog, name: str) -> TopicEntry:
    """Return a topic; of a partitioned one its first partition, whose properties and labels are those of all.

    Raises:
        NotFoundError: where the catalog has no such topic.
    """
    return catalog.meant_by(name)[0]


def lister_of(settings: TopicsFile, plugin_files: Sequence[str]) -> Lister:
    """Build the lister that the settings choose.

    Raises:
        PluginError: for a plug-in that cannot be loaded.
        SettingsError: for a lister that nobody registered, or whose parameters are wrong.
        ContractError: for one whose interests are no kinds of events.
    """
    builder = PartBuilder(load_plugins([*settings.plugin_files, *plugin_files]))
    lister: Lister | None = builder.part("listers", settings.topics.lister, "topics.lister")
    if lister is None or builder.problems:
        raise SettingsError(builder.problems)
    interests_of(lister)
    return lister


# Output


def print_names(names: Sequence[str], form: str) -> None:
    """Print names, one per line or as a JSON list."""
    if form == "json":
        print_json(list(names))
        return
    stdout().writelines(f"{name}\n" for name in names)


def print_pairs(pairs: Mapping[str, str], form: str) -> None:
    """Print pairs in the order of keys, `key=value` per line or as a JSON object."""
    if form == "json":
        print_json(dict(sorted(pairs.items())))
        return
    stdout().writelines(f"{key}={pairs[key]}\n" for key in sorted(pairs))
