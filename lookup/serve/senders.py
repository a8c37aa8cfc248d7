"""Count the lookups that brokers have lost, from the gaps between the numbers of those that came.

A broker numbers its lookups anew each time it starts, those too that it drops. The count goes on in the next run of a
server: each file of recorded lookups says in its metadata how far the brokers were with its last row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lookup.model.recent import Recent
from lookup.serve.messages import RecordMessage

__all__ = ["Mark", "SenderNumbers"]

#: Brokers that are counted, and starts of each: the last batch of one may come after the first of the next.
_MOST_BROKERS, _STARTS_EACH = 1000, 4


class Mark(NamedTuple):
    """How far a broker is: everything up to a number of one of its starts is recorded, refused or counted as lost."""

    broker: str
    start: str
    number: int
    #: lookups that this broker, and that all brokers, have lost
    lost: int
    lost_of_all: int


class SenderNumbers:
    """Where all brokers are with their numbers; an earlier run goes on with what its `text` was."""

    def __init__(self, text: str | None = None) -> None:
        #: lookups lost of all brokers, those included that are not known any more
        self.lost_of_all = 0
        #: by broker, lookups lost, and by its starts the number up to which is known what became of them
        self._known: Recent[str, tuple[int, Recent[str, int]]] = Recent(_MOST_BROKERS)
        document = json.loads(text or '{"brokers": {}}')
        for broker, (lost, starts) in document["brokers"].items():
            for start, number in starts.items():
                self.note(Mark(broker, start, number, lost, document["lost"]))

    def text(self) -> str:
        """Return what is known, as JSON."""
        return json.dumps({"lost": self.lost_of_all, "brokers": self._known})

    @property
    def lost(self) -> Mapping[str, int]:
        """The lookups lost by each broker."""
        return {broker: lost for broker, (lost, _) in self._known.items()}

    def note(self, mark: Mark) -> None:
        """Take over how far a broker is."""
        _, starts = self._known.get(mark.broker, (0, Recent[str, int](_STARTS_EACH)))
        starts.put(mark.start, mark.number)
        self._known.put(mark.broker, (mark.lost, starts))
        self.lost_of_all = mark.lost_of_all

    def take(self, message: RecordMessage) -> tuple[Sequence[tuple[str, Mapping[str, Any], Mark]], bool]:
        """Return the rows of a batch that did not come before, each with its mark, and whether the start is new."""
        lost, starts = self._known.get(message.broker, (0, Recent[str, int](0)))
        before, end, is_new = starts.get(message.start), message.up_to, message.start not in starts
        if not message.start:
            # Without numbers there is the broker's own count, which begins anew when the broker does.
            end = message.dropped
            lost += end - (before if before and before <= end else 0)
            rows = [(bundle, row, self._mark(message, end, lost)) for _, bundle, row in message.rows]
        else:
            if before is None:
                # What came before may be in another record. Of that the broker itself knows what it has lost.
                before = message.numbers[0] - 1 if message.numbers else end
                lost += max(0, message.dropped - (end - before - len(message.numbers)))
            places = {number: place for place, number in enumerate((n for n in message.numbers if n > before), start=1)}
            rows = [
                (bundle, row, self._mark(message, number, lost + number - before - places[number]))
                for number, bundle, row in message.rows
                if number in places
            ]
            end = max(before, end)
            lost += end - before - len(places)
        self.note(self._mark(message, end, lost))
        return rows, is_new

    def _mark(self, message: RecordMessage, number: int, lost: int) -> Mark:
        before, _ = self._known.get(message.broker, (0, None))
        return Mark(message.broker, message.start, number, lost, self.lost_of_all + lost - before)
