"""Partition suffixes and schemes of topic names."""

from __future__ import annotations

import pytest

from lookup.errors import ArgumentError
from lookup.topics.naming import schemes_of, without_partition, without_scheme


@pytest.mark.parametrize(
    ("topic", "wanted"),
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
def test_only_what_java_numbers_is_a_partition(topic: str, wanted: str) -> None:
    """A suffix is a decimal number without leading zeros that fits an int."""
    assert without_partition(topic) == wanted


def test_a_scheme_is_removed_once() -> None:
    """What follows the first separator is the name."""
    assert without_scheme("persistent://a/b/c://d") == "a/b/c://d"
    assert without_scheme("a/b/c") == "a/b/c"


def test_all_means_both_domains() -> None:
    """A mode says with what names begin; there are three."""
    assert schemes_of("all") == ("persistent://", "non-persistent://")
    assert schemes_of("non-persistent") == ("non-persistent://",)


def test_an_unknown_mode_is_refused() -> None:
    """The sentence names the modes there are."""
    with pytest.raises(ArgumentError, match="there is no mode 'ALL'; known: persistent, non-persistent, all"):
        schemes_of("ALL")  # type: ignore[arg-type]  # from a client
