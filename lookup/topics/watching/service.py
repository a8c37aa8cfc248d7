"""Serve the watchers of topic lists: registration, listings that must be made, messages per connection (PIP-145).

`TopicListService` is a state machine without I/O and without a clock. The shell around it hands in requests, the
catalog's events and finished listings, and fetches the next steps: `wanted()` for listings, `due()` and `take()` for
messages. A watcher is registered with its request and its query is listed afterwards, so that no change falls between
the two; events are counted by their revisions, and if one is missing every query is listed again. `listings.py` makes
the listings, for commands, tests and servers whose catalog is in memory.

Source: PIP-145, first draft of PIP-451, Pulsar's `TopicListService`; `docs/pulsar/protocol.md` has the bugs that this
order avoids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import count, islice
from threading import RLock
from typing import Concatenate, ParamSpec, TypeVar

from lookup.errors import ArgumentError, PatternError
from lookup.model.catalog import EventKind, Listing, TopicEvent
from lookup.model.quoting import shown
from lookup.topics.listing.listers import checked_interests
from lookup.topics.listing.steps import ROWS_PER_STEP, Steps, finished
from lookup.topics.listing.topic_list import TopicsPattern, pattern_length, without_pattern_scheme
from lookup.topics.listing.topic_lister import checked_properties
from lookup.topics.rules import WatchRules
from lookup.topics.watching.connections import Watcher, WatcherConnection
from lookup.topics.watching.messages import Closed, Connection, Message, Refused, ServerError, WatchQuery, WatchRequest
from lookup.topics.watching.query_topics import MEMBERSHIP_EVENTS, QueryTopics
from lookup.topics.watching.routes import Routes

__all__ = ["TopicListService", "WantedListing"]


@dataclass(frozen=True, slots=True)
class WantedListing:
    """A listing to carry out; `TopicListService.listed` or `TopicListService.failed` takes its end."""

    ticket: int
    query: WatchQuery


@dataclass(frozen=True, slots=True)
class _Refusal:
    error: ServerError
    sentence: str


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _locked(
    method: Callable[Concatenate[TopicListService, _Arguments], _Result],
) -> Callable[Concatenate[TopicListService, _Arguments], _Result]:
    """Let one thread at a time into the service."""

    @wraps(method)
    def locked(service: TopicListService, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with service._lock:
            return method(service, *args, **kwargs)

    return locked


def _locked_in_steps(
    method: Callable[Concatenate[TopicListService, _Arguments], Steps[None]],
) -> Callable[Concatenate[TopicListService, _Arguments], Steps[None]]:
    """Let one thread at a time into the service for a step; between two steps others may enter."""

    @wraps(method)
    def locked(service: TopicListService, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Steps[None]:
        steps = method(service, *args, **kwargs)
        while True:
            with service._lock:
                try:
                    next(steps)
                except StopIteration:
                    return
            yield

    return locked


class TopicListService:
    """All watchers of a server.

    Threads: any number may use it; each call waits for the one before it, and none for a listing or the catalog. So
    `heard` may listen to a catalog that many threads write to. Messages of one connection are in order if one thread
    at a time takes and sends them.

    Args:
        rules: the limits of watchers.
        interests: kinds of events on which a custom lister is asked again; None: Pulsar's own listing, which
            events keep right without asking.
        revision: of the catalog when its events began to be handed in.

    Raises:
        ContractError: for interests that are no kinds of events.
    """

    def __init__(
        self,
        rules: WatchRules | None = None,
        *,
        interests: Iterable[EventKind] | None = None,
        revision: int = 0,
    ) -> None:
        self._rules = rules or WatchRules()
        # A plug-in's lister may name them in a tuple or a list.
        self._interests = None if interests is None else checked_interests(interests)
        self._revision = revision
        #: for every method: writers hand events in from their threads
        self._lock = RLock()
        self._connections: dict[Connection, WatcherConnection] = {}
        self._topics: dict[WatchQuery, QueryTopics] = {}
        #: the watchers of a query's topics, and the connection of each
        self._watchers: dict[QueryTopics, dict[Watcher, WatcherConnection]] = {}
        self._routes = Routes(self._interests)
        self._tickets = count(1)
        #: listings under way
        self._listings: dict[int, QueryTopics] = {}
        # Dicts as ordered sets: listings and connections are served first come, first served.
        self._to_list: dict[QueryTopics, None] = {}
        #: topics whose listing failed
        self._failed: dict[QueryTopics, None] = {}
        self._due: dict[Connection, None] = {}

    @property
    def revision(self) -> int:
        """Return the revision of the last event that was handed in."""
        with self._lock:
            return self._revision

    @_locked
    def open(self, connection: Connection, request: WatchRequest) -> None:
        """Register a watcher, or refresh the one with this id: its query is listed anew.

        A request takes the place of one about the same watcher that was not answered yet, and is answered for both.
        """
        served = self._served(connection)
        watcher = served.watchers.get(request.watcher_id)
        is_refresh = watcher is not None
        refusal = self._refusal(served, watcher, request.query)
        if refusal is not None:
            self._say(served, Refused(request.request_id, request.watcher_id, refusal.error, refusal.sentence))
            return
        if watcher is None:
            topics = self._topics.get(request.query) or self._new_topics(request.query)
            watcher = Watcher(request.watcher_id, topics, queue_max=self._rules.queue_max)
            served.watchers[request.watcher_id] = watcher
            self._watchers[topics][watcher] = served
        watcher.ask(request)
        # A client refreshes because it doubts its list, so the known list is no answer.
        if watcher.topics.is_current and not is_refresh:
            watcher.answer()
            self._mark(watcher, served)
        else:
            watcher.topics.want(self._revision)
            self._note(watcher.topics)

    def _served(self, connection: Connection) -> WatcherConnection:
        return self._connections.setdefault(connection, WatcherConnection(connection, ready_max=self._rules.queue_max))

    def _refusal(self, served: WatcherConnection, watcher: Watcher | None, query: WatchQuery) -> _Refusal | None:
        """Return why a request is not served; None: it is."""
        if not self._rules.topic_list_watcher:
            return _Refusal("NotAllowedError", "this server watches no topic lists: topic_list_watcher is off")
        if watcher is not None:
            if watcher.topics.query == query:
                return None
            watched = watcher.topics.query.pattern or ",".join(map(str, watcher.topics.query.selector))
            sentence = (
                f"watcher {watcher.watcher_id} watches {shown(watched)} already; close it first, or take another id"
            )
            return _Refusal("NotAllowedError", sentence)
        if len(served.watchers) >= self._rules.watchers_max:
            sentence = f"this connection has {len(served.watchers)} watchers, the most it may have"
            return _Refusal("TooManyRequests", sentence)
        try:
            checked_properties(query.properties, self._rules)
            return None if query.pattern is None else self._refusal_of_pattern(query.pattern)
        except PatternError as error:
            return _Refusal("InvalidTopicName", str(error))
        except ArgumentError as error:
            return _Refusal("NotAllowedError", str(error))

    def _refusal_of_pattern(self, pattern: str) -> _Refusal | None:
        if not self._rules.pattern_filtering:
            sentence = "this server evaluates no patterns for its clients: pattern_filtering is off"
            return _Refusal("NotAllowedError", sentence)
        # Pulsar counts a watched pattern without its scheme, and a listed one with it.
        length, most = pattern_length(without_pattern_scheme(pattern)), self._rules.pattern_max_length
        if length > most:
            sentence = f"pattern {shown(pattern)} has {length} characters, more than pattern_max_length, {most}"
            return _Refusal("NotAllowedError", sentence)
        # Compiled for its errors alone, before anything is registered; patterns are cached.
        TopicsPattern(pattern)
        return None

    def _new_topics(self, query: WatchQuery) -> QueryTopics:
        matches = query.matcher() if self._interests is None else None
        # The answer to a selector changes with these, whatever interests a lister names.
        interests = (self._interests or frozenset()) | (MEMBERSHIP_EVENTS if query.selector else frozenset())
        topics = QueryTopics(query, matches, interests=interests, queue_max=self._rules.queue_max)
        self._topics[query] = topics
        self._watchers[topics] = {}
        self._routes.add(topics)
        return topics

    @_locked
    def close(self, connection: Connection, request_id: int, watcher_id: int) -> None:
        """Remove a watcher and confirm it, also if there is none; requests of it that wait are not answered."""
        served = self._served(connection)
        watcher = served.watchers.get(watcher_id)
        if watcher is not None:
            self._drop(watcher, served)
        self._say(served, Closed(request_id, watcher_id))

    @_locked
    def disconnected(self, connection: Connection) -> None:
        """Forget a connection with all its watchers and every message that waits for it."""
        served = self._connections.pop(connection, None)
        if served is not None:
            for watcher in tuple(served.watchers.values()):
                self._drop(watcher, served)
        self._due.pop(connection, None)

    def _drop(self, watcher: Watcher, served: WatcherConnection) -> None:
        topics = watcher.topics
        watcher.leave()
        served.drop(watcher)
        del self._watchers[topics][watcher]
        # Topics that no watcher is left for are forgotten, their listing under way included.
        if not self._watchers[topics]:
            self._routes.remove(topics)
            self._listings.pop(topics.ticket or 0, None)
            self._to_list.pop(topics, None)
            self._failed.pop(topics, None)
            del self._watchers[topics], self._topics[topics.query]

    @_locked
    def heard(self, event: TopicEvent) -> None:
        """Take in one event of the catalog; one that was handed in before changes nothing."""
        if event.revision <= self._revision:
            return
        if event.revision > self._revision + 1:
            self.missed(event.revision - 1)
        self._revision = event.revision
        for topics in self._routes.concerned(event):
            if topics.heard(event):
                self._routes.changed(topics)
                self._mark_all(topics)
            self._note(topics)

    @_locked
    def missed(self, revision: int) -> None:
        """List every query anew unless all events up to a revision were handed in, as after a lost session.

        A shell that cannot be sure of its events calls this from time to time with the catalog's revision: nothing
        happens if none is missing.
        """
        if revision <= self._revision:
            return
        self._revision = revision
        for topics in self._routes:
            topics.want(revision)
            self._note(topics)

    @_locked
    def wanted(self, limit: int | None = None) -> tuple[WantedListing, ...]:
        """Return the listings to begin now; each is returned once and must come to an end.

        Args:
            limit: how many; the rest is wanted still.
        """
        begun = []
        for topics in tuple(islice(self._to_list, limit)):
            del self._to_list[topics]
            if topics.wants_listing:
                ticket = next(self._tickets)
                topics.begin_listing(ticket)
                self._listings[ticket] = topics
                begun.append(WantedListing(ticket, topics.query))
        return tuple(begun)

    @_locked
    def listed(self, ticket: int, listing: Listing, *, revision: int | None = None) -> None:
        """Take in a listing; one that no watcher waits for any more is ignored.

        A partial one is never sent as complete: requests that wait are refused for now, watchers keep their lists.

        Args:
            revision: of the catalog when it was listed; None: not known.
        """
        finished(self.taking(ticket, listing, revision=revision))

    @_locked_in_steps
    def taking(
        self, ticket: int, listing: Listing, *, revision: int | None = None, rows: int = ROWS_PER_STEP
    ) -> Steps[None]:
        """Take in a listing as `listed` does, in steps; until the last of them it is under way.

        Args:
            rows: names that one step looks at.
        """
        topics = self._listings.get(ticket)
        if topics is None:
            return
        arrived = yield from topics.compared(listing, rows=rows)
        # Its last watcher may have gone meanwhile.
        if self._listings.pop(ticket, None) is None:
            return
        if topics.listed(arrived, revision):
            self._routes.changed(topics)
            for watcher, served in self._watchers[topics].items():
                watcher.answer()
                self._mark(watcher, served)
        elif not topics.wants_listing:
            self._failed[topics] = None
            self._refuse_waiting(topics)
        self._settle(topics)

    @_locked
    def failed(self, ticket: int, reason: str = "") -> None:
        """Note that a listing failed: requests that wait are refused for now, watchers keep their lists.

        Args:
            reason: the text of the refusals.
        """
        topics = self._listings.pop(ticket, None)
        if topics is not None:
            topics.failed()
            self._failed[topics] = None
            self._refuse_waiting(topics, reason)
            self._settle(topics)

    @_locked_in_steps
    def vanishing(
        self, ticket: int, reason: str, *, revision: int | None = None, rows: int = ROWS_PER_STEP
    ) -> Steps[None]:
        """Note that there is no such namespace: its topics are none, if they were known; else the listing failed.

        Args:
            reason: the text of the refusals.
            revision: of the catalog that does not have it.
            rows: names that one step looks at.
        """
        topics = self._listings.get(ticket)
        if topics is not None and topics.is_known:
            yield from self.taking(ticket, Listing(()), revision=revision, rows=rows)
        else:
            self.failed(ticket, reason)

    def _settle(self, topics: QueryTopics) -> None:
        # Its last watcher may have gone with the refusal of its request.
        if topics in self._watchers:
            self._mark_all(topics)
            self._note(topics)

    def _refuse_waiting(self, topics: QueryTopics, reason: str = "") -> None:
        text = reason or f"the topics of {topics.query.namespace} cannot be listed completely now; try again"
        for watcher, served in tuple(self._watchers[topics].items()):
            request = watcher.refuse()
            if request is not None:
                self._say(served, Refused(request.request_id, request.watcher_id, "MetadataError", text))
            # To its client a watcher whose first request is refused does not exist.
            if not watcher.is_started:
                self._drop(watcher, served)

    @_locked
    def retry(self) -> None:
        """Want the listings that failed again; a shell calls this after a pause of its choice."""
        failed, self._failed = self._failed, {}
        for topics in failed:
            topics.free()
            self._note(topics)

    @_locked
    def due(self) -> tuple[Connection, ...]:
        """Return the connections that messages wait for, the one that waits longest first."""
        return tuple(self._due)

    @_locked
    def take(self, connection: Connection, limit: int | None = None) -> Sequence[Message]:
        """Return the messages to send over a connection now, in order.

        Args:
            limit: messages the connection can carry now; the rest stays due.
        """
        served = self._connections.get(connection)
        if served is None:
            return ()
        taken = tuple(islice(served.messages(), limit))
        if not served.is_due:
            self._due.pop(connection, None)
        return taken

    def _mark_all(self, topics: QueryTopics) -> None:
        for watcher, served in self._watchers[topics].items():
            self._mark(watcher, served)

    def _mark(self, watcher: Watcher, served: WatcherConnection) -> None:
        if watcher.is_due:
            served.mark(watcher)
            self._due[served.connection] = None

    def _say(self, served: WatcherConnection, message: Closed | Refused) -> None:
        served.say(message)
        self._due[served.connection] = None

    def _note(self, topics: QueryTopics) -> None:
        if topics.wants_listing:
            self._to_list[topics] = None
