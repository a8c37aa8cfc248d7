"""Text and JSON logs of Pulsar brokers: binary lookups at DEBUG, failures, and who came to own which bundle.

Source: `docs/pulsar/logs.md`. The text behind `Lookup result` and `Received Lookup from` differs between releases and
is read leniently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from lookup.logs.readers.broker_messages import FIRST_WORDS, MESSAGES, BrokerLog
from lookup.logs.readers.layouts import LineLayout, is_continuation
from lookup.logs.readers.origin import LogOrigin
from lookup.logs.readers.records import unreadable
from lookup.model.documents import Row, Unreadable

__all__ = ["PulsarBrokerReader"]

_OURS = re.compile("|".join(FIRST_WORDS))


@dataclass(frozen=True)
class PulsarBrokerReader(LogOrigin):
    """Reads LOOKUPS and OWNERSHIP from the log of a broker, versions up to 5.0, text or JSON."""

    name: ClassVar[str] = "pulsar-broker"
    expects: ClassVar[str] = (
        "a broker's log with lookups (logged at DEBUG only), failed lookups or changes of bundle ownership"
    )

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield lookups, each with its answer where the log has it, and changes of ownership."""
        layout = LineLayout(self, source)
        log = BrokerLog(self.names, self.broker_of(source), self.cluster_of(source))
        now = 0
        for number, line in lines:
            if _OURS.search(line) is None:
                layout.pass_over(line)
                continue
            try:
                event = layout.read(line)
                if event is None and not is_continuation(line):
                    log.refuse(unreadable(number, "the line is in none of the layouts of Pulsar's logs", line))
                if event is not None:
                    now = event.ts
                    # The first shape that fits has the line.
                    any(take(log, number, event) for take in MESSAGES)
            except ValueError as error:
                log.refuse(unreadable(number, str(error), line))
            yield from log.rows.ready(now)
        yield from log.rows.rest()
