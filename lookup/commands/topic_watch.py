"""Carry out `lookup topics watch`: print a list of topics and then what changes in it.

One decision server or several send them: the messages of `lookup.topics.watching`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from lookup.commands.options import Command, Parser, add_format, number
from lookup.commands.streams import stdout, warn
from lookup.commands.topics import add_query, add_servers, on_a_line, pairs_of, servers_of, warn_of_ignored_properties
from lookup.errors import InputError
from lookup.model.quoting import json_text
from lookup.serve.client import TopicServer, Watching
from lookup.topics.catalog.naming import checked_namespace
from lookup.topics.client import ServerLists
from lookup.topics.listing import TopicQuery, topics_hash
from lookup.topics.listing.selectors import parse
from lookup.topics.watching import Message, Snapshot, Trouble

__all__ = ["COMMAND"]


class _Printer:
    """Prints what messages change in a list, and warns once of each trouble."""

    def __init__(self, query: TopicQuery, sources: Sequence[str], form: str) -> None:
        self._lists, self._form = ServerLists(query, sources), form
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
        self._is_first = False
        topics = self._lists.topics
        hashed, count = topics_hash(topics), len(topics)
        if self._form == "json":
            content: dict[str, Any] = {"kind": kind, "removed": removed, "added": added, "hash": hashed, "count": count}
            if self._is_shared:
                content["partial"] = self._lists.is_partial
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
    add_servers(parser, "decision servers, like A,B,C", is_needed=True)
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
        _watch_servers(servers_of(arguments), query, arguments)
    except KeyboardInterrupt:
        return 130  # how a watch usually ends; the command line would add that nothing was written
    return 0


def _watch_servers(servers: Sequence[TopicServer], query: TopicQuery, arguments: argparse.Namespace) -> None:
    printer = _Printer(query, [server.url for server in servers], arguments.format)
    ends = None if arguments.duration is None else time.monotonic() + arguments.duration
    #: servers that have not answered yet, with a list or with trouble
    silent = {server.url for server in servers}
    troubles: list[str] = []
    with Watching(servers, query) as watching:
        # `--for 0` waits for the first answer of each as well.
        while silent or ends is None or time.monotonic() < ends:
            left_s = None if silent or ends is None else max(0.0, ends - time.monotonic())
            for url, message in watching.messages(left_s):
                if isinstance(message, Snapshot):
                    if url in silent:
                        warn_of_ignored_properties(arguments.properties, reads_properties=message.reads_properties)
                elif isinstance(message, Trouble) and url in silent:
                    troubles.append(message.sentence)
                    if len(troubles) == len(servers):
                        raise InputError(troubles[0])
                silent.discard(url)
                printer.take(url, message)


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
