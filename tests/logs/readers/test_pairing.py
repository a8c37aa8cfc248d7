"""Rows that wait for later lines: requests for answers, choices of owners for what refutes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookup.logs.readers.pairing import Pairing
from lookup.model.documents import Row, Unreadable

_SECOND = 1_000_000


def _row(line: int, second: int, topic: str = "x", **values: str) -> Row:
    return Row("lookups", line, {"ts": second * _SECOND, "topic": topic, **values})


def test_rows_wait_behind_an_open_request_for_half_a_minute() -> None:
    """Later rows are held back until the request has its answer or nobody can expect one."""
    pairing = Pairing()
    pairing.ask(_row(1, 1))
    pairing.put(Unreadable(2, "bad", "text"))

    assert list(pairing.ready(20 * _SECOND)) == []
    assert [row.line for row in pairing.ready(32 * _SECOND)] == [1, 2]
    pairing.answer(_row(9, 40))
    assert [row.line for row in pairing.ready()] == [9]


@given(st.lists(st.tuples(st.sampled_from("apr"), st.sampled_from("xyz"), st.integers(0, 50))))
def test_nothing_is_lost_and_the_order_of_lines_stays(events: list[tuple[str, str, int]]) -> None:
    """Rows come out in the order of their lines; every request and every unmatched answer comes out once."""
    pairing, out, second = Pairing(), [], 0
    for line, (kind, topic, step) in enumerate(events, start=1):
        second += step
        row = _row(line, second, topic)
        {"a": pairing.ask, "r": pairing.answer, "p": pairing.put}[kind](row)
        out += list(pairing.ready(row.values["ts"]))
    out += list(pairing.ready())

    lines = [entry.line for entry in out]
    assert lines == sorted(set(lines))
    assert {line for line, (kind, _, _) in enumerate(events, start=1) if kind != "r"} <= set(lines)


def test_a_row_can_be_withdrawn_while_it_is_held() -> None:
    """The latest row with a claim goes, and rows behind it wait no longer."""
    pairing = Pairing()
    pairing.put(_row(1, 1), claim="a")
    pairing.put(_row(2, 2), claim="a")
    pairing.put(_row(3, 3))

    assert pairing.claimed_at("a") == 2 * _SECOND
    pairing.withdraw("a")
    assert pairing.claimed_at("a") is None
    assert [row.line for row in pairing.ready()] == [1, 3]


def test_a_row_with_a_claim_is_out_after_half_a_minute() -> None:
    """Nothing can withdraw it then."""
    pairing = Pairing()
    pairing.put(_row(1, 1), claim="a")

    assert list(pairing.ready(31 * _SECOND)) == []
    assert [row.line for row in pairing.ready(32 * _SECOND)] == [1]
    assert pairing.claimed_at("a") is None
