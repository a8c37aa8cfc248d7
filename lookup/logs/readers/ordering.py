"""Put the events of a log into the order of time: exports of log stores begin with the newest line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Protocol, TypeVar

__all__ = ["Timed", "in_order"]

#: Events whose order is judged at once.
_PART = 1_000
#: Events that are held to be put in order; of a broker's log about 1 GB.
_MOST = 1_000_000
#: Threads of a broker write lines by so much too late, µs; a longer step back has another reason.
_LATE_US = 1_000_000
#: Share of such steps back with which a source has no order at all; files that are joined have a few.
_MOST_FAR = 0.05


class Timed(Protocol):
    """An event with a time."""

    @property
    def ts(self) -> int:
        """Return the time, µs since the Unix epoch."""


Event = TypeVar("Event", bound=Timed)


def in_order(events: Iterable[Event]) -> Iterator[Event]:
    """Yield events as they come as long as time mostly goes forward, and from there on in the order of time.

    Events that run backwards are turned round, so that those of one instant are in order as well; events in no order
    are sorted.

    Raises:
        ValueError: if there are too many to be put in order.
    """
    source = iter(events)
    # Part by part: a log may begin in order, and have an export that begins with the newest line behind that.
    while part := list(islice(source, _PART)):
        if not _is_unordered(part):
            yield from part
            continue
        held = [*part, *islice(source, _MOST - len(part))]
        if next(source, None) is not None:
            raise ValueError(
                f"lines go back in time, and more than {_MOST:,} are too many to be put in order; sort the file"
            )
        forward, backward, _ = _steps(held)
        if backward > 2 * forward:
            held.reverse()
        if _steps(held)[2]:
            held.sort(key=lambda event: event.ts)
        yield from held


def _is_unordered(events: Sequence[Timed]) -> bool:
    """Return whether events run backwards, or in no order."""
    forward, backward, far = _steps(events)
    return backward > forward or far > _MOST_FAR * len(events)


def _steps(events: Sequence[Timed]) -> tuple[int, int, int]:
    """Count steps forward, steps back, and of these the ones that are too far for threads that write late."""
    steps = [later.ts - earlier.ts for earlier, later in pairwise(events)]
    return sum(step > 0 for step in steps), sum(step < 0 for step in steps), sum(step < -_LATE_US for step in steps)
