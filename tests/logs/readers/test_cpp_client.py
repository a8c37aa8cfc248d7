"""The reader of C++, Python and Node clients' logs."""

from __future__ import annotations

from lookup.logs.readers import CppClientReader
from lookup.model.documents import Unreadable
from tests.logs.readers.lines import one_row, read_lines

_TOPIC = "persistent://public/default/t-partition-3"


def test_a_failure_is_a_lookup_that_failed() -> None:
    """`Lookup failed for T, result R` is demand without an answer; the zone of the log is a parameter."""
    line = f"2026-01-31 13:00:00.250 ERROR [140:7] ClientImpl:1 | Lookup failed for {_TOPIC}, result ConnectError"
    values = one_row(CppClientReader(client="c1", timezone="Europe/Berlin"), line)
    assert values == {"ts": 1769860800250000, "topic": _TOPIC, "client": "c1", "properties": {}, "result": "failed"}


def test_what_cannot_be_used_says_why_and_the_rest_is_passed_over() -> None:
    """Lines without time are reported; retries and other lines are not."""
    (timeless,) = read_lines(
        CppClientReader(),
        "2026-01-31 12:00:00.250 INFO  x | Reschedule get-broker-persistent://p/d/a for 100 ms, remaining time: 7 ms",
        f"Lookup failed for {_TOPIC}, result Timeout",
    )

    assert timeless == Unreadable(2, "the line has no timestamp", f"Lookup failed for {_TOPIC}, result Timeout")
