"""Blocks and sessions that are in proportion to a log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lookup.replay.proportions import blocks_in, longest_block, suggested_session
from tests.replay.small import LOOKUP, replayed, write_log

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


_NAMESPACES = 20


def found(folder: Path, heavy: int, **given: Any) -> list[Mapping[str, str]]:
    """Replay ten lookups of each of twenty namespaces and so many more of the first; return the findings of a rule."""
    topics = [f"persistent://t/n{number}/x" for number in [*list(range(_NAMESPACES)) * 10, *[0] * heavy]]
    write_log(
        folder, *({"ts": LOOKUP["ts"] + second * 1_000_000, "topic": topic} for second, topic in enumerate(topics))
    )
    outcome = replayed(folder, evaluation={"default_bundles": 1}, **given)
    return [finding for finding in outcome.inputs.findings or () if finding.rule == "skewed"]


def test_one_bundle_with_most_of_the_traffic_is_a_finding(tmp_path: Path) -> None:
    """With its share, and how many bundles the log is worth: 490² / (300² + 19 · 10²)."""
    (finding,) = found(tmp_path, heavy=290)

    assert finding.what == "one bundle carries 61% of the traffic"
    assert finding.how_often == "20 bundles"
    assert "the evidence of 2.6 bundles of equal weight, fewer than verdict.min_units = 8" in finding.evidence


def test_traffic_that_is_spread_is_none(tmp_path: Path) -> None:
    """Twenty equal bundles are twenty, and a limit below the evidence asks for nothing."""
    assert found(tmp_path / "even", heavy=0) == []
    assert found(tmp_path / "enough", heavy=290, verdict={"min_units": 2}) == []


def test_it_can_be_accepted(tmp_path: Path) -> None:
    """As every finding."""
    assert found(tmp_path, heavy=290, lint={"accept": ["skewed"]}) == []
