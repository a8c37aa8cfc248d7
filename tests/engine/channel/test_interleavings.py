"""The channel under every order of events: brokers write, read, leave and return, and agree in the end.

A machine of Hypothesis decides who publishes or reads next, who is unloaded, split or lost, and when the leader looks.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lookup.engine.service_unit import (
    ChannelStorage,
    ServiceUnitState,
    ServiceUnitStateData,
    next_states,
    should_keep_left,
    state_of,
)
from lookup.errors import ArgumentError, StateError
from tests.engine.channel.broker import Message, Settled
from tests.engine.channel.channels import Channels
from tests.engine.channel.leader import STUCK_MS, TOMBSTONE_MS, clean_up, monitor

_S = ServiceUnitState
_BROKERS = ("b1", "b2", "b3")
_WHOLE = ("t/n/0x00000000_0x80000000", "pulsar/system/0x00000000_0xffffffff")
_CHILDREN = {"0x00000000_0x40000000": None, "0x40000000_0x80000000": None}
_UNITS = (*_WHOLE, *(f"t/n/{child}" for child in _CHILDREN))

_broker, _unit, _choice = st.sampled_from(_BROKERS), st.sampled_from(_UNITS), st.integers(0, 2)


class _Interleavings(RuleBasedStateMachine):
    """Three brokers, two bundles of which one may be split, and whatever happens to them."""

    storage: ChannelStorage
    multi_phase = True

    @initialize(owners=st.lists(_broker, max_size=2))
    def begin(self, owners: list[str]) -> None:
        """Start all brokers, some of the bundles owned."""
        self.world = Channels(_BROKERS, self.storage, multi_phase=self.multi_phase)
        self.registered = set(_BROKERS)
        self.records: dict[str, ServiceUnitStateData] = {}
        #: brokers whose split of a bundle was taken over, and whom no record has told since to close it
        self.left_behind: set[tuple[str, str]] = set()
        self.returned: set[str] = set()
        self.checked = 0
        for unit, owner in zip(_WHOLE, owners, strict=False):
            self._writes(owner, self.world.brokers[owner].channel.assign(unit, owner, 0))
        self.world.settle()

    def _runs(self, broker: str) -> bool:
        return broker in self.world.brokers

    def _writes(self, broker: str, message: Message) -> None:
        self.world.brokers[broker].carry_out([message])

    def _select(self, _unit: str, excluded: frozenset[str]) -> str | None:
        return min(self.registered - excluded, default=None)

    @rule(broker=_broker, unit=_unit, choice=_choice)
    def look_up(self, broker: str, unit: str, choice: int) -> None:
        """Ask for an owner, and choose one where there is none."""
        if not self._runs(broker) or self._is_past(unit):
            return
        channel = self.world.brokers[broker].channel
        try:
            answer = channel.owner(unit, registered=self.registered, now_ms=self.world.now_ms)
        except ArgumentError:
            return
        if isinstance(answer, Settled) and answer.owner is None:
            chosen = sorted(self.registered)[choice % len(self.registered)]
            self._writes(broker, channel.assign(unit, chosen, self.world.now_ms))

    def _is_past(self, unit: str) -> bool:
        """Tell bundles that were split, which no topic is hashed to any more, and children that are not born yet."""
        split = {m.unit for m in self.world.log if m.data is not None and m.data.state is _S.SPLITTING}
        return unit in split or (unit not in _WHOLE and unit not in {m.unit for m in self.world.log})

    @rule(broker=_broker, unit=_unit, destination=st.none() | _broker, force=st.booleans())
    def unload(self, broker: str, unit: str, destination: str | None, *, force: bool) -> None:
        """Unload a bundle or transfer it."""
        if self._runs(broker) and (destination is None or destination in self.registered):
            channel = self.world.brokers[broker].channel
            try:
                message = channel.unload(unit, destination, now_ms=self.world.now_ms, force=force)
            except (ArgumentError, StateError):
                return
            self._writes(broker, message)

    @rule(broker=_broker)
    def split(self, broker: str) -> None:
        """Split the first bundle."""
        if self._runs(broker):
            channel = self.world.brokers[broker].channel
            try:
                self._writes(broker, channel.split(_WHOLE[0], _CHILDREN, now_ms=self.world.now_ms))
            except (ArgumentError, StateError):
                return

    @precondition(lambda self: self.world.busy())
    @rule(turns=st.lists(st.tuples(_choice, st.booleans()), min_size=1, max_size=12))
    def go_on(self, turns: list[tuple[int, bool]]) -> None:
        """Let brokers publish or read one message after the other."""
        for choice, publishes in turns:
            busy = self.world.busy()
            if busy:
                broker, has_unread = busy[choice % len(busy)]
                if self.world.brokers[broker].outbox and (publishes or not has_unread):
                    self.world.publish(broker)
                else:
                    self.world.deliver(broker)

    @rule(broker=_broker, dies=st.booleans())
    def lose(self, broker: str, *, dies: bool) -> None:
        """Let a broker leave the registry, dead or only out of touch; one stays."""
        if len(self.registered - {broker}) and self._runs(broker):
            self.registered.discard(broker)
            if dies:
                self.world.stop(broker)
                self.left_behind = {(unit, left) for unit, left in self.left_behind if left != broker}

    @rule(broker=_broker)
    def come_back(self, broker: str) -> None:
        """Register a broker again, restarted if it died."""
        if not self._runs(broker):
            self.world.start(broker)
        if broker not in self.registered:
            self.returned.add(broker)
        self.registered.add(broker)

    @rule(lost=_broker, gracefully=st.booleans())
    def clean_up(self, lost: str, *, gracefully: bool) -> None:
        """Let the leader clean up after a broker, by what it knows."""
        if lost not in self.registered:
            leader = self._leader()
            records = self.world.brokers[leader].channel.records
            found = clean_up(records, lost, self._select, now_ms=self.world.now_ms, gracefully=gracefully)
            self.world.brokers[leader].carry_out([*found.first, *found.last])

    def _leader(self) -> str:
        return min(self.registered)

    def _monitor(self, passed_ms: int) -> bool:
        """Let the leader look at everything some time later; false where it has nothing to do."""
        self.world.now_ms += passed_ms
        leader = self.world.brokers[self._leader()]
        found = monitor(leader.channel.records, self.registered, self._select, now_ms=self.world.now_ms)
        leader.carry_out(found)
        return bool(found)

    @rule()
    def look_at_stuck_ones(self) -> None:
        """Let the leader end what has been in flight for too long; messages may still be on their way."""
        self.world.now_ms += STUCK_MS + 1
        records = self.world.brokers[self._leader()].channel.records
        found = monitor(
            records, self.registered, self._select, now_ms=self.world.now_ms, tombstone_ms=self.world.now_ms
        )
        self.world.brokers[self._leader()].carry_out(found)

    @precondition(lambda self: not self.world.busy())
    @rule()
    def remove_old_ones(self) -> None:
        """Let the leader remove what was nobody's for an hour, after which nothing is on its way any more."""
        self._monitor(TOMBSTONE_MS + 1)
        self.world.settle()

    @invariant()
    def every_accepted_record_is_valid(self) -> None:
        """What the channel accepts is a transition of its storage, a first version, forced, or a tombstone."""
        for message in self.world.log[self.checked :]:
            before, after = self.records.get(message.unit), message.data
            if after is None:
                self.records.pop(message.unit, None)
            elif not should_keep_left(before, after, self.storage):
                is_first = before is None and after.version_id == 1
                assert is_first or after.force or after.state in next_states(state_of(before), self.storage)
                self._note_left_behind(message.unit, before, after)
                self.records[message.unit] = after
        self.checked = len(self.world.log)

    def _note_left_behind(self, unit: str, before: ServiceUnitStateData | None, after: ServiceUnitStateData) -> None:
        """Follow what no record says: a split that goes on elsewhere is not closed where it began."""
        if before is not None and before.state is after.state is _S.SPLITTING:
            self.left_behind.add((unit, str(before.source_broker)))
        is_told = {
            _S.SPLITTING: True,
            _S.RELEASING: True,
            _S.OWNED: after.force or self.multi_phase,
            _S.FREE: after.force,
        }
        if is_told.get(after.state, False):
            self.left_behind.discard((unit, str(after.source_broker)))
        if after.state is _S.OWNED:
            self.left_behind.discard((unit, str(after.dst_broker)))

    @invariant()
    def who_has_read_everything_knows_what_compaction_leaves(self) -> None:
        """A broker that starts late and one that read it all have the same records."""
        for held in self.world.brokers.values():
            if held.read == len(self.world.log):
                assert held.channel.records == self.records

    def teardown(self) -> None:
        """Let everything be read and the leader look until it has nothing to do; then all is in order."""
        if not hasattr(self, "world"):
            return
        self.world.settle()
        rounds = 0
        while self._monitor(STUCK_MS + 1):
            self.world.settle()
            rounds += 1
            assert rounds < 10
        self.every_accepted_record_is_valid()
        for unit, data in self.records.items():
            self._is_in_order(unit, data)
        for held in self.world.brokers.values():
            assert held.channel.records == self.records
            self._answers_agree(held.channel)

    def _is_in_order(self, unit: str, data: ServiceUnitStateData) -> None:
        serving = {broker for broker, held in self.world.brokers.items() if unit in held.serving}
        left_behind = {broker for left, broker in self.left_behind if left == unit}
        if data.state is _S.OWNED:
            assert data.dst_broker in self.registered
            assert serving - left_behind == {data.dst_broker}
        elif data.state is _S.FREE:
            assert serving - left_behind == set()
        else:
            assert data.state is _S.DELETED

    def _answers_agree(self, channel: Any) -> None:
        """Nobody waits but for an owner who came back; when that wait is over everybody answers the recorded one."""
        for answer in channel.expire(self.registered, self.world.now_ms + STUCK_MS):
            assert answer == Settled(answer.unit, self.records[answer.unit].dst_broker)
            assert answer.owner in self.returned
        for unit, data in self.records.items():
            if data.state is not _S.DELETED:
                answer = channel.owner(unit, registered=self.registered, now_ms=self.world.now_ms)
                assert answer == Settled(unit, data.dst_broker if data.state is _S.OWNED else None)


class _OnTopic(_Interleavings):
    """Records in the system topic."""

    storage = ChannelStorage.SYSTEM_TOPIC


class _InStore(_Interleavings):
    """Records in the metadata store, clients disconnected at once."""

    storage = ChannelStorage.METADATA_STORE
    multi_phase = False


def test_a_split_that_goes_on_elsewhere_is_not_closed_where_it_began() -> None:
    """A forced unload then frees the bundle, and who began the split goes on serving it: no record tells it to stop."""
    world = Channels(_BROKERS)
    began, leader, admin = (world.brokers[broker] for broker in ("b3", "b1", "b2"))
    began.carry_out([began.channel.assign(_WHOLE[0], "b3", 0)])
    world.settle()
    admin.carry_out([admin.channel.split(_WHOLE[0], _CHILDREN, now_ms=0)])
    _publish_to_all_but_who_began(world, "b2")
    leader.carry_out(clean_up(leader.channel.records, "b3", lambda unit, lost: "b1", now_ms=1).first)
    _publish_to_all_but_who_began(world, "b1")
    admin.carry_out([admin.channel.unload(_WHOLE[0], now_ms=2, force=True)])
    world.publish("b2")
    world.settle()

    assert world.records()[_WHOLE[0]].state is _S.FREE
    assert [broker for broker, held in world.brokers.items() if _WHOLE[0] in held.serving] == ["b3"]


def _publish_to_all_but_who_began(world: Channels, broker: str) -> None:
    world.publish(broker)
    for reader in ("b1", "b2"):
        world.deliver(reader)


_STEPS = settings(max_examples=150, stateful_step_count=40)
TestOnTopic = _OnTopic.TestCase
TestOnTopic.settings = _STEPS
TestInStore = _InStore.TestCase
TestInStore.settings = _STEPS
