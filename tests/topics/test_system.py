"""Which topics are Pulsar's own."""

from __future__ import annotations

import pytest

from lookup.topics.system import is_system_topic, without_system_topics


@pytest.mark.parametrize(
    "topic",
    [
        "persistent://public/default/__change_events",
        "persistent://public/default/__change_events-partition-0",
        "persistent://public/default/__transaction_buffer_snapshot",
        "persistent://public/default/orders-sub__transaction_pending_ack",
        "persistent://pulsar/system/transaction_coordinator_assign-partition-3",
        "persistent://pulsar/system/__transaction_log_7",
    ],
)
def test_these_are_pulsar_s(topic: str) -> None:
    """Event, snapshot, pending-ack and coordinator topics are recognised, partitions included."""
    assert is_system_topic(topic)


@pytest.mark.parametrize(
    "topic",
    [
        "persistent://public/default/__consumer_offsets",
        "persistent://public/default/my__change_events",
        "persistent://public/default/__change_events/more",
        "persistent://public/default/__transaction_pending_ack_of_mine",
        "persistent://pulsar/systems/transaction_coordinator_assign",
        "persistent://pulsar/system/heartbeat",
        "non-persistent://pulsar/system/__transaction_log_7",
    ],
)
def test_these_are_users(topic: str) -> None:
    """Two underscores make no system topic, nor does a name that only resembles one."""
    assert not is_system_topic(topic)


def test_a_list_keeps_its_order_without_them() -> None:
    """What is left stands as it stood."""
    names = [f"persistent://public/default/{name}" for name in ("z", "__change_events", "a")]

    assert without_system_topics(names) == [names[0], names[2]]
