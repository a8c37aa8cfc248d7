"""Partition suffixes, schemes and namespaces of topic names, names of partitions, and Pulsar's own topics."""

from __future__ import annotations

import pytest

from lookup.errors import ArgumentError
from lookup.topics.catalog.naming import is_system_topic, schemes_of, without_partition


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("t-partition-0", "t"),
        ("t-partition-11", "t"),
        ("t-partition-partition-3", "t-partition"),
        ("t-partition-1-partition-2", "t-partition-1"),
        ("t-partition", "t-partition"),
        ("t-partition-", "t-partition-"),
        ("t-partition-01", "t-partition-01"),
        ("t-partition--1", "t-partition--1"),
        ("t-partition-2147483647", "t"),
        ("t-partition-2147483648", "t-partition-2147483648"),
        ("t-partition-1\n", "t-partition-1\n"),
        ("t-partition-٣", "t-partition-٣"),
    ],
)
def test_only_what_java_numbers_is_a_partition(name: str, wanted: str) -> None:
    """A suffix is a decimal number without leading zeros that fits an int."""
    assert without_partition(name) == wanted


def test_an_unknown_mode_is_refused() -> None:
    """The sentence names the modes there are."""
    with pytest.raises(ArgumentError, match="'ALL'; known: persistent, non-persistent, all"):
        schemes_of("ALL")  # type: ignore[arg-type]  # from a client


@pytest.mark.parametrize(
    "name",
    [
        "persistent://public/default/__change_events",
        "persistent://public/default/__change_events-partition-0",
        "persistent://public/default/__transaction_buffer_snapshot",
        "persistent://public/default/__transaction_buffer_snapshot_indexes",
        "persistent://public/default/__transaction_buffer_snapshot_segments-partition-3",
        "persistent://public/default/orders-sub__transaction_pending_ack",
        "persistent://pulsar/system/transaction_coordinator_assign-partition-3",
        "persistent://pulsar/system/__transaction_log_7",
    ],
)
def test_these_are_pulsar_s(name: str) -> None:
    """Event, snapshot, pending-ack and coordinator topics are recognised, partitions included."""
    assert is_system_topic(name)


@pytest.mark.parametrize(
    "name",
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
def test_these_are_users(name: str) -> None:
    """Two underscores make no system topic, nor does a name that only resembles one."""
    assert not is_system_topic(name)
