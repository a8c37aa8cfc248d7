"""The watches of one server: who watches what over which connection, what must be listed, what is to be said to whom.

A state machine without I/O and without a clock. The shell around it hands in requests, the catalog's events and
finished listings, and fetches what is to be done: `wanted()` for listings, `due()` and `take()` for messages. The set
of a watcher is registered with the request and listed afterwards, so that no change falls between the two; events are
counted by their revisions, and where one is missing every set is listed again.

Source: PIP-145, first draft of PIP-451, `docs/pulsar/protocol.md` (the bugs this order avoids).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice

from lookup.errors import ArgumentError, PatternError
from lookup.model.catalog import EventKind, Listing, TopicEvent
from lookup.model.quoting import shown
from lookup.topics.line import Line
from lookup.topics.listers import checked_interests
from lookup.topics.listing import ListLimits, checked_properties
from lookup.topics.matching import matcher_of
from lookup.topics.messages import Closed, Connection, Message, Refused, ServerError, WatchQuery, WatchRequest
from lookup.topics.patterns import pattern_length, without_pattern_scheme
from lookup.topics.queueing import QUEUE_MAX
from lookup.topics.refusals import refuse_below
from lookup.topics.routing import Routes
from lookup.topics.watched import WatchedSet
from lookup.topics.watcher import Watcher

__all__ = ["Wanted", "WatchRules", "Watches"]

#: What changes the answer to a selector, whatever a lister says of it.
_LABEL_EVENTS: frozenset[EventKind] = frozenset({"created", "deleted", "labels"})


@dataclass(frozen=True, slots=True)
class WatchRules(ListLimits):
    """What a server allows its watchers, beside the limits of listings; the names are those of `[topics]`.

    What a listing would leave to its client, a pattern that is too long or any where they are off, a watch is refused
    for. Of a pattern's length the scheme is left aside here.
    """

    #: off: nothing is watched (Pulsar: enableBrokerTopicListWatcher)
    topic_list_watcher: bool = True
    #: changes that may wait per watcher, events per listing, refusals and confirmations per connection
    queue_max: int = QUEUE_MAX
    #: watchers of one connection
    watchers_max: int = 10_000

    def __post_init__(self) -> None:
        refuse_below(1, queue_max=self.queue_max, watchers_max=self.watchers_max)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A listing to carry out; `Watches.listed` or `Watches.failed` takes its end."""

    ticket: int
    query: WatchQuery


class Watches:
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
        self._lines: dict[Connection, Line] = {}
        self._sets: dict[WatchQuery, WatchedSet] = {}
        #: who watches a set, and the line to say it over
        self._members: dict[WatchedSet, dict[Watcher, Line]] = {}
        self._routes = Routes()
        self._tickets = count(1)
        self._listings: dict[int, WatchedSet] = {}
        self._to_list: dict[WatchedSet, None] = {}
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

    def _line(self, connection: Connection) -> Line:
        return self._lines.setdefault(connection, Line(connection, ready_max=self._rules.queue_max))

    def _objection(self, line: Line, watcher: Watcher | None, query: WatchQuery) -> tuple[ServerError, str] | None:
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

    def _register(self, line: Line, request: WatchRequest) -> Watcher:
        watched = self._sets.get(request.query) or self._new_set(request.query)
        watcher = Watcher(request.watcher_id, watched, queue_max=self._rules.queue_max)
        line.watchers[request.watcher_id] = watcher
        self._members[watched][watcher] = line
        return watcher

    def _new_set(self, query: WatchQuery) -> WatchedSet:
        matches = matcher_of(query) if self._interests is None else None
        interests = (self._interests or frozenset()) | (_LABEL_EVENTS if query.selector else frozenset())
        watched = WatchedSet(query, matches, interests=interests, queue_max=self._rules.queue_max)
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

    def _drop(self, watcher: Watcher, line: Line | None) -> None:
        watched = watcher.watched
        watcher.leave()
        if line is not None:
            line.drop(watcher)
        del self._members[watched][watcher]
        if not self._members[watched]:
            self._forget(watched)

    def _forget(self, watched: WatchedSet) -> None:
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

    def wanted(self) -> tuple[Wanted, ...]:
        """Return the listings to begin now; each is returned once and must come to an end."""
        begun = tuple(self._begin(watched) for watched in self._to_list if watched.wants_listing)
        self._to_list.clear()
        return begun

    def _begin(self, watched: WatchedSet) -> Wanted:
        ticket = next(self._tickets)
        watched.begin_listing(ticket)
        self._listings[ticket] = watched
        return Wanted(ticket, watched.query)

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

    def _settle(self, watched: WatchedSet) -> None:
        if watched in self._members:
            self._tell(watched)
            self._note(watched)

    def _refuse_waiting(self, watched: WatchedSet, reason: str = "") -> None:
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

    def _answer(self, watcher: Watcher, line: Line) -> None:
        watcher.answer()
        self._mark(watcher, line)

    def _tell(self, watched: WatchedSet) -> None:
        for watcher, line in self._members[watched].items():
            self._mark(watcher, line)

    def _mark(self, watcher: Watcher, line: Line) -> None:
        if watcher.is_due:
            line.mark(watcher)
            self._due[line.connection] = None

    def _say(self, line: Line, message: Closed | Refused) -> None:
        line.say(message)
        self._due[line.connection] = None

    def _note(self, watched: WatchedSet) -> None:
        if watched.wants_listing:
            self._to_list[watched] = None


def _other_query(watcher: Watcher) -> str:
    query = watcher.watched.query
    what = query.pattern or ",".join(map(str, query.selector or ()))
    return f"watcher {watcher.watcher_id} watches {shown(what)} already; close it first, or take another id"
