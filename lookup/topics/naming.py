"""The parts of a topic's name that listing looks at: partition suffix, scheme, namespace.

Names are taken as they come, many at a time; whoever wants them checked parses them with `lookup.model.names`.

Source: `facts/protocol.md` section 4.2; which suffix numbers a partition: Pulsar's `TopicName.getPartitionIndex`.
"""

from __future__ import annotations

import re

from lookup.errors import ArgumentError
from lookup.model.catalog import Mode

__all__ = ["MODES", "schemes_of", "without_partition", "without_scheme"]

#: How a listing may be asked for.
MODES: tuple[Mode, ...] = ("persistent", "non-persistent", "all")

_MARK = "-partition-"
_SUFFIX = re.compile(rf"{_MARK}(0|[1-9][0-9]{{0,9}})\Z")
#: The largest partition Java can number.
_LAST = (1 << 31) - 1


def without_partition(topic: str) -> str:
    """Return the partitioned topic a partition belongs to, other names as they are; `t-partition-01` is none."""
    if _MARK not in topic:  # most names, and much faster than the search
        return topic
    found = _SUFFIX.search(topic)
    return topic if found is None or int(found[1]) > _LAST else topic[: found.start()]


def without_scheme(topic: str) -> str:
    """Return `tenant/namespace/local` of a complete name."""
    return topic.partition("://")[2] or topic


def schemes_of(mode: Mode) -> tuple[str, ...]:
    """Return with what the names of a mode begin.

    Raises:
        ArgumentError: for a mode that does not exist.
    """
    if mode not in MODES:
        raise ArgumentError(f"there is no mode {mode!r}; known: {', '.join(MODES)}")
    domains = ("persistent", "non-persistent") if mode == "all" else (mode,)
    return tuple(f"{domain}://" for domain in domains)
