"""Which part of a log is sealed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import InputError
from lookup.tuning.sealing import seal

_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
_RULES = {"holdout": 0.3, "block_s": 3600, "blocks": 8}


def test_whole_days_are_sealed() -> None:
    """Of a week that begins at noon the last three days, since two are less than 30 %."""
    found = seal(_DAY // 2, _DAY // 2 + 7 * _DAY - 1, _DAY // 2, **_RULES)

    assert found.from_us == 5 * _DAY


def test_of_a_short_log_whole_blocks_are_sealed() -> None:
    """Of a day and a half no whole day would be left to search."""
    found = seal(0, 36 * _HOUR - 1, 0, **_RULES)

    assert found.from_us == 25 * _HOUR


@given(st.integers(0, 10 * _DAY), st.integers(40, 24 * 30), st.floats(0.2, 0.6))
def test_at_least_the_share_is_sealed_and_the_rest_can_be_searched(first: int, hours: int, holdout: float) -> None:
    """Both parts have the blocks that a verdict asks for, and no block is cut."""
    last = first + hours * _HOUR

    found = seal(first, last, first, **{**_RULES, "holdout": holdout})

    assert found.last_us - found.from_us >= holdout * hours * _HOUR - 1
    assert found.from_us - first >= 8 * _HOUR
    assert found.from_us % _HOUR == 0


def test_a_log_that_is_too_short_is_refused() -> None:
    """With the length that would do, and it does."""
    with pytest.raises(InputError, match=r"6.0 hours .* 27.7 hours; .* no_holdout=True"):
        seal(0, 6 * _HOUR, 0, **_RULES)
    seal(0, int(27.7 * _HOUR), 0, **_RULES)


def test_what_warms_up_is_no_part_of_what_is_searched() -> None:
    """Ten hours more than without it do."""
    with pytest.raises(InputError, match=r"28.0 hours .* takes "):
        seal(0, 28 * _HOUR, 15 * _HOUR, **_RULES)
    found = seal(0, 36 * _HOUR, 15 * _HOUR, **_RULES)
    assert found.from_us - found.scored_us >= 8 * _HOUR
