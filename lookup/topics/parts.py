"""Names of topics and of their partitions, as a catalog checks and makes them."""

from __future__ import annotations

from collections.abc import Sequence

from lookup.errors import ArgumentError
from lookup.model.names import TopicName
from lookup.topics.labels import refuse_characters
from lookup.topics.naming import without_partition

__all__ = ["MAX_PARTITIONS", "names_of", "namespace_of", "partition_number"]

#: Partitions of one topic: all are written in one transaction, and a slip of the keyboard must not fill a disk.
MAX_PARTITIONS = 100_000


def names_of(topic: str, partitions: int | None) -> Sequence[str]:
    """Return the names of the entries a topic has, after a check of everything about its name.

    Args:
        partitions: how many; None: not partitioned.

    Raises:
        InvalidNameError: where it is not the complete name of a topic.
        ArgumentError: for characters no list of topics can carry, and for a wrong number of partitions.
    """
    TopicName.parse(topic)
    refuse_characters(topic)
    if partitions is None:
        return (topic,)
    if partition_number(topic) is not None:
        raise ArgumentError(f"{topic} is the name of a partition, it cannot have partitions of its own")
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise ArgumentError(f"partitions is {partitions}, it must be between 1 and {MAX_PARTITIONS:,}")
    return tuple(f"{topic}-partition-{number}" for number in range(partitions))


def namespace_of(topic: str) -> str:
    """Return `tenant/namespace` of a complete name; of any other text something that is no namespace."""
    return "/".join(topic.partition("://")[2].split("/", 2)[:2])


def partition_number(topic: str) -> int | None:
    """Return which partition a name means, None where it means none."""
    whole = without_partition(topic)
    return None if whole == topic else int(topic[len(whole) + len("-partition-") :])
