"""One namespace as a subscription client sees it: asked by watch or by polling, remembered between answers.

The list a server told last is kept apart from the subscriptions made from it: what is here is what the server's hash is
about. Answers are told from late ones by the id of the request.

| state    | how it is entered                                     | at the next look                             |
| -------- | ----------------------------------------------------- | -------------------------------------------- |
| offline  | no connection                                         | nothing                                      |
| polling  | no watchers, properties to send, or a watch refused   | `Poll` with the hash of the last answer      |
| watching | else                                                  | `WatchRequest` with the hash of the list     |

A watch is looked after at every period, because a change that was never told leaves no other trace (Pulsar's #20779).
While an answer is awaited nothing else is asked, for some periods at first and for twice as long after each request
that was given up: a slow server is heard, however slow, and one that forgot a request is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal

from lookup.errors import NotSupportedError
from lookup.topics.catalog.naming import is_system_topic, prefixes_of
from lookup.topics.client.actions import Action, Listed, Poll, ServerFeatures, TopicSet, Unwatch
from lookup.topics.listing.topic_list import TopicsPattern, topics_hash
from lookup.topics.rules import Pace
from lookup.topics.watching.messages import Refused, Resync, Snapshot, Update, WatchQuery, WatchRequest

__all__ = ["Change", "Feed"]


@dataclass(frozen=True, slots=True)
class Change:
    """What a message changed in the list: removed first, added then; in both: another topic of the same name."""

    removed: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()


_NOTHING = Change()
#: Periods that the first answer is waited for.
_PATIENCE = 4
#: An answer that has not come in ten minutes was lost, however slow the server is; µs.
_LONGEST_US = 600_000_000


class Feed:
    """The topics of one namespace that a server told of, and what to ask it next.

    Args:
        wanted: what is looked for.
        namespace: where.
        pace: how often.
        ids: new request ids, shared by all feeds of a client.
    """

    def __init__(self, wanted: TopicSet, namespace: str, pace: Pace, ids: count[int]) -> None:
        self.namespace = namespace
        #: when to ask next, should no answer come before; None while offline
        self.due_us: int | None = None
        #: whether this connection has answered, so that what is missing from the list may be given up
        self.is_confirmed = False
        self._wanted = wanted
        self._pace = pace
        self._ids = ids
        self._watcher_id = next(ids)
        self._server = ServerFeatures()
        self._state: Literal["offline", "polling", "watching"] = "offline"
        self._pattern = None if wanted.pattern is None else TopicsPattern(wanted.pattern)
        self._prefixes = prefixes_of(namespace, wanted.mode)
        self._topics: set[str] = set()
        #: what to send, so that the server may answer "unchanged"; None: nothing, it is not the list's
        self._hash: str | None = None
        self._awaited: int | None = None
        #: when a period has passed since the last request
        self._look_us = 0
        #: how long the next answer is waited for
        self._patience_us = self._first_us
        self._is_watched = False
        self._is_in_doubt = False

    @property
    def topics(self) -> frozenset[str]:
        """The list as it was told last."""
        return frozenset(self._topics)

    @property
    def _first_us(self) -> int:
        return _PATIENCE * self._pace.poll_us

    def connected(self, server: ServerFeatures, now_us: int) -> None:
        """Begin to ask a server, with the hash of what another one told.

        Raises:
            NotSupportedError: if the server cannot evaluate a selector: a longer list would be taken for the answer.
        """
        if self._wanted.selector and not server.selectors:
            raise NotSupportedError(f"the server cannot select topics of {self.namespace!r} by labels")
        self._server, self.due_us, self._patience_us = server, now_us, self._first_us
        # A watch has no field for properties, and is about persistent topics only.
        can_watch = server.watchers and not self._wanted.properties and self._wanted.mode == "persistent"
        self._state = "watching" if can_watch else "polling"

    def disconnected(self) -> None:
        """Keep the list, and wait for a connection."""
        self._state, self.due_us, self._awaited = "offline", None, None
        self._is_watched = self.is_confirmed = False

    def ask(self, now_us: int) -> Iterator[Action]:
        """Ask for the list if it is time; a request whose answer is overdue is given up."""
        if self.due_us is None or now_us < self.due_us:
            return
        self._look_us = now_us + self._pace.poll_us
        self.due_us = now_us + self._patience_us
        self._patience_us = min(2 * self._patience_us, max(self._first_us, _LONGEST_US))
        if self._state == "watching":
            yield from self._watch()
        else:
            yield self._poll()

    def _watch(self) -> Iterator[Action]:
        if self._is_watched and not self._server.reconcile:
            # Without flag 7 a second request with this id is an error.
            yield Unwatch(next(self._ids), self._watcher_id)
            self._watcher_id = next(self._ids)
        self._is_watched, self._awaited = True, next(self._ids)
        query = WatchQuery(self.namespace, self._wanted.pattern, self._wanted.selector)
        yield WatchRequest(self._awaited, self._watcher_id, query, self._hash)

    def _poll(self) -> Poll:
        wanted, self._awaited = self._wanted, next(self._ids)
        properties = dict(wanted.properties)
        namespace, mode = self.namespace, wanted.mode
        return Poll(self._awaited, namespace, mode, wanted.pattern, wanted.selector, properties, self._hash)

    def owns(self, message: Snapshot | Update | Resync | Refused) -> bool:
        """Return whether a message is about this feed's watcher, and not an answer to something given up."""
        if not self._is_watched or message.watcher_id != self._watcher_id:
            return False
        return isinstance(message, Update | Resync) or message.request_id == self._awaited

    def awaits(self, request_id: int) -> bool:
        """Return whether the answer to a poll is awaited."""
        return self._state == "polling" and self._awaited == request_id

    def received(self, message: Snapshot | Update | Resync | Refused, now_us: int) -> Change:
        """Take in a message of the watcher; return what it changed."""
        match message:
            case Refused():
                return self._refused(message, now_us)
            case Update():
                change = self._edit(frozenset(message.removed), frozenset(message.added))
            case _:
                change = self._told(message, now_us)
        self._check(message.topics_hash, now_us)
        return change

    def _told(self, message: Snapshot | Resync, now_us: int) -> Change:
        """Take in a whole list, or the word that it is still right."""
        self.is_confirmed = True
        if isinstance(message, Snapshot):
            self._look_later(now_us)
            if not message.changed:
                return _NOTHING
        return self._replace(message.topics)

    def _look_later(self, now_us: int) -> None:
        """Note the answer, and look again a period after it was asked for."""
        self._awaited, self._patience_us = None, self._first_us
        self.due_us = max(now_us, self._look_us)

    def _refused(self, message: Refused, now_us: int) -> Change:
        self._look_later(now_us)
        self._is_watched = False
        if message.is_temporary:
            self.due_us = now_us + self._pace.retry_us
        else:
            self._state, self.due_us = "polling", now_us
        return _NOTHING

    def _check(self, told: str, now_us: int) -> None:
        """Ask for everything soon if the list is not the one the server means."""
        self._hash = topics_hash(self._topics)
        self._doubt(is_doubtful=self._hash != told, now_us=now_us)

    def _doubt(self, *, is_doubtful: bool, now_us: int) -> None:
        """Ask again without a hash; a second time in a row only at the next period: some servers never agree."""
        if is_doubtful:
            self._hash = None
            if not self._is_in_doubt and self.due_us is not None:
                self.due_us = min(self.due_us, now_us + self._pace.retry_us)
        self._is_in_doubt = is_doubtful

    def listed(self, answer: Listed, now_us: int) -> Change:
        """Take in the answer to a poll; return what it changed.

        Raises:
            NotSupportedError: if the answer to a selector was not filtered.
        """
        self._look_later(now_us)
        if not answer.changed:
            return self._unchanged(answer, now_us)
        is_filtered = answer.filtered and answer.topics_hash is not None
        if self._wanted.selector and not answer.filtered:
            raise NotSupportedError(f"the server did not select topics of {self.namespace!r} by labels")
        topics = answer.topics if is_filtered or self._pattern is None else self._pattern.filter(answer.topics)
        if answer.partial or answer.active_only:
            self._hash = None
            return self._edit(frozenset(), frozenset(self._fitting(topics)))
        self.is_confirmed, self._hash = True, answer.topics_hash
        return self._replace(topics)

    def _unchanged(self, answer: Listed, now_us: int) -> Change:
        """Believe "unchanged" only if the list is what it speaks of; any other hash would empty it."""
        is_doubtful = self._hash is None or answer.topics_hash != self._hash
        is_complete = not (answer.partial or answer.active_only)
        self.is_confirmed = self.is_confirmed or (is_complete and not is_doubtful)
        self._doubt(is_doubtful=is_doubtful, now_us=now_us)
        return _NOTHING

    def failed(self, now_us: int) -> None:
        """Note that a poll came to nothing; the list stays as it is."""
        self._look_later(now_us)
        self.due_us = now_us + self._pace.retry_us

    def _fitting(self, topics: Iterable[str]) -> Iterator[str]:
        return (topic for topic in topics if topic.startswith(self._prefixes) and not is_system_topic(topic))

    def _replace(self, topics: Iterable[str]) -> Change:
        now = set(self._fitting(topics))
        return self._edit(frozenset(self._topics - now), frozenset(now - self._topics))

    def _edit(self, removed: frozenset[str], added: frozenset[str]) -> Change:
        before = frozenset(self._topics)
        self._topics = (self._topics - removed) | added
        return Change(removed & before, frozenset(topic for topic in added if topic not in before or topic in removed))
