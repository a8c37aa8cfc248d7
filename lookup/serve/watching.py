"""Send changes of topics to watchers, as server-sent events over the connections that they keep open.

    connects    -> the changes since its mark, or a snapshot, as fast as the client reads
    has all     -> live: each change is created once, and written to all live connections of a watch
    reads less  -> cut off once too much waits for it. It reconnects with the mark of its last message

Only the event loop uses this module. Lists are made, and events read, in the thread of questions.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from aiohttp import web
from aiohttp.http import HttpVersion11

from lookup.errors import ArgumentError, PulsarLookupError, StateError
from lookup.model.catalog import TopicEvent
from lookup.serve.connections import most_connections
from lookup.settings import ListingSection
from lookup.topics.catalog import Catalog
from lookup.topics.listing import TopicLister, TopicQuery
from lookup.topics.watching import Message, Snapshot, Trouble, Update, WatchedTopics, changes_between, message_text

__all__ = ["Watchers"]

#: Bytes that may wait for a live connection.
_UNREAD_BYTES = 1 << 18
#: Bytes that are written at once to a connection that is not live yet.
_PART = 1 << 16
#: Seconds between two signs of life. After a longer silence clients consider a connection lost.
_ALIVE_S = 10.0
#: Seconds before a list that could not be made is tried again.
_RETRY_S = 1.0
#: Seconds for which events are gathered, so that those of one transaction mostly come in one message.
_GATHER_S = 0.02
#: Seconds for which the event loop is held at most, a message to all connections of one watch aside.
_HOLD_S = 0.005
#: Seconds between two looks at whether a change was announced that a list has already.
_SOON_S = 0.01
#: Shared, since most watches never have others.
_NO_TOPICS: frozenset[str] = frozenset()

#: Runs a question in the thread of questions.
Ask = Callable[..., Awaitable[Any]]


class _Group:
    """The connections of one watch, and for a lister's watch the list that they have."""

    __slots__ = (
        "catching_up", "destroyed", "has", "is_due", "listing", "live",
        "mark", "n_members", "revision", "sent", "topics",
    )  # fmt: skip

    def __init__(self, topics: WatchedTopics, revision: int) -> None:
        self.topics, self.revision = topics, revision
        #: the mark of that event
        self.mark = ""
        #: connections, including the ones before they are live
        self.n_members = 0
        self.live: set[asyncio.Transport] = set()
        #: of each connection that is not live yet, the topics that were deleted since the message that it is sent
        self.catching_up: dict[asyncio.Transport, set[str]] = {}
        #: the whole list in its sent form, with its mark, while a connection receives it, once for all of them
        self.sent: tuple[str, Sequence[str], bytes] | None = None
        self.has: Snapshot | None = None
        #: topics that were deleted since that list
        self.destroyed = _NO_TOPICS
        #: events came after that list, and a task makes it again
        self.is_due = False
        self.listing: asyncio.Task[None] | None = None

    def send(self, message: Message) -> None:
        _write(self.live, message_text(message))


class Watchers:
    """All watchers of a server.

    Args:
        catalog: the catalog whose events are followed.
        ask: runs a function in the thread of questions.
        is_driven: whether the lister decides which changes an event causes.
    """

    def __init__(
        self, catalog: Catalog, lister: TopicLister, section: ListingSection, ask: Ask, *, is_driven: bool
    ) -> None:
        self._catalog, self._lister, self._section, self._ask = catalog, lister, section, ask
        # Watchers never leave by themselves, so half of the connections are reserved for brokers.
        self._most = min(section.watchers_max, most_connections() // 2)
        self._is_driven = is_driven
        self._groups: dict[TopicQuery, _Group] = {}
        self._arrived: deque[TopicEvent] = deque()
        self._has_arrived = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._has_ended = asyncio.Event()
        with catalog.reading():
            #: of the last event that arrived
            self._revision = catalog.revision
            self._leave = catalog.subscribe(self._note_event)

    @property
    def namespaces(self) -> Sequence[str]:
        """The namespaces that are watched, sorted."""
        return sorted({query.namespace for query in self._groups})

    @property
    def count(self) -> int:
        """The number of connections."""
        return sum(group.n_members for group in self._groups.values())

    def close(self) -> None:
        """End all connections."""
        self._leave()
        self._has_ended.set()

    async def serve(self, request: web.Request, query: TopicQuery) -> web.StreamResponse:
        """Send a client the changes of its topics, until it leaves or is cut off.

        Raises:
            StateError: if there are too many watchers, or the topics cannot be listed now.
            PulsarLookupError: if the lister refuses the first list.
        """
        if request.version < HttpVersion11:
            raise ArgumentError("a watch needs HTTP/1.1")
        if self.count >= self._most:
            raise StateError(f"this server has {self.count} watchers, the most it may have; try again later")
        group = self._groups.get(query)
        if group is None:
            topics = WatchedTopics(query, self._catalog, self._lister, is_driven=self._is_driven)
            group = self._groups[query] = _Group(topics, self._revision)
        group.n_members += 1
        transport = cast(asyncio.Transport, request.transport)
        try:
            # Before the head of the answer, since a refusal is only possible until then.
            message: Message | None
            missed = group.catching_up[transport] = set()
            message, raw = await self._find_first(group, request.headers.get("Last-Event-ID", ""))
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
            response.enable_chunked_encoding()
            await response.prepare(request)
            while message is not None:
                # In parts, since one of them waits for a slow reader, in addition to the list that all share.
                for start in range(0, len(raw), _PART):
                    await response.write(raw[start : start + _PART])
                try:
                    # Nothing is awaited from here on until the connection is live, so that no change falls between.
                    message, raw = await self._find_next(group, message, missed)
                except PulsarLookupError:
                    # The head was sent, so a refusal is not an answer. The client reconnects, and is refused then.
                    transport.abort()
                    return response
            # The list is as long as the namespace is, and the connection may last for days.
            del message, raw
            self._end_catching_up(group, transport)
            group.live.add(transport)
            await self._has_ended.wait()
            return response
        finally:
            self._end_catching_up(group, transport)
            group.live.discard(transport)
            group.n_members -= 1
            if not group.n_members:
                del self._groups[query]

    @staticmethod
    def _end_catching_up(group: _Group, transport: asyncio.Transport) -> None:
        group.catching_up.pop(transport, None)
        if not group.catching_up:
            group.sent = None

    async def _find_first(self, group: _Group, mark: str) -> tuple[Message, bytes]:
        await self._ask(self._catalog.refresh)
        message: Message | None = group.has or (await self._ask(group.topics.since, mark) if mark else None)
        if message is None:
            listed: Snapshot = await self._ask(group.topics.take_snapshot)
            message = listed
            if group.topics.is_driven:
                # Another connection may have been quicker, and events may have come.
                message = group.has = group.has or listed
                self._start_listing(group)
        return message, await self._write_message(group, message)

    async def _write_message(self, group: _Group, message: Message) -> bytes:
        if not isinstance(message, Snapshot):
            return message_text(message).encode()
        if group.sent is None or group.sent[0] != message.mark or group.sent[1] is not message.topics:
            raw: bytes = await self._ask(lambda: message_text(message).encode())
            group.sent = message.mark, message.topics, raw
            return raw
        return group.sent[2]

    async def _find_next(self, group: _Group, last: Message, missed: set[str]) -> tuple[Message | None, bytes]:
        """Find the message after the last one. Return None, without having waited, if the client has everything."""
        if group.topics.is_driven:
            assert isinstance(last, Snapshot)
            if group.has is None or group.has is last:
                return None, b""
            # Later messages are compared with the client's list at that time.
            has, destroyed = group.has, frozenset(missed)
            missed.clear()
            return has, await self._ask(lambda: message_text(changes_between(last, has, destroyed)).encode())
        assert not isinstance(last, Trouble)
        while (revision := int(last.mark.partition("-")[0])) != group.revision:
            if revision < group.revision:
                update: Message | None = await self._ask(group.topics.since, last.mark)
                if update is None:
                    update = await self._ask(lambda: group.topics.take_snapshot(is_first=False))
                if isinstance(update, Update) and not (update.removed or update.added):
                    # The events were about other topics, or about labels.
                    last = update
                    continue
                return update, await self._write_message(group, update)
            # A list may be ahead of the events, which follow soon.
            await asyncio.sleep(_SOON_S)
        return None, b""

    # Events

    def _note_event(self, event: TopicEvent) -> None:
        self._arrived.append(event)
        if not self._has_arrived.is_set():
            self._loop.call_soon_threadsafe(self._has_arrived.set)

    async def follow(self) -> None:
        """Send the changes of events repeatedly, to each watch one message about all that arrived."""
        while True:
            await self._has_arrived.wait()
            await asyncio.sleep(_GATHER_S)
            self._has_arrived.clear()
            events = [self._arrived.popleft() for _ in range(len(self._arrived))]
            if events:
                # More than these are faster to list than to compare for each watch, and so are missing ones.
                is_known = len(events) == events[-1].revision - self._revision <= self._section.queue_max
                self._revision = events[-1].revision
                began = time.monotonic()
                for group in tuple(self._groups.values()):
                    self._handle_events(group, events, is_known=is_known)
                    if time.monotonic() - began > _HOLD_S:
                        # Decisions come first.
                        await asyncio.sleep(0)
                        began = time.monotonic()

    def _handle_events(self, group: _Group, events: Sequence[TopicEvent], *, is_known: bool) -> None:
        group.revision, group.mark = events[-1].revision, group.topics.mark_of(events[-1])
        if group.topics.is_driven:
            if not is_known or group.topics.concerns(events):
                group.destroyed |= {event.topic for event in events if event.kind == "deleted"}
                group.is_due = True
                self._start_listing(group)
        elif not is_known:
            # Each client reconnects, and receives the missed messages.
            while group.live:
                group.live.pop().abort()
        else:
            update = group.topics.changes(events, group.mark)
            if update.removed or update.added:
                group.send(update)

    def _start_listing(self, group: _Group) -> None:
        if group.is_due and group.has is not None and group.listing is None:
            group.listing = asyncio.ensure_future(self._repeat_listing(group, group.has))

    async def _repeat_listing(self, group: _Group, before: Snapshot) -> None:
        """List the topics of a lister's watch until they are those after the last event."""
        while group.is_due and group.n_members:
            group.is_due = False
            destroyed, group.destroyed = group.destroyed, _NO_TOPICS
            try:
                after = await self._ask(lambda: group.topics.take_snapshot(is_first=False))
                # Outside the event loop, since it makes sets of all names.
                update = await self._ask(changes_between, before, after, destroyed)
            # Whatever it is, the watchers keep their list.
            except Exception as error:  # noqa: BLE001
                group.destroyed |= destroyed
                group.is_due = True
                group.send(Trouble(str(error)))
                await asyncio.sleep(_RETRY_S)
                continue
            for missed in group.catching_up.values():
                missed |= destroyed
            if update.removed or update.added:
                group.has = before = after
                group.send(update)
        group.listing = None

    def report(self, namespace: str, sentence: str) -> None:
        """Send a reason why the topics of a namespace cannot be read."""
        for query, group in self._groups.items():
            if query.namespace == namespace:
                group.send(Trouble(sentence))

    async def keep_alive(self) -> None:
        """Send all live connections a sign of life again and again, with the mark up to which they have heard."""
        while True:
            await asyncio.sleep(_ALIVE_S)
            began = time.monotonic()
            for group in tuple(self._groups.values()):
                mark = f"id: {group.mark}\n" if group.mark and not group.topics.is_driven else ""
                _write(group.live, f"{mark}: alive\n\n")
                if time.monotonic() - began > _HOLD_S:
                    await asyncio.sleep(0)
                    began = time.monotonic()


def _write(live: set[asyncio.Transport], text: str) -> None:
    """Write a text to connections as a chunk of HTTP/1.1, created once, and cut off clients with too much unread."""
    if not live:
        return
    raw = text.encode()
    chunk = b"%x\r\n%b\r\n" % (len(raw), raw)
    for transport in tuple(live):
        transport.write(chunk)
        if transport.get_write_buffer_size() > _UNREAD_BYTES:
            live.discard(transport)
            transport.abort()
