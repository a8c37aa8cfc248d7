"""Parse names of topics into scheme, namespace and partition suffix, and recognise Pulsar's own topics.

Most functions take many names without checks. Only `names_of`, `checked_*` and `fault_of` check. A new name must
satisfy more rules than an existing one, which must be listed and can be deleted. `lookup.model.names` parses names.

Source: `docs/pulsar/protocol.md`, and for the suffix of a partition Pulsar's `TopicName.getPartitionIndex`. Names that
begin with two underscores and are not listed here are users' names.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import get_args

from lookup.errors import ArgumentError, InvalidNameError
from lookup.model import Mode, NamespaceName, TopicName
from lookup.model.quoting import BREAKING, forbidden_character, shown, unseen

__all__ = [
    "MODES", "checked_name", "checked_namespace", "checked_new_name", "fault_of", "is_system_topic", "names_of",
    "namespace_of", "partition_number", "partitions_among", "prefixes_of", "schemes_of", "without_partition",
    "without_system_topics",
]  # fmt: skip

#: The modes of a listing.
MODES: tuple[Mode, ...] = get_args(Mode)

_MARK = "-partition-"
_SUFFIX = re.compile(rf"{_MARK}(0|[1-9][0-9]{{0,9}})\Z")
#: The largest partition Java can number.
_LAST = (1 << 31) - 1

#: Characters of a topic's name, including the partition suffix. Pulsar does not have a limit. This is that of a file's
#: path, and a message of Pulsar's usual 5 MiB still holds a thousand such names.
_MAX_NAME_LENGTH = 4_096
#: Characters of a namespace's name, which leave three quarters to the names of its topics.
_MAX_NAMESPACE_LENGTH = _MAX_NAME_LENGTH // 4
#: Partitions of one topic. All are written in one transaction, and a typing error must not fill a disk.
_MAX_PARTITIONS = 100_000

#: Pulsar: SystemTopicNames, the same from 4.0 to 5.0.
_LOCAL_NAMES = frozenset(
    {
        "__change_events",
        "__transaction_buffer_snapshot",
        "__transaction_buffer_snapshot_indexes",
        "__transaction_buffer_snapshot_segments",
    }
)
_COORDINATOR = (
    "persistent://pulsar/system/transaction_coordinator_assign",
    "persistent://pulsar/system/__transaction_log_",
)
_PENDING_ACKS = "__transaction_pending_ack"


def without_partition(topic: str) -> str:
    """Find the partitioned topic of a partition, and keep other names. `t-partition-01` is no partition."""
    if _MARK not in topic:  # most names, and much faster than the search
        return topic
    suffix = _SUFFIX.search(topic)
    return topic if suffix is None or int(suffix[1]) > _LAST else topic[: suffix.start()]


def schemes_of(mode: Mode) -> tuple[str, ...]:
    """List the schemes of a mode, such as `persistent://`, or raise ArgumentError."""
    if mode not in MODES:
        raise ArgumentError(f"there is no mode {mode!r}; known: {', '.join(MODES)}")
    domains = ("persistent", "non-persistent") if mode == "all" else (mode,)
    return tuple(f"{domain}://" for domain in domains)


@lru_cache
def prefixes_of(namespace: str, mode: Mode) -> tuple[str, ...]:
    """List the beginnings of the names of a namespace's topics, one per scheme, or raise ArgumentError."""
    return tuple(f"{scheme}{namespace}/" for scheme in schemes_of(mode))


def names_of(topic: str, partitions: int | None) -> Sequence[str]:
    """List the names of a topic's entries, after a check of its name.

    Args:
        partitions: number of partitions, None if it is not partitioned.

    Raises:
        InvalidNameError: if it is not the complete name of a topic.
        ArgumentError: for characters that no list can carry, a name too long, and a wrong number of partitions.
    """
    checked_name(topic)
    if partitions is None:
        return (topic,)
    if partition_number(topic) is not None:
        raise ArgumentError(f"{topic} is the name of a partition, it cannot have partitions of its own")
    if not 1 <= partitions <= _MAX_PARTITIONS:
        raise ArgumentError(f"partitions is {partitions}, it must be between 1 and {_MAX_PARTITIONS:,}")
    names = tuple(f"{topic}{_MARK}{number}" for number in range(partitions))
    # The largest number gives the longest name. If it fits, all do.
    checked_name(names[-1])
    return names


def partitions_among(names: Sequence[str], whole: str) -> Iterator[str]:
    """Yield the partitions of a topic that are among some sorted names."""
    beginning = f"{whole}{_MARK}"
    for place in range(bisect_left(names, beginning), len(names)):
        if not names[place].startswith(beginning):
            return
        if without_partition(names[place]) == whole:
            yield names[place]


def checked_name(topic: str) -> TopicName:
    """Read the complete name of a topic, which need not be in any catalog.

    Raises:
        InvalidNameError: if it is not in Pulsar's form.
        ArgumentError: for its length, and for characters that no name may have.
    """
    fault = fault_of(topic)
    if fault is not None:
        raise ArgumentError(f"topic {shown(topic)} {fault}")
    return TopicName.parse(topic)


def checked_new_name(topic: str) -> TopicName:
    """Read the complete name of a new topic, which must not look like another name to the eye.

    Raises:
        InvalidNameError: if it is not in Pulsar's form.
        ArgumentError: as `checked_name` does, for invisible characters, and for blanks around the local name.
    """
    name = checked_name(topic)
    fault = unseen(name.local)
    if fault is not None:
        raise ArgumentError(f"topic {shown(topic)}: the name {fault}")
    return name


def checked_namespace(namespace: str) -> str:
    """Check the name of a namespace for topics, which has two parts. `a/b/c` would read as topic `c` of `a/b`."""
    if len(namespace) > _MAX_NAMESPACE_LENGTH:
        message = f"namespace {shown(namespace)} has {len(namespace):,} characters, more than {_MAX_NAMESPACE_LENGTH:,}"
        raise ArgumentError(message)
    name = NamespaceName.parse(namespace)
    if "/" in name.local:
        raise InvalidNameError(
            f"namespace {namespace!r} is not of the form tenant/namespace: it has more than two parts"
        )
    return str(name)


def fault_of(topic: str) -> str | None:
    """Explain why no new topic can have a name, as the end of a sentence, None if one can.

    Pulsar permits control characters and longer names, so a catalog that follows a cluster may have such topics.
    """
    if len(topic) > _MAX_NAME_LENGTH:
        return f"has {len(topic):,} characters, more than the {_MAX_NAME_LENGTH:,} that a name may have"
    wrong = forbidden_character(topic, categories=BREAKING)
    return None if wrong is None else f"has the character {wrong!r}, which no name may have"


def namespace_of(topic: str) -> str:
    """Read `tenant/namespace` of a complete name. The result for any other text is not a namespace."""
    return "/".join(topic.partition("://")[2].split("/", 2)[:2])


def partition_number(topic: str) -> int | None:
    """Read the number of a partition from its name, None for other names."""
    whole = without_partition(topic)
    return None if whole == topic else int(topic[len(whole) + len(_MARK) :])


def is_system_topic(topic: str) -> bool:
    """Check whether a topic, or the topic of a partition, is Pulsar's own."""
    whole = without_partition(topic)
    local = whole.partition("://")[2].split("/", 2)[-1]
    return local in _LOCAL_NAMES or whole.endswith(_PENDING_ACKS) or whole.startswith(_COORDINATOR)


def without_system_topics(topics: Iterable[str]) -> list[str]:
    """Remove Pulsar's own topics, and keep the order of the others."""
    return [topic for topic in topics if not is_system_topic(topic)]
