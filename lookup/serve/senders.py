"""Count the lookups that brokers have lost, from gaps in the numbers of the received ones.

A broker numbers its lookups from 1 again at each start, including dropped ones. The count continues in the next run of
a server, since each file of recorded lookups has the positions of the brokers at its last row in its metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lookup.model.recent import Recent
from lookup.serve.messages import RecordMessage

__all__ = ["Mark", "SenderNumbers"]

#: Brokers that are counted, and starts of each, since the last batch of one may come after the first of the next.
_MOST_BROKERS, _STARTS_EACH = 1000, 4


class Mark(NamedTuple):
    """A broker's position, a number of one of its starts, up to which all is recorded, refused or counted as lost."""

    broker: str
    start: str
    number: int
    #: lookups that this broker, and that all brokers, have lost
    lost: int
    lost_of_all: int


class SenderNumbers:
    """The positions of all brokers in their numbers, which continue from the `text` of an earlier run."""

    def __init__(self, text: str | None = None) -> None:
        #: lookups lost of all brokers, those included that are not known any more
        self.lost_of_all = 0
        #: by broker, lost lookups, and by its starts the number up to which the outcome of lookups is known
        self._known: Recent[str, tuple[int, Recent[str, int]]] = Recent(_MOST_BROKERS)
        document = json.loads(text or '{"brokers": {}}')
        for broker, (lost, starts) in document["brokers"].items():
            for start, number in starts.items():
                self.note(Mark(broker, start, number, lost, document["lost"]))

    def text(self) -> str:
        """Convert the positions to JSON."""
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
        """Select the rows of a batch that did not come before, each with its mark, and whether the start is new."""
        lost, starts = self._known.get(message.broker, (0, Recent[str, int](0)))
        before, end, is_new = starts.get(message.start), message.up_to, message.start not in starts
        if not message.start:
            # Without numbers only the broker's own count is available, which begins again when the broker does.
            end = message.dropped
            lost += end - (before if before and before <= end else 0)
            rows = [(bundle, row, self._build_mark(message, end, lost)) for _, bundle, row in message.rows]
        else:
            if before is None:
                # Earlier lookups may be in another record. The broker itself knows how many of them it has lost.
                before = message.numbers[0] - 1 if message.numbers else end
                lost += max(0, message.dropped - (end - before - len(message.numbers)))
            places = {number: place for place, number in enumerate((n for n in message.numbers if n > before), start=1)}
            rows = [
                (bundle, row, self._build_mark(message, number, lost + number - before - places[number]))
                for number, bundle, row in message.rows
                if number in places
            ]
            end = max(before, end)
            lost += end - before - len(places)
        self.note(self._build_mark(message, end, lost))
        return rows, is_new

    def _build_mark(self, message: RecordMessage, number: int, lost: int) -> Mark:
        before, _ = self._known.get(message.broker, (0, None))
        return Mark(message.broker, message.start, number, lost, self.lost_of_all + lost - before)
