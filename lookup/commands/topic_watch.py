"""Carry out `lookup topics watch`: print a list of topics and then what changes in it.

A catalog's file is looked at again and again for what other processes write; a decision server, or several of them,
send changes by themselves. Either way the messages are those of `lookup.topics.watching`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any

from lookup.commands.options import Command, Parser, add_format, number
from lookup.commands.streams import stdout, warn
from lookup.commands.topics import (
    add_catalog,
    add_lister,
    lister_of,
    on_a_line,
    opened,
    pairs_of,
    refuse_unfiltered,
    servers_of,
    settings_of,
    warn_of_ignored_properties,
)
from lookup.errors import InputError, PulsarLookupError, SettingsError, StateError
from lookup.model.catalog import TopicEvent
from lookup.model.quoting import json_text, shown
from lookup.serve.client import TopicServer, Watching
from lookup.settings import ListingSection, TopicsFile
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import checked_namespace
from lookup.topics.client import ServerLists
from lookup.topics.listing import TopicLister, TopicQuery, topics_hash
from lookup.topics.listing.selectors import parse
from lookup.topics.listing.topic_list import pattern_length, without_pattern_scheme
from lookup.topics.watching import Message, Snapshot, Trouble, Watch, WatchedTopics, changes_between

__all__ = ["COMMAND", "wait"]

#: Name of the catalog's file beside those of servers.
_HERE = "here"


class _Printer:
    """Prints what messages change in a list, and warns once of each trouble."""

    def __init__(self, watch: Watch, sources: Sequence[str], form: str, *, most: int | None = None) -> None:
        self._lists, self._form, self._most = ServerLists(watch, sources), form, most
        self._warned: set[str] = set()
        self._is_shared = len(sources) > 1
        self._is_first = True

    def take(self, source: str, message: Message) -> None:
        """Take in a message, and print what it changed."""
        if isinstance(message, Trouble):
            if message.sentence not in self._warned:
                self._warned.add(message.sentence)
                warn(f"the list stays as it was: {message.sentence}")
            return
        removed, added = map(sorted, self._lists.take(source, message))
        if not (self._is_first or removed or added):
            return
        kind = "snapshot" if self._is_first else "update"
        if not self._is_first and self._most is not None and len(removed) + len(added) > self._most:
            kind = "resync"
        self._is_first = False
        topics = self._lists.topics
        hashed, count = topics_hash(topics), len(topics)
        if self._form == "json":
            content: dict[str, Any] = {"kind": kind, "removed": removed, "added": added, "hash": hashed, "count": count}
            if self._is_shared:
                content["partial"] = self._lists.is_partial
            stdout().write(json_text(content) + "\n")
        else:
            again = "; printed anew, too much had changed" if kind == "resync" else ""
            lines = [f"- {on_a_line(name)}" for name in removed] + [f"+ {on_a_line(name)}" for name in added]
            stdout().writelines(f"{line}\n" for line in [*lines, f"= {hashed}, {count} topics{again}"])
        # A program at the other end of a pipe waits for every change.
        stdout().flush()


class _Look:
    """A watch over a catalog that others write to."""

    def __init__(self, watch: Watch, catalog: Catalog, lister: TopicLister) -> None:
        self._catalog = catalog
        self._topics = WatchedTopics(watch, catalog, lister, is_driven=True)
        self._events: list[TopicEvent] = []
        self._has: Snapshot | None = None
        # Subscribed before anything is listed, so that no change falls between the two.
        catalog.subscribe(self._events.append)

    def look(self) -> Message | None:
        """Read what was written since the last look, and return the message about it, if there is one."""
        self._catalog.refresh()
        if self._has is not None and not self._topics.concerns(self._events):
            self._events.clear()
            return None
        try:
            now = self._topics.listed(is_first=self._has is None)
        except PulsarLookupError as error:
            if self._has is None:
                raise
            return Trouble(str(error))
        destroyed = {event.topic for event in self._events if event.kind == "deleted"}
        # In place, since the catalog adds to them; they are kept until a list was made after them.
        self._events.clear()
        before, self._has = self._has, now
        return now if before is None else changes_between(before, now, destroyed)


def _add_arguments(parser: Parser) -> None:
    parser.need("namespace", nargs="?", metavar="NAMESPACE", help="tenant/namespace")
    add_lister(parser)
    parser.add_argument(
        "--every", type=number, default=1.0, metavar="SECONDS", help="interval between two looks (default: 1)"
    )
    parser.add_argument(
        "--for", type=number, dest="duration", metavar="SECONDS", help="duration, or 0 for one look (default: no end)"
    )
    add_catalog(parser, server=True)
    add_format(parser, "text", "json")


def _run(arguments: argparse.Namespace) -> int:
    """Print the list of topics and its changes until the time is over, and return 0, or 130 if interrupted."""
    settings, servers = settings_of(arguments), servers_of(arguments)
    if not servers and not settings.topics.topic_list_watcher:
        raise SettingsError("watches are switched off by topics.topic_list_watcher = false; `topics list` still lists")
    if arguments.every <= 0:
        arguments.parser.error("--every: should be more than 0 seconds")
    if arguments.duration is not None and arguments.duration < 0:
        arguments.parser.error("--for: should be 0 seconds, for one look, or more")
    if arguments.pattern is not None and arguments.labels is not None:
        arguments.parser.error("--pattern, --labels: a watch has only one of the two")
    selector = () if arguments.labels is None else parse(arguments.labels)
    namespace, properties = checked_namespace(arguments.namespace), pairs_of(arguments.properties)
    watch = Watch((TopicQuery(namespace, arguments.mode, arguments.pattern, selector, properties),))
    try:
        if servers:
            _watch_servers(servers, watch, arguments)
        else:
            _watch_file(settings, watch, arguments)
    except KeyboardInterrupt:
        return 130  # how a watch usually ends; the command line would add that nothing was written
    return 0


def _watch_file(settings: TopicsFile, watch: Watch, arguments: argparse.Namespace) -> None:
    lister = lister_of(settings, arguments.plugin_file, watch.queries[0].properties)
    if watch.queries[0].pattern is not None or not watch.queries[0].selector:
        _refuse_pattern(watch.queries[0].pattern, settings.topics)
    printer = _Printer(watch, [_HERE], arguments.format, most=settings.topics.queue_max)
    with opened(settings.topics) as catalog, TopicLister(lister, catalog, settings.topics) as at_work:
        look = _Look(watch, catalog, at_work)
        for _ in wait(arguments.every, arguments.duration):
            message = look.look()
            if message is not None:
                printer.take(_HERE, message)


def _refuse_pattern(pattern: str | None, section: ListingSection) -> None:
    """Refuse a pattern that a server would leave to its client; there is none here that would apply it."""
    if not section.pattern_filtering:
        raise StateError("this server evaluates no patterns for its clients: pattern_filtering is off")
    # Pulsar counts a watched pattern without its scheme, and a listed one with it.
    length = 0 if pattern is None else pattern_length(without_pattern_scheme(pattern))
    if length > section.pattern_max_length:
        sentence = f"has {length} characters, more than pattern_max_length, {section.pattern_max_length}"
        raise StateError(f"pattern {shown(pattern)} {sentence}")


def _watch_servers(servers: Sequence[TopicServer], watch: Watch, arguments: argparse.Namespace) -> None:
    printer = _Printer(watch, [server.url for server in servers], arguments.format)
    ends = None if arguments.duration is None else time.monotonic() + arguments.duration
    #: servers that have not answered yet, with a list or with trouble
    silent = {server.url for server in servers}
    troubles: list[str] = []
    with Watching(servers, watch) as watching:
        # `--for 0` waits for the first answer of each as well.
        while silent or ends is None or time.monotonic() < ends:
            left_s = None if silent or ends is None else max(0.0, ends - time.monotonic())
            for url, message in watching.messages(left_s):
                if isinstance(message, Snapshot):
                    refuse_unfiltered(arguments.pattern, is_filtered=message.filtered)
                    if url in silent:
                        warn_of_ignored_properties(arguments.properties, reads_properties=message.reads_properties)
                elif isinstance(message, Trouble) and url in silent:
                    troubles.append(message.sentence)
                    if len(troubles) == len(servers):
                        raise InputError(troubles[0])
                silent.discard(url)
                printer.take(url, message)


def wait(every: float, duration: float | None) -> Iterator[None]:
    """Yield at once, and again after each interval until the time is over.

    Args:
        every: seconds, more than 0.
        duration: seconds; None: for ever.
    """
    ends = None if duration is None else time.monotonic() + duration
    yield
    while ends is None or time.monotonic() < ends:
        # The last interval is cut short, so that `--for` holds however long `--every` is.
        time.sleep(every if ends is None else max(0.0, min(every, ends - time.monotonic())))
        yield


COMMAND = Command(
    name="topics watch",
    examples=(
        ("lookup topics watch public/default --pattern 'public/default/orders-.*'", "watch names until Ctrl-C"),
        ("lookup topics watch public/default --labels env=prod --for 60 --format json", "watch labels for a minute"),
        ("lookup topics watch public/default --server http://10.0.0.9:8900", "topics of a live cluster"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
