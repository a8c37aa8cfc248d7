"""Carry out `lookup topics watch`: watch a catalog's file as clients of a server do, and print message by message.

The watch itself is `lookup.topics.watching`, and the list that its messages change is the one clients hold; here is the
clock that decides when to look for changes of other processes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator

from lookup.commands.options import Command, Parser, add_format, number
from lookup.commands.streams import stdout, warn
from lookup.commands.topics import add_catalog, add_lister, lister_of, opened, pairs_of, settings_of
from lookup.errors import SettingsError, StateError
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import checked_namespace
from lookup.topics.client import ListCopy
from lookup.topics.listing import TopicLister
from lookup.topics.listing.selectors import parse
from lookup.topics.rules import rules_of
from lookup.topics.watching import Closed, Message, Refused, TopicListService, WatchQuery, WatchRequest, carry_out

__all__ = ["COMMAND", "add_arguments", "print_change", "run", "wait"]

_INTERRUPTED = 130
#: Name of the one connection.
_HERE = "here"


class _Watch:
    """One watch over a catalog that others write to.

    Args:
        lister: a custom one, which drives the watch, or the default one, whose lists events keep right.
    """

    def __init__(self, catalog: Catalog, watches: TopicListService, lister: TopicLister) -> None:
        self._catalog, self._watches, self._lister = catalog, watches, lister
        self._warned: set[str] = set()
        # Subscribed before anything is listed, so that no change falls between the two.
        catalog.subscribe(watches.heard)

    def look(self) -> Iterator[Message]:
        """Read what was written since the last look, and yield the messages about it."""
        self._catalog.refresh()
        self._watches.retry()
        failures = carry_out(self._watches, self._catalog, self._lister)
        yield from self._watches.take(_HERE)
        for sentence in failures:
            # Once for each reason: a lister that fails would be reported at every look, until the catalog changes.
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
    add_catalog(parser)
    add_format(parser, "text", "json")


def run(arguments: argparse.Namespace) -> int:
    """Print the list of topics and its changes until the time is over, and return 0, or 130 if interrupted.

    Raises:
        SettingsError: for settings or flags that are wrong, or if watches are switched off.
        InputError: if the catalog does not exist.
        StateError: if the watch is refused.
    """
    settings = settings_of(arguments)
    if not settings.topics.topic_list_watcher:
        raise SettingsError("watches are switched off by topics.topic_list_watcher = false; `topics list` still lists")
    if arguments.every <= 0:
        arguments.parser.error("--every: should be more than 0 seconds")
    if arguments.duration is not None and arguments.duration < 0:
        arguments.parser.error("--for: should be 0 seconds, for one look, or more")
    query = _query(arguments)
    lister = lister_of(settings, arguments.plugin_file, query.properties)
    # Pulsar's own listing is kept right by events alone; any other lister is asked again on those it names.
    is_custom = settings.topics.lister.use != "default"
    rules, topics = rules_of(settings.topics), ListCopy()
    try:
        with opened(settings.topics) as catalog, TopicLister(lister, catalog, rules.listing) as at_work:
            interests = at_work.interests if is_custom else None
            watches = TopicListService(rules.watching, interests=interests, revision=catalog.revision)
            watch = _Watch(catalog, watches, at_work)
            watches.open(_HERE, WatchRequest(1, 1, query))
            for _ in wait(arguments.every, arguments.duration):
                for message in watch.look():
                    print_change(message, topics, arguments.format)
    except KeyboardInterrupt:
        return _INTERRUPTED  # how a watch usually ends; the command line would add that nothing was written
    return 0


def _query(arguments: argparse.Namespace) -> WatchQuery:
    """Return the query of the flags; without pattern and labels it asks for every topic."""
    if arguments.pattern is not None and arguments.labels is not None:
        arguments.parser.error("--pattern, --labels: a watch has only one of the two")
    selector = () if arguments.labels is None else parse(arguments.labels)
    pattern = None if selector else arguments.pattern or ".*"
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
        stdout().write(json.dumps(content, ensure_ascii=False) + "\n")
    else:
        again = "; printed anew, too much had changed" if kind == "resync" else ""
        lines = [f"- {name}" for name in removed] + [f"+ {name}" for name in added]
        stdout().writelines(f"{line}\n" for line in [*lines, f"= {message.topics_hash}, {count} topics{again}"])
    # A program at the other end of a pipe waits for every change.
    stdout().flush()


COMMAND = Command(
    name="topics watch",
    summary="print a list of topics and then what changes in it",
    examples=(
        ("lookup topics watch public/default --pattern 'public/default/orders-.*'", "until Ctrl-C, by name"),
        ("lookup topics watch public/default --labels env=prod --for 60 --format json", "a minute, by labels"),
    ),
    add_arguments=add_arguments,
    run=run,
)
