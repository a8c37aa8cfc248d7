"""Share flags, settings, catalog and lister between the commands about topics."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain

from lookup.commands.options import Parser, add_plugin_files, add_set, settings_flags
from lookup.commands.streams import print_json, stdout, warn
from lookup.engine.build import PartBuilder
from lookup.engine.plugins import load_plugins
from lookup.errors import ArgumentError, SettingsError
from lookup.hooks import Lister
from lookup.model.names import TopicName
from lookup.model.quoting import shown, unseen
from lookup.settings import TopicsFile, TopicsSection, load_topics
from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.catalog.naming import MODES, checked_name
from lookup.topics.catalog.pairs import parse_each
from lookup.topics.listing.listers import interests_of

__all__ = ["add_catalog", "add_lister", "add_mode", "lister_of", "opened", "pairs_of", "print_names"]
__all__ += ["settings_of", "topic"]


# Flags


def add_catalog(parser: Parser) -> None:
    """Add `--catalog`, `--config` and `--set`, which every command about topics has."""
    parser.add_argument("--catalog", metavar="FILE", help="the SQLite file that holds the topics; default: topics.db")
    parser.add_argument("--config", metavar="FILE", help="settings: a TOML file with [topics], or a broker.conf")
    add_set(parser, "topics.lister=indexed")


def add_lister(parser: Parser) -> None:
    """Add the flags of a listing: properties, pattern, labels, mode, and plug-ins with listers."""
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


def topic(text: str) -> str:
    """Return the full name of a topic, which may be given short.

    Raises:
        InvalidNameError, ArgumentError: if it is not written as Pulsar writes it, or too long.
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
        ArgumentError: naming the first piece that is no pair or holds invisible characters, or the first key with two
            values, since either may be the intended one.
    """
    values: dict[str, str] = {}
    for key, value in chain.from_iterable(map(parse_each, texts)):
        # Of a key with invisible characters no later command could find the pair.
        for what, text in (("key", key), ("value", value)):
            fault = unseen(text)
            if fault is not None:
                raise ArgumentError(f"{shown(f'{key}={value}')}: the {what} {fault}")
        if values.setdefault(key, value) != value:
            raise ArgumentError(f"{shown(key)} is given twice, as {shown(values[key])} and as {shown(value)}")
    return values


def settings_of(arguments: argparse.Namespace) -> TopicsFile:
    """Return the settings of topics that flags, environment and files give.

    Raises:
        SettingsError: all mistakes together.
    """
    # `--catalog` wins over `--set`, being the shorter way to say the same; None leaves the key as it is.
    return load_topics(arguments.config, {**settings_flags(arguments), "topics.catalog": arguments.catalog})


@contextmanager
def opened(settings: TopicsSection, *, create: bool = False) -> Iterator[Catalog]:
    """Open the catalog that the settings name, and close it in the end.

    Raises:
        InputError: if there is none and `create` is false, or the file is no catalog.
    """
    with closing(SqliteStorage(settings.catalog, must_exist=not create)) as storage:
        yield Catalog(storage, allowed_label_keys=settings.allowed_label_keys)


def lister_of(settings: TopicsFile, plugin_files: Sequence[str], properties: Mapping[str, str] | None = None) -> Lister:
    """Build the lister that the settings choose, and warn if it ignores the properties it is to filter by.

    Raises:
        PluginError: for a plug-in that cannot be loaded.
        SettingsError: for a lister that is not registered, or whose parameters are wrong.
        ContractError: for one whose interests are no kinds of events.
    """
    builder = PartBuilder(load_plugins([*settings.plugin_files, *plugin_files]))
    lister: Lister | None = builder.part("listers", settings.topics.lister, "topics.lister")
    if lister is None or builder.problems:
        raise SettingsError(builder.problems)
    # Asked for in any case: a lister that breaks its contract is refused before a catalog is opened.
    interests = interests_of(lister)
    if properties and "properties" not in interests:
        use = "--set topics.lister=property-filter or indexed"
        warn(f"lister {lister.name!r} does not look at properties and lists every topic; {use} filters by them")
    return lister


def print_names(names: Sequence[str], form: str) -> None:
    """Print names, one per line or as a JSON list."""
    if form == "json":
        print_json(list(names))
    else:
        stdout().writelines(f"{name}\n" for name in names)
