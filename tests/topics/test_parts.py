"""Names of topics and partitions."""

from __future__ import annotations

import pytest

from lookup.topics.parts import names_of, namespace_of, partition_number
from tests.topics.catalogs import topic


@pytest.mark.parametrize(
    ("name", "namespace"),
    [("persistent://t/ns/x", "t/ns"), ("non-persistent://t/ns/a/b", "t/ns"), ("persistent://t", "t"), ("x", "")],
)
def test_the_namespace_of_any_text_can_be_asked(name: str, namespace: str) -> None:
    """A text that is no name has something that is no namespace."""
    assert namespace_of(name) == namespace


@pytest.mark.parametrize(("local", "number"), [("x-partition-12", 12), ("x", None), ("x-partition-01", None)])
def test_partitions_have_numbers(local: str, number: int | None) -> None:
    """Only as Pulsar writes them."""
    assert partition_number(topic(local)) == number


def test_a_topic_has_its_own_name_or_those_of_its_partitions() -> None:
    """Numbers count from 0."""
    assert names_of(topic("x"), None) == (topic("x"),)
    assert names_of(topic("x"), 2) == (topic("x-partition-0"), topic("x-partition-1"))
