"""Pulsar's own topics, which no listing shows to users.

Source: `facts/protocol.md` section 4.2. Other names that begin with two underscores are users' names.
"""

from __future__ import annotations

from collections.abc import Iterable

from lookup.topics.naming import without_partition

__all__ = ["is_system_topic", "without_system_topics"]

_LOCAL_NAMES = frozenset({"__change_events", "__transaction_buffer_snapshot"})
_COORDINATOR = (
    "persistent://pulsar/system/transaction_coordinator_assign",
    "persistent://pulsar/system/__transaction_log_",
)
_PENDING_ACKS = "__transaction_pending_ack"


def is_system_topic(topic: str) -> bool:
    """Tell whether a topic, or the one it is a partition of, is Pulsar's own."""
    whole = without_partition(topic)
    local = whole.partition("://")[2].split("/", 2)[-1]
    return local in _LOCAL_NAMES or whole.endswith(_PENDING_ACKS) or whole.startswith(_COORDINATOR)


def without_system_topics(topics: Iterable[str]) -> list[str]:
    """Return the topics that are users', in their order."""
    return [topic for topic in topics if not is_system_topic(topic)]
