"""Carry out `lookup topics watch`: watch a catalog's file as clients of a broker do, and print message by message.

The watch itself is `lookup.topics.watching`, and the list that its messages change is the one clients hold; here is the
clock that decides when to look for changes of other processes. A decision server watches nothing for its clients: it is
polled with the hash of the last list, and what is new in the next one is printed as changes of a watch are.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Protocol

from lookup.commands.options import Command, Parser, add_format, number
from lookup.commands.streams import stdout, warn
from lookup.commands.topic_server import TopicServer
from lookup.commands.topics import (
    add_catalog,
    add_lister,
    listed_by,
    lister_of,
    on_a_line,
    opened,
    pairs_of,
    server_of,
    settings_of,
)
from lookup.errors import NotFoundError, PulsarLookupError, SettingsError, StateError
from lookup.model.quoting import json_text
from lookup.settings import TopicsFile
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import checked_namespace
from lookup.topics.client import ListCopy
from lookup.topics.listing import ListRequest, TopicLister, topics_hash
from lookup.topics.listing.selectors import parse
from lookup.topics.rules import rules_of
from lookup.topics.watching import (
    Closed,
    Message,
    Refused,
    Snapshot,
    TopicListService,
    Update,
    WatchQuery,
    WatchRequest,
    carry_out,
)

__all__ = ["COMMAND", "add_arguments", "print_change", "run", "wait"]

_INTERRUPTED = 130
#: Name of the one connection.
_HERE = "here"
_EVERY_NAME = ".*"


class _Source(Protocol):
    """What a list of topics is watched by."""

    def look(self) -> Iterator[Message]:
        """Yield what is new since the last look, as the messages of a watch."""


class _Watch:
    """One watch over a catalog that others write to.

    Args:
        lister: a custom one, which drives the watch, or the default one, whose lists events keep right.
    """

    def __init__(self, catalog: Catalog, watches: TopicListService, lister: TopicLister) -> None:
        self._catalog, self._watches, self._lister = catalog, watches, lister
        self._trouble = _Trouble()
        # Subscribed before anything is listed, so that no change falls between the two.
        catalog.subscribe(watches.heard)

    def look(self) -> Iterator[Message]:
        """Read what was written since the last look, and yield the messages about it."""
        self._catalog.refresh()
        self._watches.retry()
        failures = carry_out(self._watches, self._catalog, self._lister)
        yield from self._watches.take(_HERE)
        for sentence in failures:
            self._trouble.note(sentence)


class _Polls:
    """The list of a decision server, which is asked for it with the hash of the last answer."""

    def __init__(self, server: TopicServer, query: WatchQuery) -> None:
        # Without a pattern of its own a list needs none, and a server may have switched them off.
        pattern = None if query.pattern == _EVERY_NAME else query.pattern
        self._request = ListRequest(query.namespace, query.mode, pattern, query.selector, query.properties)
        self._server, self._topics, self._trouble = server, ListCopy(), _Trouble()

    def look(self) -> Iterator[Message]:
        """Ask for the list; a namespace that is deleted after the first answer has none, as in a catalog's file.

        Any other failure after the first answer is no change, and reported.

        Raises:
            PulsarLookupError: as the server refuses the first question, or cannot be asked it.
        """
        known = self._request.topics_hash
        try:
            answer = listed_by(self._server, self._request)
        except PulsarLookupError as error:
            if known is None:
                raise
            if not isinstance(error, NotFoundError):
                self._trouble.note(str(error))
                return
            answer = {"topics": [], "topicsHash": topics_hash(())}
        hashed = answer["topicsHash"]
        if hashed == known:
            return
        self._request = replace(self._request, topics_hash=hashed)
        change = self._topics.replace(answer["topics"])
        if known is None:
            yield Snapshot(1, 1, tuple(answer["topics"]), hashed)
        else:
            yield Update(1, tuple(change.removed), tuple(change.added), hashed)


class _Trouble:
    """Warns once for each reason for which a list could not be fetched."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def note(self, sentence: str) -> None:
        """Warn of a reason, unless that was done: else it would be reported at every look."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            warn(f"the list stays as it was: {sentence}")


def add_arguments(parser: Parser) -> None:
    """Add the flags of `lookup topics watch`."""
    parser.need("namespace", nargs="?", metavar="NAMESPACE", help="tenant/namespace")
    add_lister(parser)
    parser.add_argument("--every", type=number, default=1.0, metavar="SECONDS", help="how often to look; default: 1")
    parser.add_argument(
        "--for", type=number, dest="duration", metavar="SECONDS", help="when to end, 0: after one look; default: never"
    )
    add_catalog(parser, server=True)
    add_format(parser, "text", "json")


def run(arguments: argparse.Namespace) -> int:
    """Print the list of topics and its changes until the time is over, and return 0, or 130 if interrupted.

    Raises:
        SettingsError: for settings or flags that are wrong, or if watches are switched off.
        InputError: if the catalog does not exist, or the server cannot be asked.
        StateError: if the watch is refused.
    """
    settings, server = settings_of(arguments), server_of(arguments)
    if server is None and not settings.topics.topic_list_watcher:
        raise SettingsError("watches are switched off by topics.topic_list_watcher = false; `topics list` still lists")
    if arguments.every <= 0:
        arguments.parser.error("--every: should be more than 0 seconds")
    if arguments.duration is not None and arguments.duration < 0:
        arguments.parser.error("--for: should be 0 seconds, for one look, or more")
    query, topics = _query(arguments), ListCopy()
    try:
        with (
            _watched_here(settings, arguments, query) if server is None else nullcontext(_Polls(server, query)) as watch
        ):
            for _ in wait(arguments.every, arguments.duration):
                for message in watch.look():
                    print_change(message, topics, arguments.format)
    except KeyboardInterrupt:
        return _INTERRUPTED  # how a watch usually ends; the command line would add that nothing was written
    return 0


@contextmanager
def _watched_here(settings: TopicsFile, arguments: argparse.Namespace, query: WatchQuery) -> Iterator[_Source]:
    lister = lister_of(settings, arguments.plugin_file, query.properties)
    # Pulsar's own listing is kept right by events alone; any other lister is asked again on those it names.
    is_custom = settings.topics.lister.use != "default"
    rules = rules_of(settings.topics)
    with opened(settings.topics) as catalog, TopicLister(lister, catalog, rules.listing) as at_work:
        interests = at_work.interests if is_custom else None
        watches = TopicListService(rules.watching, interests=interests, revision=catalog.revision)
        watch = _Watch(catalog, watches, at_work)
        watches.open(_HERE, WatchRequest(1, 1, query))
        yield watch


def _query(arguments: argparse.Namespace) -> WatchQuery:
    """Return the query of the flags; without pattern and labels it asks for every topic."""
    if arguments.pattern is not None and arguments.labels is not None:
        arguments.parser.error("--pattern, --labels: a watch has only one of the two")
    selector = () if arguments.labels is None else parse(arguments.labels)
    pattern = None if selector else arguments.pattern or _EVERY_NAME
    properties = pairs_of(arguments.properties)
    return WatchQuery(checked_namespace(arguments.namespace), arguments.mode, pattern, selector, properties)


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


def print_change(message: Message, topics: ListCopy, form: str) -> None:
    """Apply a message to the list of topics, and print what it changed there.

    Raises:
        StateError: if the watch is refused or closed.
    """
    if isinstance(message, Refused):
        raise StateError(message.message)
    if isinstance(message, Closed):
        raise StateError("the watch was closed")
    change, kind = topics.take(message), type(message).__name__.lower()
    removed, added, count = sorted(change.removed), sorted(change.added), len(topics.topics)
    if form == "json":
        content = {"kind": kind, "removed": removed, "added": added, "hash": message.topics_hash, "count": count}
        stdout().write(json_text(content) + "\n")
    else:
        again = "; printed anew, too much had changed" if kind == "resync" else ""
        lines = [f"- {on_a_line(name)}" for name in removed] + [f"+ {on_a_line(name)}" for name in added]
        stdout().writelines(f"{line}\n" for line in [*lines, f"= {message.topics_hash}, {count} topics{again}"])
    # A program at the other end of a pipe waits for every change.
    stdout().flush()


COMMAND = Command(
    name="topics watch",
    summary="print a list of topics and then what changes in it",
    examples=(
        ("lookup topics watch public/default --pattern 'public/default/orders-.*'", "until Ctrl-C, by name"),
        ("lookup topics watch public/default --labels env=prod --for 60 --format json", "a minute, by labels"),
        ("lookup topics watch public/default --server http://10.0.0.9:8900", "of a live cluster"),
    ),
    add_arguments=add_arguments,
    run=run,
)
