"""Carry out `lookup topics watch`, which prints a decision server's topics, then changes (`lookup.topics.watching`)."""

from __future__ import annotations

import argparse
import time
from typing import Any

from lookup.commands.options import Command, Parser, add_format, number
from lookup.commands.streams import stdout, warn
from lookup.commands.topics import add_query, add_server, on_a_line, pairs_of, warn_of_ignored_properties
from lookup.errors import InputError
from lookup.model.quoting import json_text
from lookup.serve.client import TopicServer, Watching
from lookup.topics.catalog.naming import checked_namespace
from lookup.topics.listing import TopicQuery, topics_hash
from lookup.topics.listing.selectors import parse
from lookup.topics.watching import Message, Snapshot, Trouble, WatchedList

__all__ = ["COMMAND"]


class _Printer:
    """A printer of the changes of a list, which warns once about each problem."""

    def __init__(self, query: TopicQuery, form: str) -> None:
        self._list, self._form = WatchedList(query), form
        self._warned: set[str] = set()
        self._is_first = True

    def take(self, message: Message) -> None:
        if isinstance(message, Trouble):
            if message.sentence not in self._warned:
                self._warned.add(message.sentence)
                warn(f"the list stays as it was: {message.sentence}")
            return
        removed, added = map(sorted, self._list.take(message))
        if not (self._is_first or removed or added):
            return
        kind = "snapshot" if self._is_first else "update"
        self._is_first = False
        topics = self._list.topics
        hashed, count = topics_hash(topics), len(topics)
        if self._form == "json":
            content: dict[str, Any] = {"kind": kind, "removed": removed, "added": added, "hash": hashed, "count": count}
            stdout().write(json_text(content) + "\n")
        else:
            lines = [f"- {on_a_line(name)}" for name in removed] + [f"+ {on_a_line(name)}" for name in added]
            stdout().writelines(f"{line}\n" for line in [*lines, f"= {hashed}, {count} topics"])
        # A program at the other end of a pipe waits for every change.
        stdout().flush()


def _add_arguments(parser: Parser) -> None:
    parser.need("namespace", nargs="?", metavar="NAMESPACE", help="tenant/namespace")
    add_query(parser)
    parser.add_argument(
        "--for", type=number, dest="duration", metavar="SECONDS", help="duration, or 0 for the list (default: no end)"
    )
    add_server(parser, "URL of a decision server", is_needed=True)
    add_format(parser, "text", "json")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.duration is not None and arguments.duration < 0:
        arguments.parser.error("--for: should be 0 seconds, for the list alone, or more")
    if arguments.pattern is not None and arguments.labels is not None:
        arguments.parser.error("--pattern, --labels: a watch has only one of the two")
    selector = () if arguments.labels is None else parse(arguments.labels)
    namespace, properties = checked_namespace(arguments.namespace), pairs_of(arguments.properties)
    query = TopicQuery(namespace, arguments.mode, arguments.pattern, selector, properties)
    try:
        _watch(query, arguments)
    except KeyboardInterrupt:
        return 130  # the usual end of a watch, for which the command line would add that nothing was written
    return 0


def _watch(query: TopicQuery, arguments: argparse.Namespace) -> None:
    server, printer = TopicServer(arguments.server, arguments.token_file), _Printer(query, arguments.format)
    ends = None if arguments.duration is None else time.monotonic() + arguments.duration
    is_silent = True
    with Watching(server, query) as watching:
        # `--for 0` waits for the first answer as well.
        while is_silent or ends is None or time.monotonic() < ends:
            left_s = None if is_silent or ends is None else max(0.0, ends - time.monotonic())
            for message in watching.messages(left_s):
                if isinstance(message, Trouble) and is_silent:
                    raise InputError(message.sentence)
                if isinstance(message, Snapshot) and is_silent:
                    warn_of_ignored_properties(arguments.properties, reads_properties=message.reads_properties)
                is_silent = False
                printer.take(message)


COMMAND = Command(
    name="topics watch",
    examples=(
        (
            "lookup topics watch public/default --server http://10.0.0.9:8900 --pattern 'public/default/orders-.*'",
            "watch names until Ctrl-C",
        ),
        (
            "lookup topics watch public/default --server http://10.0.0.9:8900 --labels env=prod --for 60",
            "watch labels for a minute",
        ),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
