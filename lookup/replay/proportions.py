"""Find which lengths of time are in proportion to a log, how loaded its brokers are, and which labels these have."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from lookup.engine.ledger import MICRO
from lookup.model.topology import LEVELS
from lookup.replay.plan import ClusterPlan

__all__ = [
    "blocks_in", "longest_block", "mean_load_of", "published_labels", "suggested_session",
]  # fmt: skip

#: Lengths of blocks that are proposed, s.
_ROUND_S = (3600, 1800, 900, 600, 300, 60)
#: Lookups that a broker should serve while load is measured. Random variation is then a tenth of its load.
_ENOUGH = 100
#: No longer session is suggested, s.
_LONGEST_S = 3600


def blocks_in(first_us: int, last_us: int, *, balance_s: int, block_s: int) -> int:
    """Count the blocks of neighbouring cells in a time, as verdicts count them.

    Args:
        first_us: first lookup that is scored, µs.
        last_us: last lookup that is scored, µs.
        balance_s: length of a cell.
        block_s: length of a block, which is rounded to whole cells.
    """
    cell_us = balance_s * MICRO
    cells = max(0, last_us // cell_us - first_us // cell_us + 1)
    return -(-cells // max(1, round(block_s / balance_s)))


def longest_block(first_us: int, last_us: int, *, at_least: int, tick_s: int) -> int | None:
    """Find the longest round length of a cell and block with enough of them in a time, s, None if there is none.

    Args:
        first_us: first lookup that is scored, µs.
        last_us: last lookup that is scored, µs.
        at_least: number of blocks that is enough.
        tick_s: length of a tick, of which a cell is a multiple.
    """
    return next(
        (
            length
            for length in _ROUND_S
            if not length % tick_s and blocks_in(first_us, last_us, balance_s=length, block_s=length) >= at_least
        ),
        None,
    )


def suggested_session(rate: float, tick_s: int) -> int:
    """Compute the shortest session, in whole ticks, in which a broker serves enough lookups, at most an hour, s."""
    return math.ceil(min(_LONGEST_S, _ENOUGH / rate) / tick_s) * tick_s


def mean_load_of(micro: int, seconds: float, brokers: int) -> float | None:
    """Compute the weight per second that a broker serves on average, None without a broker.

    Args:
        micro: weight of the log, in millionths.
        seconds: time from its first lookup to its last, at least a tick.
        brokers: number of registered brokers.
    """
    return micro / MICRO / seconds / brokers if brokers else None


def published_labels(clusters: Sequence[ClusterPlan]) -> dict[str, Counter[str]]:
    """Count by key how many brokers have each label. Clients' properties are compared with these labels."""
    published: dict[str, Counter[str]] = {}
    for broker in (broker for cluster in clusters for broker in cluster.timeline.brokers):
        prefix = broker.property_prefix
        # The place as settings have it, and the labels that the broker publishes.
        labels = {level: place for level in LEVELS if (place := getattr(broker.location, level)) is not None}
        labels |= {
            key.removeprefix(prefix): value
            for key, value in broker.lookup_data.properties.items()
            if key.startswith(prefix)
        }
        for key, value in labels.items():
            published.setdefault(key, Counter())[value] += 1
    return published
