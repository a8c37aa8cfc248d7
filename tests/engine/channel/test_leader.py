"""What the leader writes over the records of lost brokers and over those that are stuck."""

from __future__ import annotations

import pytest

from lookup.engine.channel.broker import Message
from lookup.engine.channel.leader import STUCK_MS, TOMBSTONE_MS, Select, clean_up, clean_up_delay, monitor, override
from lookup.engine.channel.service_unit import ServiceUnitState, ServiceUnitStateData

_S = ServiceUnitState
_UNIT = "t/n/0x00000000_0x80000000"


def _record(state: ServiceUnitState, dst: str | None, src: str | None = None) -> ServiceUnitStateData:
    return ServiceUnitStateData(state, dst, src)


def _first_of(*brokers: str) -> Select:
    return lambda _unit, excluded: next((broker for broker in brokers if broker not in excluded), None)


#: record, whether gracefully, what replaces it where `lost` is lost and `new` the first choice
OVERRIDES = [
    (_record(_S.OWNED, "lost"), False, (_S.OWNED, "new", "lost")),
    (_record(_S.OWNED, "lost"), True, (_S.RELEASING, "new", "lost")),
    (_record(_S.OWNED, "lost", "old"), False, (_S.OWNED, "new", "lost")),
    (_record(_S.ASSIGNING, "lost"), False, (_S.OWNED, "new", None)),
    (_record(_S.ASSIGNING, "lost", "old"), False, (_S.OWNED, "new", "old")),
    (_record(_S.ASSIGNING, "lost", "new"), True, (_S.OWNED, "new", None)),
    (_record(_S.RELEASING, "other", "lost"), False, (_S.OWNED, "new", "lost")),
    (_record(_S.RELEASING, None, "lost"), True, (_S.OWNED, "new", "lost")),
    (_record(_S.SPLITTING, None, "lost"), False, (_S.SPLITTING, None, "new")),
]


@pytest.mark.parametrize(("data", "gracefully", "expected"), OVERRIDES)
def test_overrides_per_state(
    data: ServiceUnitStateData, expected: tuple[ServiceUnitState, str | None, str | None], *, gracefully: bool
) -> None:
    """A lost broker's record becomes one of a broker that is there, by force and as the next version."""
    message = override(_UNIT, data, "lost", _first_of("lost", "new"), now_ms=9, gracefully=gracefully)

    assert message.data == ServiceUnitStateData(*expected, force=True, timestamp=9, version_id=2)


@pytest.mark.parametrize("data", [data for data, _, _ in OVERRIDES])
def test_a_bundle_nobody_can_take_is_free(data: ServiceUnitStateData) -> None:
    """The next lookup assigns it."""
    message = override(_UNIT, data, "lost", _first_of("lost"), now_ms=9)

    assert message.data == ServiceUnitStateData(_S.FREE, None, "lost", force=True, timestamp=9, version_id=2)


def test_a_split_in_flight_keeps_its_children() -> None:
    """Another broker goes on with the same split."""
    data = ServiceUnitStateData(_S.SPLITTING, None, "lost", {"a": None, "b": "b2"})
    message = override(_UNIT, data, "lost", _first_of("new"), now_ms=9)

    assert message.data is not None
    assert message.data.split == data.split


def test_clean_up_takes_what_the_broker_has_or_is_to_have() -> None:
    """Records that only remember the broker stay; system namespaces come last."""
    records = {
        "pulsar/system/0x0_0x1": _record(_S.OWNED, "lost"),
        "t/n/a": _record(_S.OWNED, "lost"),
        "t/n/b": _record(_S.OWNED, "b1", "lost"),
        "t/n/c": _record(_S.ASSIGNING, "b1", "lost"),
        "t/n/d": _record(_S.FREE, None, "lost"),
        "t/n/e": _record(_S.DELETED, "lost"),
    }
    found = clean_up(records, "lost", _first_of("new"), now_ms=9)

    assert [message.unit for message in found.first] == ["t/n/a", "t/n/c"]
    assert [message.unit for message in found.last] == ["pulsar/system/0x0_0x1"]


def test_clean_up_waits_longer_the_worse_the_connection_was() -> None:
    """A leader with a bad connection does nothing."""
    assert clean_up_delay("stable") == 30_000
    assert clean_up_delay("jittery") == 180_000
    assert clean_up_delay("unstable") is None


def test_the_monitor_ends_what_nobody_else_ends() -> None:
    """Stuck ones and those of brokers that are gone are overridden, old ones removed; the rest is left alone."""
    records = {
        "t/n/a": _record(_S.ASSIGNING, "b1"),
        "t/n/b": _record(_S.OWNED, "b1"),
        "t/n/c": _record(_S.OWNED, "gone"),
        "t/n/d": _record(_S.FREE, None, "b1"),
        "t/n/e": _record(_S.DELETED, None, "gone"),
    }

    def written(now_ms: int) -> list[str]:
        return [message.unit for message in monitor(records, ("b1", "b2"), _first_of("b1"), now_ms=now_ms)]

    assert written(STUCK_MS) == ["t/n/c"]
    assert written(STUCK_MS + 1) == ["t/n/a", "t/n/c"]
    assert written(TOMBSTONE_MS + 1) == ["t/n/a", "t/n/c", "t/n/d", "t/n/e"]


def test_the_monitor_excludes_the_broker_that_is_gone() -> None:
    """A stuck transfer to a live broker may go to that one; one to a broker that is gone may not."""
    records = {"t/n/a": _record(_S.RELEASING, "gone", "b1"), "t/n/b": _record(_S.FREE, None, "b1")}
    removed, found = {"t/n/b"}, monitor(records, ("b1",), _first_of("gone", "b1"), now_ms=TOMBSTONE_MS + 1)

    assert found[0].data is not None
    assert (found[0].data.dst_broker, found[0].data.source_broker) == ("b1", None)
    assert [message for message in found if message.data is None] == [Message(unit, None) for unit in removed]
