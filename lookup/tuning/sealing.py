"""Divide a log into the part that a search looks at, and the part that is sealed until it has chosen."""

from __future__ import annotations

from dataclasses import dataclass

from lookup.errors import Argument, InputError
from lookup.model.quoting import quantity
from lookup.model.time import US_PER_S

__all__ = ["DAY_US", "Seal", "seal"]

DAY_US = 86_400 * US_PER_S
_HOUR_S = 3_600


@dataclass(frozen=True, slots=True)
class Seal:
    """Where a log is divided, µs since the Unix epoch."""

    first_us: int
    #: the first scored instant, after the warm-up
    scored_us: int
    #: the first sealed instant. Without sealed days, the first scored one
    from_us: int
    #: the last lookup
    last_us: int


def seal(first_us: int, last_us: int, scored_us: int, *, holdout: float, block_s: int, blocks: int) -> Seal:
    """Divide a log so that at least a share of it is sealed, in whole days if that leaves one on either side.

    Args:
        first_us: time of the first lookup.
        last_us: time of the last one.
        scored_us: the first scored instant.
        holdout: the share.
        block_s: length of the blocks in which a verdict counts. No block is divided.
        blocks: least number of blocks in each part.

    Raises:
        InputError: if the log is too short.
    """
    block_us = block_s * US_PER_S
    from_us = _divide(first_us, last_us, holdout, DAY_US)
    # The last lookup of a day comes before its end.
    if min(from_us - first_us, last_us - from_us) < DAY_US - block_us:
        from_us = _divide(first_us, last_us, holdout, block_us)
    parts = from_us - scored_us, last_us - from_us
    if min(parts) < blocks * block_us:
        warmup_s = (scored_us - first_us) / US_PER_S
        needed_s = max(blocks * block_s / holdout, (blocks * block_s + warmup_s) / (1.0 - holdout)) + block_s
        raise InputError(
            f"the log is {_format_hours((last_us - first_us) / US_PER_S)} long; to choose on one part and confirm on "
            f"another, each of at least {quantity(blocks, 'block')} of {block_s:,} s, takes {_format_hours(needed_s)}; "
            "a smaller verdict.block_s takes less, and ",
            Argument("no_holdout", True),
            " does without a confirmation",
        )
    return Seal(first_us, scored_us, from_us, last_us)


def _divide(first_us: int, last_us: int, holdout: float, grid_us: int) -> int:
    return int(last_us - holdout * (last_us - first_us)) // grid_us * grid_us


def _format_hours(seconds: float) -> str:
    return f"{seconds / _HOUR_S:.1f} hours"
