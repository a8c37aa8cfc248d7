"""One broker's end of the channel: what it answers per state, does per message and refuses to write."""

from __future__ import annotations

import pytest

from lookup.engine.channel.broker import Channel, Close, Effect, Message, Serve, Settled, Waiting
from lookup.engine.channel.service_unit import ServiceUnitState, ServiceUnitStateData
from lookup.errors import ArgumentError, StateError

_S = ServiceUnitState
_UNIT = "t/n/0x00000000_0x80000000"
_ALL = ("b1", "b2", "b3")


def _record(
    state: ServiceUnitState, dst: str | None, src: str | None = None, *, version: int = 1, force: bool = False
) -> ServiceUnitStateData:
    return ServiceUnitStateData(state, dst, src, version_id=version, force=force)


def _channel(broker: str, data: ServiceUnitStateData | None = None, *, quirks: str = "upstream") -> Channel:
    channel = Channel(broker, quirks="intended" if quirks == "intended" else "upstream")
    channel.records.update({} if data is None else {_UNIT: data})
    return channel


def _after(broker: str, data: ServiceUnitStateData | None, said: ServiceUnitStateData | None) -> list[Effect]:
    return _channel(broker, data).receive(Message(_UNIT, said), 7)


# Answers

#: What b1 and b2 are answered, by record; all three brokers are registered.
ANSWERS = [
    (None, Settled(_UNIT), Settled(_UNIT)),
    (_record(_S.FREE, None, "b1"), Settled(_UNIT), Settled(_UNIT)),
    (_record(_S.OWNED, "b1"), Settled(_UNIT, "b1"), Settled(_UNIT, "b1")),
    (_record(_S.ASSIGNING, "b1"), Waiting(_UNIT), Settled(_UNIT, "b1")),
    (_record(_S.RELEASING, "b1", "b2"), Waiting(_UNIT), Settled(_UNIT, "b1")),
    (_record(_S.RELEASING, None, "b1"), Settled(_UNIT), Settled(_UNIT)),
    (_record(_S.SPLITTING, None, "b1"), Settled(_UNIT, "b1"), Settled(_UNIT, "b1")),
]


@pytest.mark.parametrize(("data", "first", "second"), ANSWERS)
def test_answers_per_state(
    data: ServiceUnitStateData | None, first: Settled | Waiting, second: Settled | Waiting
) -> None:
    """The destination is known before it confirms; only itself has to wait for its own confirmation."""
    answers = [_channel(broker, data).owner(_UNIT, registered=_ALL, now_ms=0) for broker in ("b1", "b2")]

    assert answers == [first, second]


def test_a_split_bundle_has_no_owner_ever_again() -> None:
    """Its topics are to be looked up anew."""
    channel = _channel("b1", _record(_S.DELETED, None, "b1"))

    with pytest.raises(ArgumentError, match="is deleted: it was split"):
        channel.owner(_UNIT, registered=_ALL, now_ms=0)


@pytest.mark.parametrize("data", [_record(_S.OWNED, "b3"), _record(_S.SPLITTING, None, "b3")])
def test_an_owner_that_is_not_registered_is_waited_for(data: ServiceUnitStateData) -> None:
    """The leader will replace it; a broker that is missing from the registry itself believes what is recorded."""
    channel = _channel("b1", data)

    assert channel.owner(_UNIT, registered=("b1", "b2"), now_ms=0) == Waiting(_UNIT)
    assert channel.owner(_UNIT, registered=("b2",), now_ms=0) == Settled(_UNIT, "b3")


def test_a_wait_ends_with_the_new_owner() -> None:
    """Who asked while the owner was lost is answered when the leader has replaced it, once."""
    channel = _channel("b1", _record(_S.OWNED, "b3"))
    channel.owner(_UNIT, registered=("b1", "b2"), now_ms=0)
    channel.owner(_UNIT, registered=("b1", "b2"), now_ms=9)

    replaced = Message(_UNIT, _record(_S.OWNED, "b2", "b3", version=2, force=True))
    assert channel.receive(replaced, 10) == [Settled(_UNIT, "b2")]
    assert channel.expire(_ALL, 99_000) == []


def test_a_wait_ends_in_time() -> None:
    """After 30 s the owner of that moment counts if it is registered, else the wait has failed."""
    channel = _channel("b1", _record(_S.OWNED, "b3"))
    channel.owner(_UNIT, registered=("b1",), now_ms=0)

    assert channel.expire(("b1",), 29_999) == []
    assert channel.expire(("b1",), 30_000) == [Settled(_UNIT, failed=True)]
    channel.owner(_UNIT, registered=("b1",), now_ms=30_000)
    assert channel.expire(_ALL, 60_000) == [Settled(_UNIT, "b3")]


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (None, Settled(_UNIT)),
        (_record(_S.FREE, None, "b2"), Settled(_UNIT)),
        (_record(_S.SPLITTING, None, "b2"), Settled(_UNIT, "b2")),
        (_record(_S.ASSIGNING, "b2"), Settled(_UNIT, failed=True)),
        (_record(_S.RELEASING, "b2", "b3"), Settled(_UNIT, failed=True)),
    ],
)
def test_who_has_not_confirmed_in_time_is_no_owner(data: ServiceUnitStateData | None, answer: Settled) -> None:
    """A wait that ends by the clock is answered with who owns the bundle then, not with who is about to."""
    channel = _channel("b1", data)
    channel.assign(_UNIT, "b2", 0)

    assert channel.expire(_ALL, 30_000) == [answer]


@pytest.mark.parametrize("data", [_record(_S.OWNED, "b3"), _record(_S.SPLITTING, None, "b3")])
def test_an_owner_who_comes_back_does_not_end_a_wait(data: ServiceUnitStateData) -> None:
    """Nobody writes a record then; who asks meanwhile joins those who wait, and all are answered in the end."""
    channel = _channel("b1", data)
    channel.owner(_UNIT, registered=("b1", "b2"), now_ms=0)

    assert channel.owner(_UNIT, registered=_ALL, now_ms=29_999) == Waiting(_UNIT)
    assert channel.expire(_ALL, 30_000) == [Settled(_UNIT, "b3")]
    assert channel.owner(_UNIT, registered=_ALL, now_ms=30_000) == Settled(_UNIT, "b3")


@pytest.mark.parametrize("data", [_record(_S.ASSIGNING, "b1"), _record(_S.RELEASING, "b1", "b2")])
def test_a_destination_that_is_not_registered_believes_its_record(data: ServiceUnitStateData) -> None:
    """A broker without a registry to look at answers at once, about itself as well."""
    assert _channel("b1", data).owner(_UNIT, registered=("b2",), now_ms=0) == Settled(_UNIT, "b1")


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (None, Settled(_UNIT)),
        (_record(_S.FREE, None, "b3", version=2, force=True), Settled(_UNIT)),
        (_record(_S.DELETED, None, "b3", version=2, force=True), Settled(_UNIT, failed=True)),
        (_record(_S.INIT, "b3", version=2, force=True), Settled(_UNIT)),
        # Rejected: the bundle has an owner all the same.
        (_record(_S.ASSIGNING, "b2", version=2), Settled(_UNIT, "b3")),
    ],
)
def test_other_ends_of_a_wait(said: ServiceUnitStateData | None, answer: Settled) -> None:
    """A wait also ends where the bundle becomes nobody's, is split, or a message about it is rejected."""
    channel = _channel("b1", _record(_S.OWNED, "b3"))
    channel.owner(_UNIT, registered=("b1",), now_ms=0)

    assert channel.receive(Message(_UNIT, said), 1) == [answer]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (_record(_S.OWNED, "b1"), "b1"),
        (_record(_S.ASSIGNING, "b1", "b2"), "b1"),
        (_record(_S.RELEASING, "b1", "b2"), "b1"),
        (_record(_S.RELEASING, None, "b2"), None),
        (_record(_S.SPLITTING, None, "b2"), "b2"),
        (_record(_S.FREE, None, "b2"), None),
        (_record(_S.DELETED, None, "b2"), None),
        (None, None),
    ],
)
def test_where_clients_are_sent_during_an_unload(data: ServiceUnitStateData | None, told: str | None) -> None:
    """Clients are told the next owner as soon as it is known."""
    assert _channel("b3", data).destination(_UNIT) == told


# Messages


def test_the_destination_confirms() -> None:
    """Who is assigned a bundle writes that it owns it, and serves it when it reads that."""
    confirmed = _record(_S.OWNED, "b1", "b2", version=2)

    [message] = _after("b1", None, _record(_S.ASSIGNING, "b1", "b2"))
    assert isinstance(message, Message)
    assert message.data == ServiceUnitStateData(_S.OWNED, "b1", "b2", timestamp=7, version_id=2)
    assert _after("b1", _record(_S.ASSIGNING, "b1", "b2"), confirmed) == [Serve(_UNIT)]
    assert _after("b2", None, _record(_S.ASSIGNING, "b1", "b2")) == []


def test_the_source_of_an_unload_closes_and_frees() -> None:
    """Clients are disconnected at once, since nobody is there to take them."""
    closed, message = _after("b1", _record(_S.OWNED, "b1"), _record(_S.RELEASING, None, "b1", version=2))

    assert closed == Close(_UNIT, disconnects=True)
    assert message == Message(_UNIT, ServiceUnitStateData(_S.FREE, None, "b1", timestamp=7, version_id=3))


def test_the_source_of_a_transfer_keeps_clients_until_the_new_owner_serves() -> None:
    """Pulsar's unload in phases closes twice."""
    closed, message = _after("b1", _record(_S.OWNED, "b1"), _record(_S.RELEASING, "b2", "b1", version=2))
    later = _after("b1", _record(_S.ASSIGNING, "b2", "b1"), _record(_S.OWNED, "b2", "b1", version=2))

    assert closed == Close(_UNIT, disconnects=False)
    assert isinstance(message, Message)
    assert message.data == ServiceUnitStateData(_S.ASSIGNING, "b2", "b1", timestamp=7, version_id=3)
    assert later == [Close(_UNIT)]


def test_without_phases_a_transfer_closes_once() -> None:
    """Clients are disconnected at release, and nothing is left to close later."""
    channel = Channel("b1", multi_phase=False)
    channel.records[_UNIT] = _record(_S.OWNED, "b1")

    closed, _ = channel.receive(Message(_UNIT, _record(_S.RELEASING, "b2", "b1", version=2)), 7)
    channel.receive(Message(_UNIT, _record(_S.ASSIGNING, "b2", "b1", version=3)), 8)
    assert closed == Close(_UNIT, disconnects=True)
    assert channel.receive(Message(_UNIT, _record(_S.OWNED, "b2", "b1", version=4)), 9) == []


@pytest.mark.parametrize("said", [_record(_S.FREE, None, "b1", version=2, force=True)])
def test_a_broker_that_only_seemed_lost_closes(said: ServiceUnitStateData) -> None:
    """An override that frees its bundle finds the topics open."""
    assert _after("b1", _record(_S.OWNED, "b1"), said) == [Close(_UNIT)]


def test_a_split_puts_children_in_its_place() -> None:
    """Children begin as owned by who splits, or assigned to whom the split names; then the parent is deleted."""
    split = ServiceUnitStateData(
        _S.SPLITTING, None, "b1", {"0x00000000_0x40000000": None, "0x40000000_0x80000000": "b2"}, version_id=2
    )

    first, second, parent = _after("b1", _record(_S.OWNED, "b1"), split)
    assert first == Message("t/n/0x00000000_0x40000000", ServiceUnitStateData(_S.OWNED, "b1", timestamp=7))
    assert second == Message("t/n/0x40000000_0x80000000", ServiceUnitStateData(_S.ASSIGNING, "b2", timestamp=7))
    assert parent == Message(_UNIT, ServiceUnitStateData(_S.DELETED, None, "b1", timestamp=7, version_id=3))
    assert _after("b2", _record(_S.OWNED, "b1"), split) == []


def test_a_restarted_broker_serves_what_it_owns() -> None:
    """What was in flight to it is left to the monitor, unless the accident is switched off."""
    records = {
        "t/n/a": _record(_S.OWNED, "b1", "b2"),
        "t/n/b": _record(_S.ASSIGNING, "b1"),
        "t/n/c": _record(_S.OWNED, "b2", "b1"),
    }
    upstream, intended = (_channel("b1", quirks=quirks) for quirks in ("upstream", "intended"))

    assert upstream.restore(records, 7) == [Serve("t/n/a")]
    confirmed = Message("t/n/b", ServiceUnitStateData(_S.OWNED, "b1", timestamp=7, version_id=2))
    assert intended.restore(records, 7) == [Serve("t/n/a"), confirmed]


# Wishes


@pytest.mark.parametrize("data", [None, _record(_S.FREE, None, "b1"), _record(_S.RELEASING, None, "b1")])
def test_only_an_owned_bundle_is_unloaded_or_split(data: ServiceUnitStateData | None) -> None:
    """Nobody owns it: the sentence is Pulsar's."""
    channel = _channel("b1", data)

    with pytest.raises(StateError, match="is not owned by any broker"):
        channel.unload(_UNIT, now_ms=0)
    with pytest.raises(StateError, match="is not owned by any broker"):
        channel.split(_UNIT, {"a": None, "b": None}, now_ms=0)


def test_a_deleted_bundle_is_not_unloaded() -> None:
    """It was split."""
    with pytest.raises(ArgumentError, match="is deleted"):
        _channel("b1", _record(_S.DELETED, None, "b1")).unload(_UNIT, now_ms=0)


def test_a_bundle_is_not_split_into_one() -> None:
    """Splitting makes at least two of it."""
    with pytest.raises(ArgumentError, match="cannot be split into 1 children; at least two"):
        _channel("b1", _record(_S.OWNED, "b1")).split(_UNIT, {"a": None}, now_ms=0)


def test_a_transfer_to_the_owner_is_refused_by_its_ending() -> None:
    """Upstream compares endings, so `ab1` cannot give to `b1`; the intended rule compares the whole."""
    upstream, intended = (_channel("b2", _record(_S.OWNED, "ab1"), quirks=q) for q in ("upstream", "intended"))

    for channel in (upstream, intended):
        with pytest.raises(ArgumentError, match="cannot be transfer to same broker"):
            channel.unload(_UNIT, "ab1", now_ms=0)
    with pytest.raises(ArgumentError, match="cannot be transfer to same broker"):
        upstream.unload(_UNIT, "b1", now_ms=0)
    assert intended.unload(_UNIT, "b1", now_ms=0).data is not None


def test_a_splitting_bundle_is_its_source_s() -> None:
    """An unload meanwhile is addressed to the broker that splits, and the conflict rule then refuses it."""
    channel = _channel("b2", _record(_S.SPLITTING, None, "b1"))
    message = channel.unload(_UNIT, "b3", now_ms=0)

    assert message.data is not None
    assert message.data.source_broker == "b1"
    assert channel.receive(message, 1) == []
    assert channel.records[_UNIT].state is _S.SPLITTING
