"""Blocks and sessions that are in proportion to a log."""

from __future__ import annotations

import pytest

from lookup.replay.proportions import blocks_in, longest_block, suggested_session

_HOUR = 3_600_000_000
#: A lookup is a moment before the end of its hour.
_FIRST, _MOMENT = 1_767_571_200_000_000, 1


@pytest.mark.parametrize(
    ("balance_s", "block_s", "blocks"),
    [(3600, 3600, 5), (900, 900, 20), (900, 3600, 5), (900, 2700, 7), (3600, 900, 5), (900, 1000, 20)],
)
def test_blocks_are_whole_cells(balance_s: int, block_s: int, blocks: int) -> None:
    """Of five hours: a block is rounded to cells and has one at least, and what is left over is a block."""
    last = _FIRST + 5 * _HOUR - _MOMENT

    assert blocks_in(_FIRST, last, balance_s=balance_s, block_s=block_s) == blocks


def test_nothing_has_no_blocks() -> None:
    """A warm-up may be longer than the log."""
    assert blocks_in(_FIRST + _HOUR, _FIRST, balance_s=900, block_s=900) == 0


@pytest.mark.parametrize(
    ("hours", "tick_s", "length"),
    [(20, 60, 3600), (19, 60, 1800), (5, 60, 900), (1, 60, 60), (0.3, 60, None), (5, 600, 600), (5, 7, None)],
)
def test_the_longest_block_is_a_round_one(hours: float, tick_s: int, length: int | None) -> None:
    """Of which the log has twenty, and which is a multiple of a tick; None if there is none."""
    last = _FIRST + int(hours * _HOUR) - _MOMENT

    assert longest_block(_FIRST, last, at_least=20, tick_s=tick_s) == length


@pytest.mark.parametrize(("rate", "session_s"), [(10.0, 60), (1.0, 120), (0.5, 240), (0.001, 3600)])
def test_a_session_serves_a_hundred_lookups(rate: float, session_s: int) -> None:
    """In whole ticks, and an hour at most."""
    assert suggested_session(rate, 60) == session_s
