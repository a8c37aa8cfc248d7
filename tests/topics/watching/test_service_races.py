"""The topic list service under every order of events: a client that applies its messages ends with the catalog's list.

A machine of Hypothesis decides what happens next: a topic is created, deleted or labelled, an event or a message
arrives, a listing is taken, arrives late, partial or not at all, a client reads slowly, refreshes, leaves or returns,
events are lost, the server dies. The catalog is the real one, in memory or in a file that another process writes to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lookup.model.catalog import Equals, EventKind, Exists, In, Listing, TopicEvent
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import without_partition
from lookup.topics.listing import TopicLister, topics_hash
from lookup.topics.listing.topic_query import topics_of
from lookup.topics.rules import WatchRules
from lookup.topics.watching import TopicListService, WatchQuery, WatchRequest, messages
from lookup.topics.watching.service import WantedListing
from tests.topics.shelf import InFile, InMemory, Place, Undescribed, by_rule, describe, relabel, topic

_NAMES = (
    *(topic(name) for name in ("a", "b", "ab-partition-0", "ab-partition-1", "__change_events")),
    topic("a", "t/m"),
)
_QUERIES = (
    WatchQuery("t/n", pattern="t/n/a.*"),
    WatchQuery("t/n", pattern=".*"),
    WatchQuery("t/n", selector=(Equals("env", "prod"),)),
    WatchQuery("t/n", selector=(Exists("team"), In("env", ("prod", "test")))),
)
_TURNS = ("hear", "hear", "serve", "look", "lag", "finish", "take", "read", "switch", "lose")
_TROUBLES = ("lost", "twice", "partial", "failed", "closed", "cut", "forgetful", "dead")
_name, _query, _choice = st.sampled_from(_NAMES), st.sampled_from(_QUERIES), st.integers(0, 3)
_labels = st.dictionaries(st.sampled_from(("env", "team")), st.sampled_from(("prod", "test")), max_size=2)


@dataclass
class _Client:
    """A client that believes nothing: each change must be one to the set it holds, and lead to the hash beside it."""

    query: WatchQuery
    connection: int | None = None
    topics: set[str] = field(default_factory=set)
    requests: int = 0
    #: on the way to the server: requests, or the id of a request to close
    sent: deque[WatchRequest | int] = field(default_factory=deque)
    received: deque[messages.Message] = field(default_factory=deque)
    is_open: bool = False
    #: ids of requests that must be answered yet
    awaited: set[int] = field(default_factory=set)
    #: id of the request to close that is under way: what is said before its answer is of a watcher it has given up
    closing: int | None = None

    def ask(self, *, with_hash: bool) -> None:
        """Open the watcher, again after a disconnection, or refresh it."""
        self.requests += 1
        self.awaited.add(self.requests)
        known = topics_hash(self.topics) if with_hash else None
        self.sent.append(WatchRequest(self.requests, 1, self.query, known))

    def close(self) -> None:
        """Close the watcher."""
        self.requests += 1
        self.closing = self.requests
        self.sent.append(self.requests)

    def read(self) -> None:
        """Apply the next message."""
        message = self.received.popleft()
        if isinstance(message, messages.Snapshot | messages.Refused):
            # An answer is also one to the requests before it that had none.
            self.awaited = {asked for asked in self.awaited if asked > message.request_id}
        if self.closing is not None and not (
            isinstance(message, messages.Closed) and message.request_id == self.closing
        ):
            return
        match message:
            case messages.Snapshot(changed=False):
                assert message.topics == ()
            case messages.Snapshot() | messages.Resync():
                self.topics = set(message.topics)
                assert len(self.topics) == len(message.topics)
            case messages.Update():
                self._change(message)
            case messages.Refused():
                assert message.is_temporary
                self.is_open = False
                return
            case messages.Closed():
                self.is_open, self.closing = False, None
                self.awaited = {asked for asked in self.awaited if asked > message.request_id}
                return
        self.is_open = True
        assert topics_hash(self.topics) == message.topics_hash

    def _change(self, update: messages.Update) -> None:
        assert update.removed or update.added
        assert set(update.removed) <= self.topics
        self.topics -= set(update.removed)
        assert not set(update.added) & self.topics
        self.topics |= set(update.added)


class _Races(RuleBasedStateMachine):
    """A catalog, a server and two clients, with everything between them on its way."""

    #: None: the default listing; else the interests of a lister that shows topics without properties
    interests: frozenset[EventKind] | None = None
    queue_max = 2
    tells_revision = True
    make_place: Callable[[], Place] = InMemory

    @initialize(queries=st.tuples(_query, _query))
    def begin(self, queries: tuple[WatchQuery, WatchQuery]) -> None:
        """Start with nothing."""
        self.place = type(self).make_place()
        self.events: deque[TopicEvent] = deque()
        self.clients = [_Client(query) for query in queries]
        self.connections = 0
        self._start()

    def _start(self) -> None:
        rules = WatchRules(queue_max=self.queue_max)
        self.catalog = self.place.catalog
        self.events.clear()
        self.leave = self.catalog.subscribe(self.events.append)
        self.watches = TopicListService(rules, interests=self.interests, revision=self.catalog.revision)
        #: listings under way, with what they found once they have looked
        self.listings: list[tuple[WantedListing, tuple[Listing, int] | None]] = []
        #: what a copy of the catalog that lags behind shows, and its revision
        self.lagging: tuple[dict[WatchQuery, Listing], int] | None = None

    def _truth(self, query: WatchQuery) -> Listing:
        if self.interests is None:
            return Listing(topics_of(self.catalog, query))
        return Listing(TopicLister(Undescribed(), self.catalog).answer(query).topics)

    @rule(
        what=st.sampled_from(("create", "create", "delete", "recreate", "describe")),
        name=_name,
        labels=_labels,
        choice=_choice,
    )
    def change(self, what: str, name: str, labels: dict[str, str], choice: int) -> None:
        """Create a topic or label it, delete it, delete and create it, or describe it."""
        writer = self.place.writer(choice)
        is_there = writer.entry(name) is not None
        if what in ("delete", "recreate") and is_there:
            writer.delete(name)
        if what == "recreate" or (what == "create" and not is_there):
            _create(writer, name, labels)
        elif what == "create":
            relabel(writer, name, labels)
        elif what == "describe" and is_there:
            describe(writer, name, labels)

    @rule(choice=_choice, with_hash=st.booleans())
    def ask(self, choice: int, *, with_hash: bool) -> None:
        """Let a client connect and open its watcher, or refresh it."""
        client = self.clients[choice % 2]
        if client.connection is None:
            self.connections += 1
            client.connection = self.connections
        client.ask(with_hash=with_hash)

    @rule(seed=st.integers(0, 1 << 32), steps=st.integers(5, 60))
    def go_on(self, seed: int, steps: int) -> None:
        """Let what is on its way move on, a step here and a step there, while topics come and go."""
        # Drawn from a seed: Hypothesis draws far too few steps of its own for three of them to meet.
        dice = Random(seed)
        for _ in range(steps):
            getattr(self, f"_{dice.choice(_TURNS)}")(dice.randrange(4))

    def _switch(self, choice: int) -> None:
        """Create one of the first topics, or delete it."""
        name, writer = _NAMES[choice], self.place.writer(choice // 2)
        if writer.entry(name) is not None:
            writer.delete(name)
        else:
            _create(writer, name, {"env": "prod", "team": "test"})

    def _hear(self, _: int) -> None:
        self.catalog.refresh()
        if self.events:
            self.watches.heard(self.events.popleft())

    def _lose(self, choice: int) -> None:
        """Lose an event, once in a while."""
        if self.events and choice == 0:
            self.events.popleft()

    def _serve(self, choice: int) -> None:
        client = self.clients[choice % 2]
        if client.sent and client.connection is not None:
            request = client.sent.popleft()
            if isinstance(request, WatchRequest):
                self.watches.open(client.connection, request)
            else:
                self.watches.close(client.connection, request, 1)

    def _look(self, choice: int) -> None:
        """Let a listing look at the catalog; its answer is on the way from then on."""
        self.listings += [(wanted, None) for wanted in self.watches.wanted()]
        if self.listings and choice:
            place = choice % len(self.listings)
            wanted, found = self.listings[place]
            self.listings[place] = wanted, found or (self._truth(wanted.query), self.catalog.revision)

    def _lag(self, choice: int) -> None:
        """Let a listing look at a copy of the catalog that lags behind, or that copy catch up."""
        waiting = [place for place, (_, found) in enumerate(self.listings) if found is None]
        if self.lagging is None or not self.tells_revision or not (choice and waiting):
            self.lagging = {query: self._truth(query) for query in _QUERIES}, self.catalog.revision
            return
        wanted, (shown, revision) = self.listings[waiting[0]][0], self.lagging
        self.listings[waiting[0]] = wanted, (shown[wanted.query], revision)

    def _finish(self, choice: int, spoilt: str = "no") -> None:
        arrived = [entry for entry in self.listings if entry[1] is not None]
        if arrived:
            entry = arrived[choice % len(arrived)]
            self.listings.remove(entry)
            self._deliver(entry, spoilt)

    def _deliver(self, entry: tuple[WantedListing, tuple[Listing, int] | None], spoilt: str = "no") -> None:
        wanted, (listing, revision) = entry[0], entry[1] or (self._truth(entry[0].query), self.catalog.revision)
        if spoilt == "failed":
            self.watches.failed(wanted.ticket)
            return
        if spoilt == "partial":
            listing = Listing(listing.topics[1:], partial=True)
        self.watches.listed(wanted.ticket, listing, revision=revision if self.tells_revision else None)

    def _take(self, choice: int) -> None:
        client = self.clients[choice % 2]
        if client.connection is not None:
            client.received += self.watches.take(client.connection, 1 + choice)

    def _read(self, choice: int) -> None:
        client = self.clients[choice % 2]
        if client.received:
            client.read()

    @rule(what=st.sampled_from(_TROUBLES), choice=_choice)
    def disturb(self, what: str, choice: int) -> None:
        """Lose an event or bring it twice, spoil a listing, cut a connection, stop a client or the server."""
        client = self.clients[choice % 2]
        match what:
            case "lost" if self.events:
                self.events.popleft()
            case "twice" if self.events:
                self.events.appendleft(self.events[0])
            case "partial" | "failed":
                self._finish(choice, what)
            case "closed" if client.connection is not None:
                client.close()
                client.ask(with_hash=True)
            case "cut" | "forgetful":
                self._cut(client)
                client.topics = client.topics if what == "cut" else set()
            case "dead":
                self._crash()

    def _cut(self, client: _Client) -> None:
        if client.connection is not None:
            self.watches.disconnected(client.connection)
        client.connection, client.is_open, client.closing = None, False, None
        client.sent.clear()
        client.awaited.clear()
        client.received.clear()

    def _crash(self) -> None:
        for client in self.clients:
            self._cut(client)
        self.leave()
        self.place.crash()
        self._start()

    @rule()
    def settle(self) -> None:
        """Let everything arrive: every client that watches holds exactly the catalog's set."""
        for client in self.clients:
            self._ask_if_idle(client)
        for _ in range(4):
            self._run_dry()
        for client in self.clients:
            if client.connection is not None:
                assert client.is_open
                is_custom = self.interests is not None
                assert client.topics == by_rule(self.place.writer(0), client.query, undescribed=is_custom)

    def _run_dry(self) -> None:
        self.catalog.refresh()
        while self.events:
            self.watches.heard(self.events.popleft())
        for choice in (0, 1):
            while self.clients[choice].sent:
                self._serve(choice)
        self.watches.missed(self.catalog.revision)
        self.watches.retry()
        self._list_all()
        for client in self.clients:
            if client.connection is not None:
                client.received += self.watches.take(client.connection)
            while client.received:
                client.read()
            self._ask_if_idle(client)

    def _ask_if_idle(self, client: _Client) -> None:
        """Try again after a refusal; never otherwise, which would hide what the first request missed."""
        if client.connection is not None and not (client.is_open or client.awaited):
            client.ask(with_hash=True)

    def _list_all(self) -> None:
        for entry in self.listings:
            self._deliver(entry)
        self.listings = []
        for _ in range(20):
            for wanted in self.watches.wanted():
                self._deliver((wanted, None))

    @invariant()
    def only_the_connected_are_due(self) -> None:
        """Nothing is kept for a connection that is gone."""
        if hasattr(self, "watches"):
            connected = {client.connection for client in self.clients}

            assert set(self.watches.due()) <= connected

    def teardown(self) -> None:
        """End settled."""
        if hasattr(self, "watches"):
            try:
                self.settle()
            finally:
                self.place.close()


def _create(catalog: Catalog, name: str, labels: Mapping[str, str]) -> None:
    """Create a topic; a partition has the labels of its topic, if there is another of it."""
    is_joining = bool(catalog.parts(without_partition(name)))
    catalog.create(name, labels={} if is_joining else labels)


class _Lister(_Races):
    """The same with a custom lister, asked again on creation, deletion and a change of properties."""

    interests = Undescribed.interests


class _Unrevised(_Races):
    """The same with listings that do not say what revision they saw."""

    tells_revision = False


class _Roomy(_Races):
    """The same with queues that do not overflow."""

    queue_max = 100


class _InFile(_Races):
    """The same over a file, which another process writes to and which outlives a crash of both."""

    make_place = InFile


class _ListerInFile(_Lister):
    """The same with a custom lister."""

    make_place = InFile


# Without shrinking, which takes minutes here and leaves as many steps as it found.
_SETTINGS = settings(max_examples=300, stateful_step_count=30, deadline=None, phases=[Phase.explicit, Phase.generate])
TestRaces = _Races.TestCase
TestRaces.settings = _SETTINGS
TestLister = _Lister.TestCase
TestLister.settings = _SETTINGS
TestUnrevised = _Unrevised.TestCase
TestUnrevised.settings = _SETTINGS
TestRoomy = _Roomy.TestCase
TestRoomy.settings = _SETTINGS
# A file is opened and written to for each example.
_FILE_SETTINGS = settings(_SETTINGS, max_examples=100)
TestInFile = _InFile.TestCase
TestInFile.settings = _FILE_SETTINGS
TestListerInFile = _ListerInFile.TestCase
TestListerInFile.settings = _FILE_SETTINGS
