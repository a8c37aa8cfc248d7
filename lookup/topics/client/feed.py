"""Follow one namespace for a subscription client, by watch or by polling, and remember its list between answers.

The list that the server sent last is kept apart from the subscriptions made from it: the server's hash is about this
list. The id of a request distinguishes its answer from a late one.

| state    | how it is entered                                     | at the next look                             |
| -------- | ----------------------------------------------------- | -------------------------------------------- |
| offline  | no connection                                         | nothing                                      |
| polling  | no watchers, properties to send, or a watch refused   | `Poll` with the hash of the last answer      |
| watching | else                                                  | `WatchRequest` with the hash of the list     |

A watching client looks by itself at every period, because a change that was never sent leaves no other trace (Pulsar's
#20779). While an answer is awaited nothing else is asked, for some periods at first and for twice as long after each
request that was given up: the answer of a slow server still counts, and a server that forgot a request is asked again.

Source: PIP-145; `docs/pulsar/protocol.md`; Pulsar's `PatternMultiTopicsConsumerImpl`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Literal

from lookup.errors import NotSupportedError
from lookup.topics.client.actions import Action, Listed, Poll, ServerFeatures, TopicSet, Unwatch
from lookup.topics.client.list_copy import NO_CHANGE, ListChange, ListCopy
from lookup.topics.listing.topic_list import topics_hash
from lookup.topics.listing.topic_query import TopicQuery
from lookup.topics.rules import Pace
from lookup.topics.watching.messages import Refused, Resync, Snapshot, Update, WatchQuery, WatchRequest

__all__ = ["Feed"]


#: Periods that the first answer is waited for.
_PATIENCE = 4
#: An answer that has not come in ten minutes was lost, however slow the server is; µs.
_LONGEST_US = 600_000_000


class Feed:
    """The topics of one namespace as a server sent them, and the next request to it.

    Args:
        wanted: the topics the client wants.
        namespace: the one namespace to follow.
        pace: the periods of requests.
        ids: new request ids, shared by all feeds of a client.
    """

    def __init__(self, wanted: TopicSet, namespace: str, pace: Pace, ids: count[int]) -> None:
        self.namespace = namespace
        #: when to ask next, should no answer come before; None while offline
        self.due_us: int | None = None
        #: whether this connection has answered, so that topics missing from the list may be given up
        self.is_confirmed = False
        self._query = wanted.query(namespace)
        # Compiled for its errors alone, before anything is asked.
        self._query.matcher()
        self._pace = pace
        self._ids = ids
        self._watcher_id = next(ids)
        self._server = ServerFeatures()
        self._state: Literal["offline", "polling", "watching"] = "offline"
        self._list = ListCopy()
        #: hash to send, so that the server may answer "unchanged"; None: the last hash is not that of the list
        self._hash: str | None = None
        self._awaited: int | None = None
        #: when a period has passed since the last request
        self._look_us = 0
        self._first_us = _PATIENCE * pace.poll_us
        #: how long the next answer is waited for
        self._patience_us = self._first_us
        self._is_watched = False
        self._is_in_doubt = False

    @property
    def topics(self) -> frozenset[str]:
        """The list as the server sent it last."""
        return self._list.topics

    def connected(self, server: ServerFeatures, now_us: int) -> None:
        """Begin to ask a server, with the hash of the list another one sent.

        Raises:
            NotSupportedError: if the server cannot evaluate a selector: a longer list would be taken for the answer.
        """
        if self._query.selector and not server.selectors:
            raise NotSupportedError(f"the server cannot select topics of {self.namespace!r} by labels")
        self._server, self.due_us, self._patience_us = server, now_us, self._first_us
        # A watch has no field for properties, and is about persistent topics only.
        can_watch = server.watchers and not self._query.properties and self._query.mode == "persistent"
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
        # Twice as long after each request without an answer, which a slow server needs more than more requests.
        self._patience_us = min(2 * self._patience_us, max(self._first_us, _LONGEST_US))
        query = self._query
        if self._state != "watching":
            self._awaited = next(self._ids)
            yield Poll(
                query.namespace, query.mode, query.pattern, query.selector, query.properties,
                request_id=self._awaited, topics_hash=self._hash,
            )  # fmt: skip
            return
        if self._is_watched and not self._server.reconcile:
            # Without supports_topic_watcher_reconcile a second request with this id is an error.
            yield Unwatch(next(self._ids), self._watcher_id)
            self._watcher_id = next(self._ids)
        self._is_watched, self._awaited = True, next(self._ids)
        watched = WatchQuery(query.namespace, pattern=query.pattern, selector=query.selector)
        yield WatchRequest(self._awaited, self._watcher_id, watched, self._hash)

    def owns(self, message: Snapshot | Update | Resync | Refused) -> bool:
        """Return whether a message is about this feed's watcher, and not an answer to a request it gave up."""
        if not self._is_watched or message.watcher_id != self._watcher_id:
            return False
        return isinstance(message, Update | Resync) or message.request_id == self._awaited

    def awaits(self, request_id: int) -> bool:
        """Return whether the answer to a poll is awaited."""
        return self._state == "polling" and self._awaited == request_id

    def received(self, message: Snapshot | Update | Resync | Refused, now_us: int) -> ListChange:
        """Take in a message of the watcher; return the change it made."""
        if isinstance(message, Refused):
            self._end_request(now_us)
            self._is_watched = False
            if message.is_temporary:
                self.due_us = now_us + self._pace.retry_us
            else:
                self._state, self.due_us = "polling", now_us
            return NO_CHANGE
        if isinstance(message, Update):
            message = replace(message, added=tuple(self._narrowed(message.added, is_filtered=True)))
        else:
            message = replace(message, topics=self._narrowed(message.topics, is_filtered=True))
            self.is_confirmed = True
        if isinstance(message, Snapshot):
            self._end_request(now_us)
        change = self._list.take(message)
        # The list is hashed after every message: if it is not the list the server means, all of it is asked for soon.
        self._hash = self._list.topics_hash
        self._doubt(is_doubtful=self._hash != message.topics_hash, now_us=now_us)
        return change

    def _end_request(self, now_us: int) -> None:
        """Note that the request was answered, and look again a period after it was made."""
        self._awaited, self._patience_us = None, self._first_us
        self.due_us = max(now_us, self._look_us)

    def _doubt(self, *, is_doubtful: bool, now_us: int) -> None:
        """Ask again without a hash; a second time in a row only at the next period: some servers never agree."""
        if is_doubtful:
            self._hash = None
            if not self._is_in_doubt and self.due_us is not None:
                self.due_us = min(self.due_us, now_us + self._pace.retry_us)
        self._is_in_doubt = is_doubtful

    def listed(self, answer: Listed, now_us: int) -> ListChange:
        """Take in the answer to a poll; return the change it made.

        Raises:
            NotSupportedError: if the answer to a selector was not filtered.
        """
        self._end_request(now_us)
        is_complete = not (answer.partial or answer.active_only)
        if not answer.changed:
            # "Unchanged" counts only for the hash that was sent: with any other the empty list would be believed.
            is_doubtful = self._hash is None or answer.topics_hash != self._hash
            self.is_confirmed = self.is_confirmed or (is_complete and not is_doubtful)
            self._doubt(is_doubtful=is_doubtful, now_us=now_us)
            return NO_CHANGE
        if self._query.selector and not answer.filtered:
            raise NotSupportedError(f"the server did not select topics of {self.namespace!r} by labels")
        # A server that filters always sends a hash: without one the answer is older than PIP-145, and is filtered here.
        topics = self._narrowed(answer.topics, is_filtered=answer.filtered and answer.topics_hash is not None)
        # A list that is not the one of its own hash has lost topics on its way, or has some too many.
        is_doubtful = is_complete and answer.topics_hash not in (None, topics_hash(answer.topics))
        self._doubt(is_doubtful=is_doubtful, now_us=now_us)
        if is_doubtful or not is_complete:
            # What such an answer lacks may exist all the same, so it adds topics and removes none.
            self._hash = None
            return self._list.edit((), topics)
        self.is_confirmed, self._hash = True, answer.topics_hash
        return self._list.replace(topics)

    def failed(self, now_us: int) -> None:
        """Note that a poll failed; the list stays as it is."""
        self._end_request(now_us)
        self.due_us = now_us + self._pace.retry_us

    def _narrowed(self, topics: Sequence[str], *, is_filtered: bool) -> Sequence[str]:
        """Leave the topics of the namespace that the set is about.

        Servers before #25188 show system topics, and a faulty one names topics of other namespaces.
        """
        query = self._query
        # The pattern of a server that filters is not applied again: its engine may read it in another way.
        return TopicQuery(query.namespace, query.mode, None if is_filtered else query.pattern).among(topics)
