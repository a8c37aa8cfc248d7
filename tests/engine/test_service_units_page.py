"""The page `docs/service-units.md`: its tables say what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.engine.service_unit import ChannelStorage, ServiceUnitState, ServiceUnitStateData, next_states
from lookup.errors import ArgumentError
from tests.engine.channel.broker import IN_FLIGHT, Channel, Settled

_PAGE = Path(__file__).parents[2] / "docs" / "service-units.md"
_S = ServiceUnitState
_WORDS = {"its destination": "dst", "its source": "src", "nobody": None}


def _rows(heading: str) -> dict[str, list[str]]:
    """Return the cells behind the state of every row of a section's table."""
    section = _PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {cells[0].strip(" `"): [cell.strip() for cell in cells[1:]] for cells in rows}


@pytest.mark.parametrize("state", ServiceUnitState)
def test_transitions_are_those_of_the_code(state: ServiceUnitState) -> None:
    """A row for every state, both storages."""
    expected = [", ".join(f"`{after}`" for after in sorted(next_states(state, storage))) for storage in ChannelStorage]

    assert _rows("States")[state] == expected


@pytest.mark.parametrize("state", ServiceUnitState)
def test_answers_are_those_of_the_code(state: ServiceUnitState) -> None:
    """What a broker elsewhere answers, and what clients are told."""
    channel = Channel("elsewhere")
    if state is not _S.INIT:
        channel.records["t/n/b"] = ServiceUnitStateData(state, "dst", "src")
    answers, told = (cell.partition(";")[0].partition(",")[0] for cell in _rows("What a broker answers")[state])

    assert channel.destination("t/n/b") == _WORDS[told]
    if state is _S.DELETED:
        with pytest.raises(ArgumentError, match="look its topics up again"):
            channel.owner("t/n/b", registered=(), now_ms=0)
        assert answers.startswith("an error")
    else:
        assert channel.owner("t/n/b", registered=("dst", "src"), now_ms=0) == Settled("t/n/b", _WORDS[answers])


def test_the_groups_are_named() -> None:
    """States in flight stand in a sentence of their own."""
    assert f"*In flight* are {', '.join(sorted(IN_FLIGHT)[:2])} and Splitting" in _PAGE.read_text(encoding="utf-8")
