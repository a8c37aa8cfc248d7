"""Put the events of a log into the order of time: exports of log stores begin with the newest line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, pairwise
from typing import Protocol, TypeVar

__all__ = ["Timed", "in_order"]

#: Events by which the order of a source is judged.
_HEAD = 1_000
#: Events that are held to be put in order; of a broker's log about 1 GB.
_MOST = 1_000_000
#: Threads of a broker write lines by so much too late, µs.
_LATE_US = 1_000_000
#: Share of events behind a later one with which a source has no order at all; files that are joined have a few.
_MOST_LATE = 0.05


class Timed(Protocol):
    """An event with a time."""

    @property
    def ts(self) -> int:
        """Return the time, µs since the Unix epoch."""


Event = TypeVar("Event", bound=Timed)


def in_order(events: Iterable[Event]) -> Iterator[Event]:
    """Yield events as they come if time mostly goes forward, else in the order of time.

    Events of a source that runs backwards are turned round, so that those of one instant are in order as well; events
    in no order are sorted.

    Raises:
        ValueError: if there are too many to be put in order.
    """
    source = iter(events)
    head = list(islice(source, _HEAD))
    times = [event.ts for event in head]
    forward = sum(later > earlier for earlier, later in pairwise(times))
    backward = sum(later < earlier for earlier, later in pairwise(times))
    late, latest = 0, times[0] if times else 0
    for ts in times:
        latest = max(latest, ts)
        late += latest - ts > _LATE_US
    is_shuffled = late > _MOST_LATE * len(times)
    if backward <= forward and not is_shuffled:
        yield from chain(head, source)
        return
    held = [*head, *islice(source, _MOST - len(head))]
    if next(source, None) is not None:
        raise ValueError(
            f"lines go back in time, and more than {_MOST:,} are too many to be put in order; sort the file"
        )
    if backward > 2 * forward:
        held.reverse()
    else:
        held.sort(key=lambda event: event.ts)
    yield from held
