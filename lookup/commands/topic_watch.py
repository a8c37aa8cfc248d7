"""`lookup topics watch`: a watch of the catalog's file, as a server's clients have it, printed message by message.

The watch itself is `lookup.topics.watching`; here are its one client, which holds what it was told, and the clock that
says when to look for what other processes have written.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lookup.commands.catalogs import add_catalog, add_lister, lister_of, namespace, opened, pairs_of, settings_of
from lookup.commands.options import Command, Parser, add_format, number
from lookup.commands.streams import stdout, warn
from lookup.commands.topics import warn_of_ignored
from lookup.errors import SettingsError, StateError
from lookup.hooks import Lister
from lookup.settings import TopicsFile
from lookup.topics.catalog import Catalog
from lookup.topics.listing import TopicLister
from lookup.topics.listing.selectors import parse
from lookup.topics.rules import rules_of
from lookup.topics.watching import (
    Message,
    Refused,
    Resync,
    Snapshot,
    TopicListService,
    Update,
    WatchQuery,
    WatchRequest,
    carry_out,
)

__all__ = ["COMMAND", "Change", "Client"]

_INTERRUPTED = 130
#: The one connection of the one client.
_HERE = "here"


@dataclass(frozen=True, slots=True)
class Change:
    """What a message changed in the list that the client holds."""

    kind: Literal["snapshot", "update", "resync"]
    #: sorted, like those added; a topic in both was deleted and created again
    removed: tuple[str, ...]
    added: tuple[str, ...]
    #: of the whole list afterwards
    topics_hash: str
    #: in the list afterwards
    n_topics: int


class Client:
    """The client's end of a watch: holds the list, and says of every message what it changed."""

    def __init__(self) -> None:
        self._topics: set[str] = set()

    def take(self, message: Message) -> Change:
        """Apply a message, removed first.

        Raises:
            StateError: where the watch is refused.
        """
        match message:
            case Snapshot(topics=topics, topics_hash=told):
                return self._replace("snapshot", set(topics), told)
            case Resync(topics=topics, topics_hash=told):
                return self._replace("resync", set(topics), told)
            case Update(removed=removed, added=added, topics_hash=told):
                self._topics = (self._topics - set(removed)) | set(added)
                return Change("update", removed, added, told, len(self._topics))
            case Refused(message=sentence):
                raise StateError(sentence)
            case _:
                raise StateError("the watch was closed")

    def _replace(self, kind: Literal["snapshot", "resync"], topics: set[str], told: str) -> Change:
        before, self._topics = self._topics, topics
        return Change(kind, tuple(sorted(before - topics)), tuple(sorted(topics - before)), told, len(topics))


class _Watch:
    """One watch over a catalog that others write to.

    Args:
        lister: a custom one, which drives the watch; None: the default listing, which events keep right.
    """

    def __init__(self, catalog: Catalog, watches: TopicListService, lister: TopicLister | None) -> None:
        self._catalog, self._watches, self._lister = catalog, watches, lister
        self._warned: set[str] = set()
        # Listening begins before anything is listed, so that nothing falls between the two.
        catalog.subscribe(watches.heard)

    def look(self, client: Client) -> Iterator[Change]:
        """Take in what was written since the last look, and yield what it changed."""
        self._catalog.refresh()
        self._watches.retry()
        failures = carry_out(self._watches, self._catalog, self._lister)
        yield from map(client.take, self._watches.take(_HERE))
        for sentence in failures:
            self._warn(sentence)

    def _warn(self, sentence: str) -> None:
        """Say once why the list could not be looked up again; what was told of it holds until it can."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            warn(f"the list stays as it was: {sentence}")


def _add_arguments(parser: Parser) -> None:
    parser.need("namespace", nargs="?", metavar="NAMESPACE", help="tenant/namespace")
    add_lister(parser)
    parser.add_argument("--every", type=number, default=1.0, metavar="SECONDS", help="how often to look; default: 1")
    parser.add_argument(
        "--for", type=number, dest="duration", metavar="SECONDS", help="when to end, 0: after one look; default: never"
    )
    add_catalog(parser)
    add_format(parser, "text", "json")


def _run(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    if not settings.topics.topic_list_watcher:
        raise SettingsError("watches are switched off by topics.topic_list_watcher = false; `topics list` still lists")
    if arguments.every <= 0:
        arguments.parser.error("--every: should be more than 0 seconds")
    if arguments.duration is not None and arguments.duration < 0:
        arguments.parser.error("--for: should be 0 seconds, for one look, or more")
    query = _query(arguments)
    lister = lister_of(settings, arguments.plugin_file)
    warn_of_ignored(lister, dict(query.properties))
    try:
        _print_changes(arguments, settings, query, lister)
    except KeyboardInterrupt:
        return _INTERRUPTED  # how a watch usually ends: nothing was begun that could be left unfinished
    return 0


def _query(arguments: argparse.Namespace) -> WatchQuery:
    """Return what is to be watched; without pattern and labels everything."""
    if arguments.pattern is not None and arguments.labels is not None:
        arguments.parser.error("--pattern, --labels: a watch has only one of the two")
    selector = None if arguments.labels is None else parse(arguments.labels)
    pattern = None if selector else arguments.pattern or ".*"
    properties = tuple(sorted(pairs_of(arguments.properties).items()))
    return WatchQuery(namespace(arguments.namespace), pattern, selector, properties, arguments.mode)


def _print_changes(arguments: argparse.Namespace, settings: TopicsFile, query: WatchQuery, lister: Lister) -> None:
    # Pulsar's own listing is kept right by events alone; any other lister is asked again on those it names.
    is_custom = settings.topics.lister.use != "default"
    rules, client = rules_of(settings.topics), Client()
    with opened(settings.topics) as catalog, TopicLister(lister, catalog, rules.listing) as at_work:
        interests = at_work.interests if is_custom else None
        watches = TopicListService(rules.watching, interests=interests, revision=catalog.revision)
        watch = _Watch(catalog, watches, at_work if is_custom else None)
        watches.open(_HERE, WatchRequest(1, 1, query))
        for _ in _looks(arguments.every, arguments.duration):
            for change in watch.look(client):
                _print(change, arguments.format)


def _looks(every: float, duration: float | None) -> Iterator[None]:
    """Yield at once, and again after each interval until the time is over."""
    ends = None if duration is None else time.monotonic() + duration
    yield
    while ends is None or time.monotonic() < ends:
        time.sleep(every if ends is None else max(0.0, min(every, ends - time.monotonic())))
        yield


def _print(change: Change, form: str) -> None:
    if form == "json":
        told = {
            "kind": change.kind,
            "removed": change.removed,
            "added": change.added,
            "hash": change.topics_hash,
            "count": change.n_topics,
        }
        stdout().write(json.dumps(told, ensure_ascii=False) + "\n")
    else:
        lines = [*(f"- {name}" for name in change.removed), *(f"+ {name}" for name in change.added)]
        again = "; told anew, too much had changed" if change.kind == "resync" else ""
        stdout().writelines(
            f"{line}\n" for line in [*lines, f"= {change.topics_hash}, {change.n_topics} topics{again}"]
        )
    stdout().flush()


COMMAND = Command(
    name="topics watch",
    summary="print a list of topics and then what changes in it",
    examples=(
        ("lookup topics watch public/default --pattern 'public/default/orders-.*'", "until Ctrl-C, by name"),
        ("lookup topics watch public/default --labels env=prod --for 60 --format json", "a minute, by labels"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
