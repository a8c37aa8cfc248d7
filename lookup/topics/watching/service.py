"""Serve the watchers of topic lists: registration, listings that must be made, messages per connection (PIP-145).

`TopicListService` is a state machine without I/O and without a clock. The shell around it hands in requests, the
catalog's events and finished listings, and fetches the next steps: `wanted()` for listings, `due()` and `take()` for
messages. A watcher is registered with its request and its query is listed afterwards, so that no change falls between
the two; events are counted by their revisions, and if one is missing every query is listed again. `carry_out` makes the
listings on the spot, for commands, tests and servers whose catalog is in memory.

Source: PIP-145, first draft of PIP-451, Pulsar's `TopicListService`; `docs/pulsar/protocol.md` has the bugs that this
order avoids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice

from lookup.errors import ArgumentError, PatternError, PulsarLookupError
from lookup.model.catalog import CatalogView, EventKind, Listing, TopicEvent
from lookup.model.quoting import shown
from lookup.topics.listing.listers import checked_interests
from lookup.topics.listing.topic_list import pattern_length, without_pattern_scheme
from lookup.topics.listing.topic_lister import TopicLister, checked_properties
from lookup.topics.rules import WatchRules
from lookup.topics.watching.connections import Watcher, WatcherConnection
from lookup.topics.watching.messages import Closed, Connection, Message, Refused, ServerError, WatchQuery, WatchRequest
from lookup.topics.watching.queries import Routes, list_from, list_through, matcher_of
from lookup.topics.watching.query_topics import QueryTopics

__all__ = ["TopicListService", "WantedListing", "carry_out"]


def carry_out(watches: TopicListService, catalog: CatalogView, lister: TopicLister | None = None) -> tuple[str, ...]:
    """Carry out the listings that watches want; return why some came to nothing.

    What a catalog or a lister refuses is told to the clients that wait, in its own words. Those that do not wait keep
    what they have, and only the caller hears of it.

    Args:
        lister: None: the default listing.
    """
    begun = watches.wanted()
    try:
        ends = [_carry_out(wanted, watches, catalog, lister) for wanted in begun]
    finally:
        # Whatever is raised, no listing stays under way: one that has come to its end is not ended twice.
        for wanted in begun:
            watches.failed(wanted.ticket)
    return tuple(sentence for sentence in ends if sentence is not None)


def _carry_out(
    wanted: WantedListing, watches: TopicListService, catalog: CatalogView, lister: TopicLister | None
) -> str | None:
    revision = catalog.revision
    try:
        listing = _listing(catalog, lister, wanted.query)
    except PulsarLookupError as error:
        watches.failed(wanted.ticket, str(error))
        return str(error)
    watches.listed(wanted.ticket, listing, revision=revision)
    return None


def _listing(catalog: CatalogView, lister: TopicLister | None, query: WatchQuery) -> Listing:
    return list_from(catalog, query) if lister is None else list_through(lister, catalog, query)


#: What changes the answer to a selector, whatever a lister says of it.
_LABEL_EVENTS: frozenset[EventKind] = frozenset({"created", "deleted", "labels"})


@dataclass(frozen=True, slots=True)
class WantedListing:
    """A listing to carry out; `TopicListService.listed` or `TopicListService.failed` takes its end."""

    ticket: int
    query: WatchQuery


class TopicListService:
    """All watchers of a server.

    Args:
        rules: what is allowed.
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
        # A lister of somebody's own may name them in a tuple or a list.
        self._interests = None if interests is None else checked_interests(interests)
        self._revision = revision
        self._lines: dict[Connection, WatcherConnection] = {}
        self._sets: dict[WatchQuery, QueryTopics] = {}
        #: who watches a set, and the line to say it over
        self._members: dict[QueryTopics, dict[Watcher, WatcherConnection]] = {}
        self._routes = Routes()
        self._tickets = count(1)
        self._listings: dict[int, QueryTopics] = {}
        self._to_list: dict[QueryTopics, None] = {}
        self._due: dict[Connection, None] = {}

    def open(self, connection: Connection, request: WatchRequest) -> None:
        """Register a watcher, or refresh the one with this id: its set is listed anew.

        A request takes the place of one about the same watcher that was not answered yet, and is answered for both.
        """
        line = self._line(connection)
        watcher = line.watchers.get(request.watcher_id)
        refusal = self._objection(line, watcher, request.query)
        if refusal is not None:
            self._say(line, Refused(request.request_id, request.watcher_id, *refusal))
            return
        is_refresh = watcher is not None
        watcher = watcher or self._register(line, request)
        watcher.ask(request)
        if watcher.watched.is_current and not is_refresh:
            self._answer(watcher, line)
        else:
            watcher.watched.want(self._revision)
            self._note(watcher.watched)

    def _line(self, connection: Connection) -> WatcherConnection:
        return self._lines.setdefault(connection, WatcherConnection(connection, ready_max=self._rules.queue_max))

    def _objection(
        self, line: WatcherConnection, watcher: Watcher | None, query: WatchQuery
    ) -> tuple[ServerError, str] | None:
        if not self._rules.topic_list_watcher:
            return "NotAllowedError", "this server watches no topic lists: topic_list_watcher is off"
        if watcher is not None:
            return None if watcher.watched.query == query else ("NotAllowedError", _other_query(watcher))
        if len(line.watchers) >= self._rules.watchers_max:
            return "TooManyRequests", f"this connection has {len(line.watchers)} watchers, the most it may have"
        properties = dict(query.properties)
        if len(properties) < len(query.properties):
            return "NotAllowedError", "a property is given more than once"
        try:
            checked_properties(properties, self._rules)
            return None if query.pattern is None else self._objection_to_pattern(query, query.pattern)
        except PatternError as error:
            return "InvalidTopicName", str(error)
        except ArgumentError as error:
            return "NotAllowedError", str(error)

    def _objection_to_pattern(self, query: WatchQuery, pattern: str) -> tuple[ServerError, str] | None:
        if not self._rules.pattern_filtering:
            return "NotAllowedError", "this server evaluates no patterns for its clients: pattern_filtering is off"
        length, most = pattern_length(without_pattern_scheme(pattern)), self._rules.pattern_max_length
        if length > most:
            sentence = f"pattern {shown(pattern)} has {length} characters, more than pattern_max_length, {most}"
            return "NotAllowedError", sentence
        matcher_of(query)
        return None

    def _register(self, line: WatcherConnection, request: WatchRequest) -> Watcher:
        watched = self._sets.get(request.query) or self._new_set(request.query)
        watcher = Watcher(request.watcher_id, watched, queue_max=self._rules.queue_max)
        line.watchers[request.watcher_id] = watcher
        self._members[watched][watcher] = line
        return watcher

    def _new_set(self, query: WatchQuery) -> QueryTopics:
        matches = matcher_of(query) if self._interests is None else None
        interests = (self._interests or frozenset()) | (_LABEL_EVENTS if query.selector else frozenset())
        watched = QueryTopics(query, matches, interests=interests, queue_max=self._rules.queue_max)
        self._sets[query] = watched
        self._members[watched] = {}
        self._routes.add(watched, by_label=matches is not None)
        return watched

    def close(self, connection: Connection, request_id: int, watcher_id: int) -> None:
        """Remove a watcher and confirm it, also where there is none; requests of it that wait are not answered."""
        line = self._line(connection)
        watcher = line.watchers.get(watcher_id)
        if watcher is not None:
            self._drop(watcher, line)
        self._say(line, Closed(request_id, watcher_id))

    def disconnected(self, connection: Connection) -> None:
        """Forget a connection with all its watchers and everything that was to be said over it."""
        line = self._lines.pop(connection, None)
        for watcher in tuple(line.watchers.values()) if line is not None else ():
            self._drop(watcher, line)
        self._due.pop(connection, None)

    def _drop(self, watcher: Watcher, line: WatcherConnection | None) -> None:
        watched = watcher.watched
        watcher.leave()
        if line is not None:
            line.drop(watcher)
        del self._members[watched][watcher]
        if not self._members[watched]:
            self._forget(watched)

    def _forget(self, watched: QueryTopics) -> None:
        self._routes.remove(watched, by_label=self._interests is None)
        self._listings.pop(watched.ticket or 0, None)
        self._to_list.pop(watched, None)
        del self._members[watched], self._sets[watched.query]

    def heard(self, event: TopicEvent) -> None:
        """Take in one event of the catalog; one that was heard before changes nothing."""
        if event.revision <= self._revision:
            return
        if event.revision > self._revision + 1:
            self.missed(event.revision - 1)
        self._revision = event.revision
        for watched in self._routes.concerned(event):
            if watched.heard(event):
                self._tell(watched)
            self._note(watched)

    def missed(self, revision: int) -> None:
        """List every set anew where events up to a revision were not all heard, as after a lost session.

        A shell that cannot be sure of its events calls this from time to time with the catalog's revision: nothing
        happens where everything was heard.
        """
        if revision <= self._revision:
            return
        self._revision = revision
        for watched in self._routes:
            watched.want(revision)
            self._note(watched)

    def wanted(self) -> tuple[WantedListing, ...]:
        """Return the listings to begin now; each is returned once and must come to an end."""
        begun = tuple(self._begin(watched) for watched in self._to_list if watched.wants_listing)
        self._to_list.clear()
        return begun

    def _begin(self, watched: QueryTopics) -> WantedListing:
        ticket = next(self._tickets)
        watched.begin_listing(ticket)
        self._listings[ticket] = watched
        return WantedListing(ticket, watched.query)

    def listed(self, ticket: int, listing: Listing, *, revision: int | None = None) -> None:
        """Take in a listing; one that nobody waits for any more is left aside.

        A partial one is never told as complete: requests that wait are refused for now, watchers keep what they have.

        Args:
            revision: of the catalog when it was listed; None: not known.
        """
        watched = self._listings.pop(ticket, None)
        if watched is None:
            return
        if watched.listed(listing, revision):
            for watcher, line in self._members[watched].items():
                self._answer(watcher, line)
        elif not watched.wants_listing:
            self._refuse_waiting(watched)
        self._settle(watched)

    def failed(self, ticket: int, reason: str = "") -> None:
        """Note that a listing came to nothing: requests that wait are refused for now, watchers keep what they have.

        Args:
            reason: what the clients are told.
        """
        watched = self._listings.pop(ticket, None)
        if watched is not None:
            watched.failed()
            self._refuse_waiting(watched, reason)
            self._settle(watched)

    def _settle(self, watched: QueryTopics) -> None:
        if watched in self._members:
            self._tell(watched)
            self._note(watched)

    def _refuse_waiting(self, watched: QueryTopics, reason: str = "") -> None:
        text = reason or f"the topics of {watched.query.namespace} cannot be listed completely now; try again"
        for watcher, line in tuple(self._members[watched].items()):
            request = watcher.refuse()
            if request is not None:
                self._say(line, Refused(request.request_id, request.watcher_id, "MetadataError", text))
            if not watcher.is_started:
                self._drop(watcher, line)

    def retry(self) -> None:
        """Want the listings that failed again; a shell calls this after a pause of its choice."""
        for watched in self._routes:
            watched.free()
            self._note(watched)

    def due(self) -> tuple[Connection, ...]:
        """Return the connections that something is to be said over, the one that waits longest first."""
        return tuple(self._due)

    def take(self, connection: Connection, limit: int | None = None) -> Sequence[Message]:
        """Return what is to be said over a connection now, in order.

        Args:
            limit: messages the connection can carry now; the rest stays due.
        """
        line = self._lines.get(connection)
        if line is None:
            return ()
        taken = tuple(islice(line.messages(), limit))
        if not line.is_due:
            self._due.pop(connection, None)
        return taken

    def _answer(self, watcher: Watcher, line: WatcherConnection) -> None:
        watcher.answer()
        self._mark(watcher, line)

    def _tell(self, watched: QueryTopics) -> None:
        for watcher, line in self._members[watched].items():
            self._mark(watcher, line)

    def _mark(self, watcher: Watcher, line: WatcherConnection) -> None:
        if watcher.is_due:
            line.mark(watcher)
            self._due[line.connection] = None

    def _say(self, line: WatcherConnection, message: Closed | Refused) -> None:
        line.say(message)
        self._due[line.connection] = None

    def _note(self, watched: QueryTopics) -> None:
        if watched.wants_listing:
            self._to_list[watched] = None


def _other_query(watcher: Watcher) -> str:
    query = watcher.watched.query
    what = query.pattern or ",".join(map(str, query.selector or ()))
    return f"watcher {watcher.watcher_id} watches {shown(what)} already; close it first, or take another id"
