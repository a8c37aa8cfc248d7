"""`lookup topics watch`: what changes in a list of topics, as it changes; the catalog's file is polled."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from lookup.commands.catalogs import add_catalog, add_lister, limits_of, lister_of, opened, settings_of
from lookup.commands.options import Command, Parser, add_format, number
from lookup.commands.topics import listed, request_of
from lookup.errors import SettingsError
from lookup.model.catalog import EventKind, TopicEvent
from lookup.topics.hashing import topics_hash
from lookup.topics.listing import TopicLister

__all__ = ["COMMAND", "Change", "change_of"]


@dataclass(frozen=True, slots=True)
class Change:
    """What is told of a list that has changed; the first one is told of an empty list."""

    removed: tuple[str, ...]
    added: tuple[str, ...]
    #: of the list afterwards
    topics_hash: str


def change_of(before: Sequence[str], after: Sequence[str]) -> Change:
    """Return what leads from one list to another, both in the order of names."""
    old, new = set(before), set(after)
    return Change(tuple(sorted(old - new)), tuple(sorted(new - old)), topics_hash(after))


def _add_arguments(parser: Parser) -> None:
    parser.need("namespace", nargs="?", metavar="NAMESPACE", help="tenant/namespace")
    add_lister(parser)
    parser.add_argument("--every", type=number, default=1.0, metavar="SECONDS", help="how often to look; default: 1")
    parser.add_argument("--for", type=number, dest="duration", metavar="SECONDS", help="when to end; default: never")
    add_catalog(parser)
    add_format(parser, "text", "json")


def _run(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    if not settings.topics.topic_list_watcher:
        raise SettingsError("watches are switched off by topics.topic_list_watcher = false")
    if arguments.every <= 0:
        arguments.parser.error("--every: should be more than 0 seconds")
    request, selector = request_of(arguments, settings.topics)
    lister = lister_of(settings, arguments.plugin_file)
    with opened(settings.topics) as catalog, TopicLister(lister, catalog, limits_of(settings.topics)) as at_work:
        news = _News(lister.interests | ({"labels"} if selector else set()))
        # Listening begins before the first listing, so that nothing falls between the two.
        catalog.subscribe(news.hear)
        names: list[str] | None = None
        for _ in _looks(arguments.every, arguments.duration):
            catalog.refresh()
            if news.taken():
                before, names = names, listed(at_work, catalog, request, selector)
                _tell(before, names, arguments.format)
    return 0


class _News:
    """Whether something has happened that may change the list; at first nothing is known of it."""

    def __init__(self, interests: Set[EventKind]) -> None:
        self._interests = interests
        self._is_due = True

    def hear(self, event: TopicEvent) -> None:
        """Take note of an event."""
        self._is_due = self._is_due or event.kind in self._interests

    def taken(self) -> bool:
        """Return whether there was any news, and forget it."""
        was_due, self._is_due = self._is_due, False
        return was_due


def _looks(every: float, duration: float | None) -> Iterator[None]:
    """Yield at once, and again after each interval until the time is over."""
    ends = None if duration is None else time.monotonic() + duration
    yield
    while ends is None or time.monotonic() < ends:
        time.sleep(every if ends is None else max(0.0, min(every, ends - time.monotonic())))
        yield


def _tell(before: Sequence[str] | None, after: Sequence[str], form: str) -> None:
    change = change_of(before or (), after)
    if before is not None and not change.removed and not change.added:
        return
    if form == "json":
        told = {"removed": change.removed, "added": change.added, "hash": change.topics_hash}
        sys.stdout.write(json.dumps(told, ensure_ascii=False) + "\n")
    else:
        lines = [*(f"- {name}" for name in change.removed), *(f"+ {name}" for name in change.added)]
        sys.stdout.writelines(f"{line}\n" for line in [*lines, f"= {change.topics_hash}, {len(after)} topics"])
    sys.stdout.flush()


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
