"""Partition suffixes, schemes and namespaces of topic names, names of partitions, and Pulsar's own topics."""

from __future__ import annotations

import pytest

from lookup.errors import ArgumentError
from lookup.topics.catalog.naming import (
    is_system_topic,
    names_of,
    partition_number,
    prefixes_of,
    schemes_of,
    without_partition,
    without_scheme,
)
from tests.topics.catalogs import topic


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


def test_a_scheme_is_removed_once() -> None:
    """The name follows the first separator."""
    assert without_scheme("persistent://a/b/c://d") == "a/b/c://d"
    assert without_scheme("a/b/c") == "a/b/c"


def test_all_means_both_domains() -> None:
    """A mode says with what names begin; there are three."""
    assert schemes_of("all") == ("persistent://", "non-persistent://")
    assert schemes_of("non-persistent") == ("non-persistent://",)


def test_the_names_of_a_namespace_begin_alike() -> None:
    """The namespace ends with its slash: `t/ns` does not begin the names of `t/ns2`."""
    assert prefixes_of("t/ns", "all") == ("persistent://t/ns/", "non-persistent://t/ns/")


def test_an_unknown_mode_is_refused() -> None:
    """The sentence names the modes there are."""
    with pytest.raises(ArgumentError, match="'ALL'; known: persistent, non-persistent, all"):
        schemes_of("ALL")  # type: ignore[arg-type]  # from a client


@pytest.mark.parametrize(("local", "number"), [("x-partition-12", 12), ("x", None), ("x-partition-01", None)])
def test_partitions_have_numbers(local: str, number: int | None) -> None:
    """Only as Pulsar writes them."""
    assert partition_number(topic(local)) == number


def test_a_topic_has_its_own_name_or_those_of_its_partitions() -> None:
    """Numbers count from 0."""
    assert names_of(topic("x"), None) == (topic("x"),)
    assert names_of(topic("x"), 2) == (topic("x-partition-0"), topic("x-partition-1"))


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
