"""Events of logs that are not in the order of time."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.logs.readers.ordering import in_order

_S = 1_000_000


@dataclass(frozen=True)
class _Event:
    ts: int
    number: int


def _events(*times: int) -> list[_Event]:
    return [_Event(ts, number) for number, ts in enumerate(times)]


@given(gaps=st.lists(st.integers(0, 5 * _S), min_size=1, max_size=50))
def test_a_log_that_runs_backwards_is_turned_round(gaps: list[int]) -> None:
    """So that events of one instant are in order as well."""
    times = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    events = _events(*times)
    steps = sum(gap > 0 for gap in gaps[1:])

    assert list(in_order(events)) == events
    if steps:
        assert list(in_order(events[::-1])) == events


def test_threads_that_write_late_are_left_as_they_are() -> None:
    """Some ms of disorder are in every log of a broker; joining depends on the order of its lines."""
    events = _events(*(10_000 * number - 25_000 * (number % 3 == 2) for number in range(3_000)))

    assert list(in_order(events)) == events


def test_files_that_were_joined_are_left_as_they_are() -> None:
    """One step back is no reason to hold a log in memory."""
    events = _events(*range(500 * _S, 1_000 * _S, _S), *range(0, 500 * _S, _S))
    first = [*events[:490], *events[500:505]]

    assert list(in_order(first)) == first


def test_events_in_no_order_are_sorted() -> None:
    """By time; those of one instant stay as they came."""
    events = _events(*range(0, 300 * _S, _S))
    shuffled = Random(1).sample(events, len(events))

    assert list(in_order(shuffled)) == events


def test_too_many_events_to_be_sorted_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do."""
    monkeypatch.setattr("lookup.logs.readers.ordering._MOST", 1_500)

    with pytest.raises(ValueError, match="more than 1,500 are too many to be put in order; sort the file"):
        list(in_order(_events(*range(2_000 * _S, 0, -_S))))


@pytest.mark.parametrize("how", ["newest first", "in no order"])
def test_a_log_that_loses_its_order_is_put_in_order_from_there_on(how: str) -> None:
    """An export may be joined to a log; what came before is as it was."""
    events = _events(*range(0, 3_000 * _S, _S))
    first, rest = events[:1_200], events[1_200:]
    other = rest[::-1] if how == "newest first" else Random(1).sample(rest, len(rest))

    assert list(in_order([*first, *other])) == events


def test_files_that_are_joined_anywhere_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long they are; a step back is a joint, wherever it is."""
    monkeypatch.setattr("lookup.logs.readers.ordering._MOST", 1_500)
    events = _events(*range(5_000 * _S, 7_500 * _S, _S), *range(0, 2_500 * _S, _S))

    assert list(in_order(events)) == events
