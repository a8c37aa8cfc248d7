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
from lookup.topics.listing.steps import Budget, Steps, finished
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


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a listing, and the watchers that it was not handed over to yet, each with its connection."""

    watchers: dict[Watcher, WatcherConnection]
    #: the text of refusals; None: the listing arrived
    refusal: str | None


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
        try:
            while True:
                with service._lock:
                    try:
                        next(steps)
                    except StopIteration:
                        return
                yield
        finally:
            # A caller that stops in between leaves the end of the steps to be done here.
            with service._lock:
                steps.close()

    return locked


def _refusal_text(topics: QueryTopics) -> str:
    return f"the topics of {topics.query.namespace} cannot be listed completely now; try again"


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
        #: the last listing of some topics, until it is handed over to all of their watchers
        self._ends: dict[QueryTopics, _End] = {}
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
        if watcher is not None:
            # The request before is answered, or refused for good with its watcher, as if all were at once.
            self._hand_over(watcher)
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
        self._taken_from_end(watcher)
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
        self, ticket: int, listing: Listing, *, revision: int | None = None, budget: Budget | None = None
    ) -> Steps[None]:
        """Take in a listing as `listed` does, in steps: it is compared, and handed over to one watcher after the other.

        Args:
            budget: of steps that have other work, too; None: these steps are for the listing alone.
        """
        budget = budget or Budget()
        topics = self._listings.get(ticket)
        if topics is None:
            return
        arrived = yield from topics.compared(listing, rows=budget.rows)
        # The listing before may be on its way to the watchers still.
        yield from self._handing_over(topics, budget)
        # Its last watcher may have gone meanwhile.
        if self._listings.pop(ticket, None) is None:
            return
        refusal: str | None = None
        if topics.listed(arrived, revision):
            self._routes.changed(topics)
        elif not topics.wants_listing:
            self._failed[topics] = None
            refusal = _refusal_text(topics)
        else:
            self._note(topics)
            return
        yield from self._ending(topics, refusal, budget)

    @_locked
    def failed(self, ticket: int, reason: str = "") -> None:
        """Note that a listing failed: requests that wait are refused for now, watchers keep their lists.

        Args:
            reason: the text of the refusals.
        """
        finished(self.failing(ticket, reason))

    @_locked_in_steps
    def failing(self, ticket: int, reason: str = "", *, budget: Budget | None = None) -> Steps[None]:
        """Note that a listing failed as `failed` does, in steps.

        Args:
            reason: the text of the refusals.
            budget: as `taking` has it.
        """
        budget = budget or Budget()
        topics = self._listings.get(ticket)
        if topics is None:
            return
        yield from self._handing_over(topics, budget)
        if self._listings.pop(ticket, None) is not None:
            topics.failed()
            self._failed[topics] = None
            yield from self._ending(topics, reason or _refusal_text(topics), budget)

    @_locked_in_steps
    def vanishing(
        self, ticket: int, reason: str, *, revision: int | None = None, budget: Budget | None = None
    ) -> Steps[None]:
        """Note that there is no such namespace: its topics are none, if they were known; else the listing failed.

        Args:
            reason: the text of the refusals.
            revision: of the catalog that does not have it.
            budget: as `taking` has it.
        """
        topics = self._listings.get(ticket)
        if topics is not None and topics.is_known:
            yield from self.taking(ticket, Listing(()), revision=revision, budget=budget)
        else:
            yield from self.failing(ticket, reason, budget=budget)

    def _ending(self, topics: QueryTopics, refusal: str | None, budget: Budget) -> Steps[None]:
        """End a listing; whatever comes between two steps, a watcher is handed this one before the next."""
        self._note(topics)
        self._ends[topics] = _End(self._watchers[topics].copy(), refusal)
        try:
            yield from self._handing_over(topics, budget)
        finally:
            finished(self._handing_over(topics, Budget()))

    def _handing_over(self, topics: QueryTopics, budget: Budget) -> Steps[None]:
        """Hand the end of a listing over to all watchers that it was not handed over to."""
        while topics in self._ends:
            end = self._ends[topics]
            for watcher in tuple(end.watchers):
                if watcher in end.watchers and budget.ends_step(topics.n_late):
                    yield
                self._hand_over(watcher)

    def _hand_over(self, watcher: Watcher) -> None:
        """Answer or refuse the request of a watcher, and note its changes, unless that is done."""
        end = self._ends.get(watcher.topics)
        served = self._taken_from_end(watcher)
        if end is None or served is None:
            return
        watcher.catch_up()
        if end.refusal is None:
            watcher.answer()
        else:
            request = watcher.refuse()
            if request is not None:
                self._say(served, Refused(request.request_id, request.watcher_id, "MetadataError", end.refusal))
            # To its client a watcher whose first request is refused does not exist.
            if not watcher.is_started:
                self._drop(watcher, served)
                return
        self._mark(watcher, served)

    def _taken_from_end(self, watcher: Watcher) -> WatcherConnection | None:
        """Return the connection of a watcher that the last listing was not handed over to, and leave it out of that."""
        end = self._ends.get(watcher.topics)
        if end is None:
            return None
        served = end.watchers.pop(watcher, None)
        if not end.watchers:
            del self._ends[watcher.topics]
        return served

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
