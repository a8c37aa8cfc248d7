"""Keep the topics of one query as a server knows them: a listing, and the events after it, shared by all its watchers.

A query is registered before it is listed; events that come meanwhile wait in a backlog and are applied to the listing.
Each event states its topic as it is from then on, so applying one twice, or one a listing has seen, does no harm.
Both queues, changes that a slow client has not been sent and events during a listing, are bounded and lose nothing in
silence: if one is full, its owner lists anew. `service.py` decides which watcher gets which message. What a listing
changed is noted for one watcher after the other, when the service lets it catch up; the topics are new at once.

| state     | event                            | listing arrives                           | listing fails         |
| --------- | -------------------------------- | ----------------------------------------- | --------------------- |
| wanted    | applied if the topics are known  | (there is none under way)                 | (the same)            |
| under way | the same, and kept               | topics := listing + events; -> current    | -> held               |
| current   | applied                          | (there is none under way)                 | (the same)            |
| held      | applied if the topics are known  | (there is none under way)                 | (the same)            |

`want` leads to wanted, `begin_listing` to under way, `free` from held to wanted. A listing that is partial, or older
than the last event before it began, counts as failed. Topics driven by a lister apply one event alone, the deletion of
their namespace, after which there are none; those in the lister's interests make them wanted again.

Source: `docs/pulsar/protocol.md`, Pulsar's `TopicListService`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lookup.model.catalog import EventKind, Listing, TopicEvent
from lookup.topics.listing.steps import Steps, differences, is_among, sorting
from lookup.topics.listing.topic_list import TopicList
from lookup.topics.listing.topic_query import Matcher
from lookup.topics.rules import QUEUE_MAX
from lookup.topics.watching.messages import WatchQuery

__all__ = ["MEMBERSHIP_EVENTS", "Backlog", "ComparedListing", "PendingChanges", "QueryTopics"]

#: Events that change which topics there are, or which of them a selector selects.
MEMBERSHIP_EVENTS: frozenset[EventKind] = frozenset({"created", "deleted", "labels"})


@dataclass(frozen=True, slots=True)
class _Changes:
    """Changes of a list, to be noted for its watchers."""

    #: left, before the others came
    removed: Sequence[str] = ()
    added: Sequence[str] = ()
    #: those of the removed that were deleted; created again, they are other topics
    destroyed: Collection[str] = ()
    #: changes that no watcher can have waiting, so that they are not given one by one
    are_too_many: bool = False

    def __len__(self) -> int:
        return len(self.removed) + len(self.added)


class PendingChanges:
    """The net changes that one watcher was not sent yet, coalesced: a topic added and removed again leaves nothing.

    | pending before     | enters          | leaves                     |
    | ------------------ | --------------- | -------------------------- |
    | nothing            | added           | removed                    |
    | added              | (cannot happen) | nothing                    |
    | removed            | nothing         | (cannot happen)            |
    | removed, destroyed | removed + added | (cannot happen)            |
    | removed + added    | (cannot happen) | removed, destroyed         |

    Args:
        limit: changes that may wait; one more and `is_overflown` holds until `clear`, with nothing kept.
    """

    __slots__ = ("_added", "_destroyed", "_limit", "_removed", "is_overflown")

    def __init__(self, limit: int = QUEUE_MAX) -> None:
        self._limit = limit
        self._added: set[str] = set()
        self._removed: set[str] = set()
        #: removed topics that do not exist any more; created again, they are other topics
        self._destroyed: set[str] = set()
        self.is_overflown = False

    def __bool__(self) -> bool:
        return self.is_overflown or bool(self._added or self._removed)

    def __len__(self) -> int:
        return len(self._added) + len(self._removed)

    def enter(self, topic: str) -> None:
        """Note that a topic joined the list."""
        if self.is_overflown:
            return
        # A topic that left and came back is the same one, unless it was deleted meanwhile: then the client must see
        # both, since the subscriptions of the old topic are gone.
        if topic in self._removed and topic not in self._destroyed:
            self._removed.discard(topic)
        else:
            self._added.add(topic)
            self._bound()

    def leave(self, topic: str, *, destroyed: bool = False) -> None:
        """Note that a topic left the list, because it was deleted or for a change of its labels."""
        if self.is_overflown:
            return
        if topic in self._added:
            self._added.discard(topic)
            return
        self._removed.add(topic)
        if destroyed:
            self._destroyed.add(topic)
        self._bound()

    def destroy(self, topic: str) -> None:
        """Note the end of a topic that had left the list before."""
        if topic in self._removed:
            self._destroyed.add(topic)

    def note(self, changes: _Changes) -> None:
        """Note changes of the list, in their order."""
        if changes.are_too_many:
            self.overflow()
            return
        for topic in changes.removed:
            self.leave(topic, destroyed=topic in changes.destroyed)
        for topic in changes.added:
            self.enter(topic)

    def overflow(self) -> None:
        """Give up the changes for a whole list."""
        self.clear()
        self.is_overflown = True

    def _bound(self) -> None:
        if len(self) > self._limit:
            self.overflow()

    def changes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the topics to remove and those to add, each sorted."""
        return tuple(sorted(self._removed)), tuple(sorted(self._added))

    def clear(self) -> None:
        """Forget everything: it was sent, or a whole list is sent in its place."""
        self._added.clear()
        self._removed.clear()
        self._destroyed.clear()
        self.is_overflown = False


class Backlog:
    """The events that came while a listing was under way; if there are too many, the oldest are dropped.

    Args:
        limit: events that are kept.
    """

    __slots__ = ("_events", "_lost_to")

    def __init__(self, limit: int = QUEUE_MAX) -> None:
        self._events: deque[TopicEvent] = deque(maxlen=limit)
        #: revision of the latest event that was dropped; 0: none was
        self._lost_to = 0

    def add(self, event: TopicEvent) -> None:
        """Keep an event, at the cost of the oldest if the backlog is full."""
        if len(self._events) == self._events.maxlen:
            self._lost_to = self._events[0].revision if self._events else event.revision
        self._events.append(event)

    def covers(self, revision: int | None) -> bool:
        """Return whether every event after a listing's revision is here; None: the listing gives no revision."""
        return self._lost_to <= (revision or 0)

    def after(self, revision: int | None) -> Iterator[TopicEvent]:
        """Yield the events after a revision, in order; all of them for None."""
        return (event for event in self._events if event.revision > (revision or 0))

    def clear(self) -> None:
        """Begin anew."""
        self._events.clear()
        self._lost_to = 0


@dataclass(frozen=True, slots=True)
class ComparedListing:
    """A listing, and its differences from the list that was there when it was begun."""

    topics: TopicList
    #: some topics may be missing
    partial: bool
    gone: Sequence[str]
    come: Sequence[str]


class QueryTopics:
    """The topics of one query, the changes its watchers were not sent, and whether it must be listed.

    Args:
        query: the query that is watched.
        matches: decides by an event alone whether a topic belongs; None: only a lister can say.
        interests: kinds of events on which a lister is asked again; of no effect beside `matches`.
        queue_max: events kept while listing.
    """

    def __init__(
        self,
        query: WatchQuery,
        matches: Matcher | None,
        *,
        interests: frozenset[EventKind] = frozenset(),
        queue_max: int = QUEUE_MAX,
    ) -> None:
        self.query = query
        #: ticket of the listing under way
        self.ticket: int | None = None
        #: whether any listing has arrived, so that there are topics to send
        self.is_known = False
        self._matches = matches
        self._interests = interests
        self._backlog = Backlog(queue_max)
        #: as an ordered set, by identity: two watchers with equal changes are still two
        self._watchers: dict[PendingChanges, None] = {}
        #: watchers for which the late changes are not noted yet; events add to these until they are
        self._behind: dict[PendingChanges, None] = {}
        self._late: list[Callable[[PendingChanges], None]] = []
        self._n_late = 0
        self._queue_max = queue_max
        self._list = TopicList()
        #: topics that came since the list was made (true), or left it (false)
        self._since: dict[str, bool] = {}
        #: the list with these changes, if it was made while a listing is under way, which is compared with the list
        self._newer: TopicList | None = None
        self._is_wanted = True
        self._is_held = False
        #: a listing that has seen this revision needs no other after it
        self._wanted_revision = 0
        #: the listing under way must have seen this one: events before it began were not kept
        self._least_revision = 0
        #: revision of the last event
        self._last_revision = 0
        #: events up to this revision are in the topics
        self._seen = 0
        #: topics of a lister that were deleted since the last listing -> revision of the deletion
        self._destroyed: dict[str, int] = {}

    @property
    def wants_listing(self) -> bool:
        """Return whether a listing should begin."""
        return self._is_wanted and not self._is_held and self.ticket is None

    @property
    def is_current(self) -> bool:
        """Return whether the topics can be sent as they are, with no listing to wait for."""
        return self.is_known and not self._is_wanted and self.ticket is None

    @property
    def has_unsent(self) -> bool:
        """Return whether any watcher was not sent every change."""
        return bool(self._behind) or any(self._watchers)

    @property
    def n_late(self) -> int:
        """Return the number of changes that `catch_up` notes for a watcher, at the most."""
        return self._n_late

    def join(self, pending: PendingChanges) -> None:
        """Note the changes for one more watcher from now on."""
        self._watchers[pending] = None

    def part(self, pending: PendingChanges) -> None:
        """Stop noting changes for a watcher."""
        self._watchers.pop(pending, None)
        if self._behind:
            self._behind.pop(pending, None)
            self._forget_late()

    def catch_up(self, pending: PendingChanges) -> None:
        """Note the changes of the last listing for a watcher, and those that came after it, unless that is done.

        To be called before anything else is done with the watcher's changes, and for each watcher after a listing; for
        many of them that takes long, so it is left to the caller when.
        """
        if pending in self._behind:
            del self._behind[pending]
            self._watchers[pending] = None
            for note in self._late:
                note(pending)
            self._forget_late()

    def _forget_late(self) -> None:
        if not self._behind:
            self._late, self._n_late = [], 0

    def _note(self, note: Callable[[PendingChanges], None]) -> None:
        """Note one change for all watchers."""
        for pending in self._watchers:
            note(pending)
        if self._behind:
            self._late.append(note)
            self._n_late += 1

    def _note_late(self, changes: _Changes) -> None:
        """Leave it to `catch_up` to note changes for all watchers."""
        for pending in tuple(self._behind):
            self.catch_up(pending)
        self._behind, self._watchers = self._watchers, {}
        self._late, self._n_late = [lambda pending: pending.note(changes)], len(changes)
        self._forget_late()

    def want(self, revision: int = 0) -> None:
        """Ask for a listing, because events up to a revision may have been missed."""
        self._is_wanted, self._is_held = True, False
        self._wanted_revision = max(self._wanted_revision, revision)

    def free(self) -> None:
        """Let a listing that failed be tried again."""
        self._is_held = False

    def begin_listing(self, ticket: int) -> None:
        """Note that a listing is under way; events from here on are kept for it."""
        self.ticket, self._is_wanted = ticket, False
        self._least_revision = max(self._wanted_revision, self._last_revision)
        self._backlog.clear()

    def heard(self, event: TopicEvent) -> bool:
        """Take in one event of the namespace; return whether the topics changed."""
        if event.revision <= self._seen:
            return False
        self._last_revision = event.revision
        if self._matches is None:
            # A lister may show less than there is, so an event does not say whether it shows the topic. That a topic
            # was deleted is remembered: if the next listing has it, it is another one of the same name.
            if event.kind == "deleted" and self._has(event.topic):
                self._destroyed[event.topic] = event.revision
            if event.kind in self._interests or event.kind == "namespace-deleted":
                self.want(event.revision)
            return False
        if self.ticket is not None:
            self._backlog.add(event)
        if not self.is_known:
            return False
        if event.kind == "deleted":
            return self._remove(event.topic, destroyed=True)
        if event.kind not in MEMBERSHIP_EVENTS:
            return False
        return self._add(event.topic) if self._belongs(event) else self._remove(event.topic)

    def _belongs(self, event: TopicEvent) -> bool:
        return self._matches is not None and self._matches(event.topic, event.new)

    def _has(self, topic: str) -> bool:
        came = self._since.get(topic)
        return is_among(topic, self._list.names) if came is None else came

    def _flip(self, topic: str) -> None:
        """Let a topic come that is not here, or leave."""
        if topic in self._since:
            del self._since[topic]
        else:
            self._since[topic] = not is_among(topic, self._list.names)
        self._newer = None

    def _add(self, topic: str) -> bool:
        if self._has(topic):
            return False
        self._flip(topic)
        self._note(lambda pending: pending.enter(topic))
        return True

    def _remove(self, topic: str, *, destroyed: bool = False) -> bool:
        if not self._has(topic):
            # It may have left for its labels before it was deleted, and wait as removed in a watcher's changes.
            if destroyed:
                self._note(lambda pending: pending.destroy(topic))
            return False
        self._flip(topic)
        self._note(lambda pending: pending.leave(topic, destroyed=destroyed))
        return True

    def compared(self, listing: Listing, *, rows: int) -> Steps[ComparedListing]:
        """Compare the listing under way with the list that is here; events may come between two steps."""
        topics = listing.topics
        if not isinstance(topics, TopicList):
            topics = TopicList((yield from sorting(tuple(topics), rows=rows)))
        # A first listing changes no list that a watcher has.
        gone, come = (yield from differences(self._list.names, topics.names, rows=rows)) if self.is_known else ([], [])
        return ComparedListing(topics, listing.partial, gone, come)

    def listed(self, listing: ComparedListing, revision: int | None) -> bool:
        """Take in the listing under way; return whether the topics may be sent now. The watchers are to `catch_up`.

        Args:
            revision: of the catalog when it was listed; None: not known.
        """
        # Topics kept up to date by events ignore a partial list; those of a lister gain its topics, and lose none.
        if listing.partial and self.is_known and self._matches is None:
            come = [topic for topic in listing.come if not self._has(topic)]
            for topic in come:
                self._flip(topic)
            self._note_late(_Changes(added=come, are_too_many=len(come) > 2 * self._queue_max))
        if listing.partial or (revision is not None and revision < self._least_revision):
            self.failed()
            return False
        self.ticket = None
        if not self._backlog.covers(revision):
            self.want()
            return False
        self._replace(listing, revision)
        if revision is not None and revision >= self._wanted_revision:
            self._is_wanted = False
        return True

    def failed(self) -> None:
        """Note that the listing under way failed; it is tried again after `free` or `want`."""
        self.ticket = None
        self._is_wanted = self._is_held = True

    def _replace(self, listing: ComparedListing, revision: int | None) -> None:
        """Make the topics those of a listing and of the events after it, and note what changed for all watchers."""
        since: dict[str, bool] = {}
        for event in self._backlog.after(revision) if self._matches is not None else ():
            if event.kind in MEMBERSHIP_EVENTS:
                is_here = event.kind != "deleted" and self._belongs(event)
                since.pop(event.topic, None)
                if is_here != is_among(event.topic, listing.topics.names):
                    since[event.topic] = is_here
        destroyed = {topic for topic, at in self._destroyed.items() if revision is None or at <= revision}
        if self._watchers or self._behind:
            self._note_late(self._changes(listing, since, destroyed))
        self._list, self._since, self._newer = listing.topics, since, None
        self.is_known = True
        self._seen = max(self._seen, revision or 0)
        self._destroyed = {topic: at for topic, at in self._destroyed.items() if topic not in destroyed}

    def _changes(self, listing: ComparedListing, since: Mapping[str, bool], destroyed: Collection[str]) -> _Changes:
        """Return the changes that a listing and the events after it make."""
        # An event may have changed a topic as the listing does. Any other difference is new to a watcher, or cancels a
        # change that waits for it: above twice their limit all are too many, and are not looked at one by one.
        if len(listing.gone) + len(listing.come) - len(self._since) - len(since) > 2 * self._queue_max:
            return _Changes(are_too_many=True)
        removed, added = [], []
        for topic in dict.fromkeys((*listing.gone, *listing.come, *self._since, *since, *destroyed)):
            was_here, is_here = self._has(topic), since.get(topic, is_among(topic, listing.topics.names))
            # A topic that was deleted and is listed again leaves and enters, as another one.
            if was_here and (not is_here or topic in destroyed):
                removed.append(topic)
            if is_here and (not was_here or topic in destroyed):
                added.append(topic)
        return _Changes(removed, added, destroyed)

    def as_list(self) -> TopicList:
        """Return the sorted topics, with a hash that is computed once between two changes."""
        if self._since and self._newer is None:
            came = [topic for topic, is_here in self._since.items() if is_here]
            stayed = [topic for topic in self._list.names if topic not in self._since]
            self._newer = TopicList(sorted(stayed + came))
        if self._newer is None:
            return self._list
        # A listing under way is compared with the list as it was when it began.
        if self.ticket is None:
            self._list, self._since, self._newer = self._newer, {}, None
            return self._list
        return self._newer
